//! Samples of recorded ranks reduced among other numbers of ranks, in parallel.

use std::num::NonZero;

use super::in_segments;
use crate::error::Result;
use crate::training::reduce::{Case, ErrorTally, Sample, WorldAccumulator};

/// The errors of each case for each number of ranks in `worlds`, all samples together. `done` is told the number of
/// ranks after each sample, from any thread.
///
/// # Errors
/// None but of the threads.
pub fn run_worlds(
    samples: &[Sample],
    worlds: &[usize],
    cases: &[Case],
    (scale, seed): (f32, u64),
    threads: NonZero<usize>,
    done: impl Fn(u64) + Sync,
) -> Result<Vec<Vec<ErrorTally>>> {
    let segments = vec![samples.len() as u64; worlds.len()];
    let recorded = samples.first().map_or(1, |sample| sample.ranks.len());
    let results = in_segments(
        &segments,
        threads,
        |_| false,
        |job, number, (): &mut ()| {
            let mut accumulator = WorldAccumulator::new(cases, worlds[job], recorded, scale, seed);
            if let Some(sample) = samples.get(number as usize) {
                accumulator.observe(sample);
                done(worlds[job] as u64);
            }
            Ok(accumulator)
        },
    );
    results.into_iter().collect()
}
