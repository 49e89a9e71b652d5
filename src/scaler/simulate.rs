//! The step loop: what a scaler does with the gradients of a trace.

use super::run::{Happened, Run, SETTLED, Setup, Steady, Totals};
use super::schedule::{Length, MOST_STEPS, Schedule};
use super::trace::{Found, Trace};
use super::{EDGE, Event, LooksAt, ScalerSpec, Seen};
use crate::format::exponent_of;
use crate::stats::SourceStats;
use crate::stats::scales::flushed;

/// Passes that are tried for a steady state.
const MOST_PASSES: u64 = 10_000;
/// Steps between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// Shows a trace to a scaler. `clip` is the largest norm that gradients are clipped to, if they are. `progress` is
/// told of steps done.
pub fn simulate(
    trace: &Trace,
    schedule: &Schedule,
    setup: &Setup,
    clip: Option<f64>,
    progress: impl Fn(u64),
) -> Run {
    let mut scaler = setup.spec.start(&setup.settings);
    let first_scale = scaler.scale();
    let totals = Totals { smallest: first_scale, largest: first_scale, ..Totals::default() };
    let mut run = Run {
        setup: setup.clone(),
        events: Vec::new(),
        totals,
        first_scale,
        last_scale: first_scale,
        steady: None,
    };
    let mut watch = Watch {
        floor: f64::NAN,
        in_a_row: 0,
        settled: false,
        log2: (f64::NAN, f64::NAN),
        flushed: (u32::MAX, 0, 0.0),
    };
    let mut ends: Vec<(End, u64, u64)> = Vec::new();
    let passes = match schedule.length {
        Length::Passes(passes) => passes,
        Length::UntilSteady => MOST_PASSES.min(MOST_STEPS / schedule.pass()).max(1),
    };
    let mut position = 0;
    for pass in 0..passes {
        for turn in schedule.turns(pass) {
            let step = &trace.steps[turn.step];
            let scale = scaler.scale();
            let found = trace.at_scale(step, scale);
            let edge = (setup.spec.looks_at == LooksAt::Counts)
                .then(|| step.histogram.map(|histogram| counts(&trace.histograms[histogram as usize], scale)))
                .flatten();
            let event = scaler.update(Seen { found_inf: found.found_inf(), amax: step.amax(), edge });
            let scale_after = scaler.scale();
            let applied = !event.skips();
            let mut factor = 1.0;
            if applied && setup.spec.divides_by_new_scale && scale != scale_after {
                factor = scale / scale_after;
                // Clipping to a norm that is as wrong as the gradient undoes the factor.
                if clip.is_some_and(|clip| step.norm * factor > clip) {
                    factor = 1.0;
                }
            }
            let corrupt = applied && !found.found_inf() && corrupts(setup.spec, scale);
            watch.count(&mut run.totals, (scale, event, found), (factor, corrupt));
            if applied && let Some(histogram) = step.histogram {
                run.totals.sum_flushed += watch.flushed_share(trace, histogram, scale);
                run.totals.with_flushed += 1;
            }
            if event != Event::Clean || scale != scale_after || corrupt || factor != 1.0 {
                let until_growth = scaler.until_growth();
                run.events.push(Happened {
                    position,
                    scale,
                    scale_after,
                    event,
                    found,
                    factor: factor as f32,
                    corrupt,
                    until_growth,
                });
            }
            position += 1;
            if position % REPORT_EVERY == 0 {
                progress(REPORT_EVERY);
            }
            if let Event::Abort(_) = event {
                break;
            }
        }
        run.last_scale = scaler.scale();
        if run.abort().is_some() {
            break;
        }
        if schedule.length == Length::UntilSteady {
            let end = End::of(&*scaler);
            let before = ends.iter().position(|(known, ..)| *known == end);
            if let Some((before, &(_, steps, skipped))) =
                before.and_then(|index| Some((index, ends.get(index)?)))
            {
                run.steady = Some(Steady {
                    after_passes: before as u64 + 1,
                    passes: pass - before as u64,
                    steps: position - steps,
                    skipped: run.totals.skipped - skipped,
                });
                break;
            }
            ends.push((end, position, run.totals.skipped));
        }
    }
    if !watch.settled {
        (run.totals.warm_up_steps, run.totals.warm_up_skipped) = (run.totals.steps, run.totals.skipped);
    }
    progress(position % REPORT_EVERY);
    run
}

