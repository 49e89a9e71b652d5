//! What came of a simulation: the steps at which something happened, and sums.

use super::trace::Found;
use super::{Event, ScalerSpec, Settings};

/// Applied steps in a row that end the warm-up.
pub const SETTLED: u64 = 10;

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
    pub(super) sum_log2: f64,
    pub(super) with_log2: u64,
    /// Σ share of nonzero values flushed to zero, over the applied steps whose histogram is known.
    pub(super) sum_flushed: f64,
    pub(super) with_flushed: u64,
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

    /// What happened at the step `position`; `None` after the end of the run.
    pub fn at(&self, position: u64) -> Option<Happened> {
        let after = self.events.partition_point(|event| event.position <= position);
        let before = after.checked_sub(1).and_then(|index| self.events.get(index));
        let step = match before {
            Some(event) if event.position == position => *event,
            Some(event) => Happened::nothing(position, event.scale_after),
            None => Happened::nothing(position, self.first_scale),
        };
        (position < self.totals.steps).then_some(step)
    }

    /// The first step that this and another run do not make at the same scale, or that only one makes.
    pub fn diverges(&self, other: &Self) -> Option<u64> {
        let starts = |run: &Self| run.events.iter().map(|event| event.position + 1).collect::<Vec<_>>();
        let (mine, theirs) = (starts(self), starts(other));
        let ends = [0, self.totals.steps, other.totals.steps];
        let apart = |&position: &u64| {
            let scale = |run: &Self| run.at(position).map(|step| step.scale.to_bits());
            scale(self) != scale(other)
        };
        // In each list the first that is apart is enough.
        [&mine[..], &theirs[..], &ends[..]].iter().filter_map(|list| list.iter().copied().find(apart)).min()
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
