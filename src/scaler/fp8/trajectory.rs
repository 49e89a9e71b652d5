//! What delayed scaling does over the steps of a run.

use super::delayed::{Delayed, Kept};
use crate::format::FormatSpec;

/// One step of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Largest magnitude of the step.
    pub amax: f32,
    /// The scale it was cast with, from the steps before.
    pub scale: f32,
    /// The magnitude that the scale was formed from; `None` before the first update.
    pub amax_used: Option<f32>,
    /// The scale that its own amax would have given; `None` if that is 0, Inf or NaN.
    pub wanted: Option<f32>,
    /// What there is to say.
    pub events: Vec<Event>,
}

/// Something that happens to a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// Nothing was known: the scale is 1.
    Start,
    /// At this scale the largest magnitude rounds beyond the largest number of the format.
    Saturates,
    /// The scale is at least a bit smaller than the step would need: this many bits of the format's range lie idle.
    Stale {
        /// log2(wanted / scale).
        bits: f64,
    },
    /// The history holds an Inf or a NaN: the scale no longer follows it.
    Frozen,
    /// The step's own amax is Inf or NaN.
    NonFinite,
    /// The step's own amax is 0.
    Zero,
    /// The first good scale after steps that saturated or were stale.
    Recovered {
        /// Steps that went before.
        after: usize,
    },
}

impl Event {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Saturates => "saturates",
            Self::Stale { .. } => "stale",
            Self::Frozen => "frozen",
            Self::NonFinite => "non-finite",
            Self::Zero => "zero",
            Self::Recovered { .. } => "recovered",
        }
    }
}

impl Moment {
    /// log2(wanted / scale): how many bits the scale is too small, negative where it is too large.
    pub fn bits_off(&self) -> Option<f64> {
        self.wanted.map(|wanted| libm::log2(wanted.into()) - libm::log2(self.scale.into()))
    }
}

/// Replays the steps with these largest magnitudes, cast to `format`.
pub fn replay(mut state: Delayed, format: &FormatSpec, amaxes: impl IntoIterator<Item = f32>) -> Vec<Moment> {
    let mut moments = Vec::new();
    // The magnitude in force, why the scale is kept, and how long it has been bad.
    let (mut used, mut kept, mut bad) = (None, None, 0);
    for amax in amaxes {
        let scale = state.scale();
        let usable = amax > 0.0 && amax.is_finite();
        let wanted = usable.then(|| state.scale_of(amax));
        // The first scale says nothing about the recipe: it is 1 for every tensor.
        let first = moments.is_empty();
        let mut moment = Moment { amax, scale, amax_used: used, wanted, events: Vec::new() };
        let events = &mut moment.events;
        if first {
            events.push(Event::Start);
        }
        if kept == Some(Kept::NonFinite) {
            events.push(Event::Frozen);
        }
        if amax == 0.0 {
            events.push(Event::Zero);
        } else if !amax.is_finite() {
            events.push(Event::NonFinite);
        }
        let bits = wanted.map(|wanted| libm::log2(wanted.into()) - libm::log2(scale.into()));
        let product = f64::from(amax * scale);
        let limit = format.overflow_threshold();
        let saturates = usable && (product > limit || (product == limit && format.overflow_includes_tie()));
        let stale = bits.filter(|&bits| bits >= 1.0 && !first);
        if saturates {
            events.push(Event::Saturates);
        }
        events.extend(stale.map(|bits| Event::Stale { bits }));
        if usable && !first {
            match (saturates || stale.is_some(), bad) {
                (true, _) => bad += 1,
                (false, 0) => {}
                (false, after) => {
                    events.push(Event::Recovered { after });
                    bad = 0;
                }
            }
        }
        moments.push(moment);
        let (taken, why) = state.update(amax);
        kept = why;
        if why.is_none() {
            used = Some(taken);
        }
    }
    moments
}
