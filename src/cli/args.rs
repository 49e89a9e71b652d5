//! What can be typed. Choices come from the tables of the library; nothing here is resolved yet.

use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use crate::cast::profile::{PROFILES, Profile};
use crate::cast::{OVERFLOWS, Overflow, ROUNDINGS, Rounding};
use crate::format::table::{BLOCK_FORMATS, FORMATS};
use crate::format::{self, FormatSpec, Named};
use crate::report::{Needs, save};
use crate::scaler::fp8::find_format;

/// What FP16, BF16, FP8, FP6 and FP4 would do to the gradients, activations and weights that a training
/// run dumped.
#[derive(Parser)]
#[command(
    name = "amp-inspect",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    before_help = "Example:\n  amp-inspect histogram grads.safetensors --formats float16,e4m3fn"
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    Histogram(super::histogram::HistogramArgs),
    Ls(super::ls::LsArgs),
    SimulateScaler(super::simulate::SimulateArgs),
    Fp8(super::fp8::Fp8Args),
    Recommend(super::recommend::RecommendArgs),
    Updates(super::updates::UpdatesArgs),
    Reduce(super::reduce::ReduceArgs),
    Autocast(super::autocast::AutocastArgs),
    Memory(super::memory::MemoryArgs),
    Compare(super::compare::CompareArgs),
    Check(super::check::CheckArgs),
    InitCi(super::check::InitCiArgs),
    BenchGpu(super::bench_gpu::BenchGpuArgs),
    Explain(super::explain::ExplainArgs),
    Formats(super::formats::FormatsArgs),
    Verify(super::verify::VerifyArgs),
}

/// The formats of casts, if none are asked for.
pub(super) const DEFAULT_FORMATS: &str = "float16,bfloat16,e5m2,e4m3fn,e3m2fn,e2m3fn,e2m1fn";

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
        value_parser = any_format_name,
        long_help = formats_help(),
        default_value = DEFAULT_FORMATS
    )]
    pub(super) formats: Vec<Named>,
    /// Multiply every value by this before the cast, as a loss scale does (65536 or 2^16)
    #[arg(long, value_name = "S", value_parser = scale, default_value = "1")]
    pub(super) scale: f32,
    /// Cast as a software stack does; --overflow and --rounding overrule it
    #[arg(long, value_name = "STACK", value_parser = profile_parser(), long_help = profile_help(), hide_possible_values = true)]
    pub(super) profile: Option<&'static Profile>,
    /// What becomes of values beyond the largest number
    #[arg(long, value_name = "POLICY", value_parser = overflow_parser(), long_help = overflow_help(), hide_possible_values = true)]
    pub(super) overflow: Option<Overflow>,
    /// How values between two numbers are resolved [default: nearest-even]
    #[arg(long, value_name = "MODE", value_parser = rounding_parser(), long_help = rounding_help(), hide_possible_values = true)]
    pub(super) rounding: Option<RoundingArg>,
    /// Random bits of stochastic rounding [default: as NVIDIA's cvt.rs takes for the format]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32), requires = "rounding")]
    pub(super) random_bits: Option<u32>,
    /// Seed of stochastic rounding [default: 0]
    #[arg(long, value_name = "N", requires = "rounding")]
    pub(super) seed: Option<u64>,
    /// Flush subnormal results to zero
    #[arg(long)]
    pub(super) ftz: bool,
    /// Take subnormal inputs for zero
    #[arg(long)]
    pub(super) daz: bool,
}

/// What to show, and where.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write JSON to standard output instead of tables
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// Write CSV to standard output instead of tables
    #[arg(long)]
    pub(super) csv: bool,
    /// Also save the report here; the extension says what as (repeatable)
    #[arg(long, value_name = "FILE", long_help = save_help(&[Needs::Picture]))]
    pub(super) save: Vec<PathBuf>,
    /// Rows to show of long tables, 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) top: usize,
    /// Threads to use [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(super) threads: Option<NonZero<usize>>,
    /// No progress bar and no notices on standard error
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// No colours
    #[arg(long)]
    pub(super) no_color: bool,
}

/// What to show of a report without pictures and long work, and where.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct TextOutputArgs {
    /// Write JSON to standard output instead of tables
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write CSV to standard output instead of tables
    #[arg(long)]
    csv: bool,
    /// Also save the report here as .json, .csv or .md (repeatable)
    #[arg(long, value_name = "FILE")]
    save: Vec<PathBuf>,
    /// No progress bar and no notices on standard error
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// No colours
    #[arg(long)]
    no_color: bool,
}

impl From<TextOutputArgs> for OutputArgs {
    fn from(args: TextOutputArgs) -> Self {
        let TextOutputArgs { json, csv, save, quiet, no_color } = args;
        Self { json, csv, save, top: 0, threads: None, quiet, no_color }
    }
}

