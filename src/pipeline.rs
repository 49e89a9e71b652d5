//! The spine: for each tensor read → decode → observe, in parallel, merged in the order of the file.
//!
//! The work is cut at fixed places, so the same input gives the same result for any number of threads,
//! and memory is bounded by threads × segments whatever the size of the file.

mod blocks;
mod fp8;
mod recommend;
mod replicas;
mod scalers;
mod together;
mod worlds;

pub use blocks::{BlockTask, bytes_to_read, run_block_casts, run_blocks};
pub use fp8::{Fp8Cast, Fp8Plan, Fp8Results, Fp8Step, Series, replay_magnitudes, run_fp8};
pub use recommend::{Candidates, Found, candidate_blocks, run_candidates};
pub use replicas::replicas;
pub use scalers::run_scalers;
pub use together::run_together;
pub use worlds::run_worlds;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::source::TensorSource;
use crate::stats::{Accumulate, Merge};
use crate::tensor::{Chunk, Decoder, TensorInfo};

/// Elements read and observed at a time: 256 KiB of f32, which stays in the second-level cache.
const CHUNK: u64 = 1 << 16;
/// Elements that go into one accumulator before it is merged.
const SEGMENT: u64 = 1 << 22;
/// Segments, for each thread, that may be done before their turn to be merged.
const AHEAD: u64 = 4;
/// How long a thread waits for its turn: a thread that fails must not hold up the others for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// One tensor to read.
#[derive(Clone)]
pub struct Task<'a> {
    /// The dump it is in.
    pub source: &'a dyn TensorSource,
    /// Its position in [`TensorSource::tensors`].
    pub index: usize,
    /// What it is, possibly read as another element type than the dump says.
    pub info: TensorInfo,
    /// The file, for errors.
    pub path: &'a Path,
}

impl Task<'_> {
    /// `error` with the file and the tensor.
    fn fault(&self, error: Error) -> Error {
        error.in_tensor(&self.info.name).in_file(self.path)
    }
}

/// The first element of a tensor, such as the one of a scalar.
///
/// # Errors
/// It has none, is no number, or cannot be read.
pub fn first_element(task: &Task<'_>) -> Result<f64> {
    if task.info.elements == 0 {
        return Err(task.fault(Error::new("has no element")));
    }
    let read = |buffer: &mut [u8]| task.source.read_at(task.index, 0, buffer);
    let mut decoder = Decoder::new(&task.info).map_err(|error| task.fault(error))?;
    let chunk = decoder.chunk(1, read).map_err(|error| task.fault(error))?;
    Ok(match chunk {
        Chunk::F32(values) => f64::from(values[0]),
        Chunk::F64(values) => values[0],
    })
}

