//! Wiring of `amp-inspect histogram`.

use std::num::NonZero;
use std::thread;

use super::Outcome;
use super::args::{CastArgs, HistogramArgs, InputArgs};
use super::inputs::{Inputs, Selected};
use super::output::{Outputs, complain};
use super::progress::Progress;
use crate::cast::{CastPlan, Overflow};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::histogram::{HistogramReport, Input, Options, Sort};
use crate::stats::{StatsPlan, TensorAccumulator, TensorStats};

pub(super) fn run(args: HistogramArgs) -> Result<Outcome> {
    let HistogramArgs { input, cast, sort, output } = args;
    let threads =
        output.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN);
    let quiet = output.quiet;
    let outputs = Outputs::prepare(output)?;
    let plan = StatsPlan::new(casts(&cast));
    let inputs = Inputs::open(input);
    let (selected, notices, mut problems) = inputs.select();
    problems.splice(0..0, inputs.problems.iter().cloned());
    let notices: Vec<String> = inputs.notices.iter().cloned().chain(notices).collect();
    notices.iter().for_each(|notice| outputs.notice(notice));
    super::inputs::require(&selected, &inputs, &problems)?;

    let progress = Progress::new(selected.iter().map(|tensor| tensor.task.info.bytes()).sum(), quiet);
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump }| (task, dump)).unzip();
    let results =
        pipeline::run(&tasks, threads, || TensorAccumulator::new(&plan), |bytes| progress.add(bytes));
    progress.finish();

    let mut report = HistogramReport::new(plan.casts(), options(&cast, inputs.filters(), sort));
    report.inputs = inputs.dumps().map(|(path, metadata)| Input::new(path, metadata.to_vec())).collect();
    let mut total = TensorStats::default();
    for ((task, dump), result) in tasks.iter().zip(dumps).zip(results) {
        match result {
            Ok(stats) => {
                report.push(dump, &task.info, &stats);
                total.merge(&stats);
            }
            Err(error) => problems.push(error.in_file(inputs.path(dump))),
        }
    }
    report.conclude(&total);
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    report.problems.iter().for_each(|problem| complain(problem));
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, HistogramReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

/// One cast for each format, each format once.
pub(super) fn casts(args: &CastArgs) -> Vec<CastPlan> {
    let mut casts: Vec<CastPlan> = Vec::new();
    for &target in &args.formats {
        let overflow = args.overflow.unwrap_or(Overflow::default_for(&target));
        let plan = CastPlan { overflow, scale: args.scale, ..CastPlan::new(target) };
        if !casts.iter().any(|known| known.target.name == target.name) {
            casts.push(plan);
        }
    }
    casts
}

fn options(cast: &CastArgs, input: &InputArgs, sort: Sort) -> Options {
    Options {
        overflow: cast.overflow.map_or("default", Overflow::name),
        dtype: input.dtype.as_ref().map(|dtype| dtype.name().to_owned()),
        tensor: input.tensor.as_ref().map(ToString::to_string),
        exclude: input.exclude.as_ref().map(ToString::to_string),
        sort,
        ..Options::at_scale(cast.scale)
    }
}
