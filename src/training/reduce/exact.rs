//! Means of ranks' gradients without an error but the last rounding.

use crate::cast::fast::{Kernel, Level, run};
use crate::training::Extremes;

/// A sum of float32 in two float64: what an addition loses is kept (Knuth's two-sum), so that the error is below
/// 2^-100 of the sum of magnitudes for any number of ranks there is.
#[derive(Debug, Default)]
pub struct ExactSum {
    sum: Vec<f64>,
    lost: Vec<f64>,
}

impl ExactSum {
    /// Starts anew, with `length` sums of nothing.
    pub fn clear(&mut self, length: usize) {
        for buffer in [&mut self.sum, &mut self.lost] {
            buffer.clear();
            buffer.resize(length, 0.0);
        }
    }

    /// Adds `times` · `values`, the product being exact for up to 2^29 times.
    pub fn add(&mut self, level: Level, times: f64, values: &[f32]) {
        run(level, TwoSum { times, values, sum: &mut self.sum, lost: &mut self.lost });
    }

    /// Writes the sums divided by `ranks`, rounded once to float64 and once more by the division.
    pub fn mean(&self, ranks: usize, mean: &mut Vec<f64>) {
        mean.clear();
        mean.extend(self.sum.iter().zip(&self.lost).map(|(sum, lost)| (sum + lost) / ranks as f64));
    }
}

struct TwoSum<'a> {
    times: f64,
    values: &'a [f32],
    sum: &'a mut [f64],
    lost: &'a mut [f64],
}

impl Kernel for TwoSum<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for ((x, sum), lost) in self.values.iter().zip(self.sum).zip(self.lost) {
            let x = f64::from(*x) * self.times;
            let new = *sum + x;
            let back = new - *sum;
            *lost += (*sum - (new - back)) + (x - back);
            *sum = new;
        }
    }
}

/// Elements that have sums of their own, so that they can be added at once.
pub(super) const LANES: usize = 16;

/// The exact means of one piece, and what of them every comparison needs.
#[derive(Debug, Default)]
pub(super) struct Means {
    pub(super) mean: Vec<f64>,
    /// Number of means that are not zero.
    pub(super) nonzero: u64,
    /// Sum of the squares of means.
    pub(super) squares: f64,
    exact: ExactSum,
}

impl Means {
    /// Takes the means of `inputs`, equally many gradients of each rank that have these extremes.
    pub(super) fn take(&mut self, level: Level, inputs: &[&[f32]], extremes: Extremes) {
        let ranks = inputs.len();
        let length = inputs.first().map_or(0, |values| values.len());
        if extremes.octaves() + ranks.next_power_of_two().ilog2()
            <= f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS
        {
            // From the last bit of the smallest gradient to the first of the largest sum fits float64.
            self.mean.resize(length, 0.0);
            run(level, Plain { inputs, ranks: ranks as f64, mean: &mut self.mean });
        } else {
            self.exact.clear(length);
            inputs.iter().for_each(|values| self.exact.add(level, 1.0, values));
            self.exact.mean(ranks, &mut self.mean);
        }
        (self.nonzero, self.squares) = run(level, Describe { mean: &self.mean });
    }
}

/// Means of sums that float64 has.
struct Plain<'a> {
    inputs: &'a [&'a [f32]],
    ranks: f64,
    mean: &'a mut [f64],
}

impl Kernel for Plain<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let (mean, rest) = self.mean.as_chunks_mut::<LANES>();
        let whole = mean.len() * LANES;
        for (number, mean) in mean.iter_mut().enumerate() {
            let mut sums = [0.0; LANES];
            for values in self.inputs {
                for (sum, x) in sums.iter_mut().zip(&values[number * LANES..][..LANES]) {
                    *sum += f64::from(*x);
                }
            }
            *mean = sums.map(|sum| sum / self.ranks);
        }
        for (number, mean) in rest.iter_mut().enumerate() {
            let sum: f64 = self.inputs.iter().map(|values| f64::from(values[whole + number])).sum();
            *mean = sum / self.ranks;
        }
    }
}

struct Describe<'a> {
    mean: &'a [f64],
}

impl Kernel for Describe<'_> {
    type Out = (u64, f64);

    #[inline(always)]
    fn run(self) -> (u64, f64) {
        let nonzero = self.mean.iter().map(|mean| u64::from(*mean != 0.0)).sum();
        let mut squares = [0.0; LANES];
        let (means, rest) = self.mean.as_chunks::<LANES>();
        for means in means {
            squares.iter_mut().zip(means).for_each(|(square, mean)| *square += mean * mean);
        }
        squares.iter_mut().zip(rest).for_each(|(square, mean)| *square += mean * mean);
        (nonzero, squares.iter().sum())
    }
}
