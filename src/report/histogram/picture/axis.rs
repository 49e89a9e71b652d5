//! The axis of magnitudes that the histogram and the formats share.

use super::super::HistogramReport;
use super::super::axis::Limits;
use super::{AXIS, BETWEEN, FAINT, LEFT, NOTE, RIGHT};
use crate::format::{exponent_of, pow2};
use crate::report::number;
use crate::report::picture::{Anchor, Picture};

/// How far outside the data, in binades, the limit of a format may be and still widen the axis. Enough to
/// show float16's 65504 beside gradients, not so much that bfloat16's 2^-133 squeezes them.
const REACH: f64 = 26.0;
/// Fewest binades shown.
const FEWEST: i32 = 16;

/// A magnitude as the picture names it: powers of two as such, anything else in about four digits.
pub(super) fn label(value: f64) -> String {
    let exponent = exponent_of(value);
    if pow2(exponent) == value { power(2, exponent) } else { scientific(value) }
}

/// The range of log2 |x| that is shown, and the pixels it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    pub(super) fn new(report: &HistogramReport, limits: &[Option<Limits>]) -> Self {
        let one = -libm::log2(report.options.scale.into()).round() as i32;
        let (first, last) = report.total.binades.range().unwrap_or((one, one));
        let (mut low, mut high) = (first, last + 1);
        let near = (f64::from(low) - REACH)..=(f64::from(high) + REACH);
        for limit in limits.iter().flatten().flat_map(Limits::all).filter(|limit| near.contains(limit)) {
            low = low.min(limit.floor() as i32);
            high = high.max(limit.ceil() as i32);
        }
        let lacking = (FEWEST - (high - low)).max(0);
        let margin = 2 + (high - low) / 32;
        Self { low: (low - margin - lacking / 2).into(), high: (high + margin + lacking / 2).into() }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// Pixels per binade.
    pub(super) fn binade(&self) -> f64 {
        (RIGHT - LEFT) / (self.high - self.low)
    }

    /// The pixel of a position, or of the end of the axis that it lies beyond.
    pub(super) fn x(&self, log2: f64) -> f64 {
        LEFT + (log2.clamp(self.low, self.high) - self.low) * self.binade()
    }

    /// Draws the axis below the histogram, with powers of two, and powers of ten below these. `top` and
    /// `bottom` are the ends of the guides that lead from the ticks to both panels.
    pub(super) fn draw(&self, picture: &mut Picture, y: f64, top: f64, bottom: f64) {
        let style = NOTE.anchored(Anchor::Middle);
        let note = NOTE.coloured(AXIS);
        let pitch = step(&[1, 2, 4, 8, 16, 32, 64, 128, 256], self.binade(), 48.0);
        let multiples = (self.low as i32).div_euclid(pitch)..=(self.high as i32).div_euclid(pitch);
        for exponent in multiples.map(|multiple| multiple * pitch) {
            if f64::from(exponent) < self.low {
                continue;
            }
            let x = self.x(exponent.into());
            picture.line(&[(x, top), (x, y)], 1.0, FAINT);
            if bottom > y + BETWEEN {
                picture.line(&[(x, y + BETWEEN - 6.0), (x, bottom)], 1.0, FAINT);
            }
            picture.line(&[(x, y), (x, y + 5.0)], 1.0, AXIS);
            picture.text((x, y + 19.0), &power(2, exponent), style);
        }
        picture.line(&[(LEFT, y), (RIGHT, y)], 1.0, AXIS);
        picture.text((RIGHT + 34.0, y + 19.0), "|x|, powers of 2", note);

        let decade = std::f64::consts::LOG2_10;
        let pitch = step(&[1, 2, 3, 5, 10, 20, 50, 100], decade * self.binade(), 64.0);
        let multiple = |end: f64| end / decade / f64::from(pitch);
        let (first, last) = (multiple(self.low).ceil() as i32, multiple(self.high).floor() as i32);
        for exponent in (first..=last).map(|multiple| multiple * pitch) {
            let x = self.x(f64::from(exponent) * decade);
            picture.line(&[(x, y + 28.0), (x, y + 33.0)], 1.0, AXIS);
            picture.text((x, y + 46.0), &power(10, exponent), style);
        }
        picture.text((RIGHT + 34.0, y + 46.0), "powers of 10", note);
    }
}

/// The first of `steps` that keeps ticks `apart` pixels from each other.
pub(super) fn step(steps: &[i32], unit: f64, apart: f64) -> i32 {
    let last = steps.last().copied().unwrap_or(1);
    steps.iter().copied().find(|&step| f64::from(step) * unit >= apart).unwrap_or(last)
}

/// base^exponent with raised digits.
fn power(base: u32, exponent: i32) -> String {
    match exponent {
        0 => return "1".into(),
        1 => return base.to_string(),
        _ => {}
    }
    let digits = exponent.to_string();
    let raised = digits.chars().map(|c| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    });
    format!("{base}{}", raised.collect::<String>())
}

/// About four digits, an exponent written as a power of ten.
pub(super) fn scientific(x: f64) -> String {
    let text = number::short(x, 4);
    match text.split_once('e').and_then(|(mantissa, exponent)| Some((mantissa, exponent.parse().ok()?))) {
        Some((mantissa, exponent)) => format!("{mantissa}·{}", power(10, exponent)),
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_are_named_by_powers() {
        assert_eq!(label(2_f64.powi(-25)), "2⁻²⁵");
        assert_eq!(label(1.0), "1");
        assert_eq!(label(2.0), "2");
        assert_eq!(label(65520.0), "65520");
        assert_eq!(label(464.0), "464");
        assert_eq!(label(65520.0 / 65536.0), "0.9998");
        assert_eq!(label(3.3961e38), "3.396·10³⁸");
    }
}
