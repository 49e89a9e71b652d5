//! Numbers of a format as float32, rounded by whole slices: what both commands of training are made of.
//!
//! The definition is [`crate::cast::round`]; this computes the same without codes, in a few operations that
//! vectorise.

use crate::cast::fast::nearest::Nearest;
use crate::cast::{Overflow, Rounding};
use crate::error::{Error, Result};
use crate::format::{FormatSpec, pow2};

/// A format that weights or gradients are kept in.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The format.
    pub format: FormatSpec,
    nearest: Nearest,
    largest: f32,
    /// What is stored beyond the largest number.
    overflow: f32,
    /// Random bits of stochastic rounding.
    random_bits: u32,
    /// As many ones.
    random_mask: u32,
    /// 2^-bits of them.
    per_draw: f32,
    /// Bits of a float32 below the format's last, in a normal number.
    mask: u32,
    /// From these bits to as many as are random.
    shift_right: u32,
    shift_left: u32,
    /// 2^bits.
    draws: f32,
    /// Smallest subnormal number, and its inverse.
    unit: f32,
    per_unit: f32,
    /// Whether subnormal numbers begin where those of float32 do, so that one rule serves both.
    aligned: bool,
}

impl Stored {
    /// Numbers of `format`, with as many random bits as NVIDIA's `cvt.rs` takes if `random_bits` is `None`.
    ///
    /// # Errors
    /// A format that is of no use here: unsigned, an integer, of one significand bit, or beyond float32.
    pub fn new(format: FormatSpec, random_bits: Option<u32>) -> Result<Self> {
        let number = Nearest::new(&format).filter(|_| format.signed && !format.twos_complement);
        let Some(nearest) = number else {
            return Err(Error::new(format!("{} is no format to train in", format.name)));
        };
        let unit = pow2(format.emin() - format.trailing_bits() as i32);
        let Rounding::Stochastic { bits, .. } = Rounding::stochastic(&format, random_bits) else {
            return Err(Error::new(format!("{} has no stochastic rounding", format.name)));
        };
        let largest = format.max_finite() as f32;
        let saturates = Overflow::default_for(&format) == Overflow::Saturate;
        Ok(Self {
            format,
            nearest,
            largest,
            overflow: if saturates { largest } else { f32::INFINITY },
            random_bits: bits,
            random_mask: u32::MAX >> (32 - bits),
            per_draw: pow2(-(bits as i32)) as f32,
            mask: (1 << nearest.dropped) - 1,
            shift_right: nearest.dropped.saturating_sub(bits),
            shift_left: bits.saturating_sub(nearest.dropped),
            draws: pow2(bits as i32) as f32,
            unit: unit as f32,
            per_unit: pow2(format.trailing_bits() as i32 - format.emin()) as f32,
            aligned: format.emin() == -126,
        })
    }

    /// Random bits that stochastic rounding looks at.
    pub fn random_bits(&self) -> u32 {
        self.random_bits
    }

    /// `x` rounded to the nearest number, ties to even; a NaN stays one.
    #[inline(always)]
    pub fn round(&self, x: f32) -> f32 {
        let rounded = self.nearest.round(x.to_bits() & (u32::MAX >> 1));
        self.bounded(rounded).copysign(x)
    }

    #[inline(always)]
    fn bounded(&self, magnitude: f32) -> f32 {
        if magnitude > self.largest { self.overflow } else { magnitude }
    }

    /// The number below |x|, the gap to the next, and how far x has gone into it: the first `random_bits` bits of
    /// the fraction, as an integer.
    #[inline(always)]
    fn split(&self, x: f32) -> (f32, f32, u32) {
        let magnitude = x.to_bits() & (u32::MAX >> 1);
        let below = magnitude & !self.mask;
        let low = f32::from_bits(below);
        let gap = f32::from_bits(below.wrapping_add(self.mask + 1)) - low;
        let rest = magnitude & self.mask;
        let part = (rest >> self.shift_right) << self.shift_left;
        // Below the smallest normal number all gaps are alike. Where float32 is subnormal too, so are its bits.
        let units = f32::from_bits(magnitude) * self.per_unit;
        let whole = units.floor();
        let small = ((units - whole) * self.draws) as u32;
        let normal = self.aligned || magnitude >= self.nearest.min_normal;
        if normal { (low, gap, part) } else { (whole * self.unit, self.unit, small) }
    }

    /// `x` rounded away from zero where the low bits of `random` added to the fraction carry.
    #[inline(always)]
    pub fn round_stochastically(&self, x: f32, random: u32) -> f32 {
        let (low, gap, part) = self.split(x);
        // part + random ≥ 2^bits, of the low bits of both, without a carry out of 32.
        let carries = part > !random & self.random_mask;
        self.bounded(if carries { low + gap } else { low }).copysign(x)
    }

    /// The two numbers that stochastic rounding gives for `x`, and the probability of the second.
    #[inline(always)]
    pub fn outcomes(&self, x: f32) -> (f32, f32, f32) {
        let (low, gap, part) = self.split(x);
        let probability = part as f32 * self.per_draw;
        (self.bounded(low).copysign(x), self.bounded(low + gap).copysign(x), probability)
    }

    /// Distance from |x|, a number of the format, to the next larger magnitude.
    #[inline(always)]
    pub fn ulp(&self, x: f32) -> f32 {
        let magnitude = x.to_bits() & (u32::MAX >> 1);
        let low = f32::from_bits(magnitude);
        let gap = f32::from_bits(magnitude.wrapping_add(self.mask + 1)) - low;
        if self.aligned || magnitude >= self.nearest.min_normal { gap } else { self.unit }
    }
}
