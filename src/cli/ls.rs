//! Wiring of `amp-inspect ls`.

use clap::Args;

use super::Outcome;
use super::args::TextOutputArgs;
use super::input_args::InputArgs;
use super::inputs::Inputs;
use super::output::{Outputs, complain_of_all};
use crate::error::{Error, Result};
use crate::report::listing::{Entry, ListingReport};

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

pub(super) fn run(args: LsArgs) -> Result<Outcome> {
    let LsArgs { input, output } = args;
    let outputs = Outputs::without_pictures(output.into())?;
    outputs.keep_apart(None, &input.paths)?;
    let inputs = Inputs::open(input);
    let unscale = inputs.filters().unscale.unwrap_or(1.0);
    let notices: Vec<String> = inputs.notices.iter().cloned().chain(inputs.other_scales(unscale)).collect();
    outputs.notices(&notices);
    let mut report = ListingReport::default();
    for dump in inputs.dumps() {
        let wanted = dump.source.tensors().iter().any(|info| inputs.wants_tensor(&info.name));
        if inputs.filters_tensors() && !wanted {
            continue;
        }
        let number = report.files.len();
        report.files.push(dump.path.display().to_string());
        for info in dump.source.tensors().iter().filter(|info| inputs.wants_tensor(&info.name)) {
            let info = match &inputs.filters().dtype {
                // What cannot be read so is listed as it is.
                Some(dtype) => info.reinterpret(dtype).unwrap_or_else(|_| info.clone()),
                None => info.clone(),
            };
            report.tensors.push(Entry::new(number, &info, (dump.place.step, dump.place.rank)));
        }
    }
    if report.files.is_empty() {
        super::inputs::require(&[], &inputs, &inputs.problems)?;
    }
    report.notices = notices;
    report.problems = inputs.problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, ListingReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}
