//! The figures of an `updates` report, under the names that its JSON uses.

use serde::Serialize;

use super::findings::findings;
use crate::report::histogram::as_map;
use crate::report::number::Num;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::tensor::TensorInfo;
use crate::training::Stored;
use crate::training::updates::{FormatUpdates, Tally, TensorUpdates, UpdatePlan, Way};
use crate::training::updates::{Ratios, Step};

/// What the figures mean.
const DEFINITIONS: &[(&str, &str)] = &[
    ("update", "the wanted change of a weight: -lr*u, and the decay, as torch computes it in float32"),
    ("unmoved_pct", "of the updates that are not zero: weights that are where they were"),
    ("off_pct", "of these: weights that moved by less than half or more than one and a half of the update"),
    ("along", "<applied, wanted> / |wanted|^2: how much of the step is made, in its own direction"),
    ("effective_lr", "|applied| / |wanted|: the effective learning rate, of the one asked for"),
    ("error", "|applied - wanted| / |wanted|"),
    ("nonfinite", "weights that have become Inf or NaN; ratios with one of them are undefined"),
    ("mean_relative_error", "mean of |applied - wanted| / |wanted| over the elements"),
    ("ratio_log2", "log2(|update| / ulp(weight)); below -1 rounding to nearest leaves the weight"),
    (
        "lr_for_half",
        "smallest learning rate at which half of the updates reach half an ulp, interpolated in bins of 3 %",
    ),
    ("ulp", "distance from |weight| to the next larger number of the format"),
];

/// Everything that `updates` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct UpdatesReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `updates`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// Files read.
    pub inputs: Vec<String>,
    /// The step that is computed, in words.
    pub rule: String,
    /// All tensors together.
    pub total: TensorRow,
    /// Each tensor.
    pub tensors: Vec<TensorRow>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was concluded or left out.
    pub notices: Vec<String>,
    /// What could not be read or computed.
    pub problems: Vec<String>,
    #[serde(skip)]
    formats: Vec<Stored>,
    #[serde(skip)]
    marks: Vec<u64>,
    #[serde(skip)]
    sum: TensorUpdates,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Learning rate; `null` for that of each parameter group.
    pub lr: Option<f64>,
    /// How often the update is repeated.
    pub steps: u64,
    /// Seed of stochastic rounding.
    pub seed: u64,
    /// Its random bits; `null` for those of the hardware.
    pub random_bits: Option<u32>,
    /// What gradients were divided by.
    pub unscale: Option<f64>,
    /// Only tensors that match.
    pub tensor: Option<String>,
    /// No tensors that match.
    pub exclude: Option<String>,
}

/// What becomes of the updates of a tensor, or of all.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TensorRow {
    /// Name of the weight; empty for all together.
    pub name: String,
    /// Shape; `null` for all together.
    pub shape: Option<Vec<u64>>,
    /// Stored type of the weight; `null` for all together.
    pub dtype: Option<String>,
    /// Elements.
    pub elements: u64,
    /// Learning rate; `null` where tensors have several.
    pub lr: Option<f64>,
    /// Weight decay; `null` where tensors have several.
    pub weight_decay: Option<f64>,
    /// In each format, float32 first.
    pub formats: Vec<FormatRow>,
}

/// What becomes of the updates in one format.
#[derive(Clone, Debug, Serialize)]
pub struct FormatRow {
    /// The format.
    pub format: &'static str,
    /// Its width.
    pub format_bits: u32,
    /// Weights beyond its largest number, which are left out.
    pub overflow: u64,
    /// Updates that are not zero.
    pub updates: u64,
    /// log2 of |update| / ulp(weight) that half of the updates are below.
    pub median_ratio_log2: Option<Num>,
    /// Smallest learning rate at which half of the updates reach half an ulp.
    pub lr_for_half: Option<Num>,
    /// The lowest e for which there are updates with |update| / ulp(weight) in [2^e, 2^(e+1)).
    pub first_ratio_log2: Option<i32>,
    /// Their number for this e and each one above.
    pub ratio_counts: Vec<u64>,
    /// Each way of keeping weights.
    pub ways: Vec<WayRow>,
}

/// What becomes of the updates in one way of keeping weights.
#[derive(Clone, Debug, Serialize)]
pub struct WayRow {
    /// The way.
    pub way: &'static str,
    /// Bits kept for a weight.
    pub bits: u32,
    /// The change after so many steps.
    pub after: Vec<Mark>,
}

/// The change of the weights after some steps.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Steps.
    pub steps: u64,
    /// Weights that are where they were, percent of the updates that are not zero.
    pub unmoved_pct: Option<Num>,
    /// Weights that moved, but far from the right amount, percent.
    pub off_pct: Option<Num>,
    /// Weights that have become Inf or NaN, which leave the figures below undefined; `null` on average.
    pub nonfinite: Option<u64>,
    /// How much of the wanted change is made, along it.
    pub along: Option<Num>,
    /// ‖applied‖ / ‖wanted‖.
    pub effective_lr: Option<Num>,
    /// ‖applied − wanted‖ / ‖wanted‖.
    pub error: Option<Num>,
    /// Mean of |applied − wanted| / |wanted|.
    pub mean_relative_error: Option<Num>,
}

