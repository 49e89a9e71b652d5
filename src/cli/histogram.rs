//! Wiring of `amp-inspect histogram`.

use clap::Args;
use clap::builder::TypedValueParser;

use super::Outcome;
use super::args::{CastArgs, OutputArgs, RoundingArg, choices, named};
use super::by::{By, by_parser};
use super::input_args::InputArgs;
use super::inputs::{Dump, Inputs, Selected};
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::rows::{Row, rows};
use crate::cast::block::BlockPlan;
use crate::cast::{Overflow, Rounding, Target};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::histogram::{HistogramReport, Input, Options, SORTS, Sort};
use crate::stats::{BlockStats, StatsPlan, TensorAccumulator, TensorStats};
use crate::tensor::TensorInfo;

/// What each format would lose: a log2-magnitude histogram with every format's limits, and the share
/// of values that underflow, become subnormal or overflow, for each tensor
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect histogram grads.safetensors --formats float16,e4m3fn --scale 65536 --save out.png",
    after_help = HISTOGRAM_DEFINITIONS
)]
pub(super) struct HistogramArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    pub(super) cast: CastArgs,
    /// What the rows of the main table are: each tensor with all its ranks, or all of a step or a rank
    #[arg(long, value_name = "AXIS", default_value = "tensor", value_parser = by_parser(), help_heading = "Output")]
    pub(super) by: By,
    /// Order of the tensors in tables, and the figure shown
    #[arg(long, value_name = "KEY", default_value = "lost", value_parser = sort_parser(), long_help = sort_help(), help_heading = "Output", hide_possible_values = true)]
    pub(super) sort: Sort,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const HISTOGRAM_DEFINITIONS: &str = "\
Definitions (x: the stored value, s: the scale, q: x·s cast to the format):
  underflow   x is finite and nonzero, but q is zero: the value is lost
  subnormal   q is a nonzero subnormal number: kept, with fewer bits
  overflow    x is finite, but x·s rounded with unbounded exponent exceeds the largest finite number
  exceeds_max x is finite, and |x·s| is above the largest finite number before rounding
  %           of the finite nonzero values; JSON and CSV also have the share of all values
  SQNR        20·log10(‖x‖ / ‖x − q/s‖) in dB
  mse         mean of (x − q/s)²
  max_rel, mean_rel
              largest and mean of |x − q/s| / |x| over the finite nonzero values
  headroom    log2(largest finite number / (s·amax)) in bits

Exit code: 0 done, 2 wrong usage or something that could not be read.";

pub(super) fn run(args: HistogramArgs) -> Result<Outcome> {
    let HistogramArgs { input, cast, by, sort, output } = args;
    let threads = super::threads(output.threads);
    let quiet = output.quiet;
    let outputs = Outputs::prepare(output)?;
    outputs.keep_apart(None, &input.paths)?;
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

    let bytes = pipeline::bytes_to_read(selected.iter().map(|tensor| &tensor.task), &block_plans);
    let progress = Progress::new(bytes, quiet);
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
        problems.extend(results.into_iter().filter_map(Result::err));
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
            match results[member].take() {
                Some(Ok((stats, (blocks, failures)))) => {
                    problems.extend(failures);
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
                Some(Err(error)) => problems.push(error),
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

pub(super) fn options(cast: &CastArgs, input: &InputArgs, by: By, sort: Sort) -> Options {
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

fn sort_parser() -> impl TypedValueParser<Value = Sort> {
    named(SORTS.iter().map(|(name, sort, _)| (*name, *sort)))
}

fn sort_help() -> String {
    let keys = choices(SORTS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("Order of the tensors in tables, worst first by the first format, and the figure shown:{keys}")
}
