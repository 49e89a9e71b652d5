//! The figures of a `histogram` report, under the names that its JSON uses.

use serde::Serialize;
use serde::ser::SerializeMap;

use super::super::number::Num;
use super::super::{SCHEMA_VERSION, Tool};
use super::cell::{Cell, Worst};
use super::definitions::DEFINITIONS;
use super::findings;
use super::metric::{Metric, Sort};
use super::row::FormatRow;
use crate::cast::{Rounding, Target};
use crate::stats::blocks::WORST;
use crate::stats::{Binades, BlockStats, FormatStats, TensorStats};
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
    /// Each tensor, in the order of the files; or each step or rank.
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
    #[serde(serialize_with = "exactly")]
    pub scale: f32,
    /// Software stack whose casts these are, if one was named.
    pub profile: Option<&'static str>,
    /// Rounding mode.
    pub rounding: &'static str,
    /// Seed of stochastic rounding.
    pub seed: u64,
    /// Random bits of stochastic rounding, if not as many as the hardware takes for the format.
    pub random_bits: Option<u32>,
    /// Whether subnormal results become zero.
    pub ftz: bool,
    /// Whether subnormal inputs are taken for zero.
    pub daz: bool,
    /// Overflow policy asked for; `default` leaves it to each format.
    pub overflow: &'static str,
    /// Element type that the stored bytes were read as, if not the one in the file.
    pub dtype: Option<String>,
    /// Loss scale that the stored values were divided by first.
    #[serde(serialize_with = "exactly_if_any")]
    pub unscale: Option<f32>,
    /// Only tensors whose name matches.
    pub tensor: Option<String>,
    /// No tensors whose name matches.
    pub exclude: Option<String>,
    /// Only these training steps.
    pub steps: Option<String>,
    /// Only these ranks.
    pub ranks: Option<String>,
    /// What `tensors` lists: each `tensor` with all its ranks together, or each training `step` or `rank` with all
    /// that it has.
    pub by: &'static str,
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
            random_bits: None,
            ftz: false,
            daz: false,
            overflow: "default",
            dtype: None,
            unscale: None,
            tensor: None,
            exclude: None,
            steps: None,
            ranks: None,
            by: "tensor",
            sort: Sort::Worst(Metric::Lost),
        }
    }
}

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// Path as given.
    pub path: String,
    /// Training step, if its path or the file says.
    pub step: Option<u64>,
    /// Rank of the process that wrote it, if its path says.
    pub rank: Option<u64>,
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

/// What a row adds up.
#[derive(Clone, Debug)]
pub struct Place {
    /// The tensor's name, whatever the rank.
    pub name: String,
    /// Training step, if known.
    pub step: Option<u64>,
    /// Ranks, in order.
    pub ranks: Vec<u64>,
}

/// A tensor, or several together.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// Index into `inputs`; `null` for what is added up.
    pub input: Option<usize>,
    /// Name in the dump.
    pub name: String,
    /// Training step, if known; `null` for the total.
    pub step: Option<u64>,
    /// Rank, if known; `null` for what is added up from several.
    pub rank: Option<u64>,
    /// The ranks that a tensor is added up from. What several have written with the same bytes is counted once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u64>,
    /// Extent of each dimension; `null` for what is added up from several.
    pub shape: Option<Vec<u64>>,
    /// Stored element type; `null` for what is added up from several.
    pub dtype: Option<String>,
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