impl Mark {
    fn new(steps: u64, tally: &Tally, way: Way) -> Self {
        let pct = |part: f64| (tally.nonzero > 0).then(|| Num(100.0 * part / tally.nonzero as f64));
        Self {
            steps,
            unmoved_pct: pct(tally.unmoved),
            off_pct: pct(tally.off),
            nonfinite: (way != Way::Expected).then_some(tally.nonfinite),
            along: tally.along().map(Num),
            effective_lr: tally.effective().map(Num),
            error: tally.error().map(Num),
            mean_relative_error: tally.mean_relative_error().map(Num),
        }
    }
}

impl UpdatesReport {
    /// A report without tensors so far.
    pub fn new(plan: &UpdatePlan, inputs: Vec<String>, rule: String, options: Options) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "updates",
            options,
            definitions: DEFINITIONS,
            inputs,
            rule,
            total: TensorRow::default(),
            tensors: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
            formats: plan.formats().to_vec(),
            marks: plan.marks().to_vec(),
            sum: TensorUpdates::default(),
        }
    }

    /// Adds a tensor.
    pub fn push(&mut self, name: &str, info: &TensorInfo, step: Step, updates: &TensorUpdates) {
        self.sum.merge(updates);
        self.tensors.push(TensorRow {
            name: name.to_owned(),
            shape: Some(info.shape.clone()),
            dtype: Some(info.dtype.name().to_owned()),
            elements: updates.elements,
            lr: Some(step.lr),
            weight_decay: Some(step.weight_decay),
            formats: self.format_rows(updates, Some(step.lr)),
        });
    }

    /// Adds up, and says what the figures mean.
    pub fn conclude(&mut self) {
        let common = |of: fn(&TensorRow) -> Option<f64>| {
            let first = self.tensors.first().and_then(of)?;
            self.tensors.iter().all(|row| of(row) == Some(first)).then_some(first)
        };
        let lr = common(|row| row.lr);
        self.total = TensorRow {
            elements: self.sum.elements,
            lr,
            weight_decay: common(|row| row.weight_decay),
            formats: self.format_rows(&self.sum, lr),
            ..TensorRow::default()
        };
        self.findings = findings(self);
    }

    /// The counts that the picture is drawn from, for each format.
    pub(super) fn ratios(&self) -> impl Iterator<Item = (&FormatRow, &Ratios)> {
        self.total.formats.iter().zip(self.sum.formats.iter().map(|format| &format.ratios))
    }

    fn format_rows(&self, updates: &TensorUpdates, lr: Option<f64>) -> Vec<FormatRow> {
        let formats = self.formats.iter().zip(&updates.formats);
        formats.map(|(stored, format)| self.format_row(stored, format, lr)).collect()
    }

    fn format_row(&self, stored: &Stored, updates: &FormatUpdates, lr: Option<f64>) -> FormatRow {
        let median = updates.ratios.median_log2();
        let octaves = updates.ratios.octaves();
        let format = &stored.format;
        let ways = updates.ways.iter().map(|(way, tallies)| WayRow {
            way: way.name(),
            bits: if *way == Way::Kahan { 2 * format.bits } else { format.bits },
            after: self
                .marks
                .iter()
                .zip(tallies)
                .map(|(&steps, tally)| Mark::new(steps, tally, *way))
                .collect(),
        });
        FormatRow {
            format: format.name,
            format_bits: format.bits,
            overflow: updates.overflow,
            updates: updates.ratios.total(),
            median_ratio_log2: median.map(Num),
            lr_for_half: lr.zip(median).map(|(lr, median)| Num(lr * libm::exp2(-1.0 - median))),
            first_ratio_log2: octaves.first().map(|(exponent, _)| *exponent),
            ratio_counts: octaves.iter().map(|(_, count)| *count).collect(),
            ways: ways.collect(),
        }
    }
}

impl FormatRow {
    /// A way, by its name.
    pub(super) fn way(&self, way: Way) -> Option<&WayRow> {
        self.ways.iter().find(|row| row.way == way.name())
    }

    /// The exponents e with updates, and the number of each.
    pub(super) fn octaves(&self) -> Vec<(i32, u64)> {
        self.first_ratio_log2
            .map_or(Vec::new(), |first| (first..).zip(self.ratio_counts.iter().copied()).collect())
    }

    /// The change after the first step, each result rounded to nearest even.
    pub(super) fn nearest(&self) -> Option<&Mark> {
        self.way(Way::Nearest)?.after.first()
    }
}
