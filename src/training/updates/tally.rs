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
        self.wanted_squares += next.wanted_squares;
        self.applied_squares += next.applied_squares;
        self.products += next.products;
        self.error_squares += next.error_squares;
        self.relative_errors += next.relative_errors;
    }

    /// ‖applied‖ / ‖wanted‖: the effective learning rate, of the one asked for. `None` if nothing is to change.
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
        (self.nonzero > 0).then(|| self.relative_errors / self.nonzero as f64)
    }

    fn per_wanted(&self, sum: f64) -> Option<f64> {
        (self.wanted_squares > 0.0).then(|| sum / self.wanted_squares)
    }
}

/// Elements that have sums of their own, so that they can be added at once.
const LANES: usize = 16;

/// Adds up the changes of weights that are now `now` and `lost` (empty for none) and were `start`.
pub(super) fn changes(level: Level, start: &[f32], now: &[f32], lost: &[f32], wanted: &[f64]) -> Tally {
    if lost.is_empty() {
        run(level, Changes::<false> { start, now, lost: start, wanted })
    } else {
        run(level, Changes::<true> { start, now, lost, wanted })
    }
}

struct Changes<'a, const KAHAN: bool> {
    start: &'a [f32],
    now: &'a [f32],
    lost: &'a [f32],
    wanted: &'a [f64],
}

/// A sum for each lane.
#[derive(Clone, Copy)]
struct Lanes {
    nonzero: [u32; LANES],
    unmoved: [u32; LANES],
    off: [u32; LANES],
    wanted: [f64; LANES],
    applied: [f64; LANES],
    products: [f64; LANES],
    errors: [f64; LANES],
    relative: [f32; LANES],
}

impl Lanes {
    const NEW: Self = Self {
        nonzero: [0; LANES],
        unmoved: [0; LANES],
        off: [0; LANES],
        wanted: [0.0; LANES],
        applied: [0.0; LANES],
        products: [0.0; LANES],
        errors: [0.0; LANES],
        relative: [0.0; LANES],
    };

    #[inline(always)]
    fn add(&mut self, lane: usize, applied: f64, wanted: f64, unmoved: bool) {
        let error = applied - wanted;
        let (size, wanted_size) = (error.abs() as f32, wanted.abs() as f32);
        let counts = wanted != 0.0;
        self.nonzero[lane] += u32::from(counts);
        self.unmoved[lane] += u32::from(counts & unmoved);
        self.off[lane] += u32::from(counts & !unmoved & (size > 0.5 * wanted_size));
        self.wanted[lane] += wanted * wanted;
        self.applied[lane] += applied * applied;
        self.products[lane] += applied * wanted;
        self.errors[lane] += error * error;
        self.relative[lane] += if wanted_size > 0.0 { size / wanted_size } else { 0.0 };
    }

    fn sum(&self) -> Tally {
        let counts = |lanes: &[u32; LANES]| lanes.iter().map(|&n| u64::from(n)).sum::<u64>();
        let sum = |lanes: &[f64; LANES]| lanes.iter().sum::<f64>();
        Tally {
            nonzero: counts(&self.nonzero),
            unmoved: counts(&self.unmoved) as f64,
            off: counts(&self.off) as f64,
            wanted_squares: sum(&self.wanted),
            applied_squares: sum(&self.applied),
            products: sum(&self.products),
            error_squares: sum(&self.errors),
            relative_errors: self.relative.iter().map(|&x| f64::from(x)).sum(),
        }
    }
}

impl<const KAHAN: bool> Kernel for Changes<'_, KAHAN> {
    type Out = Tally;

    #[inline(always)]
    fn run(self) -> Tally {
        let mut lanes = Lanes::NEW;
        let (start, start_rest) = self.start.as_chunks::<LANES>();
        let (now, now_rest) = self.now.as_chunks::<LANES>();
        let (lost, lost_rest) = self.lost.as_chunks::<LANES>();
        let (wanted, wanted_rest) = self.wanted.as_chunks::<LANES>();
        let one = |start: f32, now: f32, lost: f32| {
            let moved = f64::from(now) - f64::from(start);
            let applied = if KAHAN { moved + f64::from(lost) } else { moved };
            (applied, if KAHAN { applied == 0.0 } else { now == start })
        };
        for (((start, now), lost), wanted) in start.iter().zip(now).zip(lost).zip(wanted) {
            for lane in 0..LANES {
                let (applied, unmoved) = one(start[lane], now[lane], lost[lane]);
                lanes.add(lane, applied, wanted[lane], unmoved);
            }
        }
        let rest = start_rest.iter().zip(now_rest).zip(lost_rest).zip(wanted_rest);
        for (lane, (((start, now), lost), wanted)) in rest.enumerate() {
            let (applied, unmoved) = one(*start, *now, *lost);
            lanes.add(lane, applied, *wanted, unmoved);
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
        let (mut unmoved, mut off) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        let elements = self.start.iter().zip(self.increments).zip(self.wanted);
        for (index, ((&start, &increment), &wanted)) in elements.enumerate() {
            let lane = index % LANES;
            let (low, high, up) = stored.outcomes(stepped(start, self.decay, increment));
            let counts = if wanted == 0.0 { 0.0 } else { 1.0 };
            let (up, down) = (f64::from(up), 1.0 - f64::from(up));
            lanes.nonzero[lane] += u32::from(wanted != 0.0);
            lanes.wanted[lane] += wanted * wanted;
            for (outcome, probability) in [(low, down), (high, up)] {
                let applied = f64::from(outcome) - f64::from(start);
                let error = applied - wanted;
                let stays = outcome == start;
                let weight = probability * counts;
                let is_off = !stays & (error.abs() > 0.5 * wanted.abs());
                unmoved[lane] += if stays { weight } else { 0.0 };
                off[lane] += if is_off { weight } else { 0.0 };
                // An outcome beyond the largest number that never happens must not spoil the sums.
                let applied = if probability > 0.0 { applied } else { 0.0 };
                let error = if probability > 0.0 { error } else { 0.0 };
                lanes.applied[lane] += probability * (applied * applied);
                lanes.products[lane] += probability * (applied * wanted);
                lanes.errors[lane] += probability * (error * error);
                let relative = (error.abs() as f32) / (wanted.abs() as f32);
                lanes.relative[lane] += if weight > 0.0 { weight as f32 * relative } else { 0.0 };
            }
        }
        Tally { unmoved: unmoved.iter().sum(), off: off.iter().sum(), ..lanes.sum() }
    }
}
