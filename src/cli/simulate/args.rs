//! What can be typed after `simulate-scaler`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use regex::Regex;

use super::super::args::{OutputArgs, choices, format_name, named, scale};
use super::super::input_args::{Ranges, dtype, layout};
use crate::format::FormatSpec;
use crate::scaler::ScalerSpec;
use crate::scaler::schedule::{GAPS, Gaps};
use crate::scaler::trace::{EVIDENCES, Evidence, FP32_GRADS, ROLES, SYNTHETICS, Synthetic};
use crate::source::Layout;
use crate::tensor::Dtype;

/// What each framework's loss scaler would have done, step by step: skips and their cause, scales, and
/// which constant scale would have served
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect simulate-scaler run.csv --scaler torch,deepspeed,megatron --save out.png\n  \
                   amp-inspect simulate-scaler grads/ --suggest\n  \
                   amp-inspect simulate-scaler                      (a made-up record)",
    after_help = DEFINITIONS
)]
pub(in crate::cli) struct SimulateArgs {
    /// A recorded trace (.csv, .tsv, .jsonl or TensorBoard; several are joined by step) or dumps of gradients, one or more
    /// files a step; without any, a made-up record
    #[arg(value_name = "PATH", help_heading = "Input")]
    pub(super) paths: Vec<PathBuf>,
    /// Say what a column of the trace means
    #[arg(long, value_name = "ROLE=NAME", long_help = column_help(), help_heading = "Input")]
    pub(super) column: Vec<String>,
    /// Only tensors of dumps whose name matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Input")]
    pub(super) tensor: Option<Regex>,
    /// No tensors of dumps whose name matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Input")]
    pub(super) exclude: Option<Regex>,
    /// Only these training steps, ends included: 0..1000, 0..1000:100, 500..; of a made-up record their number
    /// [default: 6000]
    #[arg(long, value_name = "A..B:S", value_parser = Ranges::parse, help_heading = "Input")]
    pub(super) steps: Option<Ranges>,
    /// Only dumps of these ranks
    #[arg(long, value_name = "A..B", value_parser = Ranges::parse, help_heading = "Input")]
    pub(super) ranks: Option<Ranges>,
    /// Where paths of dumps have step, rank and name: {step}/rank{rank}/{name}.npy
    #[arg(long, value_name = "TEMPLATE", value_parser = layout, help_heading = "Input")]
    pub(super) layout: Option<Layout>,
    /// Read the stored bytes of dumps as this type
    #[arg(long, value_name = "TYPE", value_parser = dtype, help_heading = "Input")]
    pub(super) dtype: Option<Dtype>,
    /// Dumped gradients are scaled: divide them by this, or, with `recorded`, by the loss scale in each file's
    /// metadata
    #[arg(long, value_name = "S", value_parser = unscale, default_value = "1", help_heading = "Input")]
    pub(super) unscale: Unscale,
    /// Steps that the record lacks
    #[arg(long, value_name = "HOW", default_value = "hold", value_parser = gaps_parser(), long_help = gaps_help(), hide_possible_values = true, help_heading = "Input")]
    pub(super) gaps: Gaps,
    /// A made-up record, labelled as such
    #[arg(long, value_name = "KIND", conflicts_with = "paths", value_parser = synthetic_parser(), long_help = synthetic_help(), hide_possible_values = true, help_heading = "Input")]
    pub(super) synthetic: Option<Synthetic>,
    /// Seed of a made-up record
    #[arg(long, value_name = "N", conflicts_with = "paths", default_value_t = 0, help_heading = "Input")]
    pub(super) seed: u64,
    /// Scalers to simulate, or all; --list shows them
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = scaler, default_value = "torch", help_heading = "Scalers")]
    pub(super) scaler: Vec<Scalers>,
    /// Set a parameter: of every scaler that has it, or of one (torch.growth_interval=500)
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Scalers")]
    pub(super) set: Vec<String>,
    /// List every scaler with its parameters, defaults and source
    #[arg(long, conflicts_with = "paths", help_heading = "Scalers")]
    pub(super) list: bool,
    /// Format that the scaled gradients are made in
    #[arg(long, value_name = "FORMAT", default_value = "float16", value_parser = format_name, help_heading = "Scalers")]
    pub(super) format: FormatSpec,
    /// Tensors whose gradients are made in float32 [default: embeddings and normalisations, by name]
    #[arg(long, value_name = "REGEX", value_parser = fp32_grads, default_value = FP32_GRADS, long_help = fp32_help(), hide_default_value = true, help_heading = "Scalers")]
    pub(super) fp32_grads: Regex,
    /// What decides whether a step overflows
    #[arg(long, value_name = "WHAT", default_value = "all", value_parser = evidence_parser(), long_help = evidence_help(), hide_possible_values = true, help_heading = "Scalers")]
    pub(super) evidence: Evidence,
    /// Suggest scales: the safe constant ones, and a start for a dynamic scaler
    #[arg(long, help_heading = "Scalers")]
    pub(super) suggest: bool,
    /// Say what clipping to this norm does, after unscaling and before
    #[arg(long, value_name = "NORM", value_parser = positive, help_heading = "Scalers")]
    pub(super) clip: Option<f64>,
    /// Simulate the record this many times in a row
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 1, help_heading = "Scalers")]
    pub(super) repeat: u64,
    /// Repeat the record until the scaler ends it in a state that it has ended it in before
    #[arg(long, conflicts_with = "repeat", help_heading = "Scalers")]
    pub(super) until_steady: bool,
    /// Show every step, not only those at which something happens
    #[arg(long, help_heading = "Output")]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const DEFINITIONS: &str = "\
