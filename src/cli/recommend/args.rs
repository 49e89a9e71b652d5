//! What can be typed after `recommend`.

use std::path::PathBuf;

use clap::Args;

use super::super::args::{OutputArgs, choices, named, save_help};
use super::super::fp8::RoleArgs;
use super::super::input_args::InputArgs;
use crate::recommend::{Bounds, CANDIDATES, Candidate, find};
use crate::report::recommend::By;

/// Which format, with which scale, for which tensor: the cheapest one that keeps each within bounds, and why no
/// cheaper one does
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect recommend grads.safetensors --config formats.json\n  \
                   amp-inspect recommend run/ --min-sqnr 30 --by layer",
    after_help = DEFINITIONS,
    mut_arg("save", |save| save.long_help(save_help(&[])))
)]
pub(in crate::cli) struct RecommendArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Most of the nonzero values that may be stored as zero
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0.1%", help_heading = "Bounds")]
    pub(super) max_underflow: f64,
    /// Most of the nonzero values that may round beyond the largest number
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0%", help_heading = "Bounds")]
    pub(super) max_overflow: f64,
    /// None may: the default, said outright
    #[arg(long, conflicts_with = "max_overflow", help_heading = "Bounds")]
    pub(super) no_overflow: bool,
    /// Least signal to quantisation noise ratio
    #[arg(long, value_name = "DB", value_parser = decibels, default_value = "20dB", allow_negative_numbers = true, help_heading = "Bounds")]
    pub(super) min_sqnr: f64,
    /// Formats that may be recommended [default: all]
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = candidate, long_help = candidates_help(), help_heading = "Bounds")]
    pub(super) candidates: Vec<&'static Candidate>,
    #[command(flatten)]
    pub(super) roles: RoleArgs,
    /// What a row is: a tensor in all its steps, or all tensors of a layer together
    #[arg(long, value_name = "AXIS", default_value = "tensor", value_parser = named([("tensor", By::Tensor), ("layer", By::Layer)]), help_heading = "Output")]
    pub(super) by: By,
    /// Also write the formats tensor by tensor, and the modules to keep in higher precision, to this JSON file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl RecommendArgs {
    /// The bounds as shares.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            max_underflow: self.max_underflow / 100.0,
            max_overflow: if self.no_overflow { 0.0 } else { self.max_overflow / 100.0 },
            min_sqnr: self.min_sqnr,
        }
    }

    /// The candidates, each once, cheapest first.
    pub(super) fn candidates(&self) -> Vec<&'static Candidate> {
        let wanted = |candidate: &&Candidate| {
            self.candidates.is_empty() || self.candidates.iter().any(|asked| asked.name == candidate.name)
        };
        CANDIDATES.iter().filter(wanted).collect()
    }
}

const DEFINITIONS: &str = "\
A format is recommended if it breaks no bound at any step that was read; of those that do, the one with the
fewest bits. The bounds, and why these are the defaults:
  underflow  0.1 %: one nonzero value in a thousand is lost, and those are the smallest
  overflow   none: one Inf, or one spike clipped, is the largest error there can be
  SQNR       20 dB, an error of a tenth of the norm: what even four-bit formats leave of values that
             lie in their range. FP8 in range gives 25 (e5m2) and 31 dB (e4m3fn), bfloat16 56 dB
These are judgements about one cast. Whether a training converges with it, a dump does not say.

Memory is of one step, scales of blocks included. float16@loss-scale is tried for gradients alone.

Exit code: 0 done, 2 wrong usage or something that could not be read.";

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number.filter(|share| (0.0..=100.0).contains(share)).ok_or_else(|| "a share is from 0% to 100%".into())
}

fn decibels(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("dB").trim_end().parse().ok();
    number
        .filter(|db: &f64| db.is_finite())
        .ok_or_else(|| "a ratio is a number of decibels, such as 20dB".into())
}

fn candidate(text: &str) -> Result<&'static Candidate, String> {
    find(text).map_err(|error| error.to_string())
}

fn candidates_help() -> String {
    let rows = choices(CANDIDATES.iter().map(|candidate| (candidate.name, candidate.needs)));
    format!(
        "Formats that may be recommended, cheapest first, with what each needs (if not given: all):{rows}"
    )
}
