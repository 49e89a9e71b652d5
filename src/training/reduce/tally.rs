//! The error of means.

use super::exact::{LANES, Means};
use crate::cast::fast::{Kernel, Level, run};

/// Counts and sums over elements. Elements whose mean became Inf or NaN are counted and left out of the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorTally {
    /// Elements.
    pub elements: u64,
    /// Elements whose exact mean is not zero.
    pub nonzero: u64,
    /// Elements whose mean became Inf or NaN on the way.
    pub overflow: u64,
    /// Elements whose exact mean is not zero, but the one computed is.
    pub flushed: u64,
    /// Gradients of single ranks that were not zero and became so before they were added.
    pub lost: u64,
    /// Sum of the squares of exact means.
    pub squares: f64,
    /// Sum of (computed − exact)².
    pub error_squares: f64,
    /// Largest |computed − exact|.
    pub max_error: f64,
}

impl ErrorTally {
    /// Adds what `next` has seen.
    pub fn merge(&mut self, next: &Self) {
        self.elements += next.elements;
        self.nonzero += next.nonzero;
        self.overflow += next.overflow;
        self.flushed += next.flushed;
        self.lost += next.lost;
        self.squares += next.squares;
        self.error_squares += next.error_squares;
        self.max_error = self.max_error.max(next.max_error);
    }

    /// ‖computed − exact‖ / ‖exact‖; `None` if every mean is zero or overflowed.
    pub fn error(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| (self.error_squares / self.squares).sqrt())
    }

    /// Compares the means `computed` of gradients times `scale` with `exact` ones.
    pub(super) fn compare(&mut self, level: Level, computed: &[f32], exact: &[f64], scale: f32) {
        self.merge(&run(level, Compare { computed, exact, per_scale: 1.0 / f64::from(scale) }));
    }

    /// The tally of the means of a whole piece.
    pub(super) fn of_piece(level: Level, computed: &[f32], exact: &Means, scale: f32) -> Self {
        let per_scale = 1.0 / f64::from(scale);
        let found = run(level, CompareFinite { computed, exact: &exact.mean, per_scale });
        // Finite means have a finite sum, as their squares are far from the largest number.
        if !found.error_squares.is_finite() {
            return run(level, Compare { computed, exact: &exact.mean, per_scale });
        }
        Self {
            elements: computed.len() as u64,
            nonzero: exact.nonzero,
            overflow: 0,
            flushed: match found.zeros {
                0 => 0,
                _ => run(level, Flushed { computed, exact: &exact.mean }),
            },
            lost: 0,
            squares: exact.squares,
            error_squares: found.error_squares,
            max_error: found.max_error,
        }
    }
}

/// What [`CompareFinite`] finds.
struct FoundFinite {
    /// Computed means that are zero.
    zeros: u32,
    error_squares: f64,
    max_error: f64,
}

/// Counts means of zero that are not exactly that.
struct Flushed<'a> {
    computed: &'a [f32],
    exact: &'a [f64],
}

impl Kernel for Flushed<'_> {
    type Out = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let pairs = self.computed.iter().zip(self.exact);
        pairs.map(|(y, x)| u64::from((*y == 0.0) & (*x != 0.0))).sum()
    }
}

/// Calls `one` for each computed mean and the exact one beside it, with the lane whose sums it is added to.
#[inline(always)]
fn in_lanes(computed: &[f32], exact: &[f64], mut one: impl FnMut(usize, f32, f64)) {
    let (computed, computed_rest) = computed.as_chunks::<LANES>();
    let (exact, exact_rest) = exact.as_chunks::<LANES>();
    for (computed, exact) in computed.iter().zip(exact) {
        for lane in 0..LANES {
            one(lane, computed[lane], exact[lane]);
        }
    }
    for (lane, (computed, exact)) in computed_rest.iter().zip(exact_rest).enumerate() {
        one(lane, *computed, *exact);
    }
}

/// The figures of computed means that are all finite.
struct CompareFinite<'a> {
    computed: &'a [f32],
    exact: &'a [f64],
    per_scale: f64,
}

impl CompareFinite<'_> {
    #[inline(always)]
    fn each(self, unscale: impl Fn(f64) -> f64) -> FoundFinite {
        let zeros = self.computed.iter().map(|y| u32::from(*y == 0.0)).sum();
        let (mut errors, mut largest) = ([0.0_f64; LANES], [0.0_f64; LANES]);
        let one = |lane: usize, computed: f32, exact: f64| {
            let error = (unscale(computed.into()) - exact).abs();
            errors[lane] += error * error;
            largest[lane] = if error > largest[lane] { error } else { largest[lane] };
        };
        in_lanes(self.computed, self.exact, one);
        FoundFinite {
            zeros,
            error_squares: errors.iter().sum(),
            max_error: largest.iter().copied().fold(0.0, f64::max),
        }
    }
}

impl Kernel for CompareFinite<'_> {
    type Out = FoundFinite;

    #[inline(always)]
    fn run(self) -> FoundFinite {
        let per_scale = self.per_scale;
        if per_scale == 1.0 { self.each(|mean| mean) } else { self.each(|mean| mean * per_scale) }
    }
}

struct Compare<'a> {
    computed: &'a [f32],
    exact: &'a [f64],
    per_scale: f64,
}

impl Kernel for Compare<'_> {
    type Out = ErrorTally;

    #[inline(always)]
    fn run(self) -> ErrorTally {
        let (mut squares, mut errors, mut largest) = ([0.0_f64; LANES], [0.0_f64; LANES], [0.0_f64; LANES]);
        let (mut nonzero, mut overflow, mut flushed) = ([0_u32; LANES], [0_u32; LANES], [0_u32; LANES]);
        let one = |lane: usize, computed: f32, exact: f64| {
            let finite = computed.is_finite();
            let y = if finite { f64::from(computed) * self.per_scale } else { exact };
            let error = (y - exact).abs();
            nonzero[lane] += u32::from(exact != 0.0);
            overflow[lane] += u32::from(!finite);
            flushed[lane] += u32::from((exact != 0.0) & (computed == 0.0));
            squares[lane] += if finite { exact * exact } else { 0.0 };
            errors[lane] += error * error;
            largest[lane] = if error > largest[lane] { error } else { largest[lane] };
        };
        in_lanes(self.computed, self.exact, one);
        let count = |lanes: [u32; LANES]| lanes.iter().map(|&n| u64::from(n)).sum();
        ErrorTally {
            elements: self.computed.len().min(self.exact.len()) as u64,
            nonzero: count(nonzero),
            overflow: count(overflow),
            flushed: count(flushed),
            lost: 0,
            squares: squares.iter().sum(),
            error_squares: errors.iter().sum(),
            max_error: largest.iter().copied().fold(0.0, f64::max),
        }
    }
}
