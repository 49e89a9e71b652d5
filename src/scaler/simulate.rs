//! The step loop: what a scaler does with the gradients of a trace.

use super::schedule::{Length, MOST_STEPS, Schedule};
use super::trace::{Found, Trace};
use super::{EDGE, Event, LooksAt, ScalerSpec, Seen, Settings};
use crate::format::exponent_of;
use crate::stats::SourceStats;
use crate::stats::scales::flushed;

/// Applied steps in a row that end the warm-up.
pub const SETTLED: u64 = 10;
/// Passes that are tried for a steady state.
const MOST_PASSES: u64 = 10_000;
/// Steps between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// A scaler and what was set.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The scaler.
    pub spec: &'static ScalerSpec,
    /// Its parameters.
    pub settings: Settings,
}

/// A step at which something happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened {
    /// Which simulated step, counted from 0 over all passes.
    pub position: u64,
    /// The scale that the loss was multiplied by.
    pub scale: f64,
    /// The scale of the next step.
    pub scale_after: f64,
    /// What the scaler did.
    pub event: Event,
    /// What the gradients were.
    pub found: Found,
    /// What the applied gradient is of the true one.
    pub factor: f32,
    /// The step was applied, and turned finite gradients into NaN or Inf.
    pub corrupt: bool,
    /// Clean steps counted towards growth after the step, and how many it takes.
    pub until_growth: Option<(f64, f64)>,
}

/// Sums over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Simulated steps, a last one that aborted among them.
    pub steps: u64,
    /// Steps whose update was skipped.
    pub skipped: u64,
    /// Skipped steps before the first [`SETTLED`] applied ones in a row.
    pub warm_up_skipped: u64,
    /// Steps until the warm-up was over; all, if it never was.
    pub warm_up_steps: u64,
    /// Skipped steps whose true gradients were NaN or Inf.
    pub nonfinite: u64,
    /// Steps that rest on a flag recorded at another scale.
    pub presumed: u64,
    /// Non-finite gradients that were applied.
    pub applied_nonfinite: u64,
    /// Finite gradients that the division by the scale made non-finite.
    pub corrupt: u64,
    /// Steps whose applied gradient was not the true one.
    pub wrong_factor: u64,
    /// Steps at a scale from which an overflow could not go lower.
    pub at_floor: u64,
    /// Smallest scale in force.
    pub smallest: f64,
    /// Largest scale in force.
    pub largest: f64,
    /// Σ log2 scale over steps with a finite scale that is not zero.
    sum_log2: f64,
    with_log2: u64,
    /// Σ share of nonzero values flushed to zero, over the applied steps whose histogram is known.
    sum_flushed: f64,
    with_flushed: u64,
}

impl Totals {
    /// Share of skipped steps after the warm-up; `None` if there is none.
    pub fn steady_skip_ratio(&self) -> Option<f64> {
        let steps = self.steps - self.warm_up_steps;
        (steps > 0).then(|| (self.skipped - self.warm_up_skipped) as f64 / steps as f64)
    }

    /// Mean of log2 of the scale in force.
    pub fn mean_log2_scale(&self) -> Option<f64> {
        (self.with_log2 > 0).then(|| self.sum_log2 / self.with_log2 as f64)
    }

    /// Mean share of the nonzero gradient values that were lost to zero in applied steps.
    pub fn mean_flushed(&self) -> Option<f64> {
        (self.with_flushed > 0).then(|| self.sum_flushed / self.with_flushed as f64)
    }
}

/// A state that comes back: from there on the run repeats itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Passes before it.
    pub after_passes: u64,
    /// Passes from one occurrence to the next.
    pub passes: u64,
    /// Steps of these.
    pub steps: u64,
    /// Skipped ones among them.
    pub skipped: u64,
}

/// What a scaler did with a trace.
#[derive(Clone, Debug)]
pub struct Run {
    /// The scaler.
    pub setup: Setup,
    /// Every step at which something happened. At the others the step was applied and the scale stayed.
    pub events: Vec<Happened>,
    /// Sums.
    pub totals: Totals,
    /// The scale before the first step.
    pub first_scale: f64,
    /// The scale after the last step.
    pub last_scale: f64,
    /// The state that comes back, if it was looked for and found.
    pub steady: Option<Steady>,
}

impl Run {
    /// The error that ended the run: position and text.
    pub fn abort(&self) -> Option<(u64, &'static str)> {
        self.events.last().and_then(|last| match last.event {
            Event::Abort(why) => Some((last.position, why)),
            _ => None,
        })
    }

    /// Every step, those at which nothing happened too.
    pub fn steps(&self) -> impl Iterator<Item = Happened> {
        let mut events = self.events.iter().peekable();
        let mut scale = self.first_scale;
        (0..self.totals.steps).map(move |position| {
            let step = events.next_if(|event| event.position == position).copied();
            let step = step.unwrap_or_else(|| Happened::nothing(position, scale));
            scale = step.scale_after;
            step
        })
    }
}

impl Happened {
    fn nothing(position: u64, scale: f64) -> Self {
        Self {
            position,
            scale,
            scale_after: scale,
            event: Event::Clean,
            found: Found::Finite,
            factor: 1.0,
            corrupt: false,
            until_growth: None,
        }
    }
}

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
    let mut watch = Watch { floor: f64::NAN, in_a_row: 0, settled: false, flushed: (u32::MAX, 0, 0.0) };
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
            totals.sum_log2 += libm::log2(scale);
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
