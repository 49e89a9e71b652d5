//! Two tensors of one shape, element by element: `x` of the first, the reference, against `y` of the second.
//!
//! Every figure is a count, a largest value or a plain f64 sum over the pairs in which both are finite. A NaN
//! beside a NaN and an Inf beside the same Inf agree; any other pair with a NaN or Inf in it is a mismatch,
//! which the sums leave out and which is counted.

mod block;
mod ulps;

pub use ulps::Coarser;
use ulps::Ulps;

use super::block::BLOCK;
use super::{AccumulateTogether, Merge};
use crate::cast::fast::Level;
use crate::tensor::{Chunk, Dtype};
use block::Pair;

/// How much two elements may differ: |x − y| ≤ `atol` + `rtol`·|x|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the reference's magnitude.
    pub rtol: f64,
    /// Whatever the magnitude.
    pub atol: f64,
}

impl Tolerance {
    /// The default for tensors of these two types: the larger one of either. float64, float32, bfloat16 and float16
    /// have those of `torch.testing.assert_close` (torch/testing/_comparison.py of PyTorch 2.9); PyTorch has 0 for
    /// everything else, which here is one unit in the last place.
    pub fn default_for(a: &Dtype, b: &Dtype) -> Self {
        let (a, b) = (Self::of(a), Self::of(b));
        Self { rtol: a.rtol.max(b.rtol), atol: a.atol.max(b.atol) }
    }

    fn of(dtype: &Dtype) -> Self {
        let (rtol, atol) = match (dtype, dtype.format()) {
            (Dtype::Float64, _) => (1e-7, 1e-7),
            (_, Some(format)) => match (format.precision, format.exponent_bits()) {
                (24, 8) => (1.3e-6, 1e-5),
                (11, 5) => (1e-3, 1e-5),
                (8, 8) => (1.6e-2, 1e-5),
                _ => (format.epsilon(), 0.0),
            },
            (_, None) => (0.0, 0.0),
        };
        Self { rtol, atol }
    }
}

/// What to compare by, prepared once for a pair of tensors.
#[derive(Clone, Debug)]
pub struct PairPlan {
    tolerance: Tolerance,
    coarser: Coarser,
    level: Level,
}

impl PairPlan {
    /// For tensors of these types.
    pub fn new(a: &Dtype, b: &Dtype, tolerance: Tolerance) -> Self {
        Self { tolerance, coarser: Coarser::of(a, b), level: Level::best() }
    }

    /// The same with kernels compiled for `level`.
    #[must_use]
    pub fn at_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// How much elements may differ.
    pub fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// The type whose units in the last place are counted.
    pub fn coarser(&self) -> &Coarser {
        &self.coarser
    }
}

/// Two elements at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairAt {
    /// Position, in the order in which the elements were read.
    pub index: u64,
    /// The reference's element.
    pub x: f64,
    /// The other's.
    pub y: f64,
}

/// What is known of two tensors once they have been read side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairStats {
    /// Pairs.
    pub elements: u64,
    /// Pairs whose values are not the same: of another magnitude or sign (−0 is not +0), or only one a NaN.
    pub different: u64,
    /// Pairs of which only one is NaN.
    pub nan_mismatch: u64,
    /// Pairs without NaN of which one is Inf and the other is not the same Inf.
    pub inf_mismatch: u64,
    /// Pairs of finite elements: the figures below are over these.
    pub finite: u64,
    /// Pairs of nonzero elements with opposite signs.
    pub sign_flips: u64,
    /// Pairs beyond the tolerance; mismatches of NaN and Inf count among them.
    pub outside: u64,
    /// Σ |x − y|.
    pub sum_abs: f64,
    /// Σ (x − y)².
    pub noise: f64,
    /// Σ x².
    pub signal_x: f64,
    /// Σ y².
    pub signal_y: f64,
    /// Σ x·y.
    pub dot: f64,
    /// Largest |x − y|.
    pub max_abs: f64,
    /// The first pair with the largest |x − y|, if that is not 0.
    pub worst: Option<PairAt>,
    /// The first pair in which NaN or Inf do not match.
    pub first_mismatch: Option<PairAt>,
    /// Largest distance in units in the last place of the coarser type; `None` without finite pairs.
    pub max_ulp: Option<u64>,
    /// The distance that 99 % of the pairs do not exceed; of distances of 64 and more at most 1/32 above it.
    pub p99_ulp: Option<u64>,
}

impl PairStats {
    /// Mean |x − y|; `None` without finite pairs.
    pub fn mean_abs(&self) -> Option<f64> {
        (self.finite > 0).then(|| self.sum_abs / self.finite as f64)
    }

    /// Root of the mean (x − y)²; `None` without finite pairs.
    pub fn rms_error(&self) -> Option<f64> {
        (self.finite > 0).then(|| (self.noise / self.finite as f64).sqrt())
    }

    /// Root of the mean x²; `None` without finite pairs.
    pub fn rms_x(&self) -> Option<f64> {
        (self.finite > 0).then(|| (self.signal_x / self.finite as f64).sqrt())
    }

    /// ‖x − y‖ / ‖x‖: 0 if they are equal, Inf if only x is zero everywhere; `None` without finite pairs, or if a
    /// square leaves the range of an f64.
    pub fn rel_l2(&self) -> Option<f64> {
        self.in_range().then(|| ratio(self.noise, self.signal_x).sqrt())
    }

