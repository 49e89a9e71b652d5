//! What was applied beside what was wanted.

use super::store::stepped;
use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;

/// Counts and sums over the elements whose wanted change is not zero. Sums are f64 evaluations in a fixed order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Elements that are to change.
    pub nonzero: u64,
    /// Of these, weights that are where they were; on average, where that depends on random bits.
    pub unmoved: f64,
    /// Of these, weights that moved, but by less than half or more than one and a half of what was wanted.
    pub off: f64,
    /// Weights that have become Inf or NaN; not counted on average.
    pub nonfinite: u64,
    /// Sum of wanted².
    pub wanted_squares: f64,
    /// Sum of applied².
    pub applied_squares: f64,
    /// Sum of applied · wanted.
    pub products: f64,
    /// Sum of (applied − wanted)².
    pub error_squares: f64,
    /// Sum of |applied − wanted| / |wanted|.
    pub relative_errors: f64,
}

impl Tally {
    /// Adds what `next` has seen.
    pub fn merge(&mut self, next: &Self) {
        self.nonzero += next.nonzero;
        self.unmoved += next.unmoved;
        self.off += next.off;
        self.nonfinite += next.nonfinite;
        self.wanted_squares += next.wanted_squares;
        self.applied_squares += next.applied_squares;
        self.products += next.products;
        self.error_squares += next.error_squares;
        self.relative_errors += next.relative_errors;
    }

    /// ‖applied‖ / ‖wanted‖: the effective learning rate, of the one asked for. `None`, as for all ratios, if nothing is
    /// to change or a weight is Inf or NaN.
    pub fn effective(&self) -> Option<f64> {
        self.per_wanted(self.applied_squares).map(f64::sqrt)
    }

    /// ⟨applied, wanted⟩ / ‖wanted‖²: how much of the wanted change is made, along it.
    pub fn along(&self) -> Option<f64> {
        self.per_wanted(self.products)
    }

    /// ‖applied − wanted‖ / ‖wanted‖.
    pub fn error(&self) -> Option<f64> {
        self.per_wanted(self.error_squares).map(f64::sqrt)
    }

    /// Mean of |applied − wanted| / |wanted|.
    pub fn mean_relative_error(&self) -> Option<f64> {
        (self.nonzero > 0 && self.relative_errors.is_finite())
            .then(|| self.relative_errors / self.nonzero as f64)
    }

    fn per_wanted(&self, sum: f64) -> Option<f64> {
        (self.wanted_squares > 0.0 && self.applied_squares.is_finite()).then(|| sum / self.wanted_squares)
    }
}

/// Elements that have sums of their own, so that they can be added at once.
const LANES: usize = 16;

/// Adds up the changes of weights that are now `now` and `lost` (empty for none) and were `start`.
pub(super) fn changes(level: Level, start: &[f32], now: &[f32], lost: &[f32], wanted: &[f64]) -> Tally {
    let mut tally = if lost.is_empty() {
        run(level, Changes::<false> { start, now, lost: start, wanted })
    } else {
        run(level, Changes::<true> { start, now, lost, wanted })
    };
    if !tally.applied_squares.is_finite() {
        tally.nonfinite = now.iter().filter(|weight| !weight.is_finite()).count() as u64;
    }
    tally
}

struct Changes<'a, const KAHAN: bool> {
    start: &'a [f32],
    now: &'a [f32],
    lost: &'a [f32],
    wanted: &'a [f64],
}

/// A sum for each lane.
struct Lanes {
    nonzero: [u64; LANES],
    /// Counts, or sums of probabilities.
    unmoved: [f64; LANES],
    off: [f64; LANES],
    wanted: [f64; LANES],
    applied: [f64; LANES],
    products: [f64; LANES],
    errors: [f64; LANES],
    relative: [f64; LANES],
}

impl Lanes {
    const NEW: Self = Self {
        nonzero: [0; LANES],
        unmoved: [0.0; LANES],
        off: [0.0; LANES],
        wanted: [0.0; LANES],
        applied: [0.0; LANES],
        products: [0.0; LANES],
        errors: [0.0; LANES],
        relative: [0.0; LANES],
    };

