//! The figures to check.

use super::super::inputs::{Inputs, Selected, require};
use super::super::output::Outputs;
use super::super::progress::Progress;
use super::{CheckArgs, recorded};
use crate::cast::Target;
use crate::cast::block::BlockPlan;
use crate::check::figures::Snapshot;
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::Report as _;
use crate::report::histogram::{HistogramReport, Input};
use crate::stats::{StatsPlan, TensorAccumulator, WithDigest};

/// Figures, and what is to be said about them.
pub(super) struct Measured {
    pub(super) snapshot: Snapshot,
    pub(super) notices: Vec<String>,
    pub(super) problems: Vec<Error>,
}

/// The figures of what was typed.
pub(super) fn snapshot(args: &CheckArgs, outputs: &Outputs) -> Result<Measured> {
    if let [path] = args.input.paths.as_slice()
        && let Some(report) = recorded::report_at(path)
    {
        let measured = recorded::measured(args, &report).map_err(|error| error.in_file(path))?;
        outputs.notices(&measured.notices);
        return Ok(measured);
    }
    let threads = super::super::threads(args.output.threads);
    let targets = args.cast.targets();
    let plan = StatsPlan::new(targets.iter().filter_map(Target::plain).copied().collect());
    let blocks: Vec<BlockPlan> = targets.iter().filter_map(Target::block).copied().collect();
    let inputs = Inputs::open(args.input.clone());
    let (selected, skipped, mut problems) = inputs.select();
    problems.splice(0..0, inputs.problems.iter().cloned());
    let mut notices: Vec<String> = inputs.notices.iter().cloned().chain(skipped).collect();
    notices.extend(inputs.other_scales(inputs.filters().unscale.unwrap_or(1.0)));
    notices.extend(args.cast.ignored_by_blocks());
    outputs.notices(&notices);
    require(&selected, &inputs, &problems)?;

    let bytes = pipeline::bytes_to_read(selected.iter().map(|tensor| &tensor.task), &blocks);
    let progress = Progress::new(bytes, args.output.quiet);
    let names: Vec<String> =
        selected.iter().map(|tensor| inputs.key(tensor.dump, &tensor.task.info)).collect();
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump, .. }| (task, dump)).unzip();
    let new = |info: &_| {
        let info: &crate::tensor::TensorInfo = info;
        WithDigest::new(TensorAccumulator::new(&plan, &info.name, info.elements), info)
    };
    let results = pipeline::run(&tasks, threads, new, |bytes| progress.add(bytes));
    let readable: Vec<_> = tasks
        .iter()
        .zip(&results)
        .filter_map(|(task, result)| result.as_ref().ok().map(|(stats, _)| (task, &stats.source)))
        .collect();
    let mut of_blocks =
        pipeline::run_blocks(&readable, &blocks, threads, |bytes| progress.add(bytes)).into_iter();
    progress.finish();
    let mut report = HistogramReport::new(
        targets,
        super::super::histogram::options(
            &args.cast,
            inputs.filters(),
            super::super::by::By::Tensor,
            crate::report::histogram::Sort::File,
        ),
    );
    report.inputs = inputs
        .dumps()
        .iter()
        .map(|dump| {
            let mut input = Input::new(dump.path.display().to_string(), Vec::new());
            (input.step, input.rank) = (dump.place.step, dump.place.rank);
            input
        })
        .collect();
    let mut digests = Vec::new();
    for (((task, result), dump), name) in tasks.iter().zip(results).zip(dumps).zip(names) {
        match result {
            Ok((stats, digest)) => {
                // The blocks of the tensors that the first pass could read follow in order.
                let (blocks, failures) = of_blocks.next().unwrap_or_default();
                problems.extend(failures);
                let info = crate::tensor::TensorInfo { name, ..task.info.clone() };
                report.push(dump, &info, stats, &blocks);
                digests.push(format!("{digest:032x}"));
            }
            Err(error) => problems.push(error),
        }
    }
    if digests.is_empty() {
        return require(&[], &inputs, &problems).and(Err(Error::new("no tensor could be read")));
    }
    let mut json = Vec::new();
    let written = report.json(&mut json).map_err(|error| Error::io("cannot make the report", &error));
    written?;
    let json = serde_json::from_slice(&json).map_err(|error| Error::new(error.to_string()))?;
    let mut snapshot = Snapshot::from_report(&json)?;
    for (tensor, digest) in snapshot.tensors.iter_mut().zip(digests) {
        tensor.digest = Some(digest);
    }
    Ok(Measured { snapshot, notices, problems })
}
