//! Weights kept in a format, and how each way of keeping them takes the step w ← c·w + d.
//!
//! The new weight is computed in float32, as fused kernels do, and rounded once to the format. (torch without
//! `fused` rounds c·w to the format first, where a decay of less than half an ulp is lost.)

use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{Kernel, Level, run};
use crate::cast::{Overflow, Rounding};
use crate::error::{Error, Result};
use crate::format::{FormatSpec, pow2};

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

/// A format that weights are kept in.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The format.
    pub format: FormatSpec,
    nearest: Nearest,
    largest: f32,
    /// What is stored beyond the largest number.
    overflow: f32,
    /// Random bits of stochastic rounding.
    random_bits: u32,
    /// Bits of a float32 below the format's last, in a normal number.
    mask: u32,
    /// Smallest subnormal number, and its inverse.
    unit: f32,
    per_unit: f32,
    /// Whether subnormal numbers begin where those of float32 do, so that one rule serves both.
    aligned: bool,
}

impl Stored {
    /// Weights in `format`, with as many random bits as NVIDIA's `cvt.rs` takes if `random_bits` is `None`.
    ///
    /// # Errors
    /// A format that keeps no weights: unsigned, an integer, of one significand bit, or beyond float32.
    pub fn new(format: FormatSpec, random_bits: Option<u32>) -> Result<Self> {
        let number = Nearest::new(&format).filter(|_| format.signed && !format.twos_complement);
        let Some(nearest) = number else {
            return Err(Error::new(format!("{} is no format to keep weights in", format.name)));
        };
        let unit = pow2(format.emin() - format.trailing_bits() as i32);
        let Rounding::Stochastic { bits, .. } = Rounding::stochastic(&format, random_bits) else {
            return Err(Error::new(format!("{} has no stochastic rounding", format.name)));
        };
        let largest = format.max_finite() as f32;
        let saturates = Overflow::default_for(&format) == Overflow::Saturate;
        Ok(Self {
            format,
            nearest,
            largest,
            overflow: if saturates { largest } else { f32::INFINITY },
            random_bits: bits,
            mask: (1 << nearest.dropped) - 1,
            unit: unit as f32,
            per_unit: pow2(format.trailing_bits() as i32 - format.emin()) as f32,
            aligned: format.emin() == -126,
        })
    }

    /// Random bits that stochastic rounding looks at.
    pub fn random_bits(&self) -> u32 {
        self.random_bits
    }

    /// `x` rounded to the nearest number, ties to even; a NaN stays one.
    #[inline(always)]
    pub fn round(&self, x: f32) -> f32 {
        let rounded = self.nearest.round(x.to_bits() & (u32::MAX >> 1));
        self.bounded(rounded).copysign(x)
    }

    #[inline(always)]
    fn bounded(&self, magnitude: f32) -> f32 {
        if magnitude > self.largest { self.overflow } else { magnitude }
    }

    /// The number below |x|, the gap to the next, and how far x has gone into it: the first `random_bits` bits of
    /// the fraction, as an integer.
    #[inline(always)]
    fn split(&self, x: f32) -> (f32, f32, u32) {
        let magnitude = x.to_bits() & (u32::MAX >> 1);
        let below = magnitude & !self.mask;
        let low = f32::from_bits(below);
        let gap = f32::from_bits(below.wrapping_add(self.mask + 1)) - low;
        let rest = magnitude & self.mask;
        let (dropped, bits) = (self.nearest.dropped, self.random_bits);
        let part = if bits <= dropped { rest >> (dropped - bits) } else { rest << (bits - dropped) };
        if self.aligned || magnitude >= self.nearest.min_normal {
            return (low, gap, part);
        }
        let units = f32::from_bits(magnitude) * self.per_unit;
        let whole = units.floor();
        let part = (units - whole) * pow2_f32(bits);
        (whole * self.unit, self.unit, part as u32)
    }

    /// The weight `w` after c·w + d, rounded to nearest even.
    #[inline(always)]
    pub fn step(&self, w: f32, decay: f32, increment: f64) -> f32 {
        self.round(stepped(w, decay, increment))
    }

    /// `x` rounded away from zero where the low bits of `random` added to the fraction carry.
    #[inline(always)]
    pub fn round_stochastically(&self, x: f32, random: u32) -> f32 {
        let (low, gap, part) = self.split(x);
        let one = 1_u64 << self.random_bits;
        let carries = u64::from(part) + (u64::from(random) & (one - 1)) >= one;
        self.bounded(if carries { low + gap } else { low }).copysign(x)
    }

    /// The two numbers that stochastic rounding gives for `x`, and the probability of the second.
    #[inline(always)]
    pub fn outcomes(&self, x: f32) -> (f32, f32, f32) {
        let (low, gap, part) = self.split(x);
        let probability = part as f32 / pow2_f32(self.random_bits);
        (self.bounded(low).copysign(x), self.bounded(low + gap).copysign(x), probability)
    }

    /// Distance from |x|, a number of the format, to the next larger magnitude.
    #[inline(always)]
    pub fn ulp(&self, x: f32) -> f32 {
        let magnitude = x.to_bits() & (u32::MAX >> 1);
        let low = f32::from_bits(magnitude);
        let gap = f32::from_bits(magnitude.wrapping_add(self.mask + 1)) - low;
        if self.aligned || magnitude >= self.nearest.min_normal { gap } else { self.unit }
    }
}

/// 2^`bits`, exact for up to 32 bits.
#[inline(always)]
fn pow2_f32(bits: u32) -> f32 {
    f32::from_bits((127 + bits) << 23)
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
            *w = stored.step(*w, self.decay, *d);
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
