//! The figures of a `compare` report, under the names that its JSON uses.

use serde::Serialize;

use super::Sort;
use super::findings::findings;
use crate::check::pairing::Identity;
use crate::report::histogram::as_map;
use crate::report::number::Num;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::stats::PairStats;
use crate::stats::pair::{PairAt, PairPlan};
use crate::tensor::TensorInfo;
use crate::tensor::grid::{coordinates, row_major};

/// What the figures mean: x is an element of the reference, y that of the other at the same place.
const DEFINITIONS: &[(&str, &str)] = &[
    ("x, y", "an element of the reference and the one of the other at the same place"),
    ("equal", "the same value and sign, so −0 is not +0; any NaN equals any NaN"),
    ("different", "pairs that are not equal"),
    ("bitwise_equal", "all pairs are equal and the types are the same; payloads of NaNs are not looked at"),
    ("nan_mismatch, inf_mismatch", "only one is NaN; without NaN, one is Inf and the other not the same Inf"),
    ("finite", "pairs of finite elements: the figures that follow are over these"),
    ("max_abs, mean_abs, rms_error", "of |x − y|"),
    ("rms", "root of the mean x²"),
    ("rel_l2", "‖x − y‖ / ‖x‖"),
    ("cosine", "x·y / (‖x‖·‖y‖)"),
    ("symmetric_diff", "1 − 2Σxy / (Σx² + Σy²), evaluated as Σ(x − y)² / (Σx² + Σy²)"),
    (
        "max_ulp, p99_ulp",
        "how many numbers of ulp_of, the coarser of the two types, lie from x to y, both rounded to it",
    ),
    ("p99_ulp", "what 99 % of the pairs do not exceed; from 64 on at most 1/32 above that"),
    ("sign_flips", "pairs of nonzero elements with opposite signs"),
    ("outside", "pairs with |x − y| > atol + rtol·|x|, and mismatches of NaN and Inf"),
    ("outside_pct", "percent of all pairs"),
];

/// Everything that `compare` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `compare`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// What the other is compared with.
    pub reference: Side,
    /// What is compared.
    pub other: Side,
    /// Compared tensors by verdict.
    pub equal: u64,
    /// Not equal, but within the tolerance.
    pub within: u64,
    /// With elements outside the tolerance.
    pub outside: u64,
    /// The first tensor, in the order of the reference, that is not equal: its position in `tensors`.
    pub first_different: Option<usize>,
    /// The first one that is outside the tolerance.
    pub first_outside: Option<usize>,
    /// Compared tensors, in the order of the reference.
    pub tensors: Vec<Row>,
    /// Tensors of another shape.
    pub reshaped: Vec<Reshaped>,
    /// Tensors that only the reference has.
    pub missing: Vec<Alone>,
    /// Tensors that only the other has.
    pub extra: Vec<Alone>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was skipped or assumed.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Options {
    /// Relative tolerance; `null` for the default of each type.
    pub rtol: Option<f64>,
    /// Absolute tolerance, likewise.
    pub atol: Option<f64>,
    /// How names of the reference were changed before they were looked for.
    pub map: Vec<String>,
    /// Only tensors whose name matches.
    pub tensor: Option<String>,
    /// No tensors whose name matches.
    pub exclude: Option<String>,
    /// Only these training steps.
    pub steps: Option<String>,
    /// Only these ranks.
    pub ranks: Option<String>,
    /// Element type that the stored bytes were read as, if not the one in the files.
    pub dtype: Option<String>,
    /// What both were divided by first.
    pub unscale: Option<f64>,
    /// What the tensors are sorted by in tables.
    #[serde(serialize_with = "sort_name")]
    pub sort: Sort,
}

fn sort_name<S: serde::Serializer>(sort: &Sort, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(sort.name())
}

/// One of the two dumps.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Path as given.
    pub path: String,
    /// Files read.
    pub files: u64,
    /// Tensors that the filters leave.
    pub tensors: u64,
    /// Elements of these.
    pub elements: u64,
}

/// How far two tensors are apart, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every pair is equal.
    Equal,
    /// Every pair is within the tolerance.
    Within,
    /// Some are not.
    Outside,
}

/// A compared tensor.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name in the reference.
    pub tensor: String,
    /// Name in the other.
    pub other_tensor: String,
    /// Step of the reference, if known.
    pub step: Option<u64>,
    /// Its rank, if known.
    pub rank: Option<u64>,
    /// Extent of each dimension.
    pub shape: Vec<u64>,
    /// Element type of the reference.
    pub dtype: String,
    /// Element type of the other.
    pub other_dtype: String,
    /// In a word.
    pub verdict: Verdict,
    /// Whether they are equal and of one type.
    pub bitwise_equal: bool,
    /// Number of elements.
    pub elements: u64,
    /// Pairs that are not equal.
    pub different: u64,
    /// Only one is NaN.
    pub nan_mismatch: u64,
    /// One is Inf and the other not the same.
    pub inf_mismatch: u64,
    /// Pairs that the figures below are over.
    pub finite: u64,
    /// Largest |x − y|.
    pub max_abs: Option<Num>,
    /// Mean |x − y|.
    pub mean_abs: Option<Num>,
    /// Root of the mean (x − y)².
    pub rms_error: Option<Num>,
    /// Root of the mean x².
    pub rms: Option<Num>,
    /// ‖x − y‖ / ‖x‖.
    pub rel_l2: Option<Num>,
    /// Cosine of the angle between them.
    pub cosine: Option<Num>,
    /// Symmetric relative difference.
    pub symmetric_diff: Option<Num>,
    /// Type whose units in the last place are counted.
    pub ulp_of: &'static str,
    /// Largest distance.
    pub max_ulp: Option<u64>,
    /// The distance that 99 % do not exceed.
    pub p99_ulp: Option<u64>,
    /// Pairs with opposite signs.
    pub sign_flips: u64,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Pairs outside the tolerance.
    pub outside: u64,
    /// Percent of all.
    pub outside_pct: Option<Num>,
    /// The element with the largest |x − y|.
    pub worst: Option<Element>,
    /// The first element in which NaN or Inf do not match.
    pub first_mismatch: Option<Element>,
}

