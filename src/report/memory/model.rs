//! What the ledgers are in JSON.

use serde::Serialize;

use super::terminal::size;
use crate::report::number::{full, short};
use crate::report::{SCHEMA_VERSION, Tool};
use crate::training::memory::flow::{Stage, flow};
use crate::training::memory::{Element, Ledger, Model, Recompute, Sharding};

/// The ledgers of one or more recipes.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `memory`.
    pub command: &'static str,
    /// How many parameters there are.
    pub parameters: u64,
    /// Where they were counted; `null` if the number was given.
    pub counted: Option<Counted>,
    /// What ranks divide.
    pub sharding: &'static str,
    /// How many ranks there are.
    pub ranks: u64,
    /// The shape that activations are of.
    pub model: Option<Shape>,
    /// Each recipe.
    pub recipes: Vec<LedgerEntry>,
    /// What no formula knows.
    pub doubts: Vec<String>,
    /// What is odd about the files.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// What was found in files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counted {
    /// The files.
    pub files: Vec<String>,
    /// Tensors that are parameters.
    pub tensors: u64,
    /// Bytes that these take as they are stored.
    pub bytes: u64,
    /// Tensors, elements and bytes of optimizer states, which are not counted.
    pub states: (u64, u64, u64),
    /// The same of buffers.
    pub buffers: (u64, u64, u64),
    /// The same of integers and booleans.
    pub not_floats: (u64, u64, u64),
}

/// The shape of the model and the batch.
#[derive(Clone, Debug, Serialize)]
pub struct Shape {
    /// Width.
    pub hidden: u64,
    /// Layers.
    pub layers: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences on a rank.
    pub batch: u64,
    /// Attention heads.
    pub heads: Option<u64>,
    /// Words.
    pub vocabulary: Option<u64>,
    /// What is computed again.
    pub recompute: &'static str,
}

/// A recipe with its numbers.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerEntry {
    /// Its name.
    pub recipe: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where its terms come from.
    pub source: &'static str,
    /// Bytes a parameter that are kept, over all ranks.
    pub bytes_per_parameter: f64,
    /// Bytes that are kept for all parameters.
    pub kept_bytes: u64,
    /// Bytes that are kept on the rank that has most.
    pub rank_kept_bytes: u64,
    /// Bytes of activations on a rank; `null` without a shape.
    pub activation_bytes: Option<u64>,
    /// Everything on that rank at once, with what is there for a while.
    pub rank_peak_bytes: u64,
    /// The terms.
    pub terms: Vec<LineEntry>,
    /// The terms of the activations.
    pub activations: Vec<ActivationEntry>,
    /// The sum of the terms, in a sentence.
    pub sum: String,
    /// What the recipe leaves open.
    pub doubt: &'static str,
    /// The stages of a step, if asked for.
    pub flow: Vec<StageEntry>,
}

/// A term.
#[derive(Clone, Debug, Serialize)]
pub struct LineEntry {
    /// What it is for.
    pub part: &'static str,
    /// What it is.
    pub what: &'static str,
    /// How it is stored.
    pub dtype: &'static str,
    /// Bytes of each element.
    pub bytes_each: f64,
    /// Bytes for all parameters.
    pub bytes: u64,
    /// Whether ranks divide it.
    pub divided: bool,
    /// Bytes on the rank that has most.
    pub rank_bytes: u64,
    /// Whether it is there only for a part of the step.
    pub passing: bool,
}

/// A term of the activations.
#[derive(Clone, Debug, Serialize)]
pub struct ActivationEntry {
    /// What it is.
    pub what: &'static str,
    /// How it is computed.
    pub formula: String,
    /// Bytes on a rank.
    pub bytes: u64,
}

/// A stage of a step.
#[derive(Clone, Debug, Serialize)]
pub struct StageEntry {
    /// When.
    pub stage: &'static str,
    /// Which tensor.
    pub tensor: &'static str,
    /// Its type.
    pub dtype: &'static str,
    /// Bytes of each element.
    pub bytes_each: Option<f64>,
    /// Bytes on a rank, kept or sent.
    pub bytes: Option<u64>,
    /// How many ranks divide it, if any do.
    pub divided_by: Option<u64>,
    /// What is said about it.
    pub note: String,
}

impl From<Stage> for StageEntry {
    fn from(stage: Stage) -> Self {
        let Stage { stage, tensor, element, bytes_each, bytes, divided_by, note } = stage;
        Self { stage, tensor, dtype: element, bytes_each, bytes, divided_by, note }
    }
}