A step overflows at a scale if the largest true gradient times the scale, a product in float32, rounds
beyond the format (float16: from 65520 on). Flags that were recorded decide where they tell: a step that
was clean is clean at every smaller scale, one that overflowed overflows at every larger one. Gradients
of parameters give a lower bound on skips: gradients of activations can overflow before any parameter's.

  warm-up   the steps before the first 10 applied ones in a row
  then %    skipped steps after the warm-up, of the steps after it
  at floor  steps at a scale that an overflow could not lower
  headroom  log2(largest number of the format / (scale · largest gradient)) in bits

Exit code: 0 done, 2 wrong usage or something that could not be read.";

/// What `--unscale` takes.
#[derive(Clone, Copy)]
pub(super) enum Unscale {
    By(f32),
    Recorded,
}

fn unscale(text: &str) -> Result<Unscale, String> {
    match text {
        "recorded" => Ok(Unscale::Recorded),
        number => scale(number).map(Unscale::By),
    }
}

/// What `--scaler` takes.
#[derive(Clone)]
pub(super) enum Scalers {
    One(&'static ScalerSpec),
    All,
}

fn scaler(text: &str) -> Result<Scalers, String> {
    if text == "all" {
        return Ok(Scalers::All);
    }
    crate::scaler::find(text).map(Scalers::One).map_err(|error| error.to_string())
}

/// A pattern for names; `none` matches no tensor.
fn fp32_grads(text: &str) -> Result<Regex, regex::Error> {
    Regex::new(if text == "none" { "^$" } else { text })
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "a norm is a positive number".into())
}

fn gaps_parser() -> impl TypedValueParser<Value = Gaps> {
    named(GAPS.iter().map(|(name, gaps, _)| (*name, *gaps)))
}

fn gaps_help() -> String {
    let rows = GAPS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("What becomes of steps that the record lacks:{}", choices(rows))
}

fn evidence_parser() -> impl TypedValueParser<Value = Evidence> {
    named(EVIDENCES.iter().map(|(name, evidence, _)| (*name, *evidence)))
}

fn evidence_help() -> String {
    let rows = EVIDENCES.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("What decides whether a step overflows:{}", choices(rows))
}

fn synthetic_parser() -> impl TypedValueParser<Value = Synthetic> {
    named(SYNTHETICS.iter().map(|(name, kind, _)| (*name, *kind)))
}

fn synthetic_help() -> String {
    let rows = SYNTHETICS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("A made-up record, labelled as such:{}", choices(rows))
}

pub(in crate::cli) fn column_help() -> String {
    let rows = ROLES.iter().map(|(name, _, meaning, _)| (*name, *meaning));
    format!(
        "Say what a column of the trace means, where its head does not tell (repeatable): grad_amax=gmax. The NAME of \
         the tensor roles is what comes before the tensor's name. Roles:{}",
        choices(rows)
    )
}

fn fp32_help() -> String {
    format!(
        "Tensors whose gradients autocast makes in float32, which do not overflow at 65504. Without it embeddings and \
         normalisations, by name:\n  {FP32_GRADS}\n'none' takes every gradient to be made in the format."
    )
}
