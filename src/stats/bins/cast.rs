//! What one cast makes of the bins.

use super::bin::{Bin, Half};
use super::{LOW_BITS, NOT_FINITE};
use crate::cast::round::Class;
use crate::cast::{CastPlan, Place, Rounding};
use crate::stats::element::FormatStats;

/// What a cast makes of each bin, tabulated once a run.
pub(in crate::stats) struct BinCast {
    /// By bin: of the elements on the grid point, and of those between it and the next.
    outcomes: Vec<[Outcome; 2]>,
}

#[derive(Clone, Copy)]
struct Outcome {
    class: Class,
    exceeds_max: bool,
    /// Magnitude that comes back.
    dequantised: f64,
}

impl Outcome {
    fn of(plan: &CastPlan, x: f32) -> Self {
        let q = plan.cast_f32(x, Place::default());
        let exceeds_max = f64::from(x * plan.scale) > plan.target.max_finite();
        Self { class: q.class, exceeds_max, dequantised: plan.dequantise(q) }
    }

    fn count(&self, stats: &mut FormatStats, n: u64) {
        stats.classes.add(self.class, n);
        if self.exceeds_max {
            stats.exceeds_max += n;
        }
    }
}

impl BinCast {
    /// `None` if bins do not determine the outcome of this cast.
    pub(in crate::stats) fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        let stochastic = matches!(plan.rounding, Rounding::Stochastic { .. });
        let determined = plan.rounding.is_symmetric() && !stochastic && !plan.flush_subnormal_inputs;
        let shift = plan.scale_log2()?;
        // Where the scale makes products smaller, those that f32 would round must not reach a midpoint, the
        // finest of which is half the smallest number.
        let finest = format.emin() - format.trailing_bits() as i32 - 1;
        let exact = shift >= 0 || finest >= -126;
        if format.trailing_bits() > 4 || !format.signed || !format.subnormals || !determined || !exact {
            return None;
        }
        let outcomes = (0..NOT_FINITE as u32).map(|bin| {
            let base = bin << LOW_BITS;
            [base, base | 1].map(|bits| Outcome::of(plan, f32::from_bits(bits)))
        });
        Some(Self { outcomes: outcomes.collect() })
    }

    /// Adds what becomes of the elements of `bin` to `stats`.
    pub(super) fn add(&self, bin: &Bin, stats: &mut FormatStats) {
        let [on_grid, between] = self.outcomes[bin.number];
        if bin.on_grid > 0 {
            on_grid.count(stats, bin.on_grid);
            stats.errors.observe(bin.base, on_grid.dequantised, bin.on_grid);
        }
        for half in bin.between.iter().filter(|half| half.totals.count > 0) {
            between.count(stats, half.totals.count);
            half.add_errors(between.dequantised, bin.unit, stats);
        }
    }
}

impl Half {
    /// Adds the errors of the elements, all of which come back as ±`dequantised`.
    fn add_errors(&self, dequantised: f64, unit: f64, stats: &mut FormatStats) {
        let errors = &mut stats.errors;
        let n = self.totals.count;
        if !dequantised.is_finite() {
            errors.left_out += n;
            return;
        }
        // In units: an element is point ± u, its quantised value is q, either the point or farther away from
        // it than u, since nothing of a narrow format lies between two points of the grid.
        let q = dequantised.abs() / unit;
        let gap = self.point - q;
        errors.elements += n;
        errors.nonzero += n;
        errors.signal += self.squares * (unit * unit);
        errors.noise += self.squares_about(q) * (unit * unit);
        errors.relative += if gap == 0.0 {
            self.relative_distances
        } else {
            let distances = self.side * self.relative_distances;
            let inverses = (n as f64 - distances) / self.point;
            gap.abs() * inverses + gap.signum() * distances
        };
        for x in self.extremes {
            let error = (x - q).abs();
            errors.max_abs = errors.max_abs.max(error * unit);
            errors.max_rel = errors.max_rel.max(error / x);
        }
    }
}
