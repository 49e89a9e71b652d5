//! Casting to a format: what the options are, the one definition in [`round`], and blocks that share a
//! scale in [`block`].

pub mod block;
pub mod fast;
pub mod philox;
pub mod profile;
pub mod round;
mod target;

pub use target::Target;

use crate::format::{FormatSpec, exponent_of, pow2};
pub use philox::Place;
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
    /// Away from zero with a probability equal to the fraction of the gap that the value has gone,
    /// resolved to `bits` bits: where adding `random` to the first `bits` discarded bits carries, as
    /// NVIDIA's `cvt.rs` does.
    Stochastic {
        /// Number of random bits, 1 to 32.
        bits: u32,
        /// The draw, of which the low `bits` bits count. A [`CastPlan`] puts each element's own here.
        random: u32,
    },
}

/// The modes that a name selects, with what they do. `stochastic` is apart, since it has options.
pub const ROUNDINGS: &[(&str, Rounding, &str)] = &[
    ("nearest-even", Rounding::NearestEven, "to the nearest number, ties to the even code"),
    ("nearest-away", Rounding::NearestAway, "to the nearest number, ties away from zero (cvt.rna)"),
    ("toward-zero", Rounding::TowardZero, "truncation"),
    ("up", Rounding::Up, "to the larger neighbour"),
    ("down", Rounding::Down, "to the smaller neighbour"),
    ("to-odd", Rounding::ToOdd, "inexact values to the neighbour with the odd code"),
];

impl Rounding {
    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        ROUNDINGS.iter().find(|(_, mode, _)| *mode == self).map_or("stochastic", |(name, ..)| name)
    }

    /// Stochastic rounding with as many random bits as NVIDIA's `cvt.rs` takes for the format (PTX ISA
    /// 9.0: 13 for f16, 16 for bf16, 16 that two values share for FP8 and FP6, 8 for FP4); never more than
    /// an f32 has to discard.
    pub fn stochastic(target: &FormatSpec, bits: Option<u32>) -> Self {
        let hardware =
            if target.bits <= 4 { 8 } else { 24_u32.saturating_sub(target.precision).clamp(1, 16) };
        Self::Stochastic { bits: bits.unwrap_or(hardware), random: 0 }
    }

    /// Whether x and −x always give opposite results.
    pub fn is_symmetric(self) -> bool {
        !matches!(self, Self::Up | Self::Down)
    }
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
    /// The largest finite number for finite values, while Inf stays Inf (or what [`Ieee`](Self::Ieee)
    /// makes of it). As SatPropagate in IEEE P3109; all else as `Saturate`.
    SaturateFinite,
}

/// Every overflow policy with its meaning.
pub const OVERFLOWS: &[(&str, Overflow, &str)] = &[
    ("ieee", Overflow::Ieee, "Inf if there is one, else NaN, else the largest"),
    ("saturate", Overflow::Saturate, "the largest number, for Inf too (cvt.satfinite)"),
    ("saturate-finite", Overflow::SaturateFinite, "the largest number; Inf stays (P3109 SatPropagate)"),
];

impl Overflow {
    /// The policy when the user names none: `Ieee` for formats that have Inf, `Saturate` for the others.
    pub fn default_for(format: &FormatSpec) -> Self {
        if format.infinities { Self::Ieee } else { Self::Saturate }
    }

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        OVERFLOWS.iter().find(|(_, policy, _)| *policy == self).map_or("", |(name, ..)| name)
    }
}

/// Which code a NaN gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NanCode {
    /// The quiet NaN with no payload; its sign where the format has NaNs of both signs.
    #[default]
    Canonical,
    /// All bits below the sign set, sign kept.
    AllOnes,
    /// All bits below the sign set, sign dropped.
    AllOnesPositive,
    /// All bits set.
    AllOnesNegative,
}

/// Everything that fixes the result of a cast: q = cast(x · scale).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CastPlan {
    /// The format cast to.
    pub target: FormatSpec,
    /// How values between two numbers are resolved.
    pub rounding: Rounding,
    /// Key of the random bits of stochastic rounding.
    pub seed: u64,
    /// What becomes of values out of range.
    pub overflow: Overflow,
    /// Whether subnormal results become zero (FTZ).
    pub flush_subnormal_results: bool,
    /// Whether products that are subnormal f32 (of f64 sources: f64) are taken for zero (DAZ).
    pub flush_subnormal_inputs: bool,
    /// Which code a NaN gets.
    pub nan: NanCode,
    /// Factor applied before the cast: finite, positive.
    pub scale: f32,
}

impl CastPlan {
    /// Round to nearest even, default overflow policy, subnormals kept, scale 1.
    pub fn new(target: FormatSpec) -> Self {
        Self {
            target,
            rounding: Rounding::NearestEven,
            seed: 0,
            overflow: Overflow::default_for(&target),
            flush_subnormal_results: false,
            flush_subnormal_inputs: false,
            nan: NanCode::Canonical,
            scale: 1.0,
        }
    }

    /// Casts an element of a source of up to 32 bits. The product with the scale is formed as the
    /// frameworks form it: one f32 multiplication, rounded to nearest even.
    pub fn cast_f32(&self, x: f32, place: Place) -> Cast {
        let product = x * self.scale;
        self.cast(x.into(), product.into(), product.is_subnormal(), place)
    }

    /// Casts an element of a 64-bit source; the product is one f64 multiplication.
    pub fn cast_f64(&self, x: f64, place: Place) -> Cast {
        let product = x * f64::from(self.scale);
        self.cast(x, product, product.is_subnormal(), place)
    }

    /// The class is that of `x`: a product that overflowed or vanished on the way is an overflow or an
    /// underflow, not an Inf or a zero of the source.
    fn cast(&self, x: f64, product: f64, subnormal_input: bool, place: Place) -> Cast {
        let rounding = match self.rounding {
            Rounding::Stochastic { bits, .. } => {
                Rounding::Stochastic { bits, random: philox::random(self.seed, place) }
            }
            fixed => fixed,
        };
        let flushed =
            if self.flush_subnormal_inputs && subnormal_input { 0.0_f64.copysign(product) } else { product };
        let mut q = cast(&self.target, rounding, self.overflow, flushed);
        match q.class {
            Class::Inf if x.is_finite() => q.class = Class::Overflow,
            Class::Zero if x != 0.0 => q.class = Class::Underflow,
            Class::Nan => q.code = self.nan_code(q.code),
            Class::Subnormal if self.flush_subnormal_results => {
                let sign = if self.target.negative_zero { q.code & self.target.sign_bit() } else { 0 };
                q = Cast { code: sign, class: Class::Underflow };
            }
            _ => {}
        }
        q
    }

    /// The NaN code in force, in place of the canonical one. Formats with at most one NaN have no choice.
    fn nan_code(&self, canonical: u32) -> u32 {
        let target = &self.target;
        if target.high_nans == 0 {
            return canonical;
        }
        let ones = target.magnitude_mask();
        match self.nan {
            NanCode::Canonical => canonical,
            NanCode::AllOnes => canonical | ones,
            NanCode::AllOnesPositive => ones,
            NanCode::AllOnesNegative => target.sign_bit() | ones,
        }
    }

    /// The value that comes back: q / scale.
    pub fn dequantise(&self, q: Cast) -> f64 {
        q.value(&self.target) / f64::from(self.scale)
    }

    /// log2 of the scale if that is an integer: then the scale only shifts exponents.
    pub fn scale_log2(&self) -> Option<i32> {
        let exponent = exponent_of(self.scale.into());
        (pow2(exponent) == f64::from(self.scale)).then_some(exponent)
    }
}
