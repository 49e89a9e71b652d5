//! The figures of a `simulate-scaler` report, under the names that its JSON uses.

use serde::Serialize;

use super::findings::{LOWER_BOUND, findings};
use super::suggestion::SuggestionRow;
use crate::report::histogram::as_map;
use crate::report::number::Num;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::scaler::ScalerSpec;
use crate::scaler::run::{Happened, Run};
use crate::scaler::schedule::Schedule;
use crate::scaler::simulate::flushed_share;
use crate::scaler::suggest::Suggestion;
use crate::scaler::trace::Trace;

/// What the figures mean.
const DEFINITIONS: &[(&str, &str)] = &[
    ("scale_used", "the loss was multiplied by it; the gradients are tested at this scale"),
    (
        "found_inf",
        "the largest true gradient times the scale, a product in float32, rounds beyond the format",
    ),
    ("warm_up", "the steps before the first 10 applied ones in a row"),
    ("steady_skip_pct", "skipped steps after the warm-up, of the steps after it"),
    ("headroom_log2", "log2(largest number of the format / (scale · largest gradient)) in bits"),
    (
        "underflow_pct",
        "nonzero gradient values that become zero at the scale, in the tensors made in the format",
    ),
    ("gradient_factor", "what the applied gradient is of the true one"),
    ("corrupt", "the step was applied although dividing by the scale makes gradients NaN or Inf"),
];

/// Everything that `simulate-scaler` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct SimulateReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `simulate-scaler`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// What was recorded.
    pub record: Record,
    /// What each scaler did.
    pub scalers: Vec<ScalerRun>,
    /// First step at which a scaler uses another scale than the first one.
    pub divergences: Vec<Divergence>,
    /// What the record says about scales, if that was asked for.
    pub suggestion: Option<SuggestionRow>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What every figure is to be read with.
    pub lower_bound: &'static str,
    /// What was assumed or left out.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
    #[serde(skip)]
    pub(super) trace: Trace,
    #[serde(skip)]
    pub(super) schedule: Schedule,
    #[serde(skip)]
    pub(super) runs: Vec<Run>,
    /// Show every step, not only those at which something happens.
    #[serde(skip)]
    pub(super) all_steps: bool,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// The format that scaled gradients are made in.
    pub format: String,
    /// What became of missing steps.
    pub gaps: &'static str,
    /// Passes over the record; `null` until the state repeats.
    pub repeat: Option<u64>,
    /// What decided overflows.
    pub evidence: &'static str,
    /// Tensors that match have gradients in float32.
    pub fp32_grads: String,
    /// What stored gradients were divided by; `null` for the scale that each file recorded.
    pub unscale: Option<Num>,
    /// Norm that gradients are clipped to.
    pub clip: Option<Num>,
    /// Whether to print every step.
    #[serde(skip)]
    pub all_steps: bool,
}

/// What was recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// Files, or none for a made-up record.
    pub inputs: Vec<String>,
    /// What kind of made-up record this is; `null` for a real one.
    pub synthetic: Option<String>,
    /// Recorded steps.
    pub steps: u64,
    /// Number of the first.
    pub first_step: u64,
    /// Number of the last.
    pub last_step: u64,
    /// Steps between these that are not there.
    pub missing: u64,
    /// Steps whose true gradients hold NaN or Inf: no scale helps.
    pub nonfinite: u64,
    /// Named tensors.
    pub tensors: u64,
    /// Tensors whose gradients are taken to be made in float32.
    pub fp32_grads: Vec<String>,
    /// Whether the share of values that underflow is known.
    pub has_histograms: bool,
}

