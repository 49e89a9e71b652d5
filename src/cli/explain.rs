//! Wiring of `amp-inspect explain`.

use std::ffi::OsString;

use clap::Args;

use super::Outcome;
use super::args::{CastArgs, TextOutputArgs};
use super::output::Outputs;
use crate::error::Result;
use crate::report::explain::{CodesOf, ExplainReport, Given};

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
    #[arg(required = true, value_name = "VALUE", value_parser = unshield, help_heading = "Input")]
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

pub(super) fn run(args: ExplainArgs) -> Result<Outcome> {
    let ExplainArgs { values, from, cast, output } = args;
    let outputs = Outputs::without_pictures(output.into())?;
    let values = values.iter().map(|text| Given::parse(text, from)).collect::<Result<Vec<_>>>()?;
    let report = ExplainReport::new(values, &cast.plain_plans()?, cast.scale, from);
    outputs.write(&report, ExplainReport::terminal)?;
    Ok(Outcome::Done)
}

fn codes_of(text: &str) -> std::result::Result<CodesOf, String> {
    CodesOf::parse(text).map_err(|error| error.to_string())
}

/// Stands for the minus of a negative value until the options are known.
const MINUS: &str = "\u{2212}";

/// Lets `explain` have values such as `-1e-8`, `-inf` and `-0x1p3` among its options: clap takes all but the
/// plainest of them for options, or else all options after them for values.
pub(super) fn shield(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|command| command == "explain") {
        for argument in arguments.iter_mut().skip(2) {
            if let Some(number) = argument.to_str().and_then(|text| text.strip_prefix('-'))
                && looks_like_number(number)
            {
                *argument = format!("{MINUS}{number}").into();
            }
        }
    }
    arguments
}

fn looks_like_number(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || ["inf", "infinity", "nan"].contains(&lower.as_str())
}

/// A value as it was typed. A minus sign pasted from a paper reads as one, too.
pub(super) fn unshield(text: &str) -> std::result::Result<String, std::convert::Infallible> {
    Ok(text.replace(MINUS, "-"))
}
