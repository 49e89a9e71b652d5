//! Formats with more significand bits than the bins resolve: every element is rounded, a block at a time.

use super::block::{Block, INFINITY, LANES};
use super::element::FormatStats;
use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{self, Kernel, Level};
use crate::cast::round::Class;
use crate::cast::{CastPlan, Overflow, Place, Rounding};

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
    nearest: Nearest,
}

impl WideCast {
    /// `None` if the loops here do not reproduce this cast.
    pub(super) fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        plan.scale_log2()?;
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
            nearest,
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
    pub(super) fn observe(&self, level: Level, block: &Block, stats: &mut FormatStats) {
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

        let keeps_overflow = self.plan.overflow != Overflow::Ieee;
        let left_out = if keeps_overflow { 0 } else { overflow };
        let limit = if keeps_overflow { INFINITY } else { self.overflow };
        let errors = &mut stats.errors;
        errors.left_out += left_out;
        errors.elements += finite - left_out;
        errors.nonzero += finite - left_out - block.zeros;
        errors.signal += if left_out == 0 { block.signal } else { self.signal_below(block, limit) };
        let kernel = Errors { cast: self, block, limit };
        // Formats with the exponents of f32 have subnormal numbers only where f32 has them, and integer
        // rounding is right there too.
        let has_subnormals = self.nearest.min_normal > f32::MIN_POSITIVE.to_bits();
        let sums = match (has_subnormals, overflow == 0 && block.is_finite()) {
            (true, true) => fast::run(level, Plain::<true>(kernel)),
            (false, true) => fast::run(level, Plain::<false>(kernel)),
            (_, false) => fast::run(level, kernel),
        };
        let scale = f64::from(self.plan.scale);
        errors.noise += sums.noise / scale / scale;
        errors.relative += sums.relative / scale;
        errors.max_abs = errors.max_abs.max(sums.max_abs / scale);
        // The products with reciprocals are right to a few units in the last place: where they reach
        // the maximum so far, divide. No error to nearest exceeds 1.
        let close = sums.max_rel / scale * (1.0 + 1e-13);
        if close >= errors.max_rel && errors.max_rel < 1.0 && close > 0.0 {
            errors.max_rel = errors.max_rel.max(self.max_rel(block, limit));
        }
    }

    /// Number of elements with |product| < `limit`. Seldom are any beyond a limit or all within one: only
    /// limits inside the block's range are counted.
    fn below(&self, level: Level, block: &Block, limit: u32) -> u64 {
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
        (x * self.plan.scale).to_bits() & !(1 << 31)
    }

    /// |product| → the magnitude that it is cast to; the largest number for an overflow.
    #[inline(always)]
    fn round(&self, magnitude: u32) -> f32 {
        if magnitude >= self.overflow { self.max_finite } else { self.nearest.round(magnitude) }
    }

    fn kept_magnitudes(&self, block: &Block, limit: u32) -> impl Iterator<Item = u32> {
        block.values().iter().map(|&x| self.magnitude_bits(x)).filter(move |&magnitude| magnitude < limit)
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

/// Counts products below a limit.
struct Below<'a> {
    cast: &'a WideCast,
    block: &'a Block,
    limit: u32,
}

impl Kernel for Below<'_> {
    type Out = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let below = |x: &f32| u32::from(self.cast.magnitude_bits(*x) < self.limit);
        self.block.values().iter().map(below).sum::<u32>().into()
    }
}

/// Error sums of the products, over elements whose |product| is below `limit`.
#[derive(Clone, Copy)]
struct Errors<'a> {
    cast: &'a WideCast,
    block: &'a Block,
    limit: u32,
}

/// The same where every element is finite and none overflows: then each error is an exact f32, and its
/// size does not depend on which way a tie goes.
struct Plain<'a, const SUBNORMALS: bool>(Errors<'a>);

#[derive(Default)]
struct Sums {
    noise: f64,
    relative: f64,
    max_abs: f64,
    max_rel: f64,
}

/// Running sums, one a lane, so that they do not depend on the width of the processor's vectors.
struct Lanes {
    noise: [f64; LANES],
    relative: [f64; LANES],
    max_abs: [f64; LANES],
    max_rel: [f64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn new() -> Self {
        Self { noise: [0.0; LANES], relative: [0.0; LANES], max_abs: [0.0; LANES], max_rel: [0.0; LANES] }
    }

    #[inline(always)]
    fn add(&mut self, lane: usize, error: f64, reciprocal: f64) {
        let rel = error * reciprocal;
        self.noise[lane] += error * error;
        self.relative[lane] += rel;
        // Not a conditional assignment: that would be compiled to a conditional store, each time.
        self.max_abs[lane] = self.max_abs[lane].max(error);
        self.max_rel[lane] = self.max_rel[lane].max(rel);
    }

    #[inline(always)]
    fn sums(&self) -> Sums {
        Sums {
            noise: self.noise.iter().sum(),
            relative: self.relative.iter().sum(),
            max_abs: self.max_abs.iter().fold(0.0, |m, x| x.max(m)),
            max_rel: self.max_rel.iter().fold(0.0, |m, x| x.max(m)),
        }
    }
}

impl Kernel for Errors<'_> {
    type Out = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let mut lanes = Lanes::new();
        for (xs, rs) in self.block.lanes() {
            for lane in 0..LANES {
                let magnitude = self.cast.magnitude_bits(xs[lane]);
                let magnitude = if magnitude < self.limit { magnitude } else { 0 };
                let rounded = f64::from(self.cast.round(magnitude));
                lanes.add(lane, (f64::from(f32::from_bits(magnitude)) - rounded).abs(), rs[lane]);
            }
        }
        lanes.sums()
    }
}

impl<const SUBNORMALS: bool> Kernel for Plain<'_, SUBNORMALS> {
    type Out = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let Errors { cast, block, .. } = self.0;
        let nearest = cast.nearest;
        let kept = !((1_u32 << nearest.dropped) - 1);
        let half = (1_u32 << nearest.dropped) >> 1;
        let mut lanes = Lanes::new();
        for (xs, rs) in block.lanes() {
            for lane in 0..LANES {
                let magnitude = cast.magnitude_bits(xs[lane]);
                let mut rounded = f32::from_bits((magnitude + half) & kept);
                if SUBNORMALS {
                    let subnormal = nearest.round_subnormal(magnitude);
                    rounded = if magnitude < nearest.min_normal { subnormal } else { rounded };
                }
                lanes.add(lane, f64::from((f32::from_bits(magnitude) - rounded).abs()), rs[lane]);
            }
        }
        lanes.sums()
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
