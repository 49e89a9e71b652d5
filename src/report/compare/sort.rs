//! In which order tensors are shown.

use super::{CompareReport, Row};
use crate::report::number::Num;

/// What the tensors of a table are ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Mismatches of NaN and Inf, then the relative error.
    #[default]
    Worst,
    /// Share outside the tolerance.
    Outside,
    /// Largest absolute error.
    MaxAbs,
    /// Largest distance in units in the last place.
    MaxUlp,
    /// Smallest cosine.
    Cosine,
    /// Names.
    Name,
    /// As in the files of the reference.
    File,
}

/// Everything that `--sort` accepts, with what it means.
pub const SORTS: &[(&str, Sort, &str)] = &[
    ("worst", Sort::Worst, "mismatches of NaN and Inf, then relative L2 error"),
    ("outside", Sort::Outside, "the largest share outside the tolerance"),
    ("max-abs", Sort::MaxAbs, "the largest absolute error"),
    ("max-ulp", Sort::MaxUlp, "the largest distance in units in the last place"),
    ("cosine", Sort::Cosine, "the smallest cosine"),
    ("name", Sort::Name, "the tensors' names"),
    ("file", Sort::File, "as in the reference's files"),
];

impl Sort {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        SORTS.iter().find(|(_, sort, _)| *sort == self).map_or("worst", |(name, ..)| name)
    }

    /// How bad a row is; the first figure counts most.
    fn badness(self, row: &Row) -> [f64; 3] {
        let value = |num: Option<Num>| num.map_or(f64::NEG_INFINITY, |num| num.0);
        let outside = value(row.outside_pct);
        match self {
            Self::Worst => [(row.nan_mismatch + row.inf_mismatch) as f64, value(row.rel_l2), outside],
            Self::Outside => [outside, value(row.rel_l2), 0.0],
            Self::MaxAbs => [value(row.max_abs), outside, 0.0],
            Self::MaxUlp => [row.max_ulp.map_or(f64::NEG_INFINITY, |ulps| ulps as f64), outside, 0.0],
            Self::Cosine => [row.cosine.map_or(f64::NEG_INFINITY, |cosine| -cosine.0), outside, 0.0],
            Self::Name | Self::File => [0.0; 3],
        }
    }
}

impl CompareReport {
    /// The compared tensors in the order asked for; of equally bad ones the first first.
    pub fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.tensors.iter().collect();
        match self.options.sort {
            Sort::File => {}
            Sort::Name => rows.sort_by(|a, b| a.tensor.cmp(&b.tensor)),
            sort => rows.sort_by(|a, b| {
                let (a, b) = (sort.badness(a), sort.badness(b));
                let orders = b.iter().zip(&a).map(|(b, a)| b.total_cmp(a));
                orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
            }),
        }
        rows
    }
}