/// What one scaler did.
#[derive(Clone, Debug, Serialize)]
pub struct ScalerRun {
    /// The scaler.
    pub scaler: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where its rule comes from.
    pub source: &'static str,
    /// Type of the scale.
    pub float: &'static str,
    /// Its parameters.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Simulated steps.
    pub steps: u64,
    /// Scale before the first step.
    pub first_scale: Num,
    /// Scale after the last.
    pub last_scale: Num,
    /// Smallest scale in force.
    pub smallest_scale: Num,
    /// Largest scale in force.
    pub largest_scale: Num,
    /// Mean of log2 of the scale in force.
    pub mean_log2_scale: Option<Num>,
    /// Skipped steps.
    pub skipped: u64,
    /// Skipped steps whose true gradients hold NaN or Inf.
    pub skipped_nonfinite: u64,
    /// Skipped steps of the warm-up.
    pub warm_up_skipped: u64,
    /// Steps of the warm-up.
    pub warm_up_steps: u64,
    /// Skipped steps after the warm-up, in percent of these steps.
    pub steady_skip_pct: Option<Num>,
    /// Steps at a scale that an overflow could not lower.
    pub at_floor: u64,
    /// Applied steps with non-finite scaled gradients.
    pub applied_nonfinite: u64,
    /// Applied steps that dividing by the scale corrupted.
    pub corrupt: u64,
    /// Applied steps whose gradient was not the true one.
    pub wrong_gradient: u64,
    /// Steps that rest on a flag recorded at another scale.
    pub presumed: u64,
    /// Mean share of values lost to zero in applied steps, percent.
    pub mean_underflow_pct: Option<Num>,
    /// Step at which the framework stopped the run, and with what.
    pub abort: Option<Abort>,
    /// The state that repeats, where it was looked for.
    pub steady_state: Option<SteadyState>,
    /// What clipping does at these scales.
    pub clip: Option<Clip>,
    /// Steps at which something happened.
    pub events: Vec<EventRow>,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub struct Abort {
    /// The step.
    pub step: u64,
    /// What the framework raises.
    pub error: &'static str,
}

/// A cycle that the run ends in.
#[derive(Clone, Debug, Serialize)]
pub struct SteadyState {
    /// Passes over the record before the cycle.
    pub after_passes: u64,
    /// Steps of the cycle.
    pub steps: u64,
    /// Skipped ones.
    pub skipped: u64,
}

/// Clipping to a norm, in the right order (unscale, then clip) and in the wrong one.
#[derive(Clone, Debug, Serialize)]
pub struct Clip {
    /// Applied steps whose norm is larger; `null` if no norms are known.
    pub clipped: Option<u64>,
    /// Applied steps whose scaled norm is larger, which the wrong order clips.
    pub clipped_in_wrong_order: Option<u64>,
    /// The norm that the wrong order leaves at most, at the largest scale.
    pub smallest_effective_norm: Num,
    /// The same at the smallest scale.
    pub largest_effective_norm: Num,
}

/// A step at which something happened.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    /// Number of the step.
    pub step: u64,
    /// The scale in force.
    pub scale_used: Num,
    /// The scale of the next step.
    pub scale_after: Num,
    /// Whether the gradients were non-finite.
    pub found_inf: bool,
    /// What the scaler did; empty for an applied step that it let pass.
    pub event: &'static str,
    /// Why the gradients were non-finite.
    pub cause: &'static str,
    /// The tensor at fault.
    pub tensor: Option<String>,
    /// Bits to the format's largest number.
    pub headroom_log2: Option<Num>,
    /// Values lost to zero, percent of the nonzero ones.
    pub underflow_pct: Option<Num>,
    /// What the applied gradient is of the true one.
    pub gradient_factor: f32,
    /// Whether the applied gradient was made NaN or Inf.
    pub corrupt: bool,
    /// Clean steps counted towards growth.
    pub growth_count: Option<Num>,
    /// How many it takes.
    pub growth_after: Option<Num>,
}

/// Where two scalers part.
#[derive(Clone, Debug, Serialize)]
pub struct Divergence {
    /// The first scaler of the report.
    pub first: &'static str,
    /// Another.
    pub second: &'static str,
    /// First step at which their scales differ; `null` if they never do.
    pub step: Option<u64>,
}

