//! The figures of an `fp8` report, under the names that its JSON uses.

use serde::Serialize;

use super::cell::{Cell, saturated, share, spoiled};
use super::definitions::{DEFINITIONS, SAME};
use super::findings::findings;
use crate::format::BlockSpec;
use crate::report::histogram::{Input, Place, as_map};
use crate::report::number::Num;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::scaler::fp8::{Recipe, Role};
use crate::stats::{BlockStats, FormatStats, SourceStats};
use crate::tensor::TensorInfo;

/// Everything that `fp8` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct Fp8Report {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `fp8`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// The one sentence about multiplying and dividing.
    pub formulation: &'static str,
    /// The files read.
    pub inputs: Vec<Input>,
    /// Each recipe over all tensors and steps.
    pub recipes: Vec<RecipeRow>,
    /// Each step of each tensor.
    pub tensors: Vec<TensorRow>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was skipped or assumed.
    pub notices: Vec<String>,
    /// What could not be read or cast.
    pub problems: Vec<String>,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Element format asked for; `null` leaves it to each recipe.
    pub format: Option<&'static str>,
    /// Role that was said of all tensors.
    pub role: Option<&'static str>,
    /// Names of gradients.
    pub gradients: String,
    /// Names of activations.
    pub activations: String,
    /// Steps in the history of delayed scaling.
    pub history: usize,
    /// The delayed scale is divided by 2^margin.
    pub margin: i32,
    /// What is taken from the history.
    pub amax_algo: &'static str,
    /// Loss scale that the stored values were divided by first.
    pub unscale: Option<Num>,
    /// What tables show of each tensor, and are sorted by.
    pub sort: Metric,
}

/// A figure of each tensor and recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Signal to quantisation noise ratio.
    Sqnr,
    /// Share of the nonzero values that become zero.
    Underflow,
    /// Number of values beyond the largest number.
    Saturated,
}

/// Every metric by name.
pub const METRICS: &[(&str, Metric, &str)] = &[
    ("sqnr", Metric::Sqnr, "SQNR in dB, least first"),
    ("underflow", Metric::Underflow, "stored as zero, % of the nonzero values"),
    ("saturated", Metric::Saturated, "number of values beyond the largest number"),
];

/// A recipe over all that was read.
#[derive(Clone, Debug, Serialize)]
pub struct RecipeRow {
    /// Name.
    pub recipe: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The block formats that it came to, by role.
    pub formats: Vec<&'static str>,
    /// Bits an element, with its share of a block's scale.
    pub bits_per_element: Num,
    /// Tensors, each step for itself.
    pub tensors: u64,
    /// Finite nonzero elements.
    pub nonzero_finite: u64,
    /// Elements stored as zero.
    pub underflow: u64,
    /// As a share.
    pub underflow_pct: Option<Num>,
    /// Elements stored as the largest number because they round beyond it.
    pub saturated: u64,
    /// Finite nonzero elements without a number, since their block holds an Inf or NaN.
    pub spoiled: u64,
    /// Signal to quantisation noise ratio.
    pub sqnr_db: Option<Num>,
    /// The least of any tensor.
    pub worst_sqnr_db: Option<Num>,
    /// Position in `tensors` of that one.
    pub worst: Option<usize>,
    #[serde(skip)]
    total: FormatStats,
}

/// One step of one tensor.
#[derive(Clone, Debug, Serialize)]
pub struct TensorRow {
    /// Index into `inputs`.
    pub input: usize,
    /// Name, the same in all steps.
    pub name: String,
    /// Number of the series of steps that it belongs to.
    pub series: usize,
    /// Training step, if known.
    pub step: Option<u64>,
    /// The ranks added up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u64>,
    /// What it is in training.
    pub role: &'static str,
    /// Extent of each dimension.
    pub shape: Vec<u64>,
    /// Stored element type, empty where only magnitudes are known.
    pub dtype: String,
    /// Number of elements.
    pub elements: u64,
    /// NaN elements.
    pub nan: u64,
    /// ±Inf elements.
    pub inf: u64,
    /// ±0 elements.
    pub zero: u64,
    /// Finite nonzero elements: the denominator of every `*_pct`.
    pub nonzero_finite: u64,
    /// Largest finite magnitude.
    pub amax: Option<Num>,
    /// log2(amax / smallest nonzero magnitude).
    pub dynamic_range_log2: Option<Num>,
    /// What each recipe does, in the order of `recipes`.
    pub recipes: Vec<Cell>,
}

