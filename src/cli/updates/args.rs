//! What can be typed after `updates`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use regex::Regex;

use super::super::args::{OutputArgs, choices, format_name, named, scale};
use crate::format::FormatSpec;

/// Why master weights are float32: which weight updates vanish or come out wrong when weights are kept in a low
/// precision, for each tensor, and what stochastic rounding, Kahan summation or 16 more bits change
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect updates --checkpoint checkpoint.pt --lr 1e-4 --save out.png\n  \
                   amp-inspect updates --weights weights.safetensors --grads grads.safetensors --lr 1e-4",
    after_help = DEFINITIONS
)]
pub(in crate::cli) struct UpdatesArgs {
    /// PyTorch checkpoint with weights and optimizer state: the step from its moments, on its weights
    #[arg(long, value_name = "FILE", conflicts_with_all = ["weights", "exp_avg", "exp_avg_sq"], help_heading = "Input")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Dumps of weights (repeatable)
    #[arg(long, value_name = "PATH", num_args = 1.., required_unless_present = "checkpoint", help_heading = "Input")]
    pub(super) weights: Vec<PathBuf>,
    /// Dumps of gradients; they advance the moments, where there are any, by one step first
    #[arg(long, value_name = "PATH", num_args = 1.., help_heading = "Input")]
    pub(super) grads: Vec<PathBuf>,
    /// Dumps of Adam's first moments, under the names of the weights
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "exp_avg_sq", help_heading = "Input")]
    pub(super) exp_avg: Vec<PathBuf>,
    /// Dumps of Adam's second moments, under the names of the weights
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "exp_avg", help_heading = "Input")]
    pub(super) exp_avg_sq: Vec<PathBuf>,
    /// Only tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Input")]
    pub(super) tensor: Option<Regex>,
    /// No tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Input")]
    pub(super) exclude: Option<Regex>,
    /// Divide gradients by this first: the loss scale that they were recorded with (65536 or 2^16)
    #[arg(long, value_name = "S", value_parser = scale, requires = "grads", help_heading = "Input")]
    pub(super) unscale: Option<f32>,
    /// Learning rate [default: that of each parameter group of the checkpoint]
    #[arg(long, value_name = "LR", value_parser = positive, help_heading = "Optimizer")]
    pub(super) lr: Option<f64>,
    /// Optimizer [default: as the checkpoint says; adamw with moments, sgd without]
    #[arg(long, value_name = "NAME", value_parser = optimizer_parser(), long_help = optimizer_help(), hide_possible_values = true, help_heading = "Optimizer")]
    pub(super) optimizer: Option<Optimizer>,
    /// Weight decay [default: the checkpoint's, or 0]
    #[arg(long, value_name = "W", value_parser = not_negative, help_heading = "Optimizer")]
    pub(super) weight_decay: Option<f64>,
    /// Decays of Adam's moments [default: the checkpoint's, or 0.9,0.999]
    #[arg(long, value_name = "B1,B2", value_parser = betas, help_heading = "Optimizer")]
    pub(super) betas: Option<(f64, f64)>,
    /// Added to Adam's denominator [default: the checkpoint's, or 1e-8]
    #[arg(long, value_name = "E", value_parser = positive, help_heading = "Optimizer")]
    pub(super) eps: Option<f64>,
    /// Steps that the moments have seen, for Adam's bias correction [default: the checkpoint's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Optimizer")]
    pub(super) moments_step: Option<u64>,
    /// Formats to keep weights in, by name, alias or description (e5m3), without a scale
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = format_name, default_value = "bfloat16,float16,e4m3fn,e5m2", help_heading = "Weights")]
    pub(super) formats: Vec<FormatSpec>,
    /// Repeat the same update so many times, to see weights stand still
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), default_value_t = 1, help_heading = "Weights")]
    pub(super) steps: u64,
    /// Seed of stochastic rounding
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Weights")]
    pub(super) seed: u64,
    /// Random bits of stochastic rounding [default: as NVIDIA's cvt.rs takes for the format]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32), help_heading = "Weights")]
    pub(super) random_bits: Option<u32>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const DEFINITIONS: &str = "\
Definitions (w: the weight in its format, δ: the wanted change, -lr·u and the decay, as torch
computes it in float32; the new weight is w + δ in float32, rounded once to the format). All
figures are of the updates that are not 0:
  unmoved %    w stays where it is: the update vanishes
  off %        w moves, but by less than half or more than one and a half of δ
  along %      ⟨applied, δ⟩ / ‖δ‖²: how much of the step is made, in its own direction
  size %       ‖applied‖ / ‖δ‖: the effective learning rate; random steps count too
  error %      ‖applied − δ‖ / ‖δ‖
  lr for half  smallest learning rate at which half of the updates reach half an ulp
  ulp          distance from |w| to the next larger number of the format

Exit code: 0 done, 2 wrong usage or something that could not be read.";

/// What `--optimizer` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Optimizer {
    Sgd,
    Adam,
    AdamW,
}

const OPTIMIZERS: &[(&str, Optimizer, &str)] = &[
    ("sgd", Optimizer::Sgd, "u = g, weight decay added to the gradient"),
    ("adam", Optimizer::Adam, "weight decay added to the gradient"),
    ("adamw", Optimizer::AdamW, "weight decay multiplies the weights (decoupled)"),
];

impl Optimizer {
    pub(super) fn name(self) -> &'static str {
        OPTIMIZERS.iter().find(|(_, known, _)| *known == self).map_or("", |(name, ..)| name)
    }
}

fn optimizer_parser() -> impl TypedValueParser<Value = Optimizer> {
    named(OPTIMIZERS.iter().map(|(name, optimizer, _)| (*name, *optimizer)))
}

fn optimizer_help() -> String {
    let rows = OPTIMIZERS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("Optimizer, as torch has it (if not given: as the checkpoint says):{}", choices(rows))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "it has to be a positive number".into())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "it has to be a number that is not negative".into())
}

fn betas(text: &str) -> Result<(f64, f64), String> {
    let beta = |text: &str| text.trim().parse().ok().filter(|beta: &f64| (0.0..1.0).contains(beta));
    let pair = text.split_once(',').and_then(|(first, second)| Some((beta(first)?, beta(second)?)));
    pair.ok_or_else(|| "they are two numbers from 0 to below 1, such as 0.9,0.999".into())
}
