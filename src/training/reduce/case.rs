//! What is rounded when: one way of reducing gradients.

use super::order::Algorithm;
use crate::format::pow2;
use crate::training::Stored;
use crate::training::stored::Range;

/// What partial sums are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulate {
    /// The format on the wire: every sum is rounded to it.
    Same,
    /// float32, until the result is rounded to the format.
    Float32,
}

/// Every way with its name and meaning.
pub const ACCUMULATIONS: &[(&str, Accumulate, &str)] = &[
    ("same", Accumulate::Same, "sums are rounded to the format at every hop"),
    ("float32", Accumulate::Float32, "gradients travel in the format, sums in float32, rounded at the end"),
];

/// When the sum is divided by the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divide {
    /// Each gradient by all of it (PyTorch's DDP).
    Before,
    /// Each gradient by a power of two near its square root, the sum by the rest (PyTorch's FSDP).
    Split,
    /// The sum.
    After,
    /// Each gradient by this, the sum by the rest (Apex's `gradient_predivide_factor`).
    By(f64),
}

/// Every time that has a name, and what it is.
pub const DIVISIONS: &[(&str, Divide, &str)] = &[
    ("before", Divide::Before, "each gradient by the number of ranks (DDP)"),
    ("split", Divide::Split, "by a power of two near its root, the sum by the rest (FSDP)"),
    ("after", Divide::After, "the sum"),
];

impl Accumulate {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        ACCUMULATIONS.iter().find(|(_, known, _)| *known == self).map_or("", |(name, ..)| name)
    }
}

impl Divide {
    /// The name in reports.
    pub fn name(self) -> String {
        match self {
            // A digit for each power of ten is no name.
            Self::By(factor) if !(1e-4..1e7).contains(&factor) => format!("by {factor:e} before"),
            Self::By(factor) => format!("by {factor} before"),
            named => {
                DIVISIONS.iter().find(|(_, known, _)| *known == named).map_or("", |row| row.0).to_owned()
            }
        }
    }

    /// What gradients, and then the sum, are divided by.
    ///
    /// Source of `Split`: PyTorch 2.15 `torch/distributed/algorithms/_comm_hooks/default_hooks.py`,
    /// `_get_gradient_predivide_factor`.
    pub fn factors(self, ranks: usize) -> (f32, f32) {
        let all = ranks as f64;
        let before = match self {
            Self::Before => all,
            Self::After => 1.0,
            Self::By(factor) => factor,
            Self::Split => {
                let mut factor = 1_usize;
                while ranks.is_multiple_of(factor) && ranks / factor > factor {
                    factor *= 2;
                }
                factor as f64
            }
        };
        (before as f32, (all / before) as f32)
    }
}

/// Magnitudes of gradients within which something is known of all that is rounded on the way to their mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Up to this one all are finite numbers.
    finite: f64,
    /// From this one on, and finite, all are normal numbers, or exact.
    ///
    /// There it makes no difference when sums are divided by powers of two: all numbers on the way are so many times
    /// larger or smaller. They are multiples of the smallest number of the format, even when they are divided, as
    /// gradients are and with them their sums; so sums below the normal numbers are exact.
    normal: f64,
}

impl Limits {
    /// What is known if gradients are zero or of a magnitude from `low` to `high`.
    pub(super) fn range(self, low: f64, high: f64) -> Range {
        match high <= self.finite {
            true if low >= self.normal => Range::Normal,
            true => Range::Finite,
            false => Range::Any,
        }
    }
}

/// One way of reducing gradients.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What gradients are rounded to before they are reduced, as a backward pass in it makes them.
    pub param: Option<Stored>,
    /// The format on the wire.
    pub wire: Stored,
    /// The order.
    pub algorithm: Algorithm,
    /// What sums are kept in.
    pub accumulate: Accumulate,
    /// When they are divided.
    pub divide: Divide,
}

impl Case {
    /// Whether each rank sends the same as in `other`.
    pub fn contributes_as(&self, other: &Self) -> bool {
        let param = |case: &Self| case.param.map(|stored| stored.format);
        self.wire.format == other.wire.format && self.divide == other.divide && param(self) == param(other)
    }

    /// Whether the same is added in the same order as in `other`, but for when it is divided.
    pub fn adds_as(&self, other: &Self) -> bool {
        let divide = self.divide;
        self.contributes_as(&Self { divide, ..*other })
            && self.algorithm == other.algorithm
            && self.accumulate == other.accumulate
    }

    /// Within which magnitudes of the gradients of `ranks` ranks something is known of all that is rounded.
    pub(super) fn limits(&self, ranks: usize) -> Limits {
        let is_power = |x: f32| x.to_bits() << 9 == 0;
        let (before, after) = self.divide.factors(ranks);
        let most = f64::from(before.max(before * after).max(1.0));
        let least = f64::from(before.min(1.0));
        // A cast and a division may each double a magnitude, where it becomes the smallest number. A sum gains up to
        // half of its last place; it is exact below the normal numbers.
        let gain = 1.0 + pow2(-(self.wire.format.precision as i32));
        let largest = 4.0 * ranks as f64 / least * gain.powf(ranks as f64);
        let only_scales = is_power(before) && is_power(after);
        let normal = 2.0 * most * self.wire.format.min_normal();
        Limits {
            finite: if self.param.is_none() { self.wire.limit() / largest } else { -1.0 },
            normal: if only_scales { normal } else { f64::INFINITY },
        }
    }

    /// Bytes that the busiest rank sends for each element. A partial sum in float32 takes 4 on the wire.
    pub fn bytes(&self, ranks: usize) -> f64 {
        let width = f64::from(self.wire.format.bits) / 8.0;
        let (partial, result) = self.algorithm.sends(ranks);
        match self.accumulate {
            Accumulate::Same => width * (partial + result),
            Accumulate::Float32 => {
                // The first hop of each chunk carries a gradient, not yet a sum.
                let first = match self.algorithm {
                    Algorithm::Ring | Algorithm::ReduceScatter => 1.0 / ranks as f64,
                    Algorithm::RecursiveDoubling => 1.0,
                    Algorithm::Tree => 0.5,
                    Algorithm::Flat => 0.0,
                };
                let first = first.min(partial);
                width * (first + result) + 4.0 * (partial - first)
            }
        }
    }
}
