//! The figures of a `histogram` report, under the names that its JSON uses.

use serde::Serialize;
use serde::ser::SerializeMap;

use super::super::number::Num;
use super::super::{SCHEMA_VERSION, Tool};
use super::definitions::DEFINITIONS;
use super::findings;
use super::metric::{Metric, Sort};
use crate::cast::{CastPlan, Rounding};
use crate::stats::{Binades, FormatStats, SourceStats, TensorStats};
use crate::tensor::TensorInfo;

/// Everything that `histogram` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct HistogramReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `histogram`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// The formats cast to, with their limits.
    pub formats: Vec<FormatRow>,
    /// The files read.
    pub inputs: Vec<Input>,
    /// All tensors taken together.
    pub total: Subject,
    /// Each tensor, in the order asked for.
    pub tensors: Vec<Subject>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was skipped or assumed.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Factor applied to every element before the cast.
    pub scale: f32,
    /// Software stack whose casts these are, if one was named.
    pub profile: Option<&'static str>,
    /// Rounding mode.
    pub rounding: &'static str,
    /// Seed of stochastic rounding.
    pub seed: u64,
    /// Whether subnormal results become zero.
    pub ftz: bool,
    /// Whether subnormal inputs are taken for zero.
    pub daz: bool,
    /// Overflow policy asked for; `default` leaves it to each format.
    pub overflow: &'static str,
    /// Element type that the stored bytes were read as, if not the one in the file.
    pub dtype: Option<String>,
    /// Only tensors whose name matches.
    pub tensor: Option<String>,
    /// No tensors whose name matches.
    pub exclude: Option<String>,
    /// What the tensors are sorted by in tables.
    #[serde(serialize_with = "sort_name")]
    pub sort: Sort,
}

impl Options {
    /// A cast of x·`scale` to nearest even, with nothing left out.
    pub fn at_scale(scale: f32) -> Self {
        Self {
            scale,
            profile: None,
            rounding: Rounding::NearestEven.name(),
            seed: 0,
            ftz: false,
            daz: false,
            overflow: "default",
            dtype: None,
            tensor: None,
            exclude: None,
            sort: Sort::Worst(Metric::Lost),
        }
    }
}

/// A format and its limits. With `options.scale` other than 1 the limits apply to x·scale.
#[derive(Clone, Debug, Serialize)]
pub struct FormatRow {
    /// Canonical name.
    pub name: &'static str,
    /// Width in bits.
    pub bits: u32,
    /// Significand bits including the implicit one.
    pub precision_bits: u32,
    /// Exponent bias.
    pub exponent_bias: i32,
    /// Overflow policy in force.
    pub overflow: &'static str,
    /// Largest finite number.
    pub max_finite: Num,
    /// Smallest normal number.
    pub min_normal: Num,
    /// Smallest subnormal number.
    pub min_subnormal: Option<Num>,
    /// Magnitudes up to and including this become zero.
    pub flush_threshold: Option<Num>,
    /// Magnitudes above this, or from it on, overflow.
    pub overflow_threshold: Num,
    /// Whether the threshold itself overflows.
    pub overflow_includes_threshold: bool,
    /// Where the format is defined.
    pub source: &'static str,
    /// The cast itself, for renderers.
    #[serde(skip)]
    pub plan: CastPlan,
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// Path as given.
    pub path: String,
    /// Facts recorded in the file, such as the step.
    #[serde(serialize_with = "as_map")]
    pub metadata: Vec<(String, String)>,
    /// Tensors taken from it.
    pub tensors: u64,
    /// Elements taken from it.
    pub elements: u64,
    /// Bytes that these take.
    pub bytes: u64,
}

