//! Wiring of `amp-inspect histogram`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread;

use super::Outcome;
use super::args::{By, CastArgs, HistogramArgs, RoundingArg};
use super::input_args::InputArgs;
use super::inputs::{Dump, Inputs, Selected};
use super::output::{Outputs, complain};
use super::progress::Progress;
use crate::cast::block::BlockPlan;
use crate::cast::{Overflow, Rounding, Target};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::histogram::{HistogramReport, Input, Options, Sort};
use crate::stats::{BlockStats, StatsPlan, TensorAccumulator, TensorStats};

pub(super) fn run(args: HistogramArgs) -> Result<Outcome> {
    let HistogramArgs { input, cast, by, sort, output } = args;
    let threads =
        output.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN);
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
    notices.extend(inputs.drop_replicas(&mut selected, threads));
    if by == By::Step {
        notices.extend(inputs.drop_unplaced(&mut selected)?);
    }
    notices.iter().for_each(|notice| outputs.notice(notice));
    super::inputs::require(&selected, &inputs, &problems)?;

    let bytes: u64 = selected.iter().map(|tensor| tensor.task.info.bytes()).sum();
    let progress = Progress::new(bytes * (1 + pipeline::block_shapes(&block_plans).len() as u64), quiet);
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump }| (task, dump)).unzip();
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
    let results = results.into_iter().map(|result| Ok((result?, blocks.next().unwrap_or_default())));

    let mut report = HistogramReport::new(targets, options(&cast, inputs.filters(), by, sort));
    report.inputs = inputs.dumps().iter().map(input_row).collect();
    let mut steps: BTreeMap<u64, (TensorStats, Vec<BlockStats>)> = BTreeMap::new();
    let mut total = TensorStats::default();
    let mut total_blocks = vec![BlockStats::default(); block_plans.len()];
    for ((task, dump), result) in tasks.iter().zip(dumps).zip(results) {
        match result {
            Ok((stats, (blocks, failures))) => {
                problems.extend(failures.into_iter().map(|error| error.in_file(inputs.path(dump))));
                if let (By::Step, Some(step)) = (by, inputs.dumps()[dump].place.step) {
                    report.count(dump, &task.info);
                    let none = || (TensorStats::default(), vec![BlockStats::default(); block_plans.len()]);
                    let (sum, sums) = steps.entry(step).or_insert_with(none);
                    sum.merge(&stats);
                    sums.iter_mut().zip(&blocks).for_each(|(sum, blocks)| sum.merge_tensor(blocks));
                } else {
                    report.push(dump, &task.info, &stats, &blocks);
                }
                total.merge(&stats);
                total_blocks.iter_mut().zip(&blocks).for_each(|(sum, blocks)| sum.merge_tensor(blocks));
            }
            Err::<_, Error>(error) => problems.push(error.in_file(inputs.path(dump))),
        }
    }
    for (step, (stats, blocks)) in &steps {
        report.push_step(*step, stats, blocks);
    }
    report.conclude(&total, &total_blocks);
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    report.problems.iter().for_each(|problem| complain(problem));
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, HistogramReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

fn input_row(dump: &Dump) -> Input {
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
