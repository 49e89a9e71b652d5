//! Formats with more significand bits than the bins resolve: every element is rounded, a block at a time.

use super::block::{BLOCK, Block, FRACTION, HIDDEN, INFINITY, LANES, SIGN, sum_of_squares};
use super::element::FormatStats;
use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{self, Kernel, Level};
use crate::cast::round::Class;
use crate::cast::{CastPlan, Place, Rounding};
use crate::format::pow2;

/// One cast to a wide format, with its limits as bits of |product|.
#[derive(Clone, Copy, Debug)]
pub(super) struct WideCast {
    plan: CastPlan,
    /// First magnitude that is not flushed, that becomes normal, that overflows, that exceeds the largest
    /// number.
    kept: u32,
    normal: u32,
    overflow: u32,
    exceeds_max: u32,
    max_finite: f32,
    /// Whether an overflow is stored as a number.
    keeps_overflow: bool,
    nearest: Nearest,
    /// Exponent field of the first source element whose product is a normal number of the format.
    first_normal_field: i32,
}

impl WideCast {
    /// `None` if the loops here do not reproduce this cast.
    pub(super) fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        let shift = plan.scale_log2()?;
        let nearest = Nearest::new(format)?;
        let flushes = plan.flush_subnormal_inputs || plan.flush_subnormal_results;
        if plan.rounding != Rounding::NearestEven || flushes || !format.signed {
            return None;
        }
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
            keeps_overflow: plan.dequantise(unscaled.cast_f64(f64::MAX, Place::default())).is_finite(),
            nearest,
            first_normal_field: format.emin() + 127 - shift,
        })
    }

    /// Whether every product of the block with the scale is exact, as the sums here require.
    pub(super) fn exact(&self, block: &Block<'_>) -> bool {
        let scale = self.plan.scale;
        let largest = f32::from_bits(block.largest) * scale;
        let smallest = f32::from_bits(block.smallest) * scale;
        let vanishes = block.smallest > 0 && scale < 1.0 && smallest < f32::MIN_POSITIVE;
        largest.is_finite() && !vanishes
    }

    /// Adds the block to `stats`.
    pub(super) fn observe(&self, level: Level, block: &Block<'_>, stats: &mut FormatStats) {
        let finite = block.finite();
        let below = |limit| self.below(level, block, limit);
        let (flushed, below_normal) = (below(self.kept), below(self.normal));
        let below_overflow = below(self.overflow);
        let overflow = finite - below_overflow;
        stats.classes.nan += block.nans;
        stats.classes.inf += block.infinities;
        stats.classes.zero += block.zeros;
        stats.classes.underflow += flushed - block.zeros;
        stats.classes.subnormal += below_normal - flushed;
        stats.classes.normal += below_overflow - below_normal;
        stats.classes.overflow += overflow;
        stats.exceeds_max += finite - below(self.exceeds_max);

        let left_out = if self.keeps_overflow { 0 } else { overflow };
        let limit = if self.keeps_overflow { INFINITY } else { self.overflow };
        let errors = &mut stats.errors;
        errors.left_out += left_out;
        errors.elements += finite - left_out;
        errors.nonzero += finite - left_out - block.zeros;
        errors.signal += if left_out == 0 { block.signal } else { self.signal_below(block, limit) };
        let exactly = Errors { cast: self, block, limit };
        let sums = if overflow > 0 || !block.is_finite() || block.has_subnormals() {
            fast::run(level, exactly)
        } else if self.nearest.min_normal > HIDDEN {
            fast::run(level, Plain::<true> { cast: self, block })
        } else {
            fast::run(level, Plain::<false> { cast: self, block })
        };
        errors.noise += sums.noise;
        errors.relative += sums.relative;
        errors.max_abs = errors.max_abs.max(sums.max_abs);
        // No error to nearest exceeds 1.
        if sums.max_rel_bound > errors.max_rel && errors.max_rel < 1.0 {
            errors.max_rel = errors.max_rel.max(fast::run(level, exactly).max_rel_bound);
        }
    }

    /// Number of elements with |product| < `limit`. Seldom are any beyond a limit or all within one: only
    /// limits inside the block's range are counted.
    fn below(&self, level: Level, block: &Block<'_>, limit: u32) -> u64 {
        let bits = |magnitude| self.magnitude_bits(f32::from_bits(magnitude));
        if bits(block.largest) < limit {
            block.finite()
        } else if block.smallest > 0 && bits(block.smallest) >= limit {
            if limit > 0 { block.zeros } else { 0 }
        } else {
            fast::run(level, Below { cast: self, block, limit })
        }
    }

    #[inline(always)]
    fn magnitude_bits(&self, x: f32) -> u32 {
        (x * self.plan.scale).to_bits() & !SIGN
    }

    /// Significand bits that an element with the exponent field `exponent` loses, the hidden one included; up
    /// to 31, where all are lost and the nearest number is zero. For formats with subnormal numbers.
    #[inline(always)]
    fn dropped(&self, exponent: u32) -> u32 {
        let below_normal = self.first_normal_field - exponent as i32;
        (self.nearest.dropped as i32 + below_normal.max(0)).min(31) as u32
    }

    /// |product| → the magnitude that it is cast to; the largest number for an overflow.
    #[inline(always)]
    fn round(&self, magnitude: u32) -> f32 {
        if magnitude >= self.overflow { self.max_finite } else { self.nearest.round(magnitude) }
    }

    fn signal_below(&self, block: &Block<'_>, limit: u32) -> f64 {
        let scale = f64::from(self.plan.scale);
        let magnitudes = block.values().iter().map(|&x| self.magnitude_bits(x));
        let squares = magnitudes.filter(|&magnitude| magnitude < limit).map(|magnitude| {
            let x = f64::from(f32::from_bits(magnitude)) / scale;
            x * x
        });
        squares.sum()
    }
}

