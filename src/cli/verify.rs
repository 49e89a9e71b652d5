//! Wiring of `amp-inspect verify`.

use super::Outcome;
use super::args::VerifyArgs;
use super::output::Outputs;
use super::progress::Progress;
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::format::table::FORMATS;
use crate::report::verify::VerifyReport;
use crate::verify::{self, Check};

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