impl SimulateReport {
    /// The report of what `runs` did with a trace.
    pub fn new(
        options: Options,
        record: Record,
        trace: Trace,
        schedule: Schedule,
        runs: Vec<Run>,
        suggestion: Option<Suggestion>,
    ) -> Self {
        let steps = &trace.steps;
        let record = Record {
            steps: steps.len() as u64,
            first_step: steps.first().map_or(0, |step| step.number),
            last_step: steps.last().map_or(0, |step| step.number),
            missing: schedule.missing,
            nonfinite: trace.nonfinite(),
            tensors: trace.tensors.len() as u64,
            has_histograms: !trace.histograms.is_empty(),
            ..record
        };
        let all_steps = options.all_steps;
        let mut report = Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "simulate-scaler",
            options,
            definitions: DEFINITIONS,
            record,
            scalers: Vec::new(),
            divergences: Vec::new(),
            suggestion: suggestion.map(SuggestionRow::from),
            findings: Vec::new(),
            lower_bound: LOWER_BOUND,
            notices: Vec::new(),
            problems: Vec::new(),
            trace,
            schedule,
            runs,
            all_steps,
        };
        report.scalers = report.runs.iter().map(|run| report.scaler_run(run)).collect();
        report.divergences = report.find_divergences();
        report.findings = findings(&report);
        report
    }

    fn scaler_run(&self, run: &Run) -> ScalerRun {
        let (spec, totals): (&ScalerSpec, _) = (run.setup.spec, &run.totals);
        let parameters = spec.parameters.iter().zip(run.setup.settings.values());
        ScalerRun {
            scaler: spec.name,
            about: spec.about,
            source: spec.source,
            float: spec.float.name(),
            parameters: parameters
                .map(|(parameter, &value)| (parameter.name, parameter.text(value)))
                .collect(),
            steps: totals.steps,
            first_scale: Num(run.first_scale),
            last_scale: Num(run.last_scale),
            smallest_scale: Num(totals.smallest),
            largest_scale: Num(totals.largest),
            mean_log2_scale: totals.mean_log2_scale().map(Num),
            skipped: totals.skipped,
            skipped_nonfinite: totals.nonfinite,
            warm_up_skipped: totals.warm_up_skipped,
            warm_up_steps: totals.warm_up_steps,
            steady_skip_pct: totals.steady_skip_ratio().map(|ratio| Num(100.0 * ratio)),
            at_floor: totals.at_floor,
            applied_nonfinite: totals.applied_nonfinite,
            corrupt: totals.corrupt,
            wrong_gradient: totals.wrong_factor,
            presumed: totals.presumed,
            mean_underflow_pct: totals.mean_flushed().map(|share| Num(100.0 * share)),
            abort: run
                .abort()
                .map(|(position, error)| Abort { step: self.schedule.turn(position).number, error }),
            steady_state: run.steady.map(|steady| SteadyState {
                after_passes: steady.after_passes,
                steps: steady.steps,
                skipped: steady.skipped,
            }),
            clip: self.options.clip.map(|Num(clip)| self.clip(run, clip)),
            events: run.events.iter().map(|event| self.event_row(event)).collect(),
        }
    }

    /// A step as a row.
    pub(super) fn event_row(&self, happened: &Happened) -> EventRow {
        let turn = self.schedule.turn(happened.position);
        let step = &self.trace.steps[turn.step];
        let headroom = self.trace.headroom_log2(step, happened.scale);
        let underflow = step.histogram.map(|histogram| flushed_share(&self.trace, histogram, happened.scale));
        EventRow {
            step: turn.number,
            scale_used: Num(happened.scale),
            scale_after: Num(happened.scale_after),
            found_inf: happened.found.found_inf(),
            event: happened.event.name(),
            cause: happened.found.name(),
            tensor: self.trace.name(happened.found.tensor()).map(str::to_owned),
            headroom_log2: (!headroom.is_nan()).then_some(Num(headroom)),
            underflow_pct: underflow.map(|share| Num(100.0 * share)),
            gradient_factor: happened.factor,
            corrupt: happened.corrupt,
            growth_count: happened.until_growth.map(|(count, _)| Num(count)),
            growth_after: happened.until_growth.map(|(_, after)| Num(after)),
        }
    }

    fn clip(&self, run: &Run, clip: f64) -> Clip {
        let known = self.trace.steps.iter().any(|step| !step.norm.is_nan());
        let (mut right, mut wrong) = (0, 0);
        if known {
            for step in run.steps().filter(|step| !step.event.skips()) {
                let norm = self.trace.steps[self.schedule.turn(step.position).step].norm;
                right += u64::from(norm > clip);
                wrong += u64::from(norm * step.scale > clip);
            }
        }
        Clip {
            clipped: known.then_some(right),
            clipped_in_wrong_order: known.then_some(wrong),
            smallest_effective_norm: Num(clip / run.totals.largest),
            largest_effective_norm: Num(clip / run.totals.smallest),
        }
    }

    fn find_divergences(&self) -> Vec<Divergence> {
        let Some((first, others)) = self.runs.split_first() else { return Vec::new() };
        let diverges = |other: &Run| Divergence {
            first: first.setup.spec.name,
            second: other.setup.spec.name,
            step: first.diverges(other).map(|position| self.schedule.turn(position).number),
        };
        others.iter().map(diverges).collect()
    }
}
