//! Weights kept in a format, and how each way of keeping them takes the step w ← c·w + d.
//!
//! The new weight is computed in float32, as fused kernels do, and rounded once to the format. (torch without
//! `fused` rounds c·w to the format first, where a decay of less than half an ulp is lost.)

use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;

/// How weights are kept between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In the format, each result rounded to nearest even.
    Nearest,
    /// In the format, each result rounded stochastically: what it does on average, in closed form.
    Expected,
    /// The same with the random bits of a seed.
    Stochastic,
    /// In the format, with what rounding took away in a second number of the format (Kahan; Zamirai et al.,
    /// "Revisiting BFloat16 Training", 2020). The two together are what is kept.
    Kahan,
}

/// Every way with its name and meaning.
pub const WAYS: &[(&str, Way, &str)] = &[
    ("nearest-even", Way::Nearest, "rounded to the nearest number"),
    ("stochastic (mean)", Way::Expected, "stochastic rounding, on average over all random bits"),
    ("stochastic", Way::Stochastic, "stochastic rounding with the random bits of --seed"),
    ("Kahan", Way::Kahan, "nearest-even, and what it took away in a second number of the format"),
];

impl Way {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        WAYS.iter().find(|(_, way, _)| *way == self).map_or("", |(name, ..)| name)
    }
}

/// The weight `w` of a format after c·w + d, rounded to nearest even.
#[inline(always)]
pub fn step(stored: &Stored, w: f32, decay: f32, increment: f64) -> f32 {
    stored.round(stepped(w, decay, increment))
}

/// c·w + d in float32: the product is rounded, as a multiplication of its own.
#[inline(always)]
pub(super) fn stepped(w: f32, decay: f32, increment: f64) -> f32 {
    (f64::from(decay * w) + increment) as f32
}

/// Rounds weights to the format.
pub(super) struct Start<'a> {
    pub(super) stored: &'a Stored,
    pub(super) weights: &'a [f32],
    pub(super) start: &'a mut [f32],
}

impl Kernel for Start<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = *self.stored;
        for (w, start) in self.weights.iter().zip(self.start) {
            *start = stored.round(*w);
        }
    }
}

/// The weights of a piece of a tensor, kept in one way.
pub(super) struct Kept {
    pub(super) way: Way,
    pub(super) now: Vec<f32>,
    /// What rounding took away so far, of [`Way::Kahan`].
    pub(super) lost: Vec<f32>,
}

impl Kept {
    pub(super) fn new(way: Way) -> Self {
        Self { way, now: Vec::new(), lost: Vec::new() }
    }

    pub(super) fn start(&mut self, start: &[f32]) {
        self.now.clear();
        self.now.extend_from_slice(start);
        if self.way == Way::Kahan {
            self.lost.clear();
            self.lost.resize(start.len(), 0.0);
        }
    }

    /// Takes the step. `random` has the bits of each element for stochastic rounding.
    pub(super) fn step(
        &mut self,
        level: Level,
        stored: &Stored,
        decay: f32,
        increments: &[f64],
        random: &[u32],
    ) {
        let now = self.now.as_mut_slice();
        match self.way {
            Way::Nearest => run(level, StepNearest { stored, decay, increments, now }),
            Way::Stochastic => run(level, StepStochastic { stored, decay, increments, random, now }),
            Way::Kahan => {
                run(level, StepKahan { stored, decay, increments, now, lost: &mut self.lost });
            }
            // Has no state: it is computed from the start.
            Way::Expected => {}
        }
    }
}

struct StepNearest<'a> {
    stored: &'a Stored,
    decay: f32,
    increments: &'a [f64],
    now: &'a mut [f32],
}

impl Kernel for StepNearest<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = *self.stored;
        for (w, d) in self.now.iter_mut().zip(self.increments) {
            *w = step(&stored, *w, self.decay, *d);
        }
    }
}

struct StepStochastic<'a> {
    stored: &'a Stored,
    decay: f32,
    increments: &'a [f64],
    random: &'a [u32],
    now: &'a mut [f32],
}

impl Kernel for StepStochastic<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = *self.stored;
        for ((w, d), random) in self.now.iter_mut().zip(self.increments).zip(self.random) {
            *w = stored.round_stochastically(stepped(*w, self.decay, *d), *random);
        }
    }
}

struct StepKahan<'a> {
    stored: &'a Stored,
    decay: f32,
    increments: &'a [f64],
    now: &'a mut [f32],
    lost: &'a mut [f32],
}

impl Kernel for StepKahan<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = *self.stored;
        let shrink = f64::from(self.decay) - 1.0;
        for ((w, lost), d) in self.now.iter_mut().zip(self.lost).zip(self.increments) {
            let change = (shrink * f64::from(*w) + d) as f32;
            let wanted = stored.round(*lost + change);
            let new = stored.round(*w + wanted);
            *lost = stored.round(wanted + (*w - new));
            *w = new;
        }
    }
}
