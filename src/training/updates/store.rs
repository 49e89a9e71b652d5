//! Weights kept in a format, and how each way of keeping them takes the step w ← c·w + d.
//!
//! The new weight is computed in float32, as fused kernels do, and rounded once to the format. (torch without
//! `fused` rounds c·w to the format first, where a decay of less than half an ulp is lost.)

use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;
use crate::training::stored::{Range, Rounds, run_rounding};

/// How weights are kept between steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// In the format, each result rounded to nearest even.
    #[default]
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
fn stepped(w: f32, decay: f32, increment: f64) -> f32 {
    (f64::from(decay * w) + increment) as f32
}

/// c·w + d in float32, before it is rounded to the format.
pub(super) struct Stepped<'a> {
    pub(super) decay: f32,
    pub(super) increments: &'a [f64],
    pub(super) now: &'a [f32],
    pub(super) stepped: &'a mut [f32],
}

impl Kernel for Stepped<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for ((w, d), stepped) in self.now.iter().zip(self.increments).zip(self.stepped) {
            *stepped = self::stepped(*w, self.decay, *d);
        }
    }
}

/// A step of all weights of a piece.
#[derive(Clone, Copy)]
pub(super) struct PieceStep<'a> {
    pub(super) level: Level,
    pub(super) stored: &'a Stored,
    pub(super) decay: f32,
    pub(super) increments: &'a [f64],
    /// The bits of each element for stochastic rounding.
    pub(super) random: &'a [u32],
}

/// The weights of a piece of a tensor, kept in one way.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) way: Way,
    pub(super) now: Vec<f32>,
    /// What rounding took away so far, of [`Way::Kahan`]; empty for the others.
    pub(super) lost: Vec<f32>,
}

impl Kept {
    /// Takes the first step from `start`, which is `stepped` before it is rounded.
    pub(super) fn first(&mut self, step: PieceStep<'_>, start: &[f32], stepped: &[f32]) {
        self.now.resize(start.len(), 0.0);
        self.lost.clear();
        if self.way == Way::Kahan {
            self.now.copy_from_slice(start);
            self.lost.resize(start.len(), 0.0);
        }
        self.round(step, stepped);
    }

    /// Takes one more step; `stepped` is room for the weights before they are rounded.
    pub(super) fn next(&mut self, step: PieceStep<'_>, stepped: &mut [f32]) {
        let PieceStep { level, decay, increments, .. } = step;
        if matches!(self.way, Way::Nearest | Way::Stochastic) {
            run(level, Stepped { decay, increments, now: &self.now, stepped });
        }
        self.round(step, stepped);
    }

    fn round(&mut self, step: PieceStep<'_>, stepped: &[f32]) {
        let PieceStep { level, stored, decay, increments, random } = step;
        let now = self.now.as_mut_slice();
        match self.way {
            Way::Nearest => {
                run_rounding(level, stored, Range::Any, Round { stored, values: stepped, out: now });
            }
            Way::Stochastic => {
                let draw = RoundStochastically { stored, values: stepped, random, out: now };
                run_rounding(level, stored, Range::Any, draw);
            }
            Way::Kahan => {
                let kahan = StepKahan { stored, decay, increments, now, lost: &mut self.lost };
                run_rounding(level, stored, Range::Any, kahan);
            }
            // Has no state: it is computed from the start.
            Way::Expected => {}
        }
    }
}

/// Rounds to nearest even.
pub(super) struct Round<'a> {
    pub(super) stored: &'a Stored,
    pub(super) values: &'a [f32],
    pub(super) out: &'a mut [f32],
}

impl Rounds for Round<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let stored = *self.stored;
        for (x, out) in self.values.iter().zip(self.out) {
            *out = stored.round_as::<KIND>(*x);
        }
    }
}

struct RoundStochastically<'a> {
    stored: &'a Stored,
    values: &'a [f32],
    random: &'a [u32],
    out: &'a mut [f32],
}

impl Rounds for RoundStochastically<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let stored = *self.stored;
        for ((x, random), out) in self.values.iter().zip(self.random).zip(self.out) {
            *out = stored.round_stochastically_as::<KIND>(*x, *random);
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

impl StepKahan<'_> {
    /// `change` gives what is to be added to a weight, of its increment.
    #[inline(always)]
    fn each<const KIND: u8>(self, change: impl Fn(f32, f64) -> f64) {
        let stored = *self.stored;
        for ((w, lost), d) in self.now.iter_mut().zip(self.lost).zip(self.increments) {
            let wanted = stored.round_as::<KIND>(*lost + change(*w, *d) as f32);
            let new = stored.round_as::<KIND>(*w + wanted);
            *lost = stored.round_as::<KIND>(wanted + (*w - new));
            *w = new;
        }
    }
}

impl Rounds for StepKahan<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let shrink = f64::from(self.decay) - 1.0;
        if shrink == 0.0 {
            self.each::<KIND>(|_, d| d);
        } else {
            self.each::<KIND>(|w, d| shrink * f64::from(w) + d);
        }
    }
}
