//! A log2 axis that shows the data and the limits near it, and where on it each format's zones lie.

use super::{FormatRow, HistogramReport};
use crate::stats::Binades;

/// Binades around the data within which a format's limit still widens the axis.
const REACH: i32 = 10;

/// What a format does to magnitudes of one place on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Flushed to zero.
    Flushed,
    /// Kept as subnormal.
    Subnormal,
    /// Kept as normal.
    Normal,
    /// Beyond the range.
    Overflow,
}

/// The limits of a format as log2 |x|: where flushing ends, subnormals end and overflow begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Up to here magnitudes are flushed; `None` if the format has no zero.
    pub flush: Option<f64>,
    /// The smallest normal number.
    pub normal: f64,
    /// The overflow threshold.
    pub overflow: f64,
}

impl Limits {
    /// Of the cast of `row`, seen from the unscaled values; `None` for a block format, whose limits move with
    /// each block's scale.
    pub fn of(row: &FormatRow) -> Option<Self> {
        let scale = f64::from(row.target.plain()?.scale).log2();
        Some(Self {
            flush: row.flush_threshold.map(|limit| limit.0.log2() - scale),
            normal: row.min_normal.0.log2() - scale,
            overflow: row.overflow_threshold.0.log2() - scale,
        })
    }

    /// The zone of magnitude 2^`log2`.
    pub fn zone(&self, log2: f64) -> Zone {
        if log2 >= self.overflow {
            Zone::Overflow
        } else if log2 >= self.normal {
            Zone::Normal
        } else if self.flush.is_some_and(|flush| log2 <= flush) {
            Zone::Flushed
        } else {
            Zone::Subnormal
        }
    }
}

/// Exponents of the first and the last binade worth showing: the data's, and those of limits near them.
pub fn span(report: &HistogramReport) -> Option<(i32, i32)> {
    let (data_first, data_last) = report.total.binades.range()?;
    let (mut first, mut last) = (data_first - 1, data_last + 1);
    for limits in report.formats.iter().filter_map(Limits::of) {
        for limit in [limits.flush, Some(limits.normal), Some(limits.overflow)].into_iter().flatten() {
            let binade = limit.floor() as i32;
            if (data_first - REACH..=data_last + REACH).contains(&binade) {
                first = first.min(binade - 2);
                last = last.max(binade + 1);
            }
        }
    }
    Some((first, last))
}

/// The axis cut into columns of equally many binades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Exponent of the first binade of the first column.
    pub(super) first: i32,
    /// Binades in a column.
    pub(super) binades: i32,
    /// Number of columns.
    pub(super) count: i32,
}

impl Columns {
    /// Cuts `span` into at most `most` columns.
    pub(super) fn new((first, last): (i32, i32), most: usize) -> Self {
        let total = last - first + 1;
        let binades =
            total.div_euclid(most.max(1) as i32) + i32::from(total.rem_euclid(most.max(1) as i32) != 0);
        // Start at a multiple, so that powers of two that people look for begin a column.
        let first = first.div_euclid(binades) * binades;
        let count = (last - first).div_euclid(binades) + 1;
        Self { first, binades, count }
    }

    /// Number of elements in each column.
    pub(super) fn totals(&self, binades: &Binades) -> Vec<u64> {
        let total = |column: i32| {
            let first = self.first + column * self.binades;
            (first..first + self.binades).map(|exponent| binades.count(exponent)).sum()
        };
        (0..self.count).map(total).collect()
    }

    /// The zone that the middle of a column lies in.
    pub(super) fn zone(&self, limits: &Limits, column: i32) -> Zone {
        limits.zone(f64::from(self.first) + (f64::from(column) + 0.5) * f64::from(self.binades))
    }
}
