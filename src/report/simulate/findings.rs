//! What the figures mean, in sentences.

use super::events::scale_text;
use super::model::{Divergence, ScalerRun, SimulateReport};
use super::suggestion::SuggestionRow;
use crate::error::escape;
use crate::report::number::{Num, count, percent, plural, short};
use crate::scaler::run::SETTLED;
use crate::stats::scales::MAX_FLUSHED_SHARE;

/// Said once in every report.
pub(super) const LOWER_BOUND: &str = "Gradients of parameters give a lower bound on skips: gradients of activations \
                                      can overflow before any parameter's does.";

/// Share of skipped steps, in percent, above which they are called too many.
const MANY_SKIPS_PCT: f64 = 1.0;
/// Most scalers that a sentence about each is written for.
const MOST_VERDICTS: usize = 8;

/// The sentences of a report.
pub(super) fn findings(report: &SimulateReport) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(nonfinite(report));
    let until_steady = report.options.repeat.is_none();
    sentences.extend(report.scalers.iter().take(MOST_VERDICTS).map(|run| verdict(run, until_steady)));
    let more = report.scalers.len().saturating_sub(MOST_VERDICTS);
    if more > 0 {
        sentences.push(format!("{} more in the table.", plural(more as u64, "scaler")));
    }
    sentences.extend(divergences(report));
    sentences.extend(report.scalers.iter().filter_map(clip));
    sentences.extend(report.suggestion.iter().flat_map(|found| suggestion(report, found)));
    sentences
}

fn nonfinite(report: &SimulateReport) -> Option<String> {
    let (n, steps) = (report.record.nonfinite, report.record.steps);
    (n > 0).then(|| {
        let have = if n == 1 { "has" } else { "have" };
        format!(
            "{} of {} {have} NaN or Inf in the true gradients: no scale helps there. Look at the loss and the data \
             of these steps.",
            plural(n, "step"),
            count(steps)
        )
    })
}

/// Where the others part from the first scaler.
fn divergences(report: &SimulateReport) -> Vec<String> {
    let at_once = |apart: &&Divergence| apart.step == Some(report.record.first_step);
    let (started, others): (Vec<_>, Vec<_>) = report.divergences.iter().partition(at_once);
    let mut sentences = Vec::new();
    if let [apart, more @ ..] = started.as_slice() {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        sentences.push(format!("{} starts from another scale than {}{more}.", apart.first, apart.second));
    }
    sentences.extend(others.iter().take(MOST_VERDICTS).map(|apart| match apart.step {
        Some(step) => {
            format!("{} and {} first differ at step {}.", apart.first, apart.second, count(step))
        }
        None => format!("{} and {} use the same scale at every step.", apart.first, apart.second),
    }));
    sentences
}

/// One sentence or two about how a scaler fared.
fn verdict(run: &ScalerRun, until_steady: bool) -> String {
    let name = run.scaler;
    let skips = skips(run);
    let mut sentences = vec![match (&run.abort, run.steady_skip_pct) {
        (Some(abort), _) => format!(
            "{name} stops at step {}: the framework raises \"{}\"; {skips}.",
            count(abort.step),
            abort.error
        ),
        (None, _) if run.skipped == 0 => {
            let same = run.smallest_scale == run.largest_scale;
            let room = if same { ", and the scale never changes" } else { "" };
            format!("{name} skips nothing{room}.")
        }
        (None, None) => {
            format!(
                "{name} {skips} and has no {SETTLED} applied ones in a row: it does not settle in this record."
            )
        }
        (None, Some(Num(share))) if share > MANY_SKIPS_PCT => format!(
            "{name} {skips}: {} % of the steps after the warm-up, which is too many.",
            short(share, 3)
        ),
        (None, Some(_)) if run.skipped_nonfinite > 0 => format!("{name} goes on: {skips}."),
        (None, Some(_)) => format!("{name} serves: {skips}."),
    }];
    let (skipped, other) = (run.skipped_nonfinite, run.skipped - run.skipped_nonfinite);
    if skipped > 0 {
        let to = match run.abort {
            None => format!(", to {}", scale_text(run.smallest_scale.0)),
            Some(_) => String::new(),
        };
        let moves = if run.smallest_scale == run.largest_scale {
            String::new()
        } else {
            format!(", which lower the scale all the same{to}")
        };
        sentences.push(format!(
            "Skips where no scale helps{moves}: {}; at too high a scale: {}.",
            count(skipped),
            count(other)
        ));
    }
    if let Some(Num(share)) = run.mean_underflow_pct {
        sentences.push(format!("In applied steps {} % of the nonzero values underflow.", short(share, 3)));
    }
    if run.at_floor > 0 && run.abort.is_none() {
        sentences.push(format!(
            "{} at its smallest scale, {}.",
            plural(run.at_floor, "step"),
            scale_text(run.smallest_scale.0)
        ));
    }
    if run.applied_nonfinite > 0 {
        sentences.push(format!(
            "{} with non-finite gradients applied to the weights.",
            plural(run.applied_nonfinite, "step")
        ));
    }
    if run.corrupt > 0 {
        sentences.push(format!(
            "{} applied although dividing by so small a scale makes NaN or Inf of the gradients, unseen by the test.",
            plural(run.corrupt, "step")
        ));
    }
    if run.wrong_gradient > 0 {
        let factors = run.events.iter().filter(|event| event.gradient_factor != 1.0);
        let smallest = factors.map(|event| event.gradient_factor).fold(1.0, f32::min);
        sentences.push(format!(
            "{} with {smallest} of the true gradient: the scale grows before the gradients are divided by it.",
            plural(run.wrong_gradient, "step")
        ));
    }
    if let Some(steady) = &run.steady_state {
        sentences.push(format!(
            "From pass {} over the record on it repeats itself: {} skipped of {} in a cycle.",
            count(steady.after_passes + 1),
            count(steady.skipped),
            plural(steady.steps, "step")
        ));
    } else if until_steady && run.abort.is_none() {
        sentences.push("None of the states that it ends the record in comes back.".to_owned());
    }
    sentences.join(" ")
}

