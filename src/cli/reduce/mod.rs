//! Wiring of `amp-inspect reduce`.

mod args;
mod ranks;

pub(super) use args::ReduceArgs;

use super::inputs::Inputs;
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::{Outcome, threads};
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::reduce::{Options, ReduceReport};
use crate::tensor::TensorInfo;
use crate::training::reduce::{ReduceAccumulator, ReducePlan, Sample};
use args::Fsdp;
use ranks::Ranks;

/// Most gradients, of all ranks together, that are kept to estimate other numbers of ranks from.
const SAMPLED: u64 = 1 << 17;

pub(super) fn run(args: ReduceArgs) -> Result<Outcome> {
    let ReduceArgs { input, output, .. } = args;
    let (quiet, threads) = (output.quiet, threads(output.threads));
    let outputs = Outputs::prepare(output)?;
    outputs.keep_apart(None, &input.paths)?;
    let fsdp = args.fsdp.map(|Fsdp { param, reduce, buffer }| [param, reduce, buffer]);
    let plan = ReducePlan::new(&args.formats, &args.algorithms, &args.accumulate, &args.divide, fsdp)?;
    let inputs = Inputs::open(input);
    let (selected, more, faults) = inputs.select();
    let mut problems: Vec<Error> = inputs.problems.iter().cloned().chain(faults).collect();
    super::inputs::require(&selected, &inputs, &problems)?;
    let mut notices: Vec<String> = inputs.notices.iter().cloned().chain(more).collect();
    notices.extend(inputs.other_scales(inputs.filters().unscale.unwrap_or(1.0)));
    let Ranks { numbers, tensors, problems: unlike } = Ranks::new(&inputs, selected)?;
    problems.extend(unlike);
    if let Some(worlds) = &args.world_size {
        let recorded = numbers.len();
        if worlds.0.iter().any(|&ranks| ranks < recorded) {
            let what = format!(
                "--world-size: {recorded} ranks are recorded, so it begins there; --ranks takes fewer"
            );
            return Err(Error::new(what));
        }
    }
    outputs.notices(&notices);

    let (names, groups): (Vec<_>, Vec<_>) = tensors.into_iter().unzip();
    let info = |group: usize| -> &TensorInfo { &groups[group][0].info };
    let elements: u64 = (0..groups.len()).map(|group| info(group).elements).sum();
    let sampled = SAMPLED / numbers.len().max(1) as u64;
    let stride = if args.world_size.is_some() { elements.div_ceil(sampled.max(1)).max(1) } else { 0 };
    let bytes = groups.iter().flatten().map(|task| task.info.bytes()).sum();
    let progress = Progress::new(bytes, quiet);
    let new = |group: usize| ReduceAccumulator::new(plan.cases(), info(group).elements, args.scale, stride);
    let results = pipeline::run_together(&groups, threads, new, |bytes| progress.add(bytes));
    progress.finish();

    let paths = inputs.dumps().iter().map(|dump| dump.path.display().to_string()).collect();
    let filters = inputs.filters();
    let options = Options {
        scale: args.scale.into(),
        seed: args.seed,
        tensor: filters.tensor.as_ref().map(ToString::to_string),
        exclude: filters.exclude.as_ref().map(ToString::to_string),
        unscale: filters.unscale.map(f64::from),
    };
    let mut report = ReduceReport::new(&plan, paths, numbers.clone(), options);
    let mut samples: Vec<Sample> = Vec::new();
    for ((group, name), result) in groups.iter().zip(&names).zip(results) {
        match result {
            Ok(Ok(mut reductions)) => {
                samples.push(std::mem::take(&mut reductions.sample));
                report.push(name, &group[0].info, &reductions);
            }
            Ok(Err((rank, error))) => {
                problems.push(error.in_tensor(&group[rank].info.name).in_file(group[rank].path));
            }
            Err(error) => problems.push(error),
        }
    }
    if report.tensors.is_empty() {
        let last = problems.pop();
        complain_of_all(problems.iter());
        return Err(last.unwrap_or_else(|| Error::new("found no tensor that all ranks have")));
    }
    if let Some(worlds) = args.world_size {
        let total: usize = worlds.0.iter().sum::<usize>() * samples.len();
        let progress = Progress::of_ranks(total as u64, quiet);
        let chosen = (args.scale, args.seed);
        let cases = plan.world_cases();
        let tallies =
            pipeline::run_worlds(&samples, &worlds.0, cases, chosen, threads, |ranks| progress.add(ranks))?;
        progress.finish();
        report.worlds(
            &plan,
            &worlds.0,
            &tallies,
            samples.iter().map(|sample| sample.indices.len() as u64).sum(),
        );
    }
    report.conclude();
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, ReduceReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}
