//! Wiring of `amp-inspect verify`.

use std::num::NonZero;

use clap::Args;

use super::Outcome;
use super::args::{TextOutputArgs, format_name};
use super::output::Outputs;
use super::progress::Progress;
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::format::table::FORMATS;
use crate::report::verify::VerifyReport;
use crate::verify::{self, Check};

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
    #[arg(long, value_name = "N", value_parser = super::args::threads, help_heading = "Output")]
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

pub(super) fn run(args: VerifyArgs) -> Result<Outcome> {
    let VerifyArgs { formats: named, full, threads, output } = args;
    let quiet = output.quiet;
    let threads = super::threads(threads);
    let outputs = Outputs::without_pictures(output.into())?;
    let mut formats: Vec<FormatSpec> = Vec::new();
    for format in if named.is_empty() { FORMATS } else { &named } {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    let checks: Vec<Check> = formats.iter().flat_map(|format| verify::checks(format, full)).collect();
    if checks.is_empty() {
        return Err(Error::new("there is no second implementation of these formats to compare with"));
    }
    let progress = Progress::of_inputs(checks.iter().map(|check| check.inputs.count()).sum(), quiet);
    let tallies = verify::run(&checks, threads, |inputs| progress.add(inputs));
    progress.finish();
    let report = VerifyReport::new(&checks, &tallies, full);
    let passed = report.passed;
    outputs.write(&report, VerifyReport::terminal)?;
    Ok(if passed { Outcome::Done } else { Outcome::Findings })
}
