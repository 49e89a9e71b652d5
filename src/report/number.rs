//! The only way from a number to text.

use serde::{Serialize, Serializer};

/// A figure in a report. JSON has no NaN or Inf, so these become the strings "nan", "inf" and "-inf".
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Num(pub f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&full(self.0))
        }
    }
}

/// The shortest text that reads back as the same number.
pub fn full(x: f64) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf".into() } else { "-inf".into() }
    } else if x == 0.0 || (1e-5..1e17).contains(&x.abs()) {
        format!("{x}")
    } else {
        format!("{x:e}")
    }
}

/// About `digits` significant digits, for tables: plain between 0.001 and 10^6, else with an exponent.
pub fn short(x: f64, digits: usize) -> String {
    if !x.is_finite() || x == 0.0 {
        return full(x);
    }
    let rounded = format!("{x:.*e}", digits.saturating_sub(1));
    let exponent = rounded.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok()).unwrap_or(0);
    if (-3..6).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        format!("{x:.decimals$}")
    } else {
        let (mantissa, _) = rounded.split_once('e').unwrap_or((&rounded, ""));
        format!("{mantissa}e{exponent}")
    }
}

/// Every digit of `x`: a binary number has finitely many decimals. With an exponent where [`full`] has one.
pub fn exact(x: f64) -> String {
    if !x.is_finite() || x == 0.0 {
        return full(x);
    }
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (1e-5..1e17).contains(&x.abs()) {
        return trim(&format!("{x:.1074}"));
    }
    let digits = format!("{x:.766e}");
    let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    format!("{}e{exponent}", trim(digits))
}

/// [`full`] if that takes at most `width` characters, else as many significant digits as fit.
pub fn brief(x: f64, width: usize) -> String {
    let all = full(x);
    let shorter = |digits| Some(short(x, digits)).filter(|text| text.chars().count() <= width);
    if all.chars().count() <= width {
        return all;
    }
    (2..=17).rev().find_map(shorter).unwrap_or_else(|| short(x, 2))
}

/// `x` as an odd integer times a power of two: 448 is `7·2^6`. Exact. Small integers are written as such.
pub fn binary(x: f64) -> String {
    if !x.is_finite() || (x.abs() < 32.0 && x.fract() == 0.0) {
        return full(x);
    }
    let bits = x.abs().to_bits();
    let (field, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (significand, exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    let zeros = significand.trailing_zeros();
    let (odd, power) = (significand >> zeros, exponent + zeros as i32);
    let sign = if x < 0.0 { "-" } else { "" };
    match (odd, power) {
        (_, 0) => format!("{sign}{odd}"),
        (1, _) => format!("{sign}2^{power}"),
        _ => format!("{sign}{odd}·2^{power}"),
    }
}

/// A share in percent, from counts, in three significant digits. It never shows 0 for something or 100 for not
/// quite all.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    if part == 0 {
        return "0".into();
    }
    let share = 100.0 * part as f64 / whole as f64;
    if part < whole && share >= 99.995 {
        ">99.99".into()
    } else if share < 0.001 {
        "<0.001".into()
    } else if share < 9.995 {
        short(share, 3)
    } else if share < 99.95 {
        format!("{share:.1}")
    } else if part < whole {
        format!("{share:.2}")
    } else {
        "100".into()
    }
}

/// A count with its thousands apart: 1 234 567.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 tensor`, `2 tensors`.
pub fn plural(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A size in bytes with a binary unit.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if size < 9.95 { format!("{size:.1} {}", UNITS[unit]) } else { format!("{size:.0} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_three_digits() {
        let shares = [
            (0, "0"),
            (9, "<0.001"),
            (10, "0.00100"),
            (243, "0.0243"),
            (1_240, "0.124"),
            (9_996, "1.00"),
            (99_940, "9.99"),
            (99_960, "10.0"),
            (123_456, "12.3"),
            (999_440, "99.9"),
            (999_600, "99.96"),
            (999_940, "99.99"),
            (999_999, ">99.99"),
            (1_000_000, "100"),
        ];
        for (part, text) in shares {
            assert_eq!(percent(part, 1_000_000), text, "{part} of a million");
        }
        assert_eq!(percent(0, 0), "–");
    }
}
