//! The figures of a `reduce` report, under the names that its JSON uses.

use serde::Serialize;

use super::findings::findings;
use crate::report::histogram::as_map;
use crate::report::number::Num;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::tensor::TensorInfo;
use crate::training::reduce::{Case, ErrorTally, ReducePlan, TensorReductions};

/// What the figures mean.
const DEFINITIONS: &[(&str, &str)] = &[
    ("error", "|mean - exact mean| / |exact mean|, of the elements that did not overflow"),
    ("max_error", "largest |mean - exact mean| of an element"),
    ("overflow", "elements whose mean became Inf or NaN on the way"),
    ("flushed", "elements whose exact mean is not zero, but the one computed is"),
    ("lost", "gradients of single ranks that are not zero and become so before they are added"),
    ("sent_bytes", "bytes that the busiest rank sends; a partial sum in float32 takes four"),
    ("exact mean", "a compensated float64 sum, divided by the number of ranks"),
];

/// Everything that `reduce` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct ReduceReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `reduce`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// Files read.
    pub inputs: Vec<String>,
    /// Numbers of the ranks.
    pub ranks: Vec<u64>,
    /// Elements of a rank.
    pub elements: u64,
    /// All tensors together: the first case of each format is the one that the others differ from.
    pub total: Vec<CaseRow>,
    /// Each tensor.
    pub tensors: Vec<TensorRow>,
    /// Estimates for other numbers of ranks.
    pub worlds: Vec<WorldRow>,
    /// Elements that these estimates rest on.
    pub sampled: u64,
    /// FSDP's mixed precision, if it was asked about.
    pub fsdp: Option<FsdpRow>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was skipped or is odd.
    pub notices: Vec<String>,
    /// What could not be read or reduced.
    pub problems: Vec<String>,
    #[serde(skip)]
    plan: ReducePlan,
    #[serde(skip)]
    sum: TensorReductions,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Options {
    /// What gradients were multiplied by.
    pub scale: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// Only tensors that match.
    pub tensor: Option<String>,
    /// No tensors that match.
    pub exclude: Option<String>,
    /// What gradients were divided by before.
    pub unscale: Option<f64>,
}

/// One way of reducing, and its error.
#[derive(Clone, Debug, Serialize)]
pub struct CaseRow {
    /// Format on the wire.
    pub format: &'static str,
    /// Order of the additions.
    pub algorithm: &'static str,
    /// What sums are kept in.
    pub accumulate: &'static str,
    /// When they are divided.
    pub divide: String,
    /// Bytes that the busiest rank sends.
    pub sent_bytes: Num,
    /// ‖mean − exact mean‖ / ‖exact mean‖.
    pub error: Option<Num>,
    /// Largest |mean − exact mean|.
    pub max_error: Num,
    /// Elements whose mean became Inf or NaN.
    pub overflow: u64,
    /// Elements whose mean became zero and is not.
    pub flushed: u64,
    /// Elements whose exact mean is not zero.
    pub nonzero: u64,
    /// Gradients of single ranks that became zero before they were added.
    pub lost: u64,
}

impl CaseRow {
    fn new(case: &Case, tally: &ErrorTally, ranks: usize, elements: u64) -> Self {
        Self {
            format: case.wire.format.name,
            algorithm: case.algorithm.name(),
            accumulate: case.accumulate.name(),
            divide: case.divide.name(),
            sent_bytes: Num(case.bytes(ranks) * elements as f64),
            error: tally.error().map(Num),
            max_error: Num(tally.max_error),
            overflow: tally.overflow,
            flushed: tally.flushed,
            nonzero: tally.nonzero,
            lost: tally.lost,
        }
    }
}

/// What becomes of the gradients of a tensor.
#[derive(Clone, Debug, Serialize)]
pub struct TensorRow {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Stored type of the first rank's.
    pub dtype: String,
    /// Elements of a rank.
    pub elements: u64,
    /// Largest magnitude of a gradient of any rank.
    pub amax: Num,
    /// Each way of reducing.
    pub cases: Vec<CaseRow>,
}

/// An estimate for another number of ranks.
#[derive(Clone, Debug, Serialize)]
pub struct WorldRow {
    /// Number of ranks.
    pub ranks: u64,
    /// Each way of reducing; bytes are those of all elements.
    pub cases: Vec<CaseRow>,
}

