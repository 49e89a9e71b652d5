//! The step loop: what a scaler does with the gradients of a trace.

use super::run::{Happened, Run, SETTLED, Setup, Steady, Totals};
use super::schedule::{Length, MOST_STEPS, Schedule};
use super::trace::{Found, Step, Trace};
use super::{EDGE, Event, LooksAt, LossScaler, ScalerSpec, Seen};
use crate::format::exponent_of;
use crate::stats::SourceStats;
use crate::stats::scales::flushed;

/// Passes that are tried for a steady state.
const MOST_PASSES: u64 = 10_000;
/// Fewest steps between two reports of progress.
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
    let mut simulation = Simulation::new(trace, setup, clip);
    // How passes ended, with the steps and the skips until then.
    let mut ends: Vec<(End, u64, u64)> = Vec::new();
    let passes = match schedule.length {
        Length::Passes(passes) => passes,
        Length::UntilSteady => MOST_PASSES.min(MOST_STEPS / schedule.pass()).max(1),
    };
    let mut told = 0;
    'passes: for pass in 0..passes {
        for (step, times) in schedule.spans() {
            for _ in 0..times {
                if let Event::Abort(_) = simulation.step(&trace.steps[step]) {
                    break 'passes;
                }
            }
            let done = simulation.position - told;
            if done >= REPORT_EVERY {
                progress(done);
                told += done;
            }
        }
        if schedule.length == Length::UntilSteady {
            let end = End::of(&*simulation.scaler);
            let (steps, skipped) = (simulation.position, simulation.run.totals.skipped);
            if let Some(index) = ends.iter().position(|(known, ..)| *known == end) {
                simulation.run.steady = Some(Steady {
                    after_passes: index as u64 + 1,
                    passes: pass - index as u64,
                    steps: steps - ends[index].1,
                    skipped: skipped - ends[index].2,
                });
                break;
            }
            ends.push((end, steps, skipped));
        }
    }
    progress(simulation.position - told);
    simulation.finish()
}

/// A scaler at work.
struct Simulation<'a> {
    trace: &'a Trace,
    spec: &'static ScalerSpec,
    clip: Option<f64>,
    scaler: Box<dyn LossScaler>,
    position: u64,
    run: Run,
    watch: Watch,
}

impl<'a> Simulation<'a> {
    fn new(trace: &'a Trace, setup: &Setup, clip: Option<f64>) -> Self {
        let scaler = setup.spec.start(&setup.settings);
        let first_scale = scaler.scale();
        let run = Run {
            setup: setup.clone(),
            events: Vec::new(),
            totals: Totals { smallest: first_scale, largest: first_scale, ..Totals::default() },
            first_scale,
            last_scale: first_scale,
            steady: None,
        };
        Self { trace, spec: setup.spec, clip, scaler, position: 0, run, watch: Watch::new() }
    }

    fn step(&mut self, step: &Step) -> Event {
        let scale = self.scaler.scale();
        let found = self.trace.at_scale(step, scale);
        let edge = match (self.spec.looks_at, step.histogram) {
            (LooksAt::Counts, Some(histogram)) => {
                Some(counts(&self.trace.histograms[histogram as usize], scale))
            }
            _ => None,
        };
        let event = self.scaler.update(Seen { found_inf: found.found_inf(), amax: step.amax(), edge });
        let scale_after = self.scaler.scale();
        let applied = !event.skips();
        let factor = if applied { self.factor(step, scale, scale_after) } else { 1.0 };
        let corrupt = applied && !found.found_inf() && corrupts(self.spec, scale);
        self.watch.count(&mut self.run.totals, (scale, event, found), (factor, corrupt));
        if applied && let Some(histogram) = step.histogram {
            self.run.totals.sum_flushed += self.watch.flushed_share(self.trace, histogram, scale);
            self.run.totals.with_flushed += 1;
        }
        if event != Event::Clean || scale != scale_after || corrupt || factor != 1.0 {
            self.run.events.push(Happened {
                position: self.position,
                scale,
                scale_after,
                event,
                found,
                factor: factor as f32,
                corrupt,
                until_growth: self.scaler.until_growth(),
            });
        }
        self.position += 1;
        event
    }

    /// What the applied gradient is of the true one.
    fn factor(&self, step: &Step, scale: f64, scale_after: f64) -> f64 {
        if !self.spec.divides_by_new_scale || scale == scale_after {
            return 1.0;
        }
        let factor = scale / scale_after;
        // Clipping to a norm that is as wrong as the gradient undoes the factor.
        if self.clip.is_some_and(|clip| step.norm * factor > clip) { 1.0 } else { factor }
    }

    fn finish(mut self) -> Run {
        if !self.watch.settled {
            let totals = &mut self.run.totals;
            (totals.warm_up_steps, totals.warm_up_skipped) = (totals.steps, totals.skipped);
        }
        self.run.last_scale = self.scaler.scale();
        self.run
    }
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
    fn new() -> Self {
        Self {
            floor: f64::NAN,
            in_a_row: 0,
            settled: false,
            log2: (f64::NAN, f64::NAN),
            flushed: (u32::MAX, 0, 0.0),
        }
    }

    #[inline]
    fn count(&mut self, totals: &mut Totals, step: (f64, Event, Found), wrong: (f64, bool)) {
        let ((scale, event, found), (factor, corrupt)) = (step, wrong);
        totals.steps += 1;
        totals.presumed += u64::from(found.presumed());
        totals.corrupt += u64::from(corrupt);
        totals.wrong_factor += u64::from(factor != 1.0);
        totals.applied_nonfinite += u64::from(event == Event::Applied);
        if scale != self.log2.0 {
            self.log2 = (scale, libm::log2(scale));
            totals.smallest = totals.smallest.min(scale);
            totals.largest = totals.largest.max(scale);
        }
        if self.log2.1.is_finite() {
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
    fn of(scaler: &dyn LossScaler) -> Self {
        let counters = scaler.counters().into_iter().filter(|(name, _)| !name.contains("iter"));
        Self {
            scale: scaler.scale().to_bits(),
            counters: counters.map(|(name, value)| (name, value.to_bits())).collect(),
            until_growth: scaler.until_growth().map(|(k, n)| (k.to_bits(), n.to_bits())),
        }
    }
}
