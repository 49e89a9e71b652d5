//! A few hundred elements in the first-level cache, with what all engines need to know of them.

use crate::cast::fast::{self, Kernel, Level};

/// Elements in a block.
pub(super) const BLOCK: usize = 512;
/// Elements that the loops here take at once: a vector of the widest processors.
pub(super) const LANES: usize = 16;
/// Bits of +Inf: magnitudes from here on are not finite.
pub(super) const INFINITY: u32 = f32::INFINITY.to_bits();
/// Fraction bits below the key of a bin.
pub(super) const LOW_BITS: u32 = 18;

const LOW_MASK: u32 = (1 << LOW_BITS) - 1;
/// Between these, f32 reciprocals and the distances within a bin are normal numbers.
const FIRST_PLAIN: u32 = 0x0800_0000;
const LAST_PLAIN: u32 = 0x7700_0000;

/// A run of elements.
pub(super) struct Block {
    values: [f32; BLOCK],
    /// 1/|x|, or 0 where x is zero or not finite.
    reciprocals: [f64; BLOCK],
    /// How far |x| is above the start of its bin, and below the end, relative to |x|.
    above_start: [f64; BLOCK],
    below_end: [f64; BLOCK],
    /// Number of elements.
    len: usize,
    /// Number of ±0, NaN and ±Inf elements.
    pub(super) zeros: u64,
    pub(super) nans: u64,
    pub(super) infinities: u64,
    pub(super) negative_infinities: u64,
    /// Bits of the largest finite and the smallest nonzero magnitude; 0 if there is none.
    pub(super) largest: u32,
    pub(super) smallest: u32,
    /// Σ x² over finite elements.
    pub(super) signal: f64,
    /// Σ x over finite elements.
    pub(super) sum: f64,
}

impl Block {
    pub(super) fn new() -> Self {
        Self {
            values: [0.0; BLOCK],
            reciprocals: [0.0; BLOCK],
            above_start: [0.0; BLOCK],
            below_end: [0.0; BLOCK],
            len: 0,
            zeros: 0,
            nans: 0,
            infinities: 0,
            negative_infinities: 0,
            largest: 0,
            smallest: 0,
            signal: 0.0,
            sum: 0.0,
        }
    }

    /// Takes in up to [`BLOCK`] elements.
    pub(super) fn load(&mut self, level: Level, values: &[f32]) {
        self.len = values.len();
        self.values[..values.len()].copy_from_slice(values);
        // Zeros fill up the last vector: no sum notices them.
        let padded = values.len().next_multiple_of(LANES);
        self.values[values.len()..padded].fill(0.0);
        fast::run(level, Survey(self));
        fast::run(level, Sums(self));
        let plain = (self.smallest == 0 || self.smallest >= FIRST_PLAIN) && self.largest < LAST_PLAIN;
        if plain { fast::run(level, Ratios::<true>(self)) } else { fast::run(level, Ratios::<false>(self)) }
    }

    /// The elements.
    pub(super) fn values(&self) -> &[f32] {
        &self.values[..self.len]
    }

    /// The elements, their magnitudes' reciprocals, and zeros up to a multiple of [`LANES`].
    #[inline(always)]
    pub(super) fn lanes(&self) -> impl Iterator<Item = (&[f32; LANES], &[f64; LANES])> {
        let padded = self.len.next_multiple_of(LANES);
        let (values, _) = self.values[..padded].as_chunks::<LANES>();
        let (reciprocals, _) = self.reciprocals[..padded].as_chunks::<LANES>();
        values.iter().zip(reciprocals)
    }

    /// The elements with their relative distances from the start and to the end of their bins.
    pub(super) fn with_distances(&self) -> impl Iterator<Item = (f32, f64, f64)> {
        let distances = self.above_start.iter().zip(&self.below_end);
        self.values().iter().zip(distances).map(|(&x, (&above, &below))| (x, above, below))
    }

    /// Whether some elements are subnormal.
    pub(super) fn has_subnormals(&self) -> bool {
        (1..f32::MIN_POSITIVE.to_bits()).contains(&self.smallest)
    }

    /// Whether every element is finite.
    pub(super) fn is_finite(&self) -> bool {
        self.nans + self.infinities == 0
    }

