//! Wiring of `amp-inspect formats`.

use super::Outcome;
use super::args::FormatsArgs;
use super::output::Outputs;
use crate::error::Result;
use crate::format::FormatSpec;
use crate::format::table::FORMATS;
use crate::report::formats::{CodesReport, FormatsReport};

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
