//! What one cast makes of the bins.

use super::{Bin, Half, LOW_BITS, NOT_FINITE};
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
        if bin.on_grid.count > 0 {
            on_grid.count(stats, bin.on_grid.count);
            stats.errors.observe(bin.base(), on_grid.dequantised, bin.on_grid.count);
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
        let gap = self.point as f64 - q;
        errors.elements += n;
        errors.nonzero += n;
        errors.signal += self.squares_about(0.0) * (unit * unit);
        errors.noise += self.squares_about(q) * (unit * unit);
        let distances = self.relative_distances();
        errors.relative += if gap == 0.0 {
            distances
        } else {
            let side = self.side as f64;
            let inverses = (n as f64 - side * distances) / self.point as f64;
            gap.abs() * inverses + gap.signum() * side * distances
        };
        for u in [self.extremes.smallest, self.extremes.largest] {
            let x = (self.point + self.side * i64::from(u)) as f64;
            let error = (x - q).abs();
            errors.max_abs = errors.max_abs.max(error * unit);
            errors.max_rel = errors.max_rel.max(error / x);
        }
    }

    /// Σ u/|x|: from u/(p ± u) = u/p ∓ u²/p² + u³/(p²·(p ± u)), where the last term is what the bins call
    /// the residue.
    fn relative_distances(&self) -> f64 {
        let point = self.point as f64;
        let second = (self.side as f64 * self.totals.squares as f64 - self.totals.residue as f64) / point;
        (self.totals.sum as f64 - second) / point
    }

    /// Σ (|x| − centre)² in units. In exact integers where the centre is one, since near a number of the
    /// format the terms cancel.
    fn squares_about(&self, centre: f64) -> f64 {
        let totals = &self.totals;
        let gap = self.point as f64 - centre;
        let exact = gap as i64;
        if exact as f64 != gap || exact.unsigned_abs() >= 1 << 40 {
            let (n, sum) = (totals.count as f64, totals.sum as f64);
            return n * gap * gap + 2.0 * self.side as f64 * gap * sum + totals.squares as f64;
        }
        let gap = exact * self.side;
        if totals.count < 1 << 12 && gap.unsigned_abs() < 1 << 25 {
            // Most bins of most tensors: here no term reaches 2^63.
            return (totals.count as i64 * gap * gap + 2 * gap * totals.sum as i64 + totals.squares as i64)
                as f64;
        }
        let (n, gap, sum) = (i128::from(totals.count), i128::from(gap), i128::from(totals.sum));
        (n * gap * gap + 2 * gap * sum + totals.squares as i128) as f64
    }
}
