//! Formats with more significand bits than the bins resolve: every element is rounded, a block at a time.
//!
//! Plain loops over blocks that stay in the first-level cache, written so that compilers vectorise them.

use super::element::FormatStats;
use crate::cast::round::Class;
use crate::cast::{CastPlan, Overflow, Place, Rounding};
use crate::format::pow2;

/// Elements in a block.
pub(super) const BLOCK: usize = 1024;
const LANES: usize = 8;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// A run of elements and what all formats need to know of it.
pub(super) struct Block {
    values: [f32; BLOCK],
    /// 1/|x|, or 0 where x is zero or not finite.
    reciprocals: [f64; BLOCK],
    zeros: u64,
    nans: u64,
    infinities: u64,
    /// Bits of the largest finite and the smallest nonzero magnitude.
    largest: u32,
    smallest: u32,
    /// Σ x² over finite elements.
    signal: f64,
}

impl Block {
    pub(super) fn new() -> Self {
        Self {
            values: [0.0; BLOCK],
            reciprocals: [0.0; BLOCK],
            zeros: 0,
            nans: 0,
            infinities: 0,
            largest: 0,
            smallest: 0,
            signal: 0.0,
        }
    }

    /// Takes in up to [`BLOCK`] elements. The rest of the block is NaN, which no count keeps.
    pub(super) fn load(&mut self, values: &[f32]) {
        let padding = (BLOCK - values.len()) as u64;
        self.values[..values.len()].copy_from_slice(values);
        self.values[values.len()..].fill(f32::NAN);
        let (mut zeros, mut nans, mut infinities) = (0_u32, 0_u32, 0_u32);
        let (mut largest, mut smallest) = (0_u32, u32::MAX);
        let mut squares = [0.0_f64; LANES];
        let (chunks, _) = self.values.as_chunks::<LANES>();
        let (reciprocals, _) = self.reciprocals.as_chunks_mut::<LANES>();
        for (xs, rs) in chunks.iter().zip(reciprocals) {
            for lane in 0..LANES {
                let magnitude = xs[lane].to_bits() & !(1 << 31);
                let finite = magnitude < INFINITY;
                zeros += u32::from(magnitude == 0);
                infinities += u32::from(magnitude == INFINITY);
                nans += u32::from(magnitude > INFINITY);
                largest = largest.max(if finite { magnitude } else { 0 });
                // Zero wraps around to the largest, so that it is never the smallest.
                smallest = smallest.min(magnitude.wrapping_sub(1));
                let x = f64::from(f32::from_bits(if finite { magnitude } else { 0 }));
                squares[lane] += x * x;
                rs[lane] = if finite && magnitude > 0 { 1.0 / x } else { 0.0 };
            }
        }
        self.zeros = zeros.into();
        self.nans = u64::from(nans) - padding;
        self.infinities = infinities.into();
        self.largest = largest;
        self.smallest = smallest.wrapping_add(1);
        self.signal = squares.iter().sum();
    }
}

/// One cast to a wide format, with its limits as bits of |product|.
#[derive(Clone, Copy, Debug)]
pub(super) struct WideCast {
    plan: CastPlan,
    /// First magnitude that is not flushed, that becomes normal, that overflows.
    kept: u32,
    normal: u32,
    overflow: u32,
    exceeds_max: u32,
    max_finite: f32,
    /// Smallest normal number, and the number whose unit in the last place is the smallest subnormal.
    min_normal: f32,
    subnormal_magic: f32,
    /// Significand bits dropped, and what to add before dropping them.
    dropped: u32,
    half_less_one: u32,
    odd: u32,
}