impl LedgerEntry {
    /// Of a ledger, with the stages of a step if they are wanted.
    pub fn new(ledger: &Ledger, with_flow: bool, reduce: Option<Element>) -> Self {
        let lines = ledger.lines.iter().map(|line| LineEntry {
            part: line.part.name(),
            what: line.what,
            dtype: line.element.name,
            bytes_each: line.element.bytes(),
            bytes: line.bytes,
            divided: line.divided,
            rank_bytes: line.rank_bytes,
            passing: line.passing,
        });
        let activations = ledger.activations.iter().map(|term| ActivationEntry {
            what: term.what,
            formula: term.formula.clone(),
            bytes: term.bytes,
        });
        let stages = if with_flow { flow(ledger, reduce) } else { Vec::new() };
        Self {
            recipe: ledger.recipe.name,
            about: ledger.recipe.about,
            source: ledger.recipe.source,
            bytes_per_parameter: ledger.bytes_per_parameter(),
            kept_bytes: ledger.kept(),
            rank_kept_bytes: ledger.kept_on_rank(),
            activation_bytes: (!ledger.activations.is_empty()).then(|| ledger.activation_bytes()),
            rank_peak_bytes: ledger.peak_on_rank(),
            terms: lines.collect(),
            activations: activations.collect(),
            sum: sum(ledger),
            doubt: ledger.recipe.doubt,
            flow: stages.into_iter().map(StageEntry::from).collect(),
        }
    }
}

/// `amp-bf16 keeps 2 + 2 + 4 + 4 + 4 = 16 bytes a parameter: 112 GB (104 GiB).`
fn sum(ledger: &Ledger) -> String {
    let kept = ledger.lines.iter().filter(|line| !line.passing);
    let terms: Vec<String> = kept.map(|line| full(line.element.bytes())).collect();
    let (each, bytes) = (full(ledger.bytes_per_parameter()), ledger.kept());
    let name = ledger.recipe.name;
    let whole = format!(
        "{name} keeps {} = {each} bytes a parameter: {} ({})",
        terms.join(" + "),
        decimal(bytes),
        size(bytes)
    );
    match ledger.ranks {
        1 => format!("{whole}."),
        ranks => {
            let on_rank = ledger.kept_on_rank();
            let (decimal, binary) = (decimal(on_rank), size(on_rank));
            format!("{whole}, of which each of {ranks} ranks has {decimal} ({binary}).")
        }
    }
}

/// A size in a decimal unit, as makers of GPUs and papers write it.
fn decimal(n: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| n as f64 >= *unit).unwrap_or((1e3, "kB"));
    format!("{} {name}", short(n as f64 / unit, 3))
}

/// What holds for every recipe.
const DOUBTS: &[&str] = &[
    "Not in it: what the allocator loses to fragments, the framework and the driver (about 1 GiB a GPU), workspaces of \
     matrix multiplications.",
];
const WITHOUT_SHAPE: &str =
    "Not in it: activations. --hidden, --layers, --seq, --batch and --heads add them by a formula.";
const COMMUNICATION: &str =
    "Not in it: buffers of communication; DDP's buckets can hold every gradient a second time.";
const SHARDS: &str = "FSDP's shards are the float32 weights, and their gradients are float32, whatever they were reduced in: \
                      low-precision weights are there only while they are gathered.";
const GATHERED: &str = "Not in it: weights while they are gathered, at least those of one layer, of two if the next is fetched ahead.";
const FORMULA: &str = "Activations are those of a GPT layer by Korthikanti et al. 2022 (arXiv:2205.05198), without tensor \
                       parallelism: gated MLPs, grouped-query attention and fused kernels keep other amounts.";

impl MemoryReport {
    /// The report of some ledgers of the same parameters and ranks.
    pub fn new(ledgers: &[Ledger], model: Option<(&Model, Recompute)>, counted: Option<Counted>) -> Self {
        let first = ledgers.first();
        let ranks = first.map_or(1, |ledger| ledger.ranks);
        let gathers = first.is_some_and(|ledger| ledger.sharding.gathers()) && ranks > 1;
        let mut doubts = vec![if model.is_some() { FORMULA } else { WITHOUT_SHAPE }];
        let fsdp = first.is_some_and(|ledger| ledger.sharding == Sharding::Fsdp);
        doubts.extend(fsdp.then_some(SHARDS));
        doubts.extend((gathers && model.is_none()).then_some(GATHERED));
        doubts.extend((ranks > 1).then_some(COMMUNICATION));
        doubts.extend(DOUBTS);
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "memory",
            parameters: first.map_or(0, |ledger| ledger.parameters),
            counted,
            sharding: first.map_or("none", |ledger| ledger.sharding.name()),
            ranks,
            model: model.map(|(model, recompute)| Shape {
                hidden: model.hidden,
                layers: model.layers,
                sequence: model.sequence,
                batch: model.batch,
                heads: model.heads,
                vocabulary: model.vocabulary,
                recompute: recompute.name(),
            }),
            recipes: Vec::new(),
            doubts: doubts.into_iter().map(str::to_owned).collect(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }
}
