//! Several tensors read side by side: for each piece read of all → decode → observe.

use std::num::NonZero;

use super::{CHUNK, SEGMENT, Task, in_segments};
use crate::error::{Error, Result, escape};
use crate::source::{RowMajor, TensorSource as _};
use crate::stats::AccumulateTogether;
use crate::tensor::{Chunk, Decoder};

/// Fewest elements of each tensor that are read at a time: 4 KiB of f32, the least that a disk gives.
const LEAST: u64 = 1 << 10;

/// Accumulates the elements of every group's tensors side by side; element `i` of one meets element `i` of the
/// others, in row-major order if not all are stored in the same. Results come in the order of `groups`; one
/// that cannot be read does not stop the others. `read` is told the number of bytes after each chunk, from any
/// thread. Memory is threads × tensors of a group × 256 KiB, less for groups of more than four.
pub fn run_together<A: AccumulateTogether>(
    groups: &[Vec<Task<'_>>],
    threads: NonZero<usize>,
    new: impl Fn(usize) -> A + Sync,
    read: impl Fn(u64) + Sync,
) -> Vec<Result<A::Out>> {
    let aligned: Vec<Result<Aligned<'_>>> = groups.iter().map(|group| Aligned::new(group)).collect();
    let count = |group: &Result<Aligned<'_>>| group.as_ref().map_or(0, |group| group.elements);
    let segments: Vec<u64> = aligned.iter().map(|group| count(group).div_ceil(SEGMENT)).collect();
    let in_order = |group: usize| groups[group].iter().any(|tensor| tensor.source.in_order(tensor.index));
    in_segments(&segments, threads, in_order, |group, number, decoders: &mut Vec<Decoder>| {
        let aligned = aligned[group].as_ref().map_err(Clone::clone)?;
        aligned.observe_segment(number, new(group), decoders, &read)
    })
}

/// The tensors of a group, in one order of elements.
struct Aligned<'a> {
    tasks: &'a [Task<'a>],
    /// Those that have to be put in row-major order.
    reordered: Vec<Option<RowMajor<'a>>>,
    elements: u64,
}

impl<'a> Aligned<'a> {
    fn new(tasks: &'a [Task<'a>]) -> Result<Self> {
        let column_major = |task: &Task<'_>| task.source.column_major(task.index);
        let elements = tasks.first().map_or(0, |task| task.info.elements);
        if let Some((other, first)) = different_shape(tasks) {
            let first = &first.info;
            let what = format!(
                "has shape {:?}, which cannot be read beside {:?} of tensor '{}'",
                other.info.shape,
                first.shape,
                escape(&first.name)
            );
            return Err(other.fault(Error::new(what)));
        }
        let mixed = tasks.iter().any(|task| column_major(task) != column_major(&tasks[0]));
        let reordered = tasks.iter().map(|task| {
            let reorder = mixed && column_major(task);
            reorder.then(|| RowMajor::new(task.source, task.index, &task.info)).transpose()
        });
        Ok(Self { tasks, reordered: reordered.collect::<Result<_>>()?, elements })
    }

    fn observe_segment<A: AccumulateTogether>(
        &self,
        number: u64,
        mut accumulator: A,
        decoders: &mut Vec<Decoder>,
        read: &impl Fn(u64),
    ) -> Result<A> {
        let suits = |(decoder, task): (&Decoder, &Task<'_>)| decoder.reads(&task.info);
        if decoders.len() != self.tasks.len() || !decoders.iter().zip(self.tasks).all(suits) {
            let new = |task: &Task<'_>| Decoder::new(&task.info).map_err(|error| task.fault(error));
            *decoders = self.tasks.iter().map(new).collect::<Result<_>>()?;
        }
        let at_once = (4 * CHUNK / self.tasks.len().max(4).next_power_of_two() as u64).max(LEAST);
        let end = self.elements.min((number + 1) * SEGMENT);
        let mut first = number * SEGMENT;
        while first < end {
            let count = at_once.min(end - first);
            let mut bytes = 0;
            let tensors = self.tasks.iter().zip(&self.reordered).zip(&mut *decoders);
            let chunks: Vec<Chunk<'_>> = tensors
                .map(|((task, reordered), decoder)| {
                    // Chunks start at multiples of 2^10 elements, so packed ones start on a byte.
                    let offset = first * u64::from(task.info.dtype.bits()) / 8;
                    let chunk = decoder.chunk(count as usize, |buffer| {
                        bytes += buffer.len() as u64;
                        match reordered {
                            Some(reordered) => reordered.read_at(0, offset, buffer),
                            None => task.source.read_at(task.index, offset, buffer),
                        }
                    });
                    chunk.map_err(|error| task.fault(error))
                })
                .collect::<Result<_>>()?;
            accumulator.observe(first, &chunks);
            read(bytes);
            first += count;
        }
        Ok(accumulator)
    }
}

/// The first tensor whose shape is not that of the first one, and the first one.
fn different_shape<'t, 'a>(tasks: &'t [Task<'a>]) -> Option<(&'t Task<'a>, &'t Task<'a>)> {
    let (first, others) = tasks.split_first()?;
    let other = others.iter().find(|task| task.info.shape != first.info.shape)?;
    Some((other, first))
}
