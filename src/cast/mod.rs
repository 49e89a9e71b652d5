//! Casting to a format: what the options are, the one definition in [`round`], and blocks that share a
//! scale in [`block`].

pub mod block;
pub mod round;
mod target;

pub use target::Target;

use crate::format::{FormatSpec, exponent_of, pow2};
use round::{Cast, Class, cast};

/// How a value between two numbers of the target is resolved (IEEE 754-2019 clause 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest number; a tie to the even code.
    #[default]
    NearestEven,
    /// To the nearest number; a tie away from zero.
    NearestAway,
    /// To the neighbour nearer zero.
    TowardZero,
    /// To the larger neighbour.
    Up,
    /// To the smaller neighbour.
    Down,
    /// To the neighbour with the odd code (round-to-odd).
    ToOdd,
}

/// What is stored for a value beyond the target's largest finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Inf where the format has one, else NaN, else the largest number. Outside the range of an
    /// unsigned format, or zero in a format without zero, is NaN. As in ml_dtypes.
    Ieee,
    /// The largest finite number, for Inf too. An unsigned format drops the sign, and zero becomes the
    /// smallest number of a format without zero. As NVIDIA's `cvt.satfinite`.
    Saturate,
}

impl Overflow {
    /// The policy when the user names none: `Ieee` for formats that have Inf, `Saturate` for the others.
    pub fn default_for(format: &FormatSpec) -> Self {
        if format.infinities { Self::Ieee } else { Self::Saturate }
    }

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ieee => "ieee",
            Self::Saturate => "saturate",
        }
    }
}

/// Everything that fixes the result of a cast: q = cast(x · scale).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CastPlan {
    /// The format cast to.
    pub target: FormatSpec,
    /// How values between two numbers are resolved.
    pub rounding: Rounding,
    /// What becomes of values out of range.
    pub overflow: Overflow,
    /// Factor applied before the cast: finite, positive.
    pub scale: f32,
}

impl CastPlan {
    /// Round to nearest even, default overflow policy, scale 1.
    pub fn new(target: FormatSpec) -> Self {
        let overflow = Overflow::default_for(&target);
        Self { target, rounding: Rounding::NearestEven, overflow, scale: 1.0 }
    }

    /// x · scale as the frameworks form it: one f32 multiplication, rounded to nearest even.
    pub fn product(&self, x: f32) -> f64 {
        f64::from(x * self.scale)
    }

    /// Casts `product`, the rounded x · scale. The class is that of `x`: a product that overflowed or
    /// vanished on the way is an overflow or an underflow, not an Inf or a zero of the source.
    pub fn cast(&self, x: f64, product: f64) -> Cast {
        let q = cast(&self.target, self.rounding, self.overflow, product);
        let class = match q.class {
            Class::Inf if x.is_finite() => Class::Overflow,
            Class::Zero if x != 0.0 => Class::Underflow,
            class => class,
        };
        Cast { class, ..q }
    }

    /// The value that comes back: q / scale.
    pub fn dequantise(&self, q: Cast) -> f64 {
        q.value(&self.target) / f64::from(self.scale)
    }

    /// Whether the scale only shifts exponents.
    pub fn scale_is_power_of_two(&self) -> bool {
        self.scale_log2().is_some()
    }

    /// log2 of the scale if that is an integer.
    pub fn scale_log2(&self) -> Option<i32> {
        let exponent = exponent_of(self.scale.into());
        (pow2(exponent) == f64::from(self.scale)).then_some(exponent)
    }
}
