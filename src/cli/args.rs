//! What can be typed. Choices come from the tables of the library; nothing here is resolved yet.

use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use super::by::{By, by_parser};
use super::input_args::InputArgs;
use super::reduce::ReduceArgs;
use super::simulate::SimulateArgs;
use super::updates::UpdatesArgs;
use crate::cast::profile::{PROFILES, Profile};
use crate::cast::{OVERFLOWS, Overflow, ROUNDINGS, Rounding};
use crate::format::table::{BLOCK_FORMATS, FORMATS};
use crate::format::{self, FormatSpec, Named};
use crate::report::OUTPUTS;
use crate::report::explain::CodesOf;
use crate::report::histogram::{SORTS, Sort};

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
    Histogram(HistogramArgs),
    Ls(LsArgs),
    Explain(ExplainArgs),
    Formats(FormatsArgs),
    Verify(VerifyArgs),
    SimulateScaler(SimulateArgs),
    Updates(UpdatesArgs),
    Reduce(ReduceArgs),
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
    /// What the rows of the main table are: each tensor with all its ranks, or all of a step or a rank
    #[arg(long, value_name = "AXIS", default_value = "tensor", value_parser = by_parser(), help_heading = "Output")]
    pub(super) by: By,
    /// Order of the tensors in tables, and the figure shown
    #[arg(long, value_name = "KEY", default_value = "lost", value_parser = sort_parser(), long_help = sort_help(), help_heading = "Output", hide_possible_values = true)]
    pub(super) sort: Sort,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What is in dumps: name, shape, type and size of every tensor, and the step and rank that it is from
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect ls checkpoint.pt\n  amp-inspect ls run/ --steps 0..1000:100 --json"
)]
pub(super) struct LsArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) output: TextOutputArgs,
}

const HISTOGRAM_DEFINITIONS: &str = "\
Definitions (x: the stored value, s: the scale, q: x·s cast to the format):
  underflow   x is finite and nonzero, but q is zero: the value is lost
  subnormal   q is a nonzero subnormal number: kept, with fewer bits
  overflow    x is finite, but x·s rounded with unbounded exponent exceeds the largest finite number
  exceeds_max x is finite, and |x·s| is above the largest finite number before rounding
  %           of the finite nonzero values; JSON and CSV also have the share of all values
  SQNR        20·log10(‖x‖ / ‖x − q/s‖) in dB
  mse         mean of (x − q/s)²
  max_rel, mean_rel
              largest and mean of |x − q/s| / |x| over the finite nonzero values
  headroom    log2(largest finite number / (s·amax)) in bits

Exit code: 0 done, 2 wrong usage or something that could not be read.";

/// What each format makes of single values, and why: the code, the error, the two numbers that the value
/// lies between and the tie that decides
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect explain 0.1 -65520 --formats float16,e4m3fn\n  amp-inspect explain --from e4m3fn 0x7e",
    after_help = EXPLAIN_DEFINITIONS
)]
pub(super) struct ExplainArgs {
    /// Decimals (0.1, -1e-8, inf, nan), hexadecimal floats (0x1.8p-3) or the 8 hex digits of a float32
    /// (0x3f800001)
    #[arg(required = true, value_name = "VALUE", value_parser = super::explain::unshield, help_heading = "Input")]
    pub(super) values: Vec<String>,
    /// The values are codes of this format in hex: any format, or float64
    #[arg(long, value_name = "FORMAT", value_parser = codes_of, help_heading = "Input")]
    pub(super) from: Option<CodesOf>,
    #[command(flatten)]
    pub(super) cast: CastArgs,
    #[command(flatten)]
    pub(super) output: TextOutputArgs,
}

const EXPLAIN_DEFINITIONS: &str = "\
Definitions (x: the value, s: the scale, p: x·s in one multiplication, q: p cast to the format):
  x           a decimal is first rounded to the nearest float64; the report says if that changes it
  error %     100·(q/s − x) / x, so + is away from zero
  ulps        (q − p) / the distance between the format's numbers around p, + away from zero
  tie         halfway between these numbers; beyond the largest number, where overflow begins

Exit code: 0 done, 2 wrong usage.";

/// The exact parameters of number formats: sizes, limits, thresholds of overflow and underflow, codes of
/// Inf and NaN
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect formats\n  amp-inspect formats e4m3fn e5m2\n  amp-inspect formats --codes e2m1fn"
)]
pub(super) struct FormatsArgs {
    /// Formats to show, by name, alias or description (e5m3fn) [default: every named one]
    #[arg(value_name = "NAME", value_parser = format_name, help_heading = "Input")]
    pub(super) names: Vec<FormatSpec>,
    /// List every code of this format, which may have up to 8 bits
    #[arg(long, value_name = "NAME", value_parser = format_name, conflicts_with = "names", help_heading = "Input")]
    pub(super) codes: Option<FormatSpec>,
    #[command(flatten)]
    pub(super) output: TextOutputArgs,
}

/// Compares, on this machine, the definition of every cast with all other implementations of it: this tool's
/// SIMD code at each level, the crates half and float8, and the processor's own conversions
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect verify\n  amp-inspect verify --formats float16,e5m2 --full",
    after_help = VERIFY_DEFINITIONS
)]
pub(super) struct VerifyArgs {
    /// Formats to check, by name, alias or description [default: every named one]
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = format_name, help_heading = "Casts")]
    pub(super) formats: Vec<FormatSpec>,
    /// Try all 2^32 float32 on the default cast of each format and on each instruction (minutes a format)
    #[arg(long, help_heading = "Casts")]
    pub(super) full: bool,
    /// Threads to use [default: one a core]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(super) threads: Option<NonZero<usize>>,
    #[command(flatten)]
    pub(super) output: TextOutputArgs,
}

const VERIFY_DEFINITIONS: &str = "\
Without --full the inputs are every number and tie of the format and their neighbours, its
limits, NaNs with many payloads, Inf, zeros and subnormals, of both signs; of formats with more
than 2^18 numbers a sample. With it, that goes for casts with other options than the default.

Exit code: 0 this tool's code equals the definition, 1 it does not, 2 wrong usage. What crates
and instructions do otherwise is listed and is no failure.";

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
        default_value = "float16,bfloat16,e5m2,e4m3fn,e3m2fn,e2m3fn,e2m1fn"
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

fn codes_of(text: &str) -> Result<CodesOf, String> {
    CodesOf::parse(text).map_err(|error| error.to_string())
}

pub(super) fn format_name(text: &str) -> Result<FormatSpec, String> {
    format::find(text).map_err(|error| error.to_string())
}

fn any_format_name(text: &str) -> Result<Named, String> {
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
           floor, ceil, even, rceil  rounding of MX scales [floor]\n  \
           te, torchao, single       whose NVFP4 scales [te]\n  \
           f32, pow2                 scales of FP8 blocks [f32]\n  \
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

fn sort_parser() -> impl TypedValueParser<Value = Sort> {
    named(SORTS.iter().map(|(name, sort, _)| (*name, *sort)))
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

fn sort_help() -> String {
    let keys = choices(SORTS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("Order of the tensors in tables, worst first by the first format, and the figure shown:{keys}")
}

fn save_help() -> String {
    let kinds: Vec<String> =
        OUTPUTS.iter().map(|output| format!("  .{:<5} {}", output.extension, output.about)).collect();
    format!("Also save the report here; the extension says what as (repeatable):\n{}", kinds.join("\n"))
}
