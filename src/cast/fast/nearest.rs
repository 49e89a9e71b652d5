//! Rounding of one f32 magnitude in a few operations: what the loops over whole blocks are made of.

use crate::format::{FormatSpec, pow2};

/// Rounds magnitudes to the nearest number of a format, ties to the even one, as if there were no largest.
#[derive(Clone, Copy, Debug)]
pub struct Nearest {
    /// Significand bits that a normal number of the format drops of an f32's.
    pub dropped: u32,
    /// Half of their weight, less one, and a mask for the last bit kept: 0 if none is dropped.
    half_less_one: u32,
    odd: u32,
    /// Bits of the smallest normal number.
    pub min_normal: u32,
    /// The number whose unit in the last place is the smallest subnormal.
    magic: f32,
}

impl Nearest {
    /// `None` where the numbers leave the range of f32, and for a precision of one bit, where "even" is no
    /// property of the significand.
    pub fn new(format: &FormatSpec) -> Option<Self> {
        let unit = format.emin() - format.trailing_bits() as i32;
        let fits = format.emin() >= -126 && unit >= -149 && format.max_finite() <= f64::from(f32::MAX);
        let dropped = 24 - format.precision;
        (fits && format.subnormals && format.precision > 1).then(|| Self {
            dropped,
            half_less_one: ((1 << dropped) >> 1_u32).max(1) - 1,
            odd: u32::from(dropped > 0),
            min_normal: (format.min_normal() as f32).to_bits(),
            magic: pow2(unit + 23) as f32,
        })
    }

    /// The magnitude with the bits `magnitude`, rounded. Inf stays above every number.
    #[inline(always)]
    pub fn round(&self, magnitude: u32) -> f32 {
        let odd = (magnitude >> self.dropped) & self.odd;
        let up = magnitude.wrapping_add(self.half_less_one + odd);
        let normal = f32::from_bits((up >> self.dropped) << self.dropped);
        if magnitude < self.min_normal { self.round_subnormal(magnitude) } else { normal }
    }

    /// The same for magnitudes below the smallest normal number: adding a number whose last place weighs as
    /// much as the smallest subnormal rounds to that.
    #[inline(always)]
    pub fn round_subnormal(&self, magnitude: u32) -> f32 {
        (f32::from_bits(magnitude) + self.magic) - self.magic
    }
}
