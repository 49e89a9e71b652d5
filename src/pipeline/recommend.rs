//! Every candidate format on every step of every tensor.

use std::num::NonZero;

use super::{BlockTask, Series, Task, run, run_block_casts};
use crate::cast::CastPlan;
use crate::cast::block::BlockPlan;
use crate::error::Error;
use crate::format::pow2;
use crate::recommend::{Candidate, Cast, Measured};
use crate::scaler::fp8::Role;
use crate::stats::scales::{SafeScales, largest_without_overflow};
use crate::stats::{FormatStats, SourceStats, StatsPlan, TensorAccumulator};

/// What was found in one series of steps.
pub struct Candidates {
    /// The stored values, all steps and ranks together; `None` if nothing could be read.
    pub source: Option<SourceStats>,
    /// For each candidate what it did at each step, `None` where it could not be made.
    pub measured: Vec<Vec<Option<Measured>>>,
}

/// What was found, and the loss scale of the candidates that have one.
pub struct Found {
    /// Each series.
    pub series: Vec<Candidates>,
    /// log2 of the loss scale; `None` without gradients, or where no scale helps.
    pub loss_scale_log2: Option<i32>,
    /// What went wrong.
    pub problems: Vec<Error>,
}

/// Casts every task to every candidate. `read` is told of bytes, from any thread; every tensor is read once for the
/// plain formats, for its blocks as [`run_block_casts`] says, and gradients once more for a loss scale.
pub fn run_candidates(
    tasks: &[Task<'_>],
    series: &[Series],
    candidates: &[&Candidate],
    threads: NonZero<usize>,
    read: impl Fn(u64) + Sync,
) -> Found {
    let mut problems = Vec::new();
    let plans = |wanted: fn(&Cast) -> bool, scale: f32| {
        let formats = candidates.iter().filter(|candidate| wanted(&candidate.cast));
        let formats = formats.filter_map(|candidate| candidate.plain().ok().flatten());
        StatsPlan::new(formats.map(|format| CastPlan { scale, ..CastPlan::new(format) }).collect())
    };
    let plain = plans(|cast| matches!(cast, Cast::Plain(_)), 1.0);
    let found = run(tasks, threads, |info| TensorAccumulator::new(&plain, &info.name, info.elements), &read);
    let mut plain_stats = Vec::new();
    for result in found {
        plain_stats.push(result.map_err(|error| problems.push(error)).ok());
    }

    let specs = candidate_blocks(candidates);
    let readable =
        || plain_stats.iter().enumerate().filter_map(|(number, stats)| Some((number, stats.as_ref()?)));
    let block_tasks: Vec<BlockTask<'_>> = readable()
        .map(|(number, stats)| {
            let casts = specs.iter().copied().map(Into::into).collect();
            BlockTask { task: &tasks[number], source: &stats.source, casts }
        })
        .collect();
    let mut block_stats: Vec<Vec<FormatStats>> = vec![Vec::new(); tasks.len()];
    let cast = run_block_casts(&block_tasks, threads, &read);
    for ((number, _), (stats, failures)) in readable().zip(cast) {
        block_stats[number] = stats.into_iter().map(|stats| stats.format).collect();
        problems.extend(failures);
    }

    let gradients: Vec<usize> = series
        .iter()
        .filter(|series| series.role == Role::Gradient)
        .flat_map(|series| series.steps.concat())
        .collect();
    let scaled_plan = |log2: i32| plans(|cast| matches!(cast, Cast::LossScaled(_)), pow2(log2) as f32);
    let loss_scale_log2 = loss_scale(&gradients, &plain_stats, candidates);
    let mut scaled_stats: Vec<Option<Vec<FormatStats>>> = vec![None; tasks.len()];
    if let Some(log2) = loss_scale_log2 {
        let plan = scaled_plan(log2);
        let again: Vec<Task<'_>> = gradients
            .iter()
            .map(|&number| Task {
                source: tasks[number].source,
                index: tasks[number].index,
                info: tasks[number].info.clone(),
                path: tasks[number].path,
            })
            .collect();
        let found =
            run(&again, threads, |info| TensorAccumulator::new(&plan, &info.name, info.elements), &read);
        for (&number, result) in gradients.iter().zip(found) {
            scaled_stats[number] = result.ok().map(|stats| stats.formats);
        }
    }

    let series = series.iter().map(|series| {
        let mut source: Option<SourceStats> = None;
        for stats in series.steps.iter().flatten().filter_map(|&member| plain_stats[member].as_ref()) {
            source.get_or_insert_default().merge(&stats.source);
        }
        let (mut plains, mut blocks, mut scaled) = (0.., 0.., 0..);
        let measured = candidates.iter().map(|candidate| {
            let (of, at) = match candidate.cast {
                Cast::Plain(_) => (0, plains.next()),
                Cast::Block(_) => (1, blocks.next()),
                Cast::LossScaled(_) => (2, scaled.next()),
            };
            let at: usize = at.unwrap_or(0);
            let stats = |member: usize| match of {
                0 => plain_stats[member].as_ref()?.formats.get(at),
                1 => block_stats[member].get(at),
                _ => scaled_stats[member].as_ref()?.get(at),
            };
            let elements = |member: usize| plain_stats[member].as_ref().map(|stats| stats.source.elements);
            let step = |members: &Vec<usize>| {
                let mut sum = FormatStats::default();
                for &member in members.iter().filter(|&&member| plain_stats[member].is_some()) {
                    let stats = stats(member)?;
                    // A tensor that cannot be cut so has no elements in these statistics.
                    if Some(stats.classes.total()) != elements(member) {
                        return None;
                    }
                    sum.merge(stats);
                }
                Some(Measured::from(&sum))
            };
            series.steps.iter().map(step).collect()
        });
        let measured = measured.collect();
        Candidates { source, measured }
    });
    Found { series: series.collect(), loss_scale_log2, problems }
}

/// The block casts among the candidates, in their order.
pub fn candidate_blocks(candidates: &[&Candidate]) -> Vec<BlockPlan> {
    let specs = candidates.iter().filter_map(|candidate| candidate.block().ok().flatten());
    specs.map(|spec| BlockPlan { spec, scale: 1.0 }).collect()
}

/// log2 of the loss scale that suits all gradients together: one bit below the largest at which none overflows, but no
/// more than is needed.
fn loss_scale(
    gradients: &[usize],
    stats: &[Option<crate::stats::TensorStats>],
    candidates: &[&Candidate],
) -> Option<i32> {
    let scaled = candidates.iter().find(|candidate| matches!(candidate.cast, Cast::LossScaled(_)))?;
    let format = scaled.plain().ok().flatten()?;
    let mut all = SourceStats::default();
    gradients.iter().filter_map(|&number| stats[number].as_ref()).for_each(|stats| all.merge(&stats.source));
    let largest = largest_without_overflow(&all, &format)? - 1;
    let needed = SafeScales::find(&all, &format).map_or(largest, |safe| safe.smallest + 1);
    let log2 = needed.min(largest);
    (log2 > 0).then_some(log2)
}
