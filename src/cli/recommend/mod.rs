//! Wiring of `amp-inspect recommend`.

mod args;

pub(super) use args::RecommendArgs;

use std::path::Path;

use super::Outcome;
use super::by::By;
use super::inputs::{Inputs, Selected};
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::rows::rows;
use super::series::{Series, series};
use crate::error::{Error, Result};
use crate::pipeline::{self, Candidates};
use crate::report::number::Num;
use crate::report::recommend::{Config, Options, RecommendReport, Subject};
use crate::report::save::Target;

pub(super) fn run(args: RecommendArgs) -> Result<Outcome> {
    let threads = super::threads(args.output.threads);
    let outputs = Outputs::without_pictures(args.output.clone())?;
    outputs.keep_apart(args.config.as_deref(), &args.input.paths)?;
    let config = args.config.as_deref().map(reserve).transpose()?;
    let (candidates, bounds, options, roles) =
        (args.candidates(), args.bounds(), options(&args), args.roles.roles());
    if config.is_some() && args.by == crate::report::recommend::By::Layer {
        return Err(Error::new("--config is written tensor by tensor: without --by layer"));
    }
    let inputs = Inputs::open(args.input);
    let (selected, notices, mut problems) = inputs.select_once(threads);
    outputs.notices(&notices);
    super::inputs::require(&selected, &inputs, &problems)?;

    let rows = rows(&inputs, &selected, By::Tensor);
    let series = series(&inputs, &selected, rows, &roles);
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump, .. }| (task, dump)).unzip();
    let bytes = pipeline::bytes_to_read(&tasks, &pipeline::candidate_blocks(&candidates));
    let progress = Progress::new(bytes, args.output.quiet);
    let of_series: Vec<_> = series.iter().map(Series::tasks).collect();
    let found =
        pipeline::run_candidates(&tasks, &of_series, &candidates, threads, |bytes| progress.add(bytes));
    progress.finish();
    problems.extend(found.problems);

    let subjects: Vec<Subject> = series
        .into_iter()
        .zip(found.series)
        .filter_map(|(series, Candidates { source, measured })| {
            let info = &tasks[*series.steps.first()?.1.first()?].info;
            Some(Subject {
                name: series.name,
                role: series.role.name(),
                stored: (info.dtype.name().to_owned(), info.dtype.bits()),
                elements: info.elements,
                source: source?,
                measured,
            })
        })
        .collect();
    if subjects.is_empty() {
        return super::inputs::require(&[], &inputs, &problems).map(|()| Outcome::Incomplete);
    }
    let mut report = RecommendReport::new(options, bounds, candidates, subjects, found.loss_scale_log2);
    report.inputs = inputs.dumps().iter().map(super::histogram::input_row).collect();
    for (task, &dump) in tasks.iter().zip(&dumps) {
        report.inputs[dump].count(&task.info);
    }
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    let written = outputs.write(&report, RecommendReport::terminal);
    let saved = config.map_or(Ok(()), |target| target.save(&Config::new(&report)));
    written.and(saved)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

/// The configuration's file, which is JSON.
fn reserve(path: &Path) -> Result<Target> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("json")) {
        return Err(Error::new("cannot save: a configuration is a .json file").in_file(path));
    }
    Target::reserve(path, &[])
}

fn options(args: &RecommendArgs) -> Options {
    let bounds = args.bounds();
    Options {
        max_underflow_pct: Num(args.max_underflow),
        max_overflow_pct: Num(100.0 * bounds.max_overflow),
        min_sqnr_db: Num(bounds.min_sqnr),
        candidates: args.candidates().iter().map(|candidate| candidate.name).collect(),
        role: args.roles.role.map(crate::scaler::fp8::Role::name),
        unscale: args.input.unscale.map(|scale| Num(scale.into())),
        by: args.by,
    }
}