    /// x·y / (‖x‖·‖y‖); `None` where one of them is zero everywhere, or as for [`rel_l2`](Self::rel_l2).
    pub fn cosine(&self) -> Option<f64> {
        if self.sum_abs == 0.0 && self.in_range() && self.signal_x > 0.0 {
            return Some(1.0);
        }
        let norms = self.signal_x.sqrt() * self.signal_y.sqrt();
        (self.in_range() && norms > 0.0).then(|| (self.dot / norms).clamp(-1.0, 1.0))
    }

    /// 1 − 2Σxy / (Σx² + Σy²), from 0 (equal) to 2 (opposite), the same for both orders. Evaluated as
    /// Σ(x − y)² / (Σx² + Σy²), which is the same number and does not cancel.
    pub fn symmetric_diff(&self) -> Option<f64> {
        self.in_range().then(|| ratio(self.noise, self.signal_x + self.signal_y))
    }

    fn in_range(&self) -> bool {
        self.finite > 0 && (self.noise + self.signal_x + self.signal_y).is_finite()
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}

/// Accumulates [`PairStats`].
pub struct PairAccumulator<'p> {
    plan: &'p PairPlan,
    stats: PairStats,
    ulps: Ulps,
}

impl<'p> PairAccumulator<'p> {
    /// An accumulator that has seen nothing.
    pub fn new(plan: &'p PairPlan) -> Self {
        Self { plan, stats: PairStats::default(), ulps: Ulps::default() }
    }

    /// Adds the pair at `index`. THE definition: the kernels count and sum as this does.
    pub fn observe_pair(&mut self, index: u64, x: f64, y: f64) {
        let stats = &mut self.stats;
        stats.elements += 1;
        let same = x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
        stats.different += u64::from(!same);
        if !(x.is_finite() && y.is_finite()) {
            if !same {
                stats.nan_mismatch += u64::from(x.is_nan() != y.is_nan());
                stats.inf_mismatch += u64::from(!x.is_nan() && !y.is_nan());
                stats.outside += 1;
                stats.first_mismatch.get_or_insert(PairAt { index, x, y });
            }
            return;
        }
        stats.finite += 1;
        stats.sign_flips += u64::from(x != 0.0 && y != 0.0 && (x < 0.0) != (y < 0.0));
        let error = (x - y).abs();
        let Tolerance { rtol, atol } = self.plan.tolerance;
        stats.outside += u64::from(error > atol + rtol * x.abs());
        stats.sum_abs += error;
        stats.noise += error * error;
        stats.signal_x += x * x;
        stats.signal_y += y * y;
        stats.dot += x * y;
        if error > stats.max_abs {
            stats.max_abs = error;
            stats.worst = Some(PairAt { index, x, y });
        }
        self.ulps.add(self.plan.coarser.distance(x, y), 1);
    }

    fn observe_singles(&mut self, first: u64, x: &[f32], y: &[f32]) {
        let (blocks_x, tail_x) = x.as_chunks::<BLOCK>();
        let (blocks_y, tail_y) = y.as_chunks::<BLOCK>();
        let mut index = first;
        for (x, y) in blocks_x.iter().zip(blocks_y) {
            Pair { x, y, len: BLOCK, index }.observe(self);
            index += BLOCK as u64;
        }
        if !tail_x.is_empty() {
            let pad = |tail: &[f32]| {
                let mut padded = [0.0; BLOCK];
                padded[..tail.len()].copy_from_slice(tail);
                padded
            };
            let (x, y) = (pad(tail_x), pad(tail_y));
            Pair { x: &x, y: &y, len: tail_x.len(), index }.observe(self);
        }
    }
}

impl AccumulateTogether for PairAccumulator<'_> {
    fn observe(&mut self, first: u64, chunks: &[Chunk<'_>]) {
        let [a, b] = chunks else { return };
        match (a, b) {
            (Chunk::F32(x), Chunk::F32(y)) => self.observe_singles(first, x, y),
            _ => {
                for (index, (x, y)) in (first..).zip(values(a).zip(values(b))) {
                    self.observe_pair(index, x, y);
                }
            }
        }
    }
}

fn values<'c>(chunk: &'c Chunk<'_>) -> impl Iterator<Item = f64> + 'c {
    let (singles, doubles): (&[f32], &[f64]) = match chunk {
        Chunk::F32(values) => (values, &[]),
        Chunk::F64(values) => (&[], values),
    };
    singles.iter().map(|&x| f64::from(x)).chain(doubles.iter().copied())
}

impl Merge for PairAccumulator<'_> {
    type Out = PairStats;

    fn merge(&mut self, next: Self) {
        let (sum, next_sum) = (&mut self.stats, next.stats);
        sum.elements += next_sum.elements;
        sum.different += next_sum.different;
        sum.nan_mismatch += next_sum.nan_mismatch;
        sum.inf_mismatch += next_sum.inf_mismatch;
        sum.finite += next_sum.finite;
        sum.sign_flips += next_sum.sign_flips;
        sum.outside += next_sum.outside;
        sum.sum_abs += next_sum.sum_abs;
        sum.noise += next_sum.noise;
        sum.signal_x += next_sum.signal_x;
        sum.signal_y += next_sum.signal_y;
        sum.dot += next_sum.dot;
        if next_sum.max_abs > sum.max_abs {
            (sum.max_abs, sum.worst) = (next_sum.max_abs, next_sum.worst);
        }
        sum.first_mismatch = sum.first_mismatch.or(next_sum.first_mismatch);
        self.ulps.merge(&next.ulps);
    }

    fn finish(self) -> PairStats {
        PairStats { max_ulp: self.ulps.max(), p99_ulp: self.ulps.percentile(99), ..self.stats }
    }
}