fn skips(run: &ScalerRun) -> String {
    let warm_up = match run.warm_up_skipped {
        0 => String::new(),
        _ if run.steady_skip_pct.is_none() => String::new(),
        n if n == run.skipped => ", all in the warm-up".into(),
        n => format!(", {} in the warm-up", count(n)),
    };
    format!("skips {} of {}{warm_up}", count(run.skipped), plural(run.steps, "step"))
}

fn clip(run: &ScalerRun) -> Option<String> {
    let clip = run.clip.as_ref()?;
    let (low, high) = (clip.smallest_effective_norm.0, clip.largest_effective_norm.0);
    let norms = if low == high { short(low, 3) } else { format!("{} to {}", short(low, 3), short(high, 3)) };
    let counts = match (clip.clipped, clip.clipped_in_wrong_order) {
        (Some(right), Some(wrong)) => format!(
            "clipping after unscaling acts on {}, before unscaling on {}, and ",
            plural(right, "step"),
            plural(wrong, "step")
        ),
        _ => String::new(),
    };
    Some(format!(
        "{}: {counts}clipping before unscaling would leave a norm of at most {norms}, which jumps with the scale.",
        run.scaler
    ))
}

fn suggestion(report: &SimulateReport, found: &SuggestionRow) -> Vec<String> {
    let power = |k: i32| format!("2^{k}");
    let bound = format!("{} %", 100.0 * MAX_FLUSHED_SHARE);
    let mut sentences = Vec::new();
    sentences.push(match (found.smallest_log2, found.largest_log2) {
        (_, None) => "Every scale overflows at some step.".into(),
        (Some(low), Some(high)) if low <= -126 => {
            format!("Constant scales up to {} overflow nothing; none is needed against underflow.", power(high))
        }
        (Some(low), Some(high)) => format!(
            "Constant scales from {} to {} are safe: at most {bound} of the nonzero values underflow and no step \
             overflows.",
            power(low),
            power(high)
        ),
        (None, Some(high)) if report.record.has_histograms => {
            let share = found.sweep.iter().find(|row| row.log2 == high).and_then(|row| row.underflow_pct);
            format!(
                "No constant scale is safe: {} is the largest without overflow, and {} % of the nonzero values still \
                 underflow at it, more than {bound}.",
                power(high),
                share.map_or("?".into(), |share| short(share.0, 3))
            )
        }
        (None, Some(high)) => format!(
            "{} is the largest constant scale at which no step overflows. How much underflows at it is not recorded; \
             dumps of the gradients say it.",
            power(high)
        ),
    });
    if let [first, others @ ..] = found.limits.as_slice()
        && found.smallest_log2.is_none()
        && report.record.has_histograms
    {
        let losses = others.iter().filter(|limit| limit.underflow_pct.is_some());
        let losses: Vec<String> = losses
            .map(|limit| {
                format!("{} {} %", escape(&limit.tensor), short(limit.underflow_pct.map_or(0.0, |p| p.0), 3))
            })
            .collect();
        let most = if losses.is_empty() {
            String::new()
        } else {
            format!("; most is lost of {}", losses.join(", "))
        };
        sentences.push(format!(
            "{} has the largest gradient, {}{most}.",
            escape(&first.tensor),
            short(first.amax.0, 3)
        ));
    } else if let Some(first) = found.limits.first() {
        sentences.push(format!(
            "The largest gradient, {}, is of {}.",
            short(first.amax.0, 3),
            escape(&first.tensor)
        ));
    }
    if let Some(best) = found.best_log2 {
        let spare = if found.largest_log2 == Some(best) { "no bit" } else { "one bit" };
        sentences.push(format!("Take {} for a constant scale: {spare} to spare.", power(best)));
    }
    if let Some(init) = found.init_log2 {
        let interval = match (found.growth_interval, found.growth_skip_pct) {
            (Some(interval), Some(Num(share))) => format!(
                "; growth_interval={interval} costs torch {} of the steps",
                if share == 0.0 { "none".into() } else { format!("{} %", short(share, 3)) }
            ),
            _ => "; no growth_interval up to 2000 costs less than 0.2 % of the steps".into(),
        };
        sentences.push(format!("Start a dynamic scaler from {}{interval}.", power(init)));
    }
    sentences
}

/// A share of skipped steps, for tables.
pub(super) fn skip_pct(run: &ScalerRun) -> String {
    percent(run.skipped - run.warm_up_skipped, run.steps - run.warm_up_steps)
}