/// What each dtype of FSDP's mixed precision does.
#[derive(Clone, Debug, Serialize)]
pub struct FsdpRow {
    /// What gradients are made in.
    pub param_dtype: &'static str,
    /// What they are reduced in.
    pub reduce_dtype: &'static str,
    /// What buffers are kept in.
    pub buffer_dtype: &'static str,
    /// Error with gradients made in `param_dtype` and reduced in float32.
    pub param_error: Option<Num>,
    /// Error with gradients made in `param_dtype` and reduced in `reduce_dtype`.
    pub error: Option<Num>,
    /// Elements whose mean became Inf or NaN.
    pub overflow: u64,
    /// Gradients that became zero before they were added.
    pub lost: u64,
    /// Gradients that are made zero by `param_dtype`, of all ranks.
    pub lost_in_param: u64,
    /// What gradients, and then the sum, are divided by.
    pub divided_by: (Num, Num),
    /// Bytes that a rank sends for the gradients.
    pub gradient_bytes: Num,
    /// Bytes that a rank sends for the parameters: gathered before the forward and the backward pass.
    pub parameter_bytes: Num,
}

impl ReduceReport {
    /// A report without tensors so far.
    pub fn new(plan: &ReducePlan, inputs: Vec<String>, ranks: Vec<u64>, options: Options) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "reduce",
            options,
            definitions: DEFINITIONS,
            inputs,
            ranks,
            elements: 0,
            total: Vec::new(),
            tensors: Vec::new(),
            worlds: Vec::new(),
            sampled: 0,
            fsdp: None,
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
            plan: plan.clone(),
            sum: TensorReductions::default(),
        }
    }

    /// Adds a tensor.
    pub fn push(&mut self, name: &str, info: &TensorInfo, reductions: &TensorReductions) {
        self.sum.merge(reductions);
        self.elements += info.elements;
        self.tensors.push(TensorRow {
            name: name.to_owned(),
            shape: info.shape.clone(),
            dtype: info.dtype.name().to_owned(),
            elements: info.elements,
            amax: Num(reductions.amax.into()),
            cases: self.case_rows(&reductions.cases, info.elements),
        });
    }

    fn case_rows(&self, tallies: &[ErrorTally], elements: u64) -> Vec<CaseRow> {
        let rows = self.plan.rows().iter();
        rows.filter_map(|(case, at)| Some(CaseRow::new(case, tallies.get(*at)?, self.ranks.len(), elements)))
            .collect()
    }

    /// Adds estimates for other numbers of ranks, `sampled` elements each.
    pub fn worlds(&mut self, plan: &ReducePlan, worlds: &[usize], tallies: &[Vec<ErrorTally>], sampled: u64) {
        self.sampled = sampled;
        let row = |(&ranks, tallies): (&usize, &Vec<ErrorTally>)| {
            let cases = plan.world_cases().iter().zip(tallies);
            let cases = cases.map(|(case, tally)| CaseRow::new(case, tally, ranks, self.elements)).collect();
            WorldRow { ranks: ranks as u64, cases }
        };
        self.worlds = worlds.iter().zip(tallies).map(row).collect();
    }

    /// Adds up, and says what the figures mean.
    pub fn conclude(&mut self) {
        self.total = self.case_rows(&self.sum.cases, self.elements);
        self.fsdp = self.fsdp_row();
        self.findings = findings(self);
    }

    fn fsdp_row(&self) -> Option<FsdpRow> {
        let plan = self.plan.fsdp()?;
        let ranks = self.ranks.len();
        let (single, asked) = (self.sum.cases.get(plan.in_float32)?, self.sum.cases.get(plan.as_asked)?);
        let case = self.plan.cases().get(plan.as_asked)?;
        let (before, after) = case.divide.factors(ranks);
        let share = (ranks as f64 - 1.0) / ranks as f64;
        Some(FsdpRow {
            param_dtype: plan.param.name,
            reduce_dtype: plan.reduce.name,
            buffer_dtype: plan.buffer.name,
            param_error: single.error().map(Num),
            error: asked.error().map(Num),
            overflow: asked.overflow,
            lost: asked.lost,
            lost_in_param: single.lost,
            divided_by: (Num(before.into()), Num(after.into())),
            gradient_bytes: Num(case.bytes(ranks) * self.elements as f64),
            parameter_bytes: Num(2.0 * share * f64::from(plan.param.bits) / 8.0 * self.elements as f64),
        })
    }

    /// The names of the formats, in the order asked for.
    pub(super) fn formats(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.total {
            if !names.contains(&row.format) {
                names.push(row.format);
            }
        }
        names
    }

    /// Errors relative to the exact mean of all elements, of every tensor, in the first case of `format`.
    pub(super) fn base<'r>(rows: &'r [CaseRow], format: &str) -> Option<&'r CaseRow> {
        rows.iter().find(|row| row.format == format)
    }
}
