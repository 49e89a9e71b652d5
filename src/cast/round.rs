//! THE definition of a cast: value → code and class, one rounding, any format, any mode.
//!
//! The codes of a format's non-negative numbers are consecutive integers, and would go on being so with
//! an unbounded exponent. So a magnitude lies on, or between, code c and code c + 1: rounding picks
//! one of the two, and overflow means that the choice lies past the last finite code. Written to be read;
//! faster code elsewhere must equal it. Sources: IEEE 754-2019 clauses 4.3 and 7.4; OFP8 1.0 section 5;
//! for a precision of one bit, where every significand is odd, "even" means the code (IEEE P3109).

use std::cmp::Ordering;

use super::{Overflow, Rounding};
use crate::format::FormatSpec;
use crate::format::decode::decode;

/// What happened to one element. Every element has exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The source is NaN.
    Nan,
    /// The source is ±Inf.
    Inf,
    /// The source is ±0.
    Zero,
    /// Finite and nonzero, but cast to zero.
    Underflow,
    /// Cast to a nonzero subnormal number.
    Subnormal,
    /// Cast to a normal number.
    Normal,
    /// Finite, but outside the format's range once rounded, whatever is then stored.
    Overflow,
}

/// The outcome of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The stored code, in the low bits.
    pub code: u32,
    /// What happened.
    pub class: Class,
}

impl Cast {
    /// The number that the stored code means.
    pub fn value(&self, format: &FormatSpec) -> f64 {
        decode(format, self.code)
    }
}

/// Casts `x` to `format`.
///
/// A NaN gives the format's canonical quiet NaN, with its sign where the format has one; in a format
/// without NaN it gives the largest number, as NVIDIA's conversions do.
///
/// ```
/// use amp_inspect::cast::{Overflow, Rounding, round::{Class, cast}};
/// use amp_inspect::format::find;
/// let half = find("float16").unwrap();
/// let q = cast(&half, Rounding::NearestEven, Overflow::Ieee, 65519.996);
/// assert_eq!((q.code, q.class), (0x7bff, Class::Normal));
/// let q = cast(&half, Rounding::NearestEven, Overflow::Ieee, 65520.0);
/// assert_eq!((q.code, q.class), (0x7c00, Class::Overflow));
/// ```
pub fn cast(format: &FormatSpec, rounding: Rounding, overflow: Overflow, x: f64) -> Cast {
    // Where the sign is dropped it is dropped first: rounding up then means away from zero.
    let drops_sign = !format.signed && overflow != Overflow::Ieee;
    let x = if drops_sign { x.abs() } else { x };
    let negative = x.is_sign_negative();
    let largest = format.with_sign(negative, format.max_finite_code());
    // Inf if the format has one, else NaN, else the largest number.
    let infinite = format
        .infinity_code()
        .map(|inf| format.with_sign(negative, inf))
        .or_else(|| format.nan_code(negative))
        .unwrap_or(largest);
    if x.is_nan() {
        return Cast {
            code: format.nan_code(negative).unwrap_or(format.max_finite_code()),
            class: Class::Nan,
        };
    }
    if x.is_infinite() {
        let code = if overflow == Overflow::Saturate { largest } else { infinite };
        return Cast { code, class: Class::Inf };
    }
    let unsigned_nan = format.nan_code(false).filter(|_| overflow == Overflow::Ieee);
    if x == 0.0 {
        let code = match unsigned_nan {
            Some(nan) if !format.subnormals => nan,
            _ => signed_code(format, negative, 0),
        };
        return Cast { code, class: Class::Zero };
    }
    if negative
        && !format.signed
        && let Some(nan) = unsigned_nan
    {
        return Cast { code: nan, class: Class::Overflow };
    }

    let magnitude = round_magnitude(format, rounding, x);
    if magnitude > format.max_finite_code().into() {
        // A directed mode that points back into the range stops at the largest number.
        let stops = match rounding {
            Rounding::TowardZero | Rounding::ToOdd => true,
            Rounding::Up => negative,
            Rounding::Down => !negative,
            Rounding::NearestEven | Rounding::NearestAway | Rounding::Stochastic { .. } => false,
        };
        let code = if stops || overflow != Overflow::Ieee { largest } else { infinite };
        return Cast { code, class: Class::Overflow };
    }
    let magnitude = magnitude as u32;
    let class = match magnitude >> format.trailing_bits() {
        0 if format.subnormals && magnitude == 0 => Class::Underflow,
        0 if format.subnormals => Class::Subnormal,
        _ => Class::Normal,
    };
    Cast { code: signed_code(format, negative, magnitude), class }
}