/// Where a tensor is from.
pub struct Origin<'a> {
    /// Index into `inputs`.
    pub input: usize,
    /// Number of its series.
    pub series: usize,
    /// Its step and ranks; the name is that of the series.
    pub place: Place,
    /// Its role.
    pub role: &'static str,
    /// Its shape and type; `None` if only its largest magnitude is known.
    pub info: Option<&'a TensorInfo>,
    /// Largest finite magnitude.
    pub amax: Option<f64>,
}

impl Fp8Report {
    /// An empty report.
    pub fn new(recipes: &[&'static Recipe], options: Options) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "fp8",
            options,
            definitions: DEFINITIONS,
            formulation: SAME,
            inputs: Vec::new(),
            recipes: recipes.iter().map(|recipe| RecipeRow::new(recipe)).collect(),
            tensors: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds one step of a tensor; `cells` are in the order of the recipes.
    pub fn push(
        &mut self,
        origin: Origin<'_>,
        source: &SourceStats,
        cells: Vec<Cell>,
        stats: &[Option<&BlockStats>],
    ) {
        let Origin { input, series, place, role, info, amax } = origin;
        for ((row, cell), stats) in self.recipes.iter_mut().zip(&cells).zip(stats) {
            row.add(self.tensors.len(), source, cell, *stats);
        }
        self.tensors.push(TensorRow {
            input,
            name: place.name,
            series,
            step: place.step,
            ranks: if place.ranks.len() > 1 { place.ranks } else { Vec::new() },
            role,
            shape: info.map_or(Vec::new(), |info| info.shape.clone()),
            dtype: info.map_or(String::new(), |info| info.dtype.name().to_owned()),
            elements: source.elements,
            nan: source.nan,
            inf: source.inf(),
            zero: source.zero,
            nonzero_finite: source.nonzero_finite(),
            amax: amax.map(Num),
            dynamic_range_log2: source.dynamic_range_log2().map(Num),
            recipes: cells,
        });
    }

    /// Writes the sentences once all tensors are in.
    pub fn conclude(&mut self) {
        self.findings = findings(self);
    }

    /// Whether only the largest magnitudes are known, as of traces.
    pub(super) fn has_magnitudes_only(&self) -> bool {
        self.tensors.iter().all(|tensor| tensor.dtype.is_empty())
    }

    /// Whether some tensor comes in several steps.
    pub fn has_series(&self) -> bool {
        self.tensors.windows(2).any(|pair| pair[0].series == pair[1].series)
    }
}

impl RecipeRow {
    fn new(recipe: &Recipe) -> Self {
        // Whatever the role, the width is the same.
        let bits = |spec: BlockSpec| {
            let share = spec.shape.elements().map_or(0.0, |n| f64::from(spec.scale.bits) / f64::from(n));
            f64::from(spec.element.bits) + share
        };
        let bits = recipe.block(Role::Weight, None).map_or(f64::NAN, bits);
        Self {
            recipe: recipe.name,
            about: recipe.about,
            formats: Vec::new(),
            bits_per_element: Num(bits),
            tensors: 0,
            nonzero_finite: 0,
            underflow: 0,
            underflow_pct: None,
            saturated: 0,
            spoiled: 0,
            sqnr_db: None,
            worst_sqnr_db: None,
            worst: None,
            total: FormatStats::default(),
        }
    }

    /// Whether all finite nonzero values come back as no number.
    pub(super) fn is_spoiled(&self) -> bool {
        self.nonzero_finite > 0 && self.spoiled == self.nonzero_finite
    }

    fn add(&mut self, number: usize, source: &SourceStats, cell: &Cell, stats: Option<&BlockStats>) {
        let Some(stats) = stats else { return };
        if !self.formats.contains(&cell.format) {
            self.formats.push(cell.format);
        }
        self.tensors += 1;
        self.nonzero_finite += source.nonzero_finite();
        self.total.merge(&stats.format);
        self.underflow = self.total.classes.underflow;
        self.underflow_pct = share(self.underflow, self.nonzero_finite);
        self.saturated = saturated(&self.total);
        self.spoiled = spoiled(&self.total);
        self.sqnr_db = self.total.errors.sqnr_db().map(Num);
        if let Some(sqnr) = cell.sqnr_db
            && self.worst_sqnr_db.is_none_or(|worst| sqnr < worst)
        {
            (self.worst_sqnr_db, self.worst) = (Some(sqnr), Some(number));
        }
    }
}
