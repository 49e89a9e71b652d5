//! The figures that tables show and tensors are sorted by.

use super::{Cell, Subject};
use crate::report::number::{Num, percent, short};

/// A figure of a cell that orders tensors from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Flushed to zero or overflowed.
    Lost,
    /// Flushed to zero.
    Underflow,
    /// Kept as subnormal.
    Subnormal,
    /// Overflowed.
    Overflow,
    /// Signal to quantisation noise.
    Sqnr,
    /// Largest relative error.
    MaxRel,
    /// Distance of the largest element from the limit.
    Headroom,
}

/// What the tensors of a table are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Worst first.
    Worst(Metric),
    /// By name.
    Name,
    /// As in the files.
    File,
}

/// Everything that `--sort` accepts, with what it means.
pub const SORTS: &[(&str, Sort, &str)] = &[
    ("lost", Sort::Worst(Metric::Lost), "flushed to zero or overflowed, % of the nonzero values"),
    ("underflow", Sort::Worst(Metric::Underflow), "flushed to zero, % of the nonzero values"),
    ("subnormal", Sort::Worst(Metric::Subnormal), "kept as subnormal, % of the nonzero values"),
    ("overflow", Sort::Worst(Metric::Overflow), "overflowed, % of the nonzero values"),
    ("sqnr", Sort::Worst(Metric::Sqnr), "signal to quantisation noise ratio in dB"),
    ("max-rel", Sort::Worst(Metric::MaxRel), "largest relative error"),
    ("headroom", Sort::Worst(Metric::Headroom), "log2 of how far the largest element is below the limit"),
    ("name", Sort::Name, "the tensors' names"),
    ("file", Sort::File, "the order of the files"),
];

impl Sort {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        SORTS.iter().find(|(_, sort, _)| *sort == self).map_or("file", |(name, ..)| name)
    }

    /// The figure that a table sorted like this shows.
    pub fn metric(self) -> Metric {
        match self {
            Self::Worst(metric) => metric,
            Self::Name | Self::File => Metric::Lost,
        }
    }

    /// Puts tensors in this order: by the first format, ties by the next ones; stable.
    pub(super) fn order(self, tensors: &mut [&Subject]) {
        match self {
            Self::File => {}
            Self::Name => tensors.sort_by(|a, b| a.name.cmp(&b.name)),
            Self::Worst(metric) => {
                let badness = |subject: &Subject| -> Vec<f64> {
                    subject.formats.iter().map(|cell| metric.badness(cell)).collect()
                };
                tensors.sort_by_cached_key(|subject| {
                    badness(subject).into_iter().map(Descending).collect::<Vec<_>>()
                });
            }
        }
    }
}

/// Orders larger numbers first.
#[derive(PartialEq)]
struct Descending(f64);

impl Eq for Descending {}

impl PartialOrd for Descending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Descending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl Metric {
    /// What it is, as `--sort` has it.
    pub(super) fn meaning(self) -> &'static str {
        SORTS.iter().find(|(_, sort, _)| *sort == Sort::Worst(self)).map_or("", |(_, _, meaning)| meaning)
    }

    /// How bad the cell is.
    fn badness(self, cell: &Cell) -> f64 {
        let value = |num: Option<Num>| num.map(|num| num.0);
        let badness = match self {
            Self::Lost => {
                value(cell.underflow_pct).zip(value(cell.overflow_pct)).map(|(under, over)| under + over)
            }
            Self::Underflow => value(cell.underflow_pct),
            Self::Subnormal => value(cell.subnormal_pct),
            Self::Overflow => value(cell.overflow_pct),
            Self::Sqnr => value(cell.sqnr_db).map(|db| -db),
            Self::MaxRel => value(cell.max_rel),
            Self::Headroom => value(cell.headroom_log2).map(|bits| -bits),
        };
        // Undefined is best for want of values, but worst where all of them became Inf or NaN.
        badness.unwrap_or(if cell.left_out_of_errors > 0 { f64::INFINITY } else { f64::NEG_INFINITY })
    }

    /// The figure for a table, without its unit.
    pub(super) fn text(self, cell: &Cell) -> String {
        let nonzero = cell.underflow + cell.subnormal + cell.normal + cell.overflow;
        let number = |num: Option<Num>, digits| num.map_or("–".into(), |num| short(num.0, digits));
        match self {
            Self::Lost => percent(cell.underflow + cell.overflow, nonzero),
            Self::Underflow => percent(cell.underflow, nonzero),
            Self::Subnormal => percent(cell.subnormal, nonzero),
            Self::Overflow => percent(cell.overflow, nonzero),
            Self::Sqnr => number(cell.sqnr_db, 3),
            Self::MaxRel => number(cell.max_rel, 3),
            Self::Headroom => number(cell.headroom_log2, 3),
        }
    }
}
