//! The two numbers of a format that a value lies between, and the tie that decides which is nearer.

use std::cmp::Ordering;

use crate::cast::round::{Class, cast};
use crate::cast::{Overflow, Rounding};
use crate::format::FormatSpec;
use crate::format::decode::decode;

/// A number of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Its code.
    pub code: u32,
    /// Its value.
    pub value: f64,
}

/// Where a finite value lies among the numbers of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Whether the format holds the value itself.
    pub exact: bool,
    /// The next smaller number; `None` below the smallest.
    pub below: Option<Neighbour>,
    /// The next larger number; `None` above the largest.
    pub above: Option<Neighbour>,
    /// Halfway between the neighbours; beyond the largest number, where overflow begins. `None` for an exact
    /// value.
    pub tie: Option<f64>,
    /// Distance between the neighbours; for an exact value, to the next larger magnitude. Beyond the
    /// largest number it is that number's.
    pub ulp: f64,
}

impl Place {
    /// Of the finite `x` among the numbers of `format`.
    pub fn of(format: &FormatSpec, x: f64) -> Self {
        // With this policy what lies beyond the range becomes Inf or NaN, or else falls back to the largest number,
        // which is then on the wrong side: no neighbour either way.
        let toward = |rounding| {
            let q = cast(format, rounding, Overflow::Ieee, x);
            (q.class, Neighbour { code: q.code, value: q.value(format) })
        };
        let (class, down) = toward(Rounding::Down);
        let (_, up) = toward(Rounding::Up);
        let holds = down.value == x && class != Class::Overflow;
        if holds {
            return Self::of_number(format, down.code);
        }
        let finite = |n: &Neighbour| n.value.is_finite();
        let first = Neighbour { code: 0, value: decode(format, 0) };
        let below = Some(down).filter(finite).filter(|n| n.value < x);
        let above = Some(up).filter(finite).filter(|n| n.value > x);
        // An unsigned format, or one without zero, begins above x.
        let above = above.or_else(|| Some(first).filter(|n| !format.signed && n.value > x));
        let beyond = x.abs() > format.max_finite() && (format.signed || x > 0.0);
        let tie = match (below, above) {
            (Some(below), Some(above)) => Some(f64::midpoint(below.value, above.value)),
            _ if beyond => Some(format.overflow_threshold().copysign(x)),
            _ => None,
        };
        let ulp = match (below, above) {
            (Some(below), Some(above)) => above.value - below.value,
            _ if beyond => step(format, format.max_finite_code()),
            _ => step(format, 0),
        };
        Self { exact: false, below, above, tie, ulp }
    }

    /// Of the number with this code: the order of the codes is that of the magnitudes.
    fn of_number(format: &FormatSpec, code: u32) -> Self {
        let magnitude = code & format.magnitude_mask();
        let largest = i64::from(format.max_finite_code());
        let position =
            if code & format.sign_bit() == 0 { i64::from(magnitude) } else { -i64::from(magnitude) };
        let at = |position: i64| {
            let smallest = if format.signed { -largest } else { 0 };
            let sign = if position < 0 { format.sign_bit() } else { 0 };
            let code = sign | position.unsigned_abs() as u32;
            (smallest..=largest).contains(&position).then(|| Neighbour { code, value: decode(format, code) })
        };
        Self {
            exact: true,
            below: at(position - 1),
            above: at(position + 1),
            tie: None,
            ulp: step(format, magnitude),
        }
    }

    /// On which side of the tie `x` lies.
    pub fn side(&self, x: f64) -> Option<Ordering> {
        self.tie.and_then(|tie| x.partial_cmp(&tie))
    }
}

/// From the magnitude with this code to the next, as if the exponent went on without bound.
fn step(format: &FormatSpec, code: u32) -> f64 {
    format.magnitude(u64::from(code) + 1) - format.magnitude(code.into())
}
