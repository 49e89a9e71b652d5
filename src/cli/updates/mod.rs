//! Wiring of `amp-inspect updates`.

mod args;
mod tensors;

pub(super) use args::UpdatesArgs;

use super::Outcome;
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use crate::cast::philox::stream;
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::pipeline;
use crate::report::updates::{Options, UpdatesReport};
use crate::training::updates::{UpdateAccumulator, UpdatePlan};
use tensors::{Files, Weight};

pub(super) fn run(args: UpdatesArgs) -> Result<Outcome> {
    let outputs = Outputs::prepare(args.output.clone())?;
    let several = [&args.weights, &args.grads, &args.exp_avg, &args.exp_avg_sq];
    let read: Vec<_> = several.into_iter().flatten().chain(&args.checkpoint).collect();
    outputs.keep_apart(None, &read)?;
    let mut formats: Vec<FormatSpec> = Vec::new();
    for format in &args.formats {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    formats.retain(|format| format.name != "float32");
    let plan = UpdatePlan::new(&formats, args.steps, args.seed, args.random_bits)?;
    let files = Files::open(&args);
    let tensors::Found { weights, notices, mut problems, rule } = files.weights(&args)?;
    if weights.is_empty() {
        return Err(tensors::nothing(&args, problems));
    }
    outputs.notices(&notices);

    let (groups, settings): (Vec<_>, Vec<_>) =
        weights.into_iter().map(|Weight { tasks, name, step }| (tasks, (name, step))).unzip();
    let bytes = groups.iter().flatten().map(|task| task.info.bytes()).sum();
    let progress = Progress::new(bytes, args.output.quiet);
    let new = |number: usize| {
        let (name, step) = &settings[number];
        UpdateAccumulator::new(&plan, *step, stream(name))
    };
    let results = pipeline::run_together(&groups, super::threads(args.output.threads), new, |bytes| {
        progress.add(bytes);
    });
    progress.finish();

    let mut report = UpdatesReport::new(&plan, files.paths(), rule, options(&args));
    for ((group, (name, step)), result) in groups.iter().zip(settings).zip(results) {
        let weight = &group[0];
        match result {
            Ok(Ok(updates)) => report.push(&name, &weight.info, step, &updates),
            Ok(Err(error)) => problems.push(error.in_tensor(&weight.info.name).in_file(weight.path)),
            Err(error) => problems.push(error),
        }
    }
    if report.tensors.is_empty() {
        return Err(tensors::nothing(&args, problems));
    }
    report.conclude();
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, UpdatesReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

fn options(args: &UpdatesArgs) -> Options {
    Options {
        lr: args.lr,
        steps: args.steps,
        seed: args.seed,
        random_bits: args.random_bits,
        unscale: args.unscale.map(f64::from),
        tensor: args.tensor.as_ref().map(ToString::to_string),
        exclude: args.exclude.as_ref().map(ToString::to_string),
    }
}
