//! What can be typed after `fp8`.

use clap::Args;
use clap::builder::TypedValueParser;
use regex::Regex;

use super::super::args::{OutputArgs, choices, named};
use super::super::input_args::InputArgs;
use super::super::simulate::column_help;
use crate::report::fp8::{METRICS, Metric};
use crate::scaler::fp8::{
    ACTIVATION, AMAX_ALGOS, AmaxAlgo, Elements, FORMATS, GRADIENT, RECIPES, ROLES, Recipe, Role, Roles, find,
};

/// What FP8 and FP4 scaling recipes do to each tensor: the scale as each framework computes it, what underflows,
/// saturates and is left of the signal; over steps, what delayed scaling makes of spikes
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect fp8 grads.safetensors --recipe current,mxfp8,nvfp4\n  \
                   amp-inspect fp8 run/ --recipe delayed --history 16 --save out.png\n  \
                   amp-inspect fp8 amax.csv --recipe delayed --role activation",
    after_help = DEFINITIONS
)]
pub(in crate::cli) struct Fp8Args {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Recipes to replay, by name or family
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = recipe, default_value = "all", long_help = recipe_help(), help_heading = "Recipes")]
    pub(super) recipe: Vec<Recipes>,
    /// Element format [default: as each recipe's framework has it]
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(), long_help = format_help(), hide_possible_values = true, help_heading = "Recipes")]
    pub(super) format: Option<Elements>,
    /// Say what a column of a trace means
    #[arg(long, value_name = "ROLE=NAME", long_help = column_help(), help_heading = "Input")]
    pub(super) column: Vec<String>,
    #[command(flatten)]
    pub(super) roles: RoleArgs,
    /// Steps that delayed scaling remembers (amax_history_len)
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "Recipes")]
    pub(super) history: u32,
    /// Bits that the delayed scale stays below the largest: it is divided by 2^N
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(-64..=64), allow_negative_numbers = true, help_heading = "Recipes")]
    pub(super) margin: i32,
    /// What delayed scaling takes from its history
    #[arg(long, value_name = "ALGO", default_value = "max", value_parser = algo_parser(), help_heading = "Recipes")]
    pub(super) amax_algo: AmaxAlgo,
    /// Order of the tensors in tables, and the figure shown
    #[arg(long, value_name = "KEY", default_value = "sqnr", value_parser = named(METRICS.iter().map(|(name, metric, _)| (*name, *metric))), long_help = sort_help(), hide_possible_values = true, help_heading = "Output")]
    pub(super) sort: Metric,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// How it is told what a tensor is in training.
#[derive(Args)]
#[command(next_help_heading = "Roles")]
pub(in crate::cli) struct RoleArgs {
    /// All tensors are this
    #[arg(long, value_name = "ROLE", value_parser = named(ROLES.iter().copied()))]
    pub(in crate::cli) role: Option<Role>,
    /// Gradients are the tensors whose name or file name matches
    #[arg(long, value_name = "REGEX", default_value = GRADIENT, hide_default_value = true, long_help = gradients_help())]
    pub(in crate::cli) gradients: Regex,
    /// Activations are those others whose name or file name matches; the rest are weights
    #[arg(long, value_name = "REGEX", default_value = ACTIVATION, hide_default_value = true, long_help = activations_help())]
    pub(in crate::cli) activations: Regex,
}

impl RoleArgs {
    /// As the library takes them.
    pub(in crate::cli) fn roles(&self) -> Roles {
        Roles { all: self.role, gradient: self.gradients.clone(), activation: self.activations.clone() }
    }
}

const DEFINITIONS: &str = "\
Definitions:
  scale       what values are multiplied by: x_stored = round(x·scale), which
              is round(x / s) with s = scale_inv = 1/scale
  underflow   x is finite and nonzero, but is stored as zero; % of the finite
              nonzero values
  saturated   x is finite, but x·scale rounds beyond the largest number, which
              is stored in its place
  SQNR        20·log10(‖x‖ / ‖x − what comes back‖) in dB
  bits off    log2(scale that the step's own amax gives / scale used): above 0
              range lies idle
  stale       the delayed scale is at least a bit too small
  frozen      an Inf or NaN in the history keeps the delayed scale as it is

Blocks at the end of a row or column are smaller. A scalar and a tensor of one
dimension are one row. A series is the same tensor in files of several steps;
the recorded steps are taken for consecutive ones. Traces (.csv, .tsv, .jsonl,
TensorBoard) with a column amax:NAME a tensor are enough for delayed scaling;
they are taken for those of gradients.

Exit code: 0 done, 2 wrong usage or something that could not be read.";

/// Recipes that a name stands for.
#[derive(Clone)]
pub(super) struct Recipes(pub(super) Vec<&'static Recipe>);

fn recipe(text: &str) -> Result<Recipes, String> {
    find(text).map(Recipes).map_err(|error| error.to_string())
}

fn format_parser() -> impl TypedValueParser<Value = Elements> {
    named(FORMATS.iter().map(|(name, elements, _)| (*name, *elements)))
}

fn algo_parser() -> impl TypedValueParser<Value = AmaxAlgo> {
    named(AMAX_ALGOS.iter().map(|(name, algo, _)| (*name, *algo)))
}

fn recipe_help() -> String {
    let rows = choices(RECIPES.iter().map(|recipe| (recipe.name, recipe.about)));
    format!(
        "Recipes to replay. 'mxfp8' means all four, 'nvfp4' both, 'all' one of each family and all of these two:{rows}"
    )
}

fn format_help() -> String {
    let rows = choices(FORMATS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!(
        "Element format. If not given, hybrid for current and delayed, as Transformer Engine has it, and e4m3fn for \
         rows and blocks:{rows}"
    )
}

fn sort_help() -> String {
    let rows = choices(METRICS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("Order of the tensors in tables, worst first by the first recipe, and the figure shown:{rows}")
}

fn gradients_help() -> String {
    format!("Gradients are the tensors whose name or file name matches. Without it:\n  {GRADIENT}")
}

fn activations_help() -> String {
    format!(
        "Activations are those others whose name (unless it ends in weight or bias) or file name matches; the rest \
         are weights. Without it:\n  {ACTIVATION}"
    )
}
