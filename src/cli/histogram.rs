//! Wiring of `amp-inspect histogram`.

use super::Outcome;
use super::args::{CastArgs, HistogramArgs, RoundingArg};
use super::by::By;
use super::input_args::InputArgs;
use super::inputs::{Dump, Inputs, Selected};
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::rows::{Row, rows};
use crate::cast::block::BlockPlan;
use crate::cast::{Overflow, Rounding, Target};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::histogram::{HistogramReport, Input, Options, Sort};
use crate::stats::{BlockStats, StatsPlan, TensorAccumulator, TensorStats};
use crate::tensor::TensorInfo;

pub(super) fn run(args: HistogramArgs) -> Result<Outcome> {
    let HistogramArgs { input, cast, by, sort, output } = args;
    let threads = super::threads(output.threads);
    let quiet = output.quiet;
    let outputs = Outputs::prepare(output)?;
    let targets = cast.targets();
    let plan = StatsPlan::new(targets.iter().filter_map(Target::plain).copied().collect());
    let block_plans: Vec<BlockPlan> = targets.iter().filter_map(Target::block).copied().collect();
    let inputs = Inputs::open(input);
    let (mut selected, notices, mut problems) = inputs.select();
    problems.splice(0..0, inputs.problems.iter().cloned());
    let mut notices: Vec<String> =
        inputs.notices.iter().cloned().chain(notices).chain(cast.ignored_by_blocks()).collect();
    notices.extend(inputs.other_scales(inputs.filters().unscale.unwrap_or(1.0)));
    // By rank, each shows all that it has.
    if by != By::Rank {
        notices.extend(Inputs::drop_replicas(&mut selected, threads));
    }
    if by != By::Tensor {
        notices.extend(inputs.drop_unplaced(&mut selected, by)?);
    }
    outputs.notices(&notices);
    super::inputs::require(&selected, &inputs, &problems)?;

    let bytes: u64 = selected.iter().map(|tensor| tensor.task.info.bytes()).sum();
    let progress = Progress::new(bytes * (1 + pipeline::block_shapes(&block_plans).len() as u64), quiet);
    let rows = rows(&inputs, &selected, by);
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump, .. }| (task, dump)).unzip();
    let results = pipeline::run(
        &tasks,
        threads,
        |info| TensorAccumulator::new(&plan, &info.name, info.elements),
        |bytes| progress.add(bytes),
    );
    let readable: Vec<_> = tasks
        .iter()
        .zip(&results)
        .filter_map(|(task, result)| result.as_ref().ok().map(|stats| (task, &stats.source)))
        .collect();
    let mut blocks =
        pipeline::run_blocks(&readable, &block_plans, threads, |bytes| progress.add(bytes)).into_iter();
    progress.finish();
    if readable.is_empty() {
        let failures = results.iter().zip(&dumps).filter_map(|(result, &dump)| {
            result.as_ref().err().map(|error| error.clone().in_file(inputs.path(dump)))
        });
        problems.extend(failures);
        return super::inputs::require(&[], &inputs, &problems).map(|()| Outcome::Incomplete);
    }
    // The blocks of the tensors that the first pass could read follow in order.
    let mut results: Vec<_> = results
        .into_iter()
        .map(|result| Some(result.map(|stats| (stats, blocks.next().unwrap_or_default()))))
        .collect();

    let mut report = HistogramReport::new(targets, options(&cast, inputs.filters(), by, sort));
    report.inputs = inputs.dumps().iter().map(input_row).collect();
    let mut total = TensorStats::default();
    let mut total_blocks = vec![BlockStats::default(); block_plans.len()];
    for Row { place, members } in rows {
        let mut sum: Option<(TensorStats, Vec<BlockStats>)> = None;
        let alone = by == By::Tensor && place.ranks.len() < 2;
        let first = members.first().map(|&member| (dumps[member], &tasks[member].info));
        let kind = |info: &TensorInfo| (info.shape.clone(), info.dtype.clone());
        let of_one_kind = |info: &TensorInfo| {
            by == By::Tensor && members.iter().all(|&member| kind(&tasks[member].info) == kind(info))
        };
        let common = first.map(|(_, info)| info).filter(|info| of_one_kind(info));
        for &member in &members {
            let path = inputs.path(dumps[member]);
            match results[member].take() {
                Some(Ok((stats, (blocks, failures)))) => {
                    problems.extend(failures.into_iter().map(|error| error.in_file(path)));
                    if !alone {
                        report.count(dumps[member], &tasks[member].info);
                    }
                    total.merge(&stats);
                    total_blocks.iter_mut().zip(&blocks).for_each(|(sum, blocks)| sum.merge_tensor(blocks));
                    match &mut sum {
                        None => sum = Some((stats, blocks)),
                        Some((sum, sums)) => {
                            sum.merge(&stats);
                            let add =
                                if common.is_some() { BlockStats::merge } else { BlockStats::merge_tensor };
                            sums.iter_mut().zip(&blocks).for_each(|(sum, blocks)| add(sum, blocks));
                        }
                    }
                }
                Some(Err(error)) => problems.push(error.in_file(path)),
                None => {}
            }
        }
        match (sum, first) {
            (Some((stats, blocks)), Some((dump, info))) if alone => report.push(dump, info, stats, &blocks),
            (Some((stats, blocks)), _) => report.push_sum(place, common, stats, &blocks),
            _ => {}
        }
    }
    report.conclude(&total, &total_blocks);
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, HistogramReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

pub(super) fn input_row(dump: &Dump) -> Input {
    let mut input = Input::new(dump.path.display().to_string(), dump.source.metadata().to_vec());
    (input.step, input.rank) = (dump.place.step, dump.place.rank);
    input
}

fn options(cast: &CastArgs, input: &InputArgs, by: By, sort: Sort) -> Options {
    Options {
        profile: cast.profile.map(|profile| profile.name),
        overflow: cast.overflow.map_or("default", Overflow::name),
        rounding: match cast.rounding {
            None => Rounding::NearestEven.name(),
            Some(RoundingArg::Fixed(mode)) => mode.name(),
            Some(RoundingArg::Stochastic) => "stochastic",
        },
        seed: cast.seed.unwrap_or(0),
        random_bits: cast.random_bits,
        ftz: cast.ftz,
        daz: cast.daz,
        dtype: input.dtype.as_ref().map(|dtype| dtype.name().to_owned()),
        unscale: input.unscale,
        tensor: input.tensor.as_ref().map(ToString::to_string),
        exclude: input.exclude.as_ref().map(ToString::to_string),
        steps: input.steps.as_ref().map(|steps| steps.text().to_owned()),
        ranks: input.ranks.as_ref().map(|ranks| ranks.text().to_owned()),
        by: by.name(),
        sort,
        ..Options::at_scale(cast.scale)
    }
}