    /// One of the changes that an element may make, with its probability.
    #[inline(always)]
    fn add(&mut self, lane: usize, applied: f64, wanted: f64, probability: f64) {
        let error = applied - wanted;
        let counts = if wanted == 0.0 { 0.0 } else { probability };
        let unmoved = if applied == 0.0 { counts } else { 0.0 };
        // An error that is NaN is off.
        let off = if error.abs() <= 0.5 * wanted.abs() { 0.0 } else { counts };
        // Precise enough in float32, where a division takes half as long.
        let relative = error.abs() as f32 / wanted.abs() as f32;
        self.unmoved[lane] += unmoved;
        self.off[lane] += if applied == 0.0 { 0.0 } else { off };
        self.applied[lane] += probability * (applied * applied);
        self.products[lane] += probability * (applied * wanted);
        self.errors[lane] += probability * (error * error);
        self.relative[lane] += if wanted == 0.0 { 0.0 } else { probability * f64::from(relative) };
    }

    #[inline(always)]
    fn want(&mut self, lane: usize, wanted: f64) {
        self.nonzero[lane] += u64::from(wanted != 0.0);
        self.wanted[lane] += wanted * wanted;
    }

    fn sum(&self) -> Tally {
        let sum = |lanes: &[f64; LANES]| lanes.iter().sum::<f64>();
        Tally {
            nonzero: self.nonzero.iter().sum(),
            unmoved: sum(&self.unmoved),
            off: sum(&self.off),
            nonfinite: 0,
            wanted_squares: sum(&self.wanted),
            applied_squares: sum(&self.applied),
            products: sum(&self.products),
            error_squares: sum(&self.errors),
            relative_errors: sum(&self.relative),
        }
    }
}

/// The elements from `at` on, as many as lanes; zeros after the last, which change nothing.
#[inline(always)]
fn lanes_of<T: Copy + Default>(values: &[T], at: usize) -> [T; LANES] {
    match values[at..].first_chunk() {
        Some(chunk) => *chunk,
        None => {
            let mut padded = [T::default(); LANES];
            padded.iter_mut().zip(&values[at..]).for_each(|(lane, x)| *lane = *x);
            padded
        }
    }
}

impl<const KAHAN: bool> Kernel for Changes<'_, KAHAN> {
    type Out = Tally;

    #[inline(always)]
    fn run(self) -> Tally {
        let mut lanes = Lanes::NEW;
        for at in (0..self.start.len()).step_by(LANES) {
            let (start, now) = (lanes_of(self.start, at), lanes_of(self.now, at));
            let (lost, wanted) = (lanes_of(self.lost, at), lanes_of(self.wanted, at));
            for lane in 0..LANES {
                let moved = f64::from(now[lane]) - f64::from(start[lane]);
                let applied = if KAHAN { moved + f64::from(lost[lane]) } else { moved };
                lanes.want(lane, wanted[lane]);
                lanes.add(lane, applied, wanted[lane], 1.0);
            }
        }
        lanes.sum()
    }
}

/// What one step of stochastic rounding does on average.
pub(super) struct Expected<'a> {
    pub(super) stored: &'a Stored,
    pub(super) start: &'a [f32],
    pub(super) decay: f32,
    pub(super) increments: &'a [f64],
    pub(super) wanted: &'a [f64],
}

impl Expected<'_> {
    pub(super) fn tally(self, level: Level) -> Tally {
        run(level, self)
    }
}

impl Kernel for Expected<'_> {
    type Out = Tally;

    #[inline(always)]
    fn run(self) -> Tally {
        let mut lanes = Lanes::NEW;
        let stored = *self.stored;
        for at in (0..self.start.len()).step_by(LANES) {
            let (start, wanted) = (lanes_of(self.start, at), lanes_of(self.wanted, at));
            let increments = lanes_of(self.increments, at);
            for lane in 0..LANES {
                let w = f64::from(start[lane]);
                let (low, high, up) = stored.outcomes(stepped(start[lane], self.decay, increments[lane]));
                // An outcome beyond the largest number that never happens must not spoil the sums.
                let high = if up > 0.0 { high } else { low };
                let up = f64::from(up);
                lanes.want(lane, wanted[lane]);
                lanes.add(lane, f64::from(low) - w, wanted[lane], 1.0 - up);
                lanes.add(lane, f64::from(high) - w, wanted[lane], up);
            }
        }
        lanes.sum()
    }
}