    /// Number of finite elements.
    pub(super) fn finite(&self) -> u64 {
        self.len as u64 - self.nans - self.infinities
    }
}

/// Counts and extremes.
struct Survey<'a>(&'a mut Block);

impl Kernel for Survey<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let (mut zeros, mut nans, mut infinities, mut negative_infinities) = (0_u32, 0_u32, 0_u32, 0_u32);
        let (mut largest, mut smallest) = (0_u32, u32::MAX);
        for x in &block.values[..block.len] {
            let magnitude = x.to_bits() & !(1 << 31);
            zeros += u32::from(magnitude == 0);
            infinities += u32::from(magnitude == INFINITY);
            negative_infinities += u32::from(x.to_bits() == f32::NEG_INFINITY.to_bits());
            nans += u32::from(magnitude > INFINITY);
            let kept = if magnitude < INFINITY { magnitude } else { 0 };
            largest = largest.max(kept);
            // Zero, and what is not finite, wraps around to the largest and is never the smallest.
            smallest = smallest.min(kept.wrapping_sub(1));
        }
        block.zeros = zeros.into();
        block.nans = nans.into();
        block.infinities = infinities.into();
        block.negative_infinities = negative_infinities.into();
        block.largest = largest;
        block.smallest = smallest.wrapping_add(1);
    }
}

/// Sums of the finite elements.
struct Sums<'a>(&'a mut Block);

impl Kernel for Sums<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let padded = block.len.next_multiple_of(LANES);
        let (mut squares, mut sums) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        // One small loop a step: longer ones are no longer compiled to vectors.
        for xs in block.values[..padded].as_chunks::<LANES>().0 {
            let mut finite = [0.0_f32; LANES];
            for (kept, x) in finite.iter_mut().zip(xs) {
                let bits = x.to_bits();
                *kept = f32::from_bits(if bits & !(1 << 31) < INFINITY { bits } else { 0 });
            }
            let mut exact = [0.0_f64; LANES];
            for (exact, x) in exact.iter_mut().zip(&finite) {
                *exact = f64::from(*x);
            }
            for (sum, x) in squares.iter_mut().zip(&exact) {
                *sum += x * x;
            }
            for (sum, x) in sums.iter_mut().zip(&exact) {
                *sum += x;
            }
        }
        block.signal = squares.iter().sum();
        block.sum = sums.iter().sum();
    }
}

/// Reciprocals and distances; `PLAIN` if no intermediate result can be subnormal or infinite.
struct Ratios<'a, const PLAIN: bool>(&'a mut Block);

impl<const PLAIN: bool> Kernel for Ratios<'_, PLAIN> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let padded = block.len.next_multiple_of(LANES);
        let values = block.values[..padded].as_chunks::<LANES>().0;
        let reciprocals = block.reciprocals[..padded].as_chunks_mut::<LANES>().0;
        let above = block.above_start[..padded].as_chunks_mut::<LANES>().0;
        let below = block.below_end[..padded].as_chunks_mut::<LANES>().0;
        for (((xs, reciprocals), above), below) in values.iter().zip(reciprocals).zip(above).zip(below) {
            for lane in 0..LANES {
                let magnitude = xs[lane].to_bits() & !(1 << 31);
                let wanted = magnitude.wrapping_sub(1) < INFINITY - 1;
                let x = f32::from_bits(if wanted { magnitude } else { 1 << 30 });
                let start = f32::from_bits(x.to_bits() & !LOW_MASK);
                let reciprocal = if PLAIN {
                    // One Newton step in f64 squares the error of the f32 quotient: 2^-47 or better.
                    let estimate = f64::from(1.0 / x);
                    estimate + estimate * (1.0 - f64::from(x) * estimate)
                } else {
                    1.0 / f64::from(x)
                };
                let distance = f64::from(x - start);
                // A bin is as wide as its lowest key bit: 2^-5 of the binade. (Of subnormal elements nobody asks.)
                let width = f64::from(f32::from_bits(x.to_bits() & INFINITY)) * (1.0 / 32.0);
                reciprocals[lane] = if wanted { reciprocal } else { 0.0 };
                above[lane] = distance * reciprocal;
                below[lane] = (width - distance) * reciprocal;
            }
        }
    }
}