/// Whether the scaler's division turns zeros or finite gradients into NaN or Inf unseen.
fn corrupts(spec: &ScalerSpec, scale: f64) -> bool {
    scale == 0.0 || (spec.multiplies_by_inverse && inverse(scale).is_infinite())
}

/// What torch multiplies the scaled gradients by: 1/scale, formed in f64 and rounded to f32.
pub fn inverse(scale: f64) -> f32 {
    (1.0 / scale) as f32
}

/// What a run has to remember from step to step.
struct Watch {
    /// The scale at which an overflow changed nothing.
    floor: f64,
    /// Applied steps in a row.
    in_a_row: u64,
    /// Whether the warm-up is over.
    settled: bool,
    /// The last scale and its logarithm.
    log2: (f64, f64),
    /// The last histogram, exponent of the scale, and share.
    flushed: (u32, i32, f64),
}

impl Watch {
    fn count(&mut self, totals: &mut Totals, step: (f64, Event, Found), wrong: (f64, bool)) {
        let ((scale, event, found), (factor, corrupt)) = (step, wrong);
        totals.steps += 1;
        totals.presumed += u64::from(found.presumed());
        totals.corrupt += u64::from(corrupt);
        totals.wrong_factor += u64::from(factor != 1.0);
        totals.applied_nonfinite += u64::from(event == Event::Applied);
        totals.smallest = totals.smallest.min(scale);
        totals.largest = totals.largest.max(scale);
        if scale > 0.0 && scale.is_finite() {
            if scale != self.log2.0 {
                self.log2 = (scale, libm::log2(scale));
            }
            totals.sum_log2 += self.log2.1;
            totals.with_log2 += 1;
        }
        if event == Event::Floor {
            self.floor = scale;
        }
        totals.at_floor += u64::from(scale == self.floor);
        if event.skips() {
            totals.skipped += 1;
            totals.nonfinite += u64::from(matches!(found, Found::NonFinite(_)));
            self.in_a_row = 0;
        } else {
            self.in_a_row += 1;
            if self.in_a_row == SETTLED && !self.settled {
                self.settled = true;
                totals.warm_up_steps = totals.steps - SETTLED;
                totals.warm_up_skipped = totals.skipped;
            }
        }
    }

    fn flushed_share(&mut self, trace: &Trace, histogram: u32, scale: f64) -> f64 {
        let exponent = exponent(scale);
        let (known, k, share) = self.flushed;
        if (known, k) == (histogram, exponent) {
            return share;
        }
        let share = flushed_share(trace, histogram, scale);
        self.flushed = (histogram, exponent, share);
        share
    }
}

fn exponent(scale: f64) -> i32 {
    if scale > 0.0 && scale.is_finite() { exponent_of(scale) } else { -1074 }
}

/// Number of finite values below the edge and from it on, at a scale that is a power of two.
fn counts(source: &SourceStats, scale: f64) -> [u64; 2] {
    let first = exponent_of(EDGE) - exponent(scale);
    let upper =
        source.binades.iter().filter(|(binade, _)| *binade >= first).map(|(_, binade)| binade.total());
    let upper = upper.sum();
    [source.finite() - upper, upper]
}

/// Share of the nonzero values of a histogram that are flushed to zero at `scale`; at a scale that is no power of
/// two, at the next power below it.
pub fn flushed_share(trace: &Trace, histogram: u32, scale: f64) -> f64 {
    let source = &trace.histograms[histogram as usize];
    let whole = source.nonzero_finite().max(1) as f64;
    flushed(source, trace.format(), exponent(scale)) as f64 / whole
}

/// How a scaler ends a pass. Iteration numbers are left out: only their distances matter.
#[derive(PartialEq)]
struct End {
    scale: u64,
    counters: Vec<(&'static str, u64)>,
    until_growth: Option<(u64, u64)>,
}

impl End {
    fn of(scaler: &dyn super::LossScaler) -> Self {
        let counters = scaler.counters().into_iter().filter(|(name, _)| !name.contains("iter"));
        Self {
            scale: scaler.scale().to_bits(),
            counters: counters.map(|(name, value)| (name, value.to_bits())).collect(),
            until_growth: scaler.until_growth().map(|(k, n)| (k.to_bits(), n.to_bits())),
        }
    }
}
