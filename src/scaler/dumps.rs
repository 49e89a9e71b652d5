//! Dumped gradients → the steps of a trace.

use std::collections::{BTreeMap, HashSet};

use super::trace::{Join, Recorded, Step};
use crate::format::{exponent_of, pow2};
use crate::stats::{Binades, SourceStats};

/// Collects the tensors of all dumps, step by step.
#[derive(Debug)]
pub struct Dumps {
    steps: BTreeMap<u64, (Step, SourceStats, f64)>,
    seen: HashSet<(u64, u32)>,
    /// Tensors that a step had already: of other ranks, or copies. All count.
    pub repeated: u64,
    /// Whether shares of flushed values can be told: scales that are powers of two leave the binades whole.
    pub has_histograms: bool,
}

impl Default for Dumps {
    fn default() -> Self {
        Self { steps: BTreeMap::new(), seen: HashSet::new(), repeated: 0, has_histograms: true }
    }
}

impl Dumps {
    /// Adds one tensor of step `number`. Its gradients are stored as `scale` times the true ones.
    pub fn add(&mut self, number: u64, name: &str, stored: &SourceStats, scale: f64, join: &mut Join) {
        self.has_histograms &= pow2(exponent_of(scale)) == scale;
        let index = join.tensor(name);
        let single = join.is_single(index);
        self.repeated += u64::from(!self.seen.insert((number, index)));
        let (step, low, squares) =
            self.steps.entry(number).or_insert_with(|| (Step::new(number), SourceStats::default(), 0.0));
        if stored.nan + stored.inf() > 0 {
            if scale == 1.0 {
                step.nonfinite.get_or_insert(Some(index));
            } else {
                step.recorded = Some(Recorded { scale, found_inf: true, tensor: Some(index) });
            }
        } else if scale != 1.0 && step.recorded.is_none() {
            step.recorded = Some(Recorded { scale, found_inf: false, tensor: None });
        }
        let true_ = unscaled(stored, scale);
        if let Some(amax) = true_.amax() {
            (if single { &mut step.single } else { &mut step.low }).raise(amax, Some(index));
        }
        *squares += true_.sum_squares;
        if !single {
            low.merge(&true_);
        }
        let by_tensor = &mut join.trace_mut().by_tensor;
        by_tensor.resize_with(by_tensor.len().max(index as usize + 1), SourceStats::default);
        by_tensor[index as usize].merge(&true_);
    }

    /// Hands the steps over.
    pub fn finish(self, join: &mut Join) {
        let histograms = self.has_histograms;
        if !histograms {
            join.trace_mut().by_tensor.clear();
        }
        for (_, (mut step, low, squares)) in self.steps {
            step.norm = squares.sqrt();
            if histograms {
                let all = &mut join.trace_mut().histograms;
                step.histogram = Some(all.len() as u32);
                all.push(low);
            }
            join.add(step);
        }
    }
}

/// The statistics of the values divided by `scale`. Exact for powers of two; else the binades are those of the
/// stored values and of no use.
fn unscaled(stored: &SourceStats, scale: f64) -> SourceStats {
    if scale == 1.0 {
        return stored.clone();
    }
    let mut binades = Binades::default();
    for (exponent, binade) in stored.binades.iter() {
        binades.add(exponent - exponent_of(scale), binade.positive, binade.negative, binade.at_power);
    }
    SourceStats {
        binades,
        amax: stored.amax / scale,
        amin: stored.amin / scale,
        sum: stored.sum / scale,
        sum_squares: stored.sum_squares / (scale * scale),
        ..stored.clone()
    }
}
