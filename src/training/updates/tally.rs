//! What was applied beside what was wanted.

use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;
use crate::training::stored::{Range, Rounds, run_rounding};

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

/// Elements that have sums of their own, so that they can be added at once: pieces have a multiple of so many, zeros
/// after the last, of which nothing is wanted.
pub(super) const LANES: usize = 8;

/// The changes that are wanted of a piece, and what every comparison with them needs.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) changes: Vec<f64>,
    /// Half of the magnitude of each; Inf for a change of 0.
    halves: Vec<f64>,
    /// The inverse of the magnitude of each; 0 for a change of 0.
    inverses: Vec<f64>,
    nonzero: u64,
    squares: f64,
}

impl Wanted {
    /// The change that is wanted after one more step, or after the first: not as a difference of weights, in which
    /// small updates would be lost.
    pub(super) fn advance(
        &mut self,
        level: Level,
        is_first: bool,
        decay: f32,
        increments: &[f64],
        start: &[f32],
    ) {
        for values in [&mut self.changes, &mut self.halves, &mut self.inverses] {
            values.resize(start.len(), 0.0);
        }
        run(level, Advance { is_first, decay: decay.into(), increments, start, changes: &mut self.changes });
    }

    /// Prepares comparisons.
    pub(super) fn describe(&mut self, level: Level) {
        let Self { changes, halves, inverses, .. } = self;
        (self.nonzero, self.squares) = run(level, Describe { changes, halves, inverses });
    }
}

struct Advance<'a> {
    is_first: bool,
    decay: f64,
    increments: &'a [f64],
    start: &'a [f32],
    changes: &'a mut [f64],
}

impl Kernel for Advance<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let decay = self.decay;
        let shrink = decay - 1.0;
        let all = self.changes.iter_mut().zip(self.increments).zip(self.start);
        if self.is_first {
            all.for_each(|((change, d), w)| *change = shrink * f64::from(*w) + d);
        } else {
            all.for_each(|((change, d), w)| *change = decay * *change + (shrink * f64::from(*w) + d));
        }
    }
}

struct Describe<'a> {
    changes: &'a [f64],
    halves: &'a mut [f64],
    inverses: &'a mut [f64],
}

impl Kernel for Describe<'_> {
    type Out = (u64, f64);

    #[inline(always)]
    fn run(self) -> (u64, f64) {
        for ((change, half), inverse) in self.changes.iter().zip(self.halves).zip(self.inverses) {
            let magnitude = change.abs();
            *half = if *change == 0.0 { f64::INFINITY } else { 0.5 * magnitude };
            *inverse = if *change == 0.0 { 0.0 } else { 1.0 / magnitude };
        }
        let nonzero = self.changes.iter().map(|change| u64::from(*change != 0.0)).sum();
        let mut squares = [0.0; LANES];
        for changes in self.changes.as_chunks::<LANES>().0 {
            squares.iter_mut().zip(changes).for_each(|(square, change)| *square += change * change);
        }
        (nonzero, squares.iter().sum())
    }
}

/// Adds up the changes of weights that are now `now` and `lost` (empty for none) and were `start`.
pub(super) fn changes(level: Level, start: &[f32], now: &[f32], lost: &[f32], wanted: &Wanted) -> Tally {
    let mut tally = if lost.is_empty() {
        run(level, Changes::<PLAIN> { start, now, with: start, wanted })
    } else {
        run(level, Changes::<KAHAN> { start, now, with: lost, wanted })
    };
    if !tally.applied_squares.is_finite() {
        tally.nonfinite = now.iter().filter(|weight| !weight.is_finite()).count() as u64;
    }
    tally
}

/// The two numbers that one step of stochastic rounding gives for each weight, and the probability of the second.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    low: Vec<f32>,
    high: Vec<f32>,
    up: Vec<f32>,
}

impl Outcomes {
    /// Adds up what stochastic rounding does on average to weights that were `start`, and are `stepped` before they are
    /// rounded to `stored`.
    pub(super) fn changes(
        &mut self,
        level: Level,
        stored: &Stored,
        start: &[f32],
        stepped: &[f32],
        wanted: &Wanted,
    ) -> Tally {
        let Self { low, high, up } = self;
        for values in [&mut *low, &mut *high, &mut *up] {
            values.resize(stepped.len(), 0.0);
        }
        run_rounding(level, stored, Range::Any, Outcome { stored, stepped, low, high, up });
        let mut tally = run(level, Changes::<UNLIKELY> { start, now: low, with: up, wanted });
        let high = run(level, Changes::<LIKELY> { start, now: high, with: up, wanted });
        tally.merge(&Tally { nonzero: 0, wanted_squares: 0.0, ..high });
        tally
    }
}

