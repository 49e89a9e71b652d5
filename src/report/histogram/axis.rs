//! A log2 axis that shows the data and the limits near it, and where on it each format's zones lie.

use super::FormatRow;
use crate::stats::Binades;

/// Binades around the data within which a format's limit still widens the axis.
const REACH: i32 = 10;

/// What a format does to magnitudes of one place on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Flushed to zero.
    Flushed,
    /// Kept as subnormal.
    Subnormal,
    /// Kept as normal.
    Normal,
    /// Beyond the range.
    Overflow,
}

/// Where the limits of a cast are among the magnitudes |x|: those of x·scale over the scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// Up to here magnitudes are flushed; `None` if the format has no zero.
    pub(super) flush: Option<Limit>,
    /// From here on results are normal numbers; `None` if there are no subnormal ones before.
    pub(super) normal: Option<Limit>,
    /// From here on magnitudes overflow.
    pub(super) overflow: Limit,
}

/// A place on the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    /// The magnitude.
    pub(super) value: f64,
    /// Its log2.
    pub(super) log2: f64,
}

impl Limit {
    pub(super) fn new(value: f64) -> Self {
        Self { value, log2: libm::log2(value) }
    }
}

impl Limits {
    /// Of the cast of `row`; `None` for a block format, whose limits move with each block's scale.
    pub(super) fn of(row: &FormatRow) -> Option<Self> {
        let plan = row.target.plain()?;
        let limit = |value: f64| Limit::new(value / f64::from(plan.scale));
        let min_normal = limit(row.min_normal.0);
        let subnormals = row.min_subnormal.is_some();
        let flushed = subnormals && plan.flush_subnormal_results;
        Some(Self {
            flush: row.flush_threshold.map(|threshold| if flushed { min_normal } else { limit(threshold.0) }),
            normal: (subnormals && !flushed).then_some(min_normal),
            overflow: limit(row.overflow_threshold.0),
        })
    }

    /// The zone of magnitude 2^`log2`.
    pub(super) fn zone(&self, log2: f64) -> Zone {
        if log2 >= self.overflow.log2 {
            Zone::Overflow
        } else if self.flush.is_some_and(|flush| log2 <= flush.log2) {
            Zone::Flushed
        } else if self.normal.is_some_and(|normal| log2 < normal.log2) {
            Zone::Subnormal
        } else {
            Zone::Normal
        }
    }

    /// All there are, as log2.
    pub(super) fn all(&self) -> impl Iterator<Item = f64> + use<> {
        [self.flush, self.normal, Some(self.overflow)].into_iter().flatten().map(|limit| limit.log2)
    }
}

/// Exponents of the first and the last binade worth showing: the data's, and those of limits near them.
pub(super) fn span(formats: &[FormatRow], binades: &Binades) -> Option<(i32, i32)> {
    let (data_first, data_last) = binades.range()?;
    let (mut first, mut last) = (data_first - 1, data_last + 1);
    for limits in formats.iter().filter_map(Limits::of) {
        for limit in limits.all() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::{CastPlan, Target};
    use crate::format::{FormatSpec, find};

    #[test]
    fn flushing_leaves_no_subnormal_zone() -> crate::error::Result<()> {
        let zones = |format: FormatSpec, ftz: bool| {
            let plan = CastPlan { flush_subnormal_results: ftz, scale: 2.0, ..CastPlan::new(format) };
            let limits = Limits::of(&FormatRow::new(&Target::Plain(plan)));
            [-26.5, -15.5, -14.5, 15.5].map(|log2| limits.map(|limits| limits.zone(log2)))
        };
        let float16 = find("float16")?;
        let (low, kept, normal, over) = (Zone::Flushed, Zone::Subnormal, Zone::Normal, Zone::Overflow);
        assert_eq!(zones(float16, false), [low, kept, normal, over].map(Some));
        assert_eq!(zones(float16, true), [low, low, normal, over].map(Some));
        // Without subnormal numbers there is nothing to flush.
        let e8m0 = find("e8m0")?;
        assert_eq!(zones(e8m0, true), zones(e8m0, false));
        Ok(())
    }
}
