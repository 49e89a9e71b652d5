//! From a number that a user types to the exact value meant: decimals, hexadecimal floats, codes.

use super::pow2;
use crate::error::{Error, Result, escape};

/// A typed number, as float64 and float32 hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Literal {
    /// The nearest float64, ties to even.
    pub value: f64,
    /// The nearest float32 of the number as typed: one rounding, not two. ±Inf beyond its range.
    pub single: f32,
    /// Whether `value` is the typed number itself.
    pub exact: bool,
}

impl Literal {
    /// Whether `single` is the typed number itself.
    pub fn exact_in_single(&self) -> bool {
        self.exact && (self.value.is_nan() || f64::from(self.single) == self.value)
    }
}

/// Reads a decimal such as `0.1`, `-65520`, `1e-8`, `inf` or `nan`.
///
/// ```
/// use amp_inspect::format::literal::decimal;
/// assert!(!decimal("0.1").unwrap().exact);
/// assert!(decimal("0.125").unwrap().exact_in_single());
/// ```
///
/// # Errors
/// No number, or one too large or too small for a float64.
pub fn decimal(text: &str) -> Result<Literal> {
    let (Ok(value), Ok(single)) = (text.parse::<f64>(), text.parse::<f32>()) else {
        return Err(Error::new(format!(
            "'{}' is no number: give a decimal (0.1, -1e-8, inf, nan), a hexadecimal float (0x1.8p-3) or the \
             8 hex digits of a float32 (0x3f800001)",
            escape(text)
        )));
    };
    let Some(typed) = Decimal::read(text) else {
        return Ok(Literal { value, single, exact: true });
    };
    in_range(text, value, typed.digits.is_empty())?;
    // 767 significant digits are the most that a float64 can need.
    let held = Decimal::read(&format!("{value:.766e}"));
    Ok(Literal { value, single, exact: held == Some(typed) })
}

/// Reads a hexadecimal float such as `0x1.8p-3`: significand in base 16, exponent of 2 in base 10.
///
/// ```
/// use amp_inspect::format::literal::hexadecimal;
/// assert_eq!(hexadecimal("-0x1.8p-3").unwrap().value, -0.1875);
/// ```
///
/// # Errors
/// No such number, or one too large or too small for a float64.
pub fn hexadecimal(text: &str) -> Result<Literal> {
    let (negative, digits, power) = hex_parts(text).ok_or_else(|| {
        Error::new(format!(
            "'{}' is no hexadecimal float: it looks like 0x1.8p-3, which is 1.5·2^-3",
            escape(text)
        ))
    })?;
    let (mut significand, mut rest, mut exponent) = (0_u64, false, power);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    for (digit, step) in
        whole.chars().map(|digit| (digit, 0)).chain(fraction.chars().map(|digit| (digit, -4)))
    {
        let digit = u64::from(digit.to_digit(16).unwrap_or(0));
        // What no longer fits can only decide a tie.
        if significand >> 56 == 0 {
            significand = significand << 4 | digit;
            exponent += step;
        } else {
            rest |= digit != 0;
            exponent += step + 4;
        }
    }
    let (value, exact) = nearest(significand, rest, exponent, 53, -1074);
    let (single, _) = nearest(significand, rest, exponent, 24, -149);
    in_range(text, value, significand == 0)?;
    let sign = if negative { -1.0 } else { 1.0 };
    // A float64 that holds the number to 24 bits becomes a float32 without another rounding.
    Ok(Literal { value: sign * value, single: (sign * single) as f32, exact })
}

/// Reads the `bits`-bit code of a number of `name`, such as `0x7e`.
///
/// # Errors
/// Not hexadecimal, or too large for the format.
pub fn code(text: &str, name: &str, bits: u32) -> Result<u64> {
    let refuse = |why: String| Err(Error::new(format!("'{}' is no code of {name}: {why}", escape(text))));
    let lower = text.to_ascii_lowercase();
    let digits =
        lower.strip_prefix("0x").filter(|d| !d.is_empty() && d.chars().all(|c| c.is_ascii_hexdigit()));
    let Some(digits) = digits else {
        return refuse("a code is written in hex, such as 0x7e".into());
    };
    match u64::from_str_radix(digits, 16) {
        Ok(code) if bits >= 64 || code >> bits == 0 => Ok(code),
        _ => refuse(format!("it has more than {bits} bits")),
    }
}

fn in_range(text: &str, value: f64, is_zero: bool) -> Result<()> {
    let what = if value.is_infinite() {
        "large"
    } else if value == 0.0 && !is_zero {
        "small"
    } else {
        return Ok(());
    };
    Err(Error::new(format!("'{}' is too {what} for a float64, from which the casts are made", escape(text))))
}

/// A decimal as digits without zeros at either end, times a power of ten; equal if the numbers are.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// `None` for Inf and NaN.
    fn read(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let negative = lower.starts_with('-');
        let unsigned = lower.trim_start_matches(['+', '-']);
        if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        let (significand, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
        let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { negative, digits: String::new(), exponent: 0 });
        }
        let places = fraction.len() as i64 - (all.len() - digits.len()) as i64;
        // An exponent beyond i64 is far outside float64, which is told elsewhere.
        let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX).saturating_sub(places);
        Some(Self { negative, digits: digits.trim_start_matches('0').to_owned(), exponent })
    }
}

/// Sign, hex digits with at most one point, and power of two of a hexadecimal float.
fn hex_parts(text: &str) -> Option<(bool, &str, i64)> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let body = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?;
    let (digits, power) = match body.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (body, 0),
    };
    let points = digits.chars().filter(|&c| c == '.').count();
    let hex = digits.chars().all(|c| c == '.' || c.is_ascii_hexdigit());
    (hex && points <= 1 && digits.len() > points).then_some((negative, digits, power.into()))
}

/// `significand`·2^`exponent`, and a little more if `rest`, rounded to nearest even at `precision` bits and
/// no finer than 2^`finest`; whether nothing was lost. `significand` is below 2^60, and above 2^56 if there
/// is a rest.
fn nearest(significand: u64, rest: bool, exponent: i64, precision: i64, finest: i64) -> (f64, bool) {
    if significand == 0 {
        return (0.0, true);
    }
    let leading = exponent + i64::from(significand.ilog2());
    if leading > 1100 {
        return (f64::INFINITY, false);
    }
    let last = (leading + 1 - precision).max(finest);
    let shift = last - exponent;
    if shift <= 0 {
        // Exact: the last digit lies above the finest place, so both factors are normal.
        return (significand as f64 * pow2(exponent as i32), !rest);
    }
    if shift > 60 {
        return (0.0, false);
    }
    let kept = significand >> shift;
    let lost = significand & ((1 << shift) - 1);
    let half = 1_u64 << (shift - 1);
    let up = lost > half || (lost == half && (rest || kept & 1 == 1));
    ((kept + u64::from(up)) as f64 * pow2(last as i32), lost == 0 && !rest)
}
