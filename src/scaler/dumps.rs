//! Dumped gradients → the steps of a trace.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::trace::{Join, Recorded, Step};
use crate::format::exponent_of;
use crate::format::pow2;
use crate::stats::{Binades, SourceStats};

/// Names of metadata and parts of file names that say the step.
const NAMES: [&str; 4] = ["step", "global_step", "iteration", "iter"];

/// The training step that a dump is of: from what the file records about itself, or else the digits that follow
/// `step` or `iter` in its name or its folder's.
pub fn step_of(path: &Path, metadata: &[(String, String)]) -> Option<u64> {
    let recorded = NAMES.iter().find_map(|name| {
        let (_, value) = metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        value.trim().parse().ok()
    });
    let mut parts = path.components().rev().take(2).filter_map(|part| part.as_os_str().to_str());
    recorded.or_else(|| parts.find_map(step_in_name))
}

fn step_in_name(name: &str) -> Option<u64> {
    let lower = name.to_ascii_lowercase();
    ["step", "iteration", "iter"].iter().find_map(|word| {
        let (_, after) = lower.split_once(word)?;
        let after = after.trim_start_matches(['_', '-', '=', '.']);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        after[..digits].parse().ok()
    })
}

impl Default for Dumps {
    fn default() -> Self {
        Self { steps: BTreeMap::new(), seen: HashSet::new(), repeated: 0, has_histograms: true }
    }
}

/// The loss scale that a dump says its gradients are multiplied by.
pub fn recorded_scale(metadata: &[(String, String)]) -> Option<f64> {
    let names = ["loss_scale", "grad_scale", "scale"];
    let value = names.iter().find_map(|name| metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
    value
        .and_then(|(_, value)| value.trim().parse().ok())
        .filter(|scale: &f64| *scale > 0.0 && scale.is_finite())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_in_the_metadata_or_the_name() {
        let cases = [
            ("run/grads_step00400.npy", Some(400)),
            ("run/step-7/grads.npy", Some(7)),
            ("run/iteration=3.npz", Some(3)),
            ("run/grads.npy", None),
            ("run/stepping.npy", None),
            ("run/step99999999999999999999.npy", None),
        ];
        for (path, step) in cases {
            assert_eq!(step_of(Path::new(path), &[]), step, "{path}");
        }
        let metadata = [("Global_Step".to_owned(), " 12 ".to_owned())];
        assert_eq!(step_of(Path::new("run/grads_step00400.npy"), &metadata), Some(12));
    }
}
