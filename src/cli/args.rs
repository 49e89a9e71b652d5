//! What can be typed. Choices come from the tables of the library; nothing here is resolved yet.

use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use regex::Regex;

use crate::cast::Overflow;
use crate::format::table::{BLOCK_FORMATS, FORMATS};
use crate::format::{self, Named};
use crate::report::OUTPUTS;
use crate::report::histogram::{SORTS, Sort};
use crate::tensor::Dtype;

/// What FP16, BF16, FP8, FP6 and FP4 would do to the gradients, activations and weights that a training
/// run dumped.
#[derive(Parser)]
#[command(name = "amp-inspect", version, max_term_width = 100, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    Histogram(HistogramArgs),
}

/// What each format would lose: a log2-magnitude histogram with every format's limits, and the share
/// of values that underflow, become subnormal or overflow, for each tensor
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect histogram grads.safetensors --formats float16,e4m3fn --scale 65536 --save out.png",
    after_help = HISTOGRAM_DEFINITIONS
)]
pub(super) struct HistogramArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) cast: CastArgs,
    /// Order of the tensors in tables, and the figure shown
    #[arg(long, value_name = "KEY", default_value = "lost", value_parser = sort_parser(), long_help = sort_help(), help_heading = "Output", hide_possible_values = true)]
    pub(super) sort: Sort,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const HISTOGRAM_DEFINITIONS: &str = "\
Definitions (x: the stored value, s: the scale, q: x·s cast to the format):
  underflow   x is finite and nonzero, but q is zero: the value is lost
  subnormal   q is a nonzero subnormal number: kept, with fewer bits
  overflow    x is finite, but x·s rounded with unbounded exponent exceeds the largest finite number
  %           of the finite nonzero values; JSON and CSV also have the share of all values
  SQNR        20·log10(‖x‖ / ‖x − q/s‖) in dB
  headroom    log2(largest finite number / (s·amax)) in bits

Exit code: 0 done, 2 wrong usage or something that could not be read.";

/// Which tensors.
#[derive(Args)]
#[command(next_help_heading = "Input")]
pub(super) struct InputArgs {
    /// Dumps to read: files (.npy, .safetensors), directories or globs
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Only tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) tensor: Option<Regex>,
    /// No tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) exclude: Option<Regex>,
    /// Read the stored bytes as this type, where the file has lost it (|V2, uint8, …)
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(super) dtype: Option<Dtype>,
}

/// Which casts.
#[derive(Args)]
#[command(next_help_heading = "Casts")]
pub(super) struct CastArgs {
    /// Formats to cast to, by name, alias or description (e5m3, e4m3b11fnuz, mxfp8, nvfp4:torchao)
    #[arg(
        short,
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        value_parser = format_name,
        long_help = formats_help(),
        default_value = "float16,bfloat16,e5m2,e4m3fn,e3m2fn,e2m3fn,e2m1fn"
    )]
    pub(super) formats: Vec<Named>,
    /// Multiply every value by this before the cast, as a loss scale does (65536 or 2^16)
    #[arg(long, value_name = "S", value_parser = scale, default_value = "1")]
    pub(super) scale: f32,
    /// What becomes of values beyond the largest number [default: ieee for formats with Inf, else saturate]
    #[arg(long, value_name = "POLICY", value_parser = overflow_parser())]
    pub(super) overflow: Option<Overflow>,
}

/// What to show, and where.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write JSON to standard output instead of tables
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// Write CSV to standard output instead of tables
    #[arg(long)]
    pub(super) csv: bool,
    /// Also save the report here; the extension says what as (repeatable)
    #[arg(long, value_name = "FILE", long_help = save_help())]
    pub(super) save: Vec<PathBuf>,
    /// Rows to show of long tables, 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) top: usize,
    /// Threads to use [default: one a core]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<NonZero<usize>>,
    /// No progress bar and no notices on standard error
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// No colours
    #[arg(long)]
    pub(super) no_color: bool,
}

fn format_name(text: &str) -> Result<Named, String> {
    format::find_any(text).map_err(|error| error.to_string())
}

fn formats_help() -> String {
    let plain: Vec<&str> = FORMATS.iter().map(|row| row.name).collect();
    let blocks: Vec<&str> = BLOCK_FORMATS.iter().map(|row| row.name).collect();
    format!(
        "Formats to cast to, separated by commas:\n  \
           {}\n  \
           any e<E>m<M> with b<bias>, fn or fnuz\n\
         Formats whose elements share a scale with their block:\n  \
           {}, FORMAT:RxC\n\
         and after a colon each, in any order\n  \
           floor, ceil, even, rceil   how an MX scale is rounded [default: floor]\n  \
           te, torchao, single        whose NVFP4 scales [default: te]\n  \
           f32, pow2                  scales of FP8 blocks [default: f32]\n  \
           block=N, axis=A            length and axis of MX and NVFP4 blocks [default axis: -1, the last]",
        plain.join(", "),
        blocks.join(", ")
    )
}

fn dtype(text: &str) -> Result<Dtype, String> {
    Dtype::parse(text).map_err(|error| error.to_string())
}

fn scale(text: &str) -> Result<f32, String> {
    let parsed = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<i32>().map(|exponent| 2_f32.powi(exponent)).ok(),
        None => text.parse::<f32>().ok(),
    };
    parsed.filter(|scale| scale.is_normal() && *scale > 0.0).ok_or_else(|| {
        "a scale is a positive number in the range of a 32-bit float, such as 65536 or 2^16".into()
    })
}

fn overflow_parser() -> impl clap::builder::TypedValueParser<Value = Overflow> {
    use clap::builder::TypedValueParser;
    const POLICIES: [Overflow; 2] = [Overflow::Ieee, Overflow::Saturate];
    PossibleValuesParser::new(POLICIES.map(Overflow::name))
        .map(|name| POLICIES.into_iter().find(|policy| policy.name() == name).unwrap_or(Overflow::Ieee))
}

fn sort_parser() -> impl clap::builder::TypedValueParser<Value = Sort> {
    use clap::builder::TypedValueParser;
    PossibleValuesParser::new(SORTS.iter().map(|(name, ..)| *name))
        .map(|name| SORTS.iter().find(|(known, ..)| *known == name).map_or(Sort::File, |(_, sort, _)| *sort))
}

fn sort_help() -> String {
    let keys: Vec<String> =
        SORTS.iter().map(|(name, _, meaning)| format!("  {name:<10} {meaning}")).collect();
    format!(
        "Order of the tensors in tables, worst first by the first format, and the figure shown:\n{}",
        keys.join("\n")
    )
}

fn save_help() -> String {
    let kinds: Vec<String> =
        OUTPUTS.iter().map(|output| format!("  .{:<5} {}", output.extension, output.about)).collect();
    format!("Also save the report here; the extension says what as (repeatable):\n{}", kinds.join("\n"))
}