struct Outcome<'a> {
    stored: &'a Stored,
    stepped: &'a [f32],
    low: &'a mut [f32],
    high: &'a mut [f32],
    up: &'a mut [f32],
}

impl Rounds for Outcome<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let stored = *self.stored;
        let out = self.low.iter_mut().zip(self.high).zip(self.up);
        for (x, ((low, high), up)) in self.stepped.iter().zip(out) {
            (*low, *high, *up) = stored.outcomes_as::<KIND>(*x);
            // An outcome beyond the largest number that never happens must not spoil the sums.
            *high = if *up > 0.0 { *high } else { *low };
        }
    }
}

/// What a change comes with: nothing,
const PLAIN: u8 = 0;
/// what rounding took away,
const KAHAN: u8 = 1;
/// its probability,
const LIKELY: u8 = 2;
/// or that of another change.
const UNLIKELY: u8 = 3;

struct Changes<'a, const KIND: u8> {
    start: &'a [f32],
    now: &'a [f32],
    with: &'a [f32],
    wanted: &'a Wanted,
}

impl<const KIND: u8> Kernel for Changes<'_, KIND> {
    type Out = Tally;

    #[inline(always)]
    fn run(self) -> Tally {
        let Wanted { changes, halves, inverses, nonzero, squares } = self.wanted;
        // Whole numbers are counted apart: so many float64 additions take longer.
        let (mut unmoved, mut far) = ([0_u64; LANES], [0_u64; LANES]);
        let (mut unmoved_mean, mut far_mean) = ([0.0; LANES], [0.0; LANES]);
        let (mut applied_squares, mut products) = ([0.0; LANES], [0.0; LANES]);
        let (mut error_squares, mut relative_errors) = ([0.0; LANES], [0.0; LANES]);
        let [start, now, with] =
            [self.start, self.now, self.with].map(|values| values.as_chunks::<LANES>().0);
        let [changes, halves, inverses] =
            [changes, halves, inverses].map(|values| values.as_chunks::<LANES>().0);
        let numbers = start.iter().zip(now).zip(with);
        for (((start, now), with), ((wanted, half), inverse)) in
            numbers.zip(changes.iter().zip(halves).zip(inverses))
        {
            for lane in 0..LANES {
                let moved = f64::from(now[lane]) - f64::from(start[lane]);
                let with = f64::from(with[lane]);
                let applied = if KIND == KAHAN { moved + with } else { moved };
                let probability = match KIND {
                    LIKELY => with,
                    UNLIKELY => 1.0 - with,
                    _ => 1.0,
                };
                let error = applied - wanted[lane];
                applied_squares[lane] += probability * (applied * applied);
                products[lane] += probability * (applied * wanted[lane]);
                error_squares[lane] += probability * (error * error);
                relative_errors[lane] += probability * (error.abs() * inverse[lane]);
                let is_unmoved = (applied == 0.0) & (inverse[lane] > 0.0);
                // An error that is NaN is not near.
                let is_near = error.abs() <= half[lane];
                if KIND == LIKELY || KIND == UNLIKELY {
                    unmoved_mean[lane] += if is_unmoved { probability } else { 0.0 };
                    far_mean[lane] += if is_near { 0.0 } else { probability };
                } else {
                    unmoved[lane] += u64::from(is_unmoved);
                    far[lane] += u64::from(!is_near);
                }
            }
        }
        let sum = |lanes: [f64; LANES]| lanes.iter().sum::<f64>();
        let count = |lanes: [u64; LANES], mean: [f64; LANES]| lanes.iter().sum::<u64>() as f64 + sum(mean);
        let unmoved = count(unmoved, unmoved_mean);
        Tally {
            nonzero: *nonzero,
            unmoved,
            // Where nothing has moved the error is all of what was wanted.
            off: count(far, far_mean) - unmoved,
            nonfinite: 0,
            wanted_squares: *squares,
            applied_squares: sum(applied_squares),
            products: sum(products),
            error_squares: sum(error_squares),
            relative_errors: sum(relative_errors),
        }
    }
}
