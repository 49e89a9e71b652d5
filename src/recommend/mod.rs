//! Which format is the cheapest that keeps a tensor within bounds.
//!
//! What a cast does is measured elsewhere; here is only the decision, and its reasons.
//!
//! NaN and Inf are in none of the figures. A tensor that has some is given only a format that keeps them, and one that
//! has nothing else but zeros stays as it is stored: nothing says what its values will be.

mod candidate;

pub use candidate::{CANDIDATES, Candidate, Cast, find};

use crate::stats::FormatStats;

/// What a format may cost a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Largest share of the finite nonzero values that may be stored as zero.
    pub max_underflow: f64,
    /// Largest share of them that may round beyond the largest number.
    pub max_overflow: f64,
    /// Least signal to quantisation noise ratio in dB.
    pub min_sqnr: f64,
}

impl Default for Bounds {
    /// One value in a thousand may be lost: what is lost is the smallest. None may overflow: one Inf or one clipped
    /// spike is the largest error there can be. 20 dB, an error of a tenth of the norm, is what even four-bit formats
    /// leave of values in range: less means that the range is wrong, not the precision.
    fn default() -> Self {
        Self { max_underflow: 1e-3, max_overflow: 0.0, min_sqnr: 20.0 }
    }
}

/// What one cast did to the finite nonzero values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// How many there are.
    pub nonzero: u64,
    /// Stored as zero.
    pub underflow: u64,
    /// Rounded beyond the largest number, or without a number since their block holds an Inf or NaN.
    pub overflow: u64,
    /// Signal to quantisation noise ratio in dB; `None` where it is not defined.
    pub sqnr_db: Option<f64>,
    /// Largest relative error.
    pub max_rel: Option<f64>,
}

impl From<&FormatStats> for Measured {
    fn from(stats: &FormatStats) -> Self {
        let FormatStats { classes, errors, .. } = stats;
        Self {
            nonzero: classes.nonzero_finite(),
            underflow: classes.underflow,
            overflow: classes.overflow,
            sqnr_db: errors.sqnr_db(),
            max_rel: errors.max_rel(),
        }
    }
}

/// A bound that a cast breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// So large a share of the nonzero values is stored as zero.
    Underflow(f64),
    /// So large a share rounds beyond the largest number.
    Overflow(f64),
    /// The SQNR is only this, in dB.
    Sqnr(f64),
    /// NaN or Inf of the tensor would not come back, or spoil the values of their blocks.
    NotHeld,
    /// Nothing could be measured: the tensor cannot be cut into such blocks.
    NotMeasured,
}

/// Which bounds are broken; none if the format will do.
pub fn judge(bounds: &Bounds, measured: &Measured) -> Vec<Failure> {
    let share = |part: u64| if measured.nonzero == 0 { 0.0 } else { part as f64 / measured.nonzero as f64 };
    let (underflow, overflow) = (share(measured.underflow), share(measured.overflow));
    let mut failures = Vec::new();
    if underflow > bounds.max_underflow {
        failures.push(Failure::Underflow(underflow));
    }
    if overflow > bounds.max_overflow {
        failures.push(Failure::Overflow(overflow));
    }
    // Where nothing is nonzero there is nothing to be wrong about.
    if measured.nonzero > 0 && !measured.sqnr_db.is_some_and(|sqnr| sqnr >= bounds.min_sqnr) {
        failures.push(Failure::Sqnr(measured.sqnr_db.unwrap_or(f64::NEG_INFINITY)));
    }
    failures
}

/// How many of the values of a tensor are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// NaN.
    pub nan: u64,
    /// ±Inf.
    pub inf: u64,
    /// Finite and not zero.
    pub nonzero: u64,
}

impl Census {
    /// Whether NaN and Inf leave nothing to judge by.
    pub fn is_blank(&self) -> bool {
        self.nan + self.inf > 0 && self.nonzero == 0
    }
}

/// What to take for one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Position of the format among the candidates; `None` if none will do, and the tensor stays as it is stored.
    pub chosen: Option<usize>,
    /// Those that are cheaper, with what is wrong with each.
    pub rejected: Vec<(usize, Vec<Failure>)>,
}

/// Takes the first of the candidates, which come cheapest first, that will do at every step: `measured` has for each
/// what it did at each step, `None` where it could not be made. `values` are those of all steps.
pub fn choose(
    bounds: &Bounds,
    values: &Census,
    candidates: &[&Candidate],
    measured: &[Vec<Option<Measured>>],
) -> Choice {
    let mut rejected = Vec::new();
    if values.is_blank() {
        return Choice { chosen: None, rejected };
    }
    for (number, (candidate, steps)) in candidates.iter().zip(measured).enumerate() {
        if !candidate.holds(values.nan > 0, values.inf > 0) {
            rejected.push((number, vec![Failure::NotHeld]));
            continue;
        }
        let worst =
            steps.iter().map(|step| step.map_or(vec![Failure::NotMeasured], |step| judge(bounds, &step)));
        let failures = worst.fold(Vec::new(), worse);
        if failures.is_empty() && !steps.is_empty() {
            return Choice { chosen: Some(number), rejected };
        }
        rejected.push((number, failures));
    }
    Choice { chosen: None, rejected }
}

/// The worse of either failures, kind by kind.
fn worse(mut sum: Vec<Failure>, next: Vec<Failure>) -> Vec<Failure> {
    for failure in next {
        let same =
            sum.iter_mut().find(|known| std::mem::discriminant(*known) == std::mem::discriminant(&failure));
        match (same, failure) {
            (
                Some(Failure::Underflow(known) | Failure::Overflow(known)),
                Failure::Underflow(new) | Failure::Overflow(new),
            ) => {
                *known = known.max(new);
            }
            (Some(Failure::Sqnr(known)), Failure::Sqnr(new)) => *known = known.min(new),
            (Some(_), _) => {}
            (None, failure) => sum.push(failure),
        }
    }
    sum
}