/// Puts the sign on, except on the zero of a format whose −0 is taken.
fn signed_code(format: &FormatSpec, negative: bool, magnitude: u32) -> u32 {
    if magnitude == 0 && !format.negative_zero { 0 } else { format.with_sign(negative, magnitude) }
}

/// The code, of unbounded size, that the magnitude of a finite nonzero `x` rounds to.
fn round_magnitude(format: &FormatSpec, rounding: Rounding, x: f64) -> u64 {
    let (below, rest) = code_below(format, x);
    if rest.is_zero() {
        return below;
    }
    let negative = x.is_sign_negative();
    let even = below & 1 == 0;
    let half = rest.cmp_half();
    let up = match rounding {
        Rounding::NearestEven => half.is_gt() || (half.is_eq() && !even),
        Rounding::NearestAway => half.is_ge(),
        Rounding::TowardZero => false,
        Rounding::Up => !negative,
        Rounding::Down => negative,
        Rounding::ToOdd => even,
        Rounding::Stochastic { bits, random } => {
            let random = u64::from(random) & ((1 << bits) - 1);
            rest.leading_bits(bits) + random >= 1 << bits
        }
    };
    below + u64::from(up)
}

/// How far a magnitude is from the code below it towards the next, as a fraction of the gap.
#[derive(Clone, Copy)]
struct Rest {
    /// The first 64 bits of the fraction.
    fraction: u64,
    /// Whether any bit after those is set.
    sticky: bool,
}

impl Rest {
    const ZERO: Self = Self { fraction: 0, sticky: false };

    fn is_zero(self) -> bool {
        self.fraction == 0 && !self.sticky
    }

    fn cmp_half(self) -> Ordering {
        self.fraction.cmp(&(1 << 63)).then(self.sticky.cmp(&false))
    }

    fn leading_bits(self, bits: u32) -> u64 {
        self.fraction >> (64 - bits)
    }
}

/// The largest code whose value is not above |x|, and what remains.
fn code_below(format: &FormatSpec, x: f64) -> (u64, Rest) {
    let (significand, exponent) = unpack(x);
    let leading = exponent + 52;
    let trailing = format.trailing_bits() as i32;
    let emin = format.emin();
    if leading < emin && !format.subnormals {
        // No number lies below: the smallest is the nearest, in every mode.
        return (0, Rest::ZERO);
    }
    let binade = leading.max(emin);
    // Number of significand bits that lie below the last bit of the format in this binade: at least 29,
    // since no format has more than 24.
    let shift = (binade - trailing - exponent) as u32;
    let kept = significand.checked_shr(shift).unwrap_or(0);
    let rest = match shift {
        ..=64 => Rest { fraction: significand << (64 - shift), sticky: false },
        _ => {
            let fraction = significand.checked_shr(shift - 64).unwrap_or(0);
            Rest { fraction, sticky: shift - 64 > significand.trailing_zeros() }
        }
    };
    let binades_up = ((binade - emin) as u64) << trailing;
    let implicit = if format.subnormals { 0 } else { 1 << trailing };
    (kept + binades_up - implicit, rest)
}

/// |x| = significand · 2^exponent with the significand in [2^52, 2^53).
fn unpack(x: f64) -> (u64, i32) {
    let bits = x.to_bits() & (u64::MAX >> 1);
    let field = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if field > 0 {
        return (fraction | 1 << 52, field - 1075);
    }
    let shift = fraction.leading_zeros() - 11;
    (fraction << shift, -1074 - shift as i32)
}