/// Accumulates every task's elements. Results come in the order of `tasks`; a tensor that cannot be read
/// does not stop the others. `read` is told the number of bytes after each chunk, from any thread.
pub fn run<A: Accumulate>(
    tasks: &[Task<'_>],
    threads: NonZero<usize>,
    new: impl Fn(&TensorInfo) -> A + Sync,
    read: impl Fn(u64) + Sync,
) -> Vec<Result<A::Out>> {
    let segments: Vec<u64> = tasks.iter().map(|task| task.info.elements.div_ceil(SEGMENT)).collect();
    let in_order = |task: usize| tasks[task].source.in_order(tasks[task].index);
    let finished =
        in_segments(&segments, threads, in_order, |task, number, decoder: &mut Option<Decoder>| {
            observe_segment(&tasks[task], number, new(&tasks[task].info), decoder, &read)
        });
    let results = finished.into_iter().zip(tasks);
    results.map(|(result, task)| result.map_err(|error| task.fault(error))).collect()
}

/// Does `work` for each segment of each job, in parallel; a job without segments is done as one, and one
/// thread does all segments of a job that is `in_order`, first to last. What a job's segments give is
/// merged in order and finished, in the order of the jobs. `S` is a thread's own.
fn in_segments<A: Merge, S: Default>(
    segments: &[u64],
    threads: NonZero<usize>,
    in_order: impl Fn(usize) -> bool,
    work: impl Fn(usize, u64, &mut S) -> Result<A> + Sync,
) -> Vec<Result<A::Out>> {
    let numbers = |(job, &total): (usize, &u64)| {
        let at_once = if in_order(job) { total.max(1) } else { 1 };
        (0..total.max(1)).step_by(at_once as usize).map(move |number| (job, number..number + at_once))
    };
    let queue: Vec<(usize, Range<u64>)> = segments.iter().enumerate().flat_map(numbers).collect();
    let next = AtomicUsize::new(0);
    let merging: Vec<_> = segments.iter().map(|_| (Mutex::new(InOrder::default()), Condvar::new())).collect();
    let ahead = AHEAD * threads.get() as u64;
    let worker = || {
        let mut scratch = S::default();
        while let Some((job, numbers)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (in_order, merged) = &merging[*job];
            for number in numbers.clone() {
                // Segments are taken in order, so another thread is at work on the one that is waited for.
                let far_ahead = |in_order: &mut InOrder<A>| number > in_order.next + ahead;
                let turn = in_order.lock().unwrap_or_else(PoisonError::into_inner);
                drop(merged.wait_timeout_while(turn, PATIENCE, far_ahead));
                let outcome = work(*job, number, &mut scratch);
                let mut in_order = in_order.lock().unwrap_or_else(PoisonError::into_inner);
                in_order.add(number, outcome, segments[*job].max(1));
                merged.notify_all();
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.get().min(queue.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let finished = merging.into_iter().map(|(in_order, _)| {
        let in_order = in_order.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Every segment has been added, so there is a result.
        in_order.finished.unwrap_or_else(|| Err(Error::new("was not read to its end")))
    });
    finished.collect()
}

fn observe_segment<A: Accumulate>(
    task: &Task<'_>,
    number: u64,
    mut accumulator: A,
    decoder: &mut Option<Decoder>,
    read: &(impl Fn(u64) + Sync),
) -> Result<A> {
    let info = &task.info;
    let decoder = decoder_of(info, decoder)?;
    let end = info.elements.min((number + 1) * SEGMENT);
    let mut first = number * SEGMENT;
    while first < end {
        let count = CHUNK.min(end - first);
        // Chunks start at multiples of 2^16 elements, so packed ones start on a byte.
        let offset = first * u64::from(info.dtype.bits()) / 8;
        let mut bytes = 0;
        let chunk = decoder.chunk(count as usize, |buffer| {
            bytes = buffer.len() as u64;
            task.source.read_at(task.index, offset, buffer)
        })?;
        accumulator.observe(first, chunk);
        read(bytes);
        first += count;
    }
    Ok(accumulator)
}

/// The decoder for `info`: the thread's last one, if it serves.
fn decoder_of<'d>(info: &TensorInfo, decoder: &'d mut Option<Decoder>) -> Result<&'d mut Decoder> {
    if !decoder.as_ref().is_some_and(|decoder| decoder.reads(info)) {
        *decoder = None;
    }
    match decoder {
        Some(decoder) => Ok(decoder),
        none => Ok(none.insert(Decoder::new(info)?)),
    }
}

/// Merges the accumulators of a tensor's segments in order, whatever the order they arrive in.
struct InOrder<A: Merge> {
    merged: Option<Result<A>>,
    next: u64,
    waiting: BTreeMap<u64, Result<A>>,
    /// Finished as soon as the last segment is in, so that large accumulators do not pile up.
    finished: Option<Result<A::Out>>,
}

impl<A: Merge> Default for InOrder<A> {
    fn default() -> Self {
        Self { merged: None, next: 0, waiting: BTreeMap::new(), finished: None }
    }
}

impl<A: Merge> InOrder<A> {
    fn add(&mut self, number: u64, outcome: Result<A>, total: u64) {
        if number != self.next {
            self.waiting.insert(number, outcome);
            return;
        }
        // Most tensors are one segment: their map stays without a node, which would be large.
        let mut its_turn = Some(outcome);
        while let Some(outcome) = its_turn {
            self.next += 1;
            self.merged = Some(match (self.merged.take(), outcome) {
                (Some(Ok(mut merged)), Ok(next)) => {
                    merged.merge(next);
                    Ok(merged)
                }
                (Some(Err(first)), _) => Err(first),
                (_, outcome) => outcome,
            });
            its_turn = self.waiting.remove(&self.next);
        }
        if self.next == total {
            self.waiting.clear();
            self.finished = self.merged.take().map(|merged| merged.map(Merge::finish));
        }
    }
}
