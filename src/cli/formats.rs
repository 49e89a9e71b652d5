//! Wiring of `amp-inspect formats`.

use clap::Args;

use super::Outcome;
use super::args::{TextOutputArgs, format_name};
use super::output::Outputs;
use crate::error::Result;
use crate::format::FormatSpec;
use crate::format::table::FORMATS;
use crate::report::formats::{CodesReport, FormatsReport};

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

pub(super) fn run(args: FormatsArgs) -> Result<Outcome> {
    let FormatsArgs { names, codes, output } = args;
    let outputs = Outputs::without_pictures(output.into())?;
    if let Some(format) = codes {
        outputs.write(&CodesReport::new(&format)?, CodesReport::terminal)?;
        return Ok(Outcome::Done);
    }
    // Once each, however often and under whatever names they are asked for.
    let mut formats: Vec<FormatSpec> = Vec::new();
    for format in names {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    let report = FormatsReport::new(if formats.is_empty() { FORMATS } else { &formats });
    outputs.write(&report, FormatsReport::terminal)?;
    Ok(Outcome::Done)
}