pub(super) fn threads(text: &str) -> Result<NonZero<usize>, String> {
    text.parse().map_err(|_| "threads are a number from 1 on".into())
}

pub(super) fn format_name(text: &str) -> Result<FormatSpec, String> {
    format::find(text).map_err(|error| error.to_string())
}

pub(super) fn any_format_name(text: &str) -> Result<Named, String> {
    let named = match text.contains('@') {
        true => find_format(text).map(Named::Block),
        false => format::find_any(text),
    };
    named.map_err(|error| error.to_string())
}

fn formats_help() -> String {
    let plain: Vec<&str> = FORMATS.iter().map(|row| row.name).collect();
    let blocks: Vec<&str> = BLOCK_FORMATS.iter().map(|row| row.name).collect();
    format!(
        "Formats to cast to, separated by commas:\n  \
           {}\n  \
           any e<E>m<M> with b<bias>, fn or fnuz\n\
         Formats whose elements share a scale with their block:\n  \
           {}, FORMAT:RxC, FORMAT:row, FORMAT:tensor,\n  \
           or FORMAT@RECIPE as fp8 has them (e4m3fn@current)\n\
         and after a colon each, in any order\n  \
           floor, ceil, even, rceil  rounding of MX scales [floor]\n  \
           te, torchao, single       whose NVFP4 scales [te]\n  \
           f32, pow2, torchao, …     scales of FP8 rows and blocks [f32]\n  \
           block=N, axis=A           of MX and NVFP4 blocks [axis=-1]",
        plain.join(", "),
        blocks.join(", ")
    )
}

pub(super) fn scale(text: &str) -> Result<f32, String> {
    let parsed = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<i32>().map(|exponent| 2_f32.powi(exponent)).ok(),
        None => text.parse::<f32>().ok(),
    };
    parsed
        .filter(|scale| scale.is_normal() && *scale > 0.0)
        .ok_or_else(|| "a scale is a positive normal 32-bit float, such as 65536 or 2^16".into())
}

/// A rounding mode as typed; stochastic rounding becomes one for each format.
#[derive(Clone, Copy)]
pub(super) enum RoundingArg {
    Fixed(Rounding),
    Stochastic,
}

/// Accepts the names of a table's rows and gives what they stand for.
pub(super) fn named<T: Clone + Send + Sync + 'static>(
    rows: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let rows: Vec<(&str, T)> = rows.into_iter().collect();
    PossibleValuesParser::new(rows.iter().map(|(name, _)| *name)).try_map(move |typed| {
        let row = rows.iter().find(|(name, _)| *name == typed);
        row.map(|(_, value)| value.clone()).ok_or("not in the table")
    })
}

fn overflow_parser() -> impl TypedValueParser<Value = Overflow> {
    named(OVERFLOWS.iter().map(|(name, policy, _)| (*name, *policy)))
}

fn rounding_parser() -> impl TypedValueParser<Value = RoundingArg> {
    let fixed = ROUNDINGS.iter().map(|(name, mode, _)| (*name, RoundingArg::Fixed(*mode)));
    named(fixed.chain([("stochastic", RoundingArg::Stochastic)]))
}

fn profile_parser() -> impl TypedValueParser<Value = &'static Profile> {
    named(PROFILES.iter().map(|profile| (profile.name, profile)))
}

/// A list of choices with their meanings, one a line.
pub(super) fn choices<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows: Vec<_> = rows.collect();
    let longest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, meaning)| format!("\n  {name:<longest$}  {meaning}")).collect()
}

fn overflow_help() -> String {
    let policies = choices(OVERFLOWS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!(
        "What becomes of values beyond the largest number (if not given: ieee for formats with Inf, saturate for \
         the others):{policies}"
    )
}

fn rounding_help() -> String {
    let modes = ROUNDINGS.iter().map(|(name, _, meaning)| (*name, *meaning));
    let stochastic = ("stochastic", "up or down in proportion (--random-bits, --seed)");
    format!(
        "How values between two numbers are resolved (if not given: nearest-even, in every profile):{}",
        choices(modes.chain([stochastic]))
    )
}

fn profile_help() -> String {
    let stacks = choices(PROFILES.iter().map(|profile| (profile.name, profile.about)));
    format!("Cast as a software stack does; --overflow and --rounding overrule it:{stacks}")
}

/// What `--save` can write of a report that has these. Most have a picture; a command of which that is not so says it
/// by `mut_arg`.
pub(super) fn save_help(has: &[Needs]) -> String {
    let kinds: Vec<String> =
        save::kinds(has).map(|output| format!("  .{:<5} {}", output.extension, output.about)).collect();
    format!("Also save the report here; the extension says what as (repeatable):\n{}", kinds.join("\n"))
}