/// A tensor, or all of them together.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// Index into `inputs`; `null` for the total.
    pub input: Option<usize>,
    /// Name in the dump.
    pub name: String,
    /// Extent of each dimension.
    pub shape: Vec<u64>,
    /// Stored element type.
    pub dtype: String,
    /// Number of elements.
    pub elements: u64,
    /// NaN elements.
    pub nan: u64,
    /// +Inf elements.
    pub positive_inf: u64,
    /// −Inf elements.
    pub negative_inf: u64,
    /// ±0 elements.
    pub zero: u64,
    /// Finite nonzero elements: the denominator of every `*_pct`.
    pub nonzero_finite: u64,
    /// Largest finite magnitude.
    pub amax: Option<Num>,
    /// Smallest nonzero magnitude.
    pub amin: Option<Num>,
    /// log2(amax / amin).
    pub dynamic_range_log2: Option<Num>,
    /// Mean of the finite elements.
    pub mean: Option<Num>,
    /// Root mean square of the finite elements.
    pub rms: Option<Num>,
    /// Number of elements by exponent and sign: rows of [exponent, negative, positive].
    #[serde(serialize_with = "binade_rows")]
    pub binades: Binades,
    /// What each format does, in the order of `formats`.
    pub formats: Vec<Cell>,
}

/// What one format does to one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The format's name.
    pub format: &'static str,
    /// Elements flushed to zero.
    pub underflow: u64,
    /// Elements that become subnormal.
    pub subnormal: u64,
    /// Elements that become normal numbers.
    pub normal: u64,
    /// Elements that overflow.
    pub overflow: u64,
    /// Finite elements with |x·scale| above the largest finite number, before rounding.
    pub exceeds_max: u64,
    /// Percent of the finite nonzero elements.
    pub underflow_pct: Option<Num>,
    /// Percent of all elements.
    pub underflow_pct_of_all: Option<Num>,
    /// Percent of the finite nonzero elements.
    pub subnormal_pct: Option<Num>,
    /// Percent of all elements.
    pub subnormal_pct_of_all: Option<Num>,
    /// Percent of the finite nonzero elements.
    pub overflow_pct: Option<Num>,
    /// Percent of all elements.
    pub overflow_pct_of_all: Option<Num>,
    /// Mean squared error.
    pub mse: Option<Num>,
    /// ‖x − q/s‖ / ‖x‖.
    pub rel_l2: Option<Num>,
    /// Signal to quantisation noise in dB.
    pub sqnr_db: Option<Num>,
    /// Largest absolute error.
    pub max_abs: Option<Num>,
    /// Largest relative error.
    pub max_rel: Option<Num>,
    /// Mean relative error.
    pub mean_rel: Option<Num>,
    /// Finite elements stored as Inf or NaN: they are no part of the error figures.
    pub left_out_of_errors: u64,
    /// log2(max_finite / (scale·amax)): bits that the largest element is away from the limit.
    pub headroom_log2: Option<Num>,
}

impl HistogramReport {
    /// An empty report for these casts; subjects are added with [`push`](Self::push).
    pub fn new(casts: &[CastPlan], options: Options) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "histogram",
            options,
            definitions: DEFINITIONS,
            formats: casts.iter().map(FormatRow::new).collect(),
            inputs: Vec::new(),
            total: Subject::new(None, "all tensors", &[], "", &TensorStats::default(), casts),
            tensors: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a tensor of input number `input`.
    pub fn push(&mut self, input: usize, info: &TensorInfo, stats: &TensorStats) {
        let casts: Vec<_> = self.formats.iter().map(|row| row.plan).collect();
        let subject = Subject::new(Some(input), &info.name, &info.shape, info.dtype.name(), stats, &casts);
        self.tensors.push(subject);
        if let Some(input) = self.inputs.get_mut(input) {
            input.tensors += 1;
            input.elements += info.elements;
            input.bytes += info.bytes();
        }
    }

    /// Sets the figures of all tensors together, and the sentences that follow from them.
    pub fn conclude(&mut self, total: &TensorStats) {
        let casts: Vec<_> = self.formats.iter().map(|row| row.plan).collect();
        self.total = Subject::new(None, "all tensors", &[], "", total, &casts);
        self.findings = findings::findings(self, &total.source);
    }
}