/// An element and its two values.
#[derive(Clone, Debug, Serialize)]
pub struct Element {
    /// Index in each dimension.
    pub index: Vec<u64>,
    /// Value in the reference.
    pub reference: Num,
    /// Value in the other.
    pub other: Num,
}

/// A tensor that both have in different shapes.
#[derive(Clone, Debug, Serialize)]
pub struct Reshaped {
    /// Name in the reference.
    pub tensor: String,
    /// Its shape there.
    pub shape: Vec<u64>,
    /// Its shape in the other.
    pub other_shape: Vec<u64>,
}

/// A tensor that only one of the two has.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    /// Its name.
    pub tensor: String,
    /// Step, if known.
    pub step: Option<u64>,
    /// Rank, if known.
    pub rank: Option<u64>,
}

impl From<&Identity> for Alone {
    fn from(tensor: &Identity) -> Self {
        Self { tensor: tensor.name.clone(), step: tensor.step, rank: tensor.rank }
    }
}

impl Row {
    /// The figures of two tensors. `column_major` if they were read in Fortran order.
    pub fn new(
        place: &Identity,
        a: &TensorInfo,
        b: &TensorInfo,
        plan: &PairPlan,
        stats: &PairStats,
        column_major: bool,
    ) -> Self {
        let element = |at: PairAt| {
            let position = if column_major { row_major(&a.shape, at.index) } else { at.index };
            Element { index: coordinates(&a.shape, position), reference: Num(at.x), other: Num(at.y) }
        };
        let finite = stats.finite > 0;
        Self {
            tensor: place.name.clone(),
            other_tensor: b.name.clone(),
            step: place.step,
            rank: place.rank,
            shape: a.shape.clone(),
            dtype: a.dtype.name().to_owned(),
            other_dtype: b.dtype.name().to_owned(),
            verdict: match (stats.different, stats.outside) {
                (0, _) => Verdict::Equal,
                (_, 0) => Verdict::Within,
                _ => Verdict::Outside,
            },
            bitwise_equal: stats.different == 0 && a.dtype == b.dtype,
            elements: stats.elements,
            different: stats.different,
            nan_mismatch: stats.nan_mismatch,
            inf_mismatch: stats.inf_mismatch,
            finite: stats.finite,
            max_abs: finite.then_some(Num(stats.max_abs)),
            mean_abs: stats.mean_abs().map(Num),
            rms_error: stats.rms_error().map(Num),
            rms: stats.rms_x().map(Num),
            rel_l2: stats.rel_l2().map(Num),
            cosine: stats.cosine().map(Num),
            symmetric_diff: stats.symmetric_diff().map(Num),
            ulp_of: plan.coarser().name(),
            max_ulp: stats.max_ulp,
            p99_ulp: stats.p99_ulp,
            sign_flips: stats.sign_flips,
            rtol: plan.tolerance().rtol,
            atol: plan.tolerance().atol,
            outside: stats.outside,
            outside_pct: (stats.elements > 0)
                .then(|| Num(100.0 * stats.outside as f64 / stats.elements as f64)),
            worst: stats.worst.map(element),
            first_mismatch: stats.first_mismatch.map(element),
        }
    }

    /// The element to look at first.
    pub(super) fn telling(&self) -> Option<&Element> {
        self.first_mismatch.as_ref().or(self.worst.as_ref())
    }
}

impl CompareReport {
    /// A report without tensors yet.
    pub fn new(options: Options, reference: Side, other: Side) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "compare",
            options,
            definitions: DEFINITIONS,
            reference,
            other,
            equal: 0,
            within: 0,
            outside: 0,
            first_different: None,
            first_outside: None,
            tensors: Vec::new(),
            reshaped: Vec::new(),
            missing: Vec::new(),
            extra: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds up the verdicts, once all tensors are there, and says what they mean.
    pub fn conclude(&mut self) {
        let count = |verdict| self.tensors.iter().filter(|row| row.verdict == verdict).count() as u64;
        (self.equal, self.within) = (count(Verdict::Equal), count(Verdict::Within));
        self.outside = count(Verdict::Outside);
        self.first_different = self.tensors.iter().position(|row| row.verdict != Verdict::Equal);
        self.first_outside = self.tensors.iter().position(|row| row.verdict == Verdict::Outside);
        self.findings = findings(self);
    }

    /// Whether every tensor is in both, in the same shape and within the tolerance.
    pub fn agrees(&self) -> bool {
        let structure = self.reshaped.len() + self.missing.len() + self.extra.len();
        self.outside == 0 && structure == 0
    }
}