/// Counts products below a limit.
struct Below<'a> {
    cast: &'a WideCast,
    block: &'a Block<'a>,
    limit: u32,
}

impl Kernel for Below<'_> {
    type Out = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let below = |x: &f32| u32::from(self.cast.magnitude_bits(*x) < self.limit);
        // The zeros that fill up the block are below every limit but 0.
        let filled = if self.limit > 0 { self.block.padded().len() - self.block.values().len() } else { 0 };
        u64::from(self.block.padded().iter().map(below).sum::<u32>()) - filled as u64
    }
}

/// Error sums over the elements whose |product| is below `limit`.
#[derive(Clone, Copy)]
struct Errors<'a> {
    cast: &'a WideCast,
    block: &'a Block<'a>,
    limit: u32,
}

/// The same in integers, where every element is finite and zero or normal, and none overflows. `SUBNORMALS`
/// if the format has any that are normal numbers of f32.
struct Plain<'a, const SUBNORMALS: bool> {
    cast: &'a WideCast,
    block: &'a Block<'a>,
}

struct Sums {
    noise: f64,
    relative: f64,
    max_abs: f64,
    /// The largest relative error, or little more.
    max_rel_bound: f64,
}

impl Kernel for Errors<'_> {
    type Out = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let cast = self.cast;
        let (mut noise, mut relative) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        let (mut max_abs, mut max_rel) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        for xs in self.block.padded().as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                let magnitude = cast.magnitude_bits(xs[lane]);
                let magnitude = if magnitude < self.limit { magnitude } else { 0 };
                let product = f64::from(f32::from_bits(magnitude));
                let error = (product - f64::from(cast.round(magnitude))).abs();
                let ratio = error / if magnitude > 0 { product } else { 1.0 };
                noise[lane] += error * error;
                relative[lane] += ratio;
                max_abs[lane] = max_abs[lane].max(error);
                max_rel[lane] = max_rel[lane].max(ratio);
            }
        }
        let scale = f64::from(cast.plan.scale);
        let largest = |lanes: [f64; LANES]| lanes.into_iter().fold(0.0, f64::max);
        Sums {
            noise: noise.iter().sum::<f64>() / scale / scale,
            relative: relative.iter().sum(),
            max_abs: largest(max_abs) / scale,
            max_rel_bound: largest(max_rel),
        }
    }
}

impl<const SUBNORMALS: bool> Kernel for Plain<'_, SUBNORMALS> {
    type Out = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let Self { cast, block } = self;
        let (values, inverses) = (block.padded(), block.inverses());
        let (mut errors, mut lengths) = ([0_u32; BLOCK], [0.0_f32; BLOCK]);
        let (errors, lengths) = (&mut errors[..values.len()], &mut lengths[..values.len()]);
        let (mut max_abs, mut max_rel) = (0_u32, 0_u32);
        let elements = values.iter().zip(inverses);
        for ((error, length), (x, inverse)) in errors.iter_mut().zip(&mut *lengths).zip(elements) {
            // The distance to the nearer multiple of the last place kept, whichever way a tie goes.
            let magnitude = x.to_bits() & !SIGN;
            let dropped = if SUBNORMALS { cast.dropped(magnitude >> 23) } else { cast.nearest.dropped };
            let kept_place = 1_u32 << dropped;
            let low = ((magnitude & FRACTION) | HIDDEN) & (kept_place - 1);
            *error = low.min(kept_place - low);
            let units = *error as i32 as f32;
            let ratio = units * (inverse >> 1) as i32 as f32;
            // Of a zero the power is 0.
            let power = f32::from_bits(magnitude & INFINITY);
            *length = (power * (1.0 / HIDDEN as f32)) * units;
            // Bits of numbers that are not negative are in the order of the numbers.
            max_abs = max_abs.max(length.to_bits());
            max_rel = max_rel.max(ratio.to_bits());
        }
        // No error exceeds its element, so that each product is at most 2^54, and a block of them fits.
        let products =
            errors.iter().zip(inverses).map(|(&error, &inverse)| u64::from(error) * u64::from(inverse));
        let relative: u64 = products.sum();
        let max_rel = f64::from(f32::from_bits(max_rel)) * pow2(-53);
        Sums {
            noise: sum_of_squares(lengths),
            relative: relative as f64 * pow2(-54),
            max_abs: f32::from_bits(max_abs).into(),
            // What f32 has rounded is less than the addition.
            max_rel_bound: max_rel + max_rel * 1e-6,
        }
    }
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
