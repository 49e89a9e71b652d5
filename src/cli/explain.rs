//! Wiring of `amp-inspect explain`.

use std::ffi::OsString;

use super::Outcome;
use super::args::ExplainArgs;
use super::output::Outputs;
use crate::error::Result;
use crate::report::explain::{ExplainReport, Given};

pub(super) fn run(args: ExplainArgs) -> Result<Outcome> {
    let ExplainArgs { values, from, cast, output } = args;
    let outputs = Outputs::without_pictures(output.into())?;
    let values = values.iter().map(|text| Given::parse(text, from)).collect::<Result<Vec<_>>>()?;
    let report = ExplainReport::new(values, &cast.plain_plans()?, cast.scale, from);
    outputs.write(&report, ExplainReport::terminal)?;
    Ok(Outcome::Done)
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