impl HistogramReport {
    /// An empty report for these casts; subjects are added with [`push`](Self::push).
    pub fn new(targets: impl IntoIterator<Item = impl Into<Target>>, options: Options) -> Self {
        let targets: Vec<Target> = targets.into_iter().map(Into::into).collect();
        let blocks = vec![BlockStats::default(); targets.len()];
        let nothing =
            TensorStats { formats: vec![FormatStats::default(); targets.len()], ..Default::default() };
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "histogram",
            options,
            definitions: DEFINITIONS,
            formats: targets.iter().map(FormatRow::new).collect(),
            inputs: Vec::new(),
            total: Subject::new(None, (nothing, &blocks), targets),
            tensors: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a tensor of input number `input`, with the statistics of the plain and of the block casts.
    pub fn push(&mut self, input: usize, info: &TensorInfo, stats: TensorStats, blocks: &[BlockStats]) {
        let mut subject = Subject::new(Some(info), (stats, blocks), self.targets());
        subject.input = Some(input);
        let place = self.inputs.get(input).map(|input| (input.step, input.rank));
        (subject.step, subject.rank) = place.unwrap_or_default();
        self.tensors.push(subject);
        self.count(input, info);
    }

    /// Adds several tensors as one row: all that is at `place`, which were counted one by one. `info` is given if
    /// they are of one shape and type.
    pub fn push_sum(
        &mut self,
        place: Place,
        info: Option<&TensorInfo>,
        stats: TensorStats,
        blocks: &[BlockStats],
    ) {
        let subject = Subject::new(info, (stats, blocks), self.targets());
        let Place { name, step, ranks } = place;
        self.tensors.push(match (self.options.by, step, ranks.first()) {
            ("step", Some(step), _) => Subject { name: format!("step {step}"), step: Some(step), ..subject },
            ("rank", _, Some(&rank)) => Subject { name: format!("rank {rank}"), rank: Some(rank), ..subject },
            _ => Subject { name, step, ranks, ..subject },
        });
    }

    /// Whether the rows are steps or ranks.
    pub fn is_by_place(&self) -> bool {
        self.options.by != "tensor"
    }

    /// Counts a tensor of input number `input` as read.
    pub fn count(&mut self, input: usize, info: &TensorInfo) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.count(info);
        }
    }

    /// Sets the figures of all tensors together, and the sentences that follow from them.
    pub fn conclude(&mut self, total: &TensorStats, blocks: &[BlockStats]) {
        self.total = Subject::new(None, (total.clone(), blocks), self.targets());
        for index in 0..self.formats.len() {
            let worst = self.worst(index);
            if let Some(blocks) = self.total.formats.get_mut(index).and_then(|cell| cell.blocks.as_mut()) {
                blocks.worst = worst;
            }
        }
        self.findings = findings::findings(self, &total.source);
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        self.formats.iter().map(|row| row.target)
    }

    /// The worst blocks of all tensors for format number `format`. Of equally bad ones the first is kept.
    fn worst(&self, format: usize) -> Vec<Worst> {
        let named = |tensor: &Subject| {
            let blocks = tensor.formats.get(format).and_then(|cell| cell.blocks.as_ref());
            let worst = blocks.map_or(&[][..], |blocks| &blocks.worst).iter().cloned();
            let (input, step, name) = (tensor.input, tensor.step, tensor.name.clone());
            let named = move |block| Worst { input, step, tensor: Some(name.clone()), ..block };
            worst.map(named).collect::<Vec<_>>()
        };
        let mut worst: Vec<Worst> = self.tensors.iter().flat_map(named).collect();
        worst.sort_by(|a, b| b.rel_l2.0.total_cmp(&a.rel_l2.0));
        worst.truncate(WORST);
        worst
    }
}

impl Input {
    /// A file from which nothing has been taken yet.
    pub fn new(path: String, metadata: Vec<(String, String)>) -> Self {
        Self { path, step: None, rank: None, metadata, tensors: 0, elements: 0, bytes: 0 }
    }

    /// Counts a tensor taken from it.
    pub fn count(&mut self, info: &TensorInfo) {
        self.tensors += 1;
        self.elements += info.elements;
        self.bytes += info.bytes();
    }
}

impl Subject {
    /// Its number, if it is a step or a rank, as `by` says.
    pub(super) fn number(&self, by: &str) -> Option<u64> {
        match by {
            "step" => self.step,
            "rank" => self.rank,
            _ => None,
        }
    }

    /// A tensor, or without its facts all together.
    fn new(
        info: Option<&TensorInfo>,
        (stats, blocks): (TensorStats, &[BlockStats]),
        targets: impl IntoIterator<Item = Target>,
    ) -> Self {
        let source = &stats.source;
        let shape = info.map_or(&[][..], |info| &info.shape);
        Self {
            input: None,
            name: info.map_or("all tensors", |info| &info.name).to_owned(),
            step: None,
            rank: None,
            ranks: Vec::new(),
            shape: info.map(|info| info.shape.clone()),
            dtype: info.map(|info| info.dtype.name().to_owned()),
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
            formats: Cell::row(targets, shape, source, &stats.formats, blocks),
            binades: stats.source.binades,
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

/// The f32 as it is, with all its decimals: from fewer the figures cannot be computed again.
fn exactly<S: serde::Serializer>(scale: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((*scale).into())
}

fn exactly_if_any<S: serde::Serializer>(scale: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
    scale.map(f64::from).serialize(serializer)
}

fn sort_name<S: serde::Serializer>(sort: &Sort, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(sort.name())
}

fn binade_rows<S: serde::Serializer>(binades: &Binades, serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_seq(binades.iter().map(|(exponent, binade)| (exponent, binade.negative, binade.positive)))
}