impl WideCast {
    /// `None` if the loops here do not reproduce this cast.
    pub(super) fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        plan.scale_log2()?;
        let unit = format.emin() - format.trailing_bits() as i32;
        let fits = format.emin() >= -126 && unit >= -149 && format.max_finite() <= f64::from(f32::MAX);
        let flushes = plan.flush_subnormal_inputs || plan.flush_subnormal_results;
        if plan.rounding != Rounding::NearestEven || flushes || !format.signed || !format.subnormals || !fits
        {
            return None;
        }
        let dropped = 24 - format.precision;
        let unscaled = CastPlan { scale: 1.0, ..*plan };
        let first = |reached: fn(Class) -> bool| {
            first_bits(|x| reached(unscaled.cast_f64(x, Place::default()).class))
        };
        Some(Self {
            plan: *plan,
            kept: first(|class| !matches!(class, Class::Zero | Class::Underflow)),
            normal: first(|class| matches!(class, Class::Normal | Class::Overflow | Class::Inf)),
            overflow: first(|class| matches!(class, Class::Overflow | Class::Inf)),
            exceeds_max: first_bits(|x| x > format.max_finite()),
            max_finite: format.max_finite() as f32,
            min_normal: format.min_normal() as f32,
            subnormal_magic: pow2(unit + 23) as f32,
            dropped,
            half_less_one: ((1 << dropped) >> 1_u32).max(1) - 1,
            odd: u32::from(dropped > 0),
        })
    }

    /// Whether every product of the block with the scale is exact, as the sums here require.
    pub(super) fn exact(&self, block: &Block) -> bool {
        let scale = self.plan.scale;
        let largest = f32::from_bits(block.largest) * scale;
        let smallest = f32::from_bits(block.smallest) * scale;
        let vanishes = block.smallest > 0 && scale < 1.0 && smallest < f32::MIN_POSITIVE;
        largest.is_finite() && !vanishes
    }

    /// Adds the block to `stats`.
    pub(super) fn observe(&self, block: &Block, stats: &mut FormatStats) {
        let counts = self.count(block);
        let finite = BLOCK as u64 - counts.not_finite;
        let overflow = finite - counts.below_overflow;
        stats.classes.nan += block.nans;
        stats.classes.inf += block.infinities;
        stats.classes.zero += block.zeros;
        stats.classes.underflow += counts.flushed - block.zeros;
        stats.classes.subnormal += counts.below_normal - counts.flushed;
        stats.classes.normal += counts.below_overflow - counts.below_normal;
        stats.classes.overflow += overflow;
        stats.exceeds_max += finite - counts.within_max;

        let keeps_overflow = self.plan.overflow != Overflow::Ieee;
        let left_out = if keeps_overflow { 0 } else { overflow };
        let limit = if keeps_overflow { INFINITY } else { self.overflow };
        let errors = &mut stats.errors;
        errors.left_out += left_out;
        errors.elements += finite - left_out;
        errors.nonzero += finite - left_out - block.zeros;
        errors.signal += if left_out == 0 { block.signal } else { self.signal_below(block, limit) };
        let sums = self.sum(block, limit);
        let scale = f64::from(self.plan.scale);
        errors.noise += sums.noise / scale / scale;
        errors.relative += sums.relative / scale;
        errors.max_abs = errors.max_abs.max(sums.max_abs / scale);
        // The products with reciprocals are right to a few units in the last place: where they reach
        // the maximum so far, divide. No error to nearest exceeds 1.
        let close = sums.max_rel / scale * (1.0 + 1e-15);
        if close >= errors.max_rel && errors.max_rel < 1.0 && close > 0.0 {
            errors.max_rel = errors.max_rel.max(self.max_rel(block, limit));
        }
    }

    fn magnitude_bits(&self, x: f32) -> u32 {
        (x * self.plan.scale).to_bits() & !(1 << 31)
    }

    /// |product| → the magnitude that it is cast to; the largest number for an overflow.
    #[inline(always)]
    fn round(&self, magnitude: u32) -> f32 {
        let odd = (magnitude >> self.dropped) & self.odd;
        let normal = f32::from_bits(
            (magnitude.wrapping_add(self.half_less_one + odd) >> self.dropped) << self.dropped,
        );
        let subnormal = (f32::from_bits(magnitude) + self.subnormal_magic) - self.subnormal_magic;
        let rounded = if magnitude < self.min_normal.to_bits() { subnormal } else { normal };
        if magnitude >= self.overflow { self.max_finite } else { rounded }
    }

    fn count(&self, block: &Block) -> Counts {
        let (mut flushed, mut below_normal, mut below_overflow) = (0_u32, 0_u32, 0_u32);
        let (mut within_max, mut not_finite) = (0_u32, 0_u32);
        for x in &block.values {
            let magnitude = self.magnitude_bits(*x);
            flushed += u32::from(magnitude < self.kept);
            below_normal += u32::from(magnitude < self.normal);
            below_overflow += u32::from(magnitude < self.overflow);
            within_max += u32::from(magnitude < self.exceeds_max);
            not_finite += u32::from(magnitude >= INFINITY);
        }
        Counts {
            flushed: flushed.into(),
            below_normal: below_normal.into(),
            below_overflow: below_overflow.into(),
            within_max: within_max.into(),
            not_finite: not_finite.into(),
        }
    }

    /// Error sums of the products, over elements whose |product| is below `limit`.
    fn sum(&self, block: &Block, limit: u32) -> Sums {
        let mut noise = [0.0_f64; LANES];
        let mut relative = [0.0_f64; LANES];
        let mut max_abs = [0.0_f64; LANES];
        let mut max_rel = [0.0_f64; LANES];
        let (values, _) = block.values.as_chunks::<LANES>();
        let (reciprocals, _) = block.reciprocals.as_chunks::<LANES>();
        for (xs, rs) in values.iter().zip(reciprocals) {
            for lane in 0..LANES {
                let magnitude = self.magnitude_bits(xs[lane]);
                let magnitude = if magnitude < limit { magnitude } else { 0 };
                let error = (f64::from(f32::from_bits(magnitude)) - f64::from(self.round(magnitude))).abs();
                let rel = error * rs[lane];
                noise[lane] += error * error;
                relative[lane] += rel;
                max_abs[lane] = if error > max_abs[lane] { error } else { max_abs[lane] };
                max_rel[lane] = if rel > max_rel[lane] { rel } else { max_rel[lane] };
            }
        }
        Sums {
            noise: noise.iter().sum(),
            relative: relative.iter().sum(),
            max_abs: max_abs.iter().fold(0.0, |m, x| x.max(m)),
            max_rel: max_rel.iter().fold(0.0, |m, x| x.max(m)),
        }
    }

    fn kept_magnitudes(&self, block: &Block, limit: u32) -> impl Iterator<Item = u32> {
        block.values.iter().map(|&x| self.magnitude_bits(x)).filter(move |&magnitude| magnitude < limit)
    }

    fn max_rel(&self, block: &Block, limit: u32) -> f64 {
        let nonzero = self.kept_magnitudes(block, limit).filter(|&magnitude| magnitude > 0);
        let relative = nonzero.map(|magnitude| {
            let x = f64::from(f32::from_bits(magnitude));
            (x - f64::from(self.round(magnitude))).abs() / x
        });
        relative.fold(0.0, f64::max)
    }

    fn signal_below(&self, block: &Block, limit: u32) -> f64 {
        let scale = f64::from(self.plan.scale);
        let squares = self.kept_magnitudes(block, limit).map(|magnitude| {
            let x = f64::from(f32::from_bits(magnitude)) / scale;
            x * x
        });
        squares.sum()
    }
}

/// Elements of a block whose |product| is below each limit.
struct Counts {
    flushed: u64,
    below_normal: u64,
    below_overflow: u64,
    within_max: u64,
    not_finite: u64,
}

struct Sums {
    noise: f64,
    relative: f64,
    max_abs: f64,
    max_rel: f64,
}

/// Bits of the smallest f32, from 0 to Inf, for which `reached` holds; it must hold for all larger ones.
fn first_bits(reached: impl Fn(f64) -> bool) -> u32 {
    let (mut low, mut high) = (0, INFINITY + 1);
    while low < high {
        let middle = low.midpoint(high);
        if middle > INFINITY || reached(f32::from_bits(middle).into()) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