impl Input {
    /// A file from which nothing has been taken yet.
    pub fn new(path: String, metadata: Vec<(String, String)>) -> Self {
        Self { path, metadata, tensors: 0, elements: 0, bytes: 0 }
    }
}

impl FormatRow {
    fn new(plan: &CastPlan) -> Self {
        let format = &plan.target;
        Self {
            name: format.name,
            bits: format.bits,
            precision_bits: format.precision,
            exponent_bias: format.bias,
            overflow: plan.overflow.name(),
            max_finite: Num(format.max_finite()),
            min_normal: Num(format.min_normal()),
            min_subnormal: format.min_subnormal().map(Num),
            flush_threshold: format.flush_threshold().map(Num),
            overflow_threshold: Num(format.overflow_threshold()),
            overflow_includes_threshold: format.overflow_includes_tie(),
            source: format.source,
            plan: *plan,
        }
    }
}

impl Subject {
    fn new(
        input: Option<usize>,
        name: &str,
        shape: &[u64],
        dtype: &str,
        stats: &TensorStats,
        casts: &[CastPlan],
    ) -> Self {
        let source = &stats.source;
        Self {
            input,
            name: name.to_owned(),
            shape: shape.to_vec(),
            dtype: dtype.to_owned(),
            elements: source.elements,
            nan: source.nan,
            positive_inf: source.positive_inf,
            negative_inf: source.negative_inf,
            zero: source.zero,
            nonzero_finite: source.nonzero_finite(),
            amax: source.amax().map(Num),
            amin: source.amin().map(Num),
            dynamic_range_log2: source.dynamic_range_log2().map(Num),
            mean: source.mean().map(Num),
            rms: source.rms().map(Num),
            binades: source.binades.clone(),
            formats: casts
                .iter()
                .zip(&stats.formats)
                .map(|(plan, format)| Cell::new(plan, source, format))
                .collect(),
        }
    }
}

impl Cell {
    fn new(plan: &CastPlan, source: &SourceStats, stats: &FormatStats) -> Self {
        let classes = &stats.classes;
        let pct = |part: u64, whole: u64| (whole > 0).then(|| Num(100.0 * part as f64 / whole as f64));
        let of_nonzero = |part| pct(part, source.nonzero_finite());
        let of_all = |part| pct(part, source.elements);
        let scaled_amax = source.amax * f64::from(plan.scale);
        Self {
            format: plan.target.name,
            underflow: classes.underflow,
            subnormal: classes.subnormal,
            normal: classes.normal,
            overflow: classes.overflow,
            exceeds_max: stats.exceeds_max,
            underflow_pct: of_nonzero(classes.underflow),
            underflow_pct_of_all: of_all(classes.underflow),
            subnormal_pct: of_nonzero(classes.subnormal),
            subnormal_pct_of_all: of_all(classes.subnormal),
            overflow_pct: of_nonzero(classes.overflow),
            overflow_pct_of_all: of_all(classes.overflow),
            mse: stats.errors.mse().map(Num),
            rel_l2: stats.errors.rel_l2().map(Num),
            sqnr_db: stats.errors.sqnr_db().map(Num),
            max_abs: stats.errors.max_abs().map(Num),
            max_rel: stats.errors.max_rel().map(Num),
            mean_rel: stats.errors.mean_rel().map(Num),
            left_out_of_errors: stats.errors.left_out,
            headroom_log2: (scaled_amax > 0.0)
                .then(|| Num(libm::log2(plan.target.max_finite() / scaled_amax))),
        }
    }
}

pub(in crate::report) fn as_map<S, K, V>(pairs: &[(K, V)], serializer: S) -> Result<S::Ok, S::Error>
where
    S: serde::Serializer,
    K: Serialize,
    V: Serialize,
{
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (key, value) in pairs {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

fn sort_name<S: serde::Serializer>(sort: &Sort, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(sort.name())
}

fn binade_rows<S: serde::Serializer>(binades: &Binades, serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_seq(binades.iter().map(|(exponent, binade)| (exponent, binade.negative, binade.positive)))
}
