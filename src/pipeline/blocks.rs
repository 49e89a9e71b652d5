//! The second pass, for formats whose elements share a scale: read rectangle → decode → observe.
//!
//! It follows the ordinary pass, since some formats have a scale for the whole tensor, which must be known
//! before the first block is cast.

use std::num::NonZero;

use super::{SEGMENT, Task, decoder_of, in_segments};
use crate::cast::block::BlockPlan;
use crate::error::{Error, Result};
use crate::format::block::BlockShape;
use crate::source::TensorSource;
use crate::stats::{BlockAccumulator, BlockCast, BlockStats, SourceStats};
use crate::tensor::grid::{Rectangle, row_major};
use crate::tensor::{Decoder, Grid};

/// A tensor and its block casts.
pub struct BlockTask<'a> {
    /// The tensor.
    pub task: &'a Task<'a>,
    /// What the ordinary pass found in it.
    pub source: &'a SourceStats,
    /// What to cast it to.
    pub casts: Vec<BlockCast>,
}

/// Casts the blocks of every task's tensor, of which the ordinary pass has found the statistics beside it, with
/// each plan. Results come in the order of `tasks`, and in each in the order of `plans`. A tensor is read once for
/// all blocks that are runs of it, and once for each other shape. `read` is told the number of bytes after each rectangle, from any thread.
pub fn run_blocks(
    tasks: &[(&Task<'_>, &SourceStats)],
    plans: &[BlockPlan],
    threads: NonZero<usize>,
    read: impl Fn(u64) + Sync,
) -> Vec<(Vec<BlockStats>, Vec<Error>)> {
    let casts = || plans.iter().copied().map(BlockCast::from).collect();
    let tasks: Vec<_> =
        tasks.iter().map(|&(task, source)| BlockTask { task, source, casts: casts() }).collect();
    run_block_casts(&tasks, threads, read)
}

/// The same with casts of its own for each tensor.
pub fn run_block_casts(
    tasks: &[BlockTask<'_>],
    threads: NonZero<usize>,
    read: impl Fn(u64) + Sync,
) -> Vec<(Vec<BlockStats>, Vec<Error>)> {
    let tasks: Vec<BlockTask<'_>> = tasks
        .iter()
        .map(|&BlockTask { task, source, ref casts }| {
            let casts = casts.iter().map(|cast| cast.of_one_row(&task.info.shape)).collect();
            BlockTask { task, source, casts }
        })
        .collect();
    let jobs: Vec<Job<'_>> = tasks.iter().flat_map(Job::of).collect();
    // Rectangles in a segment depend on the tensor and the grid alone, so that results do not depend on
    // the number of threads.
    let a_segment = |grid: &Grid| (SEGMENT / grid.rectangle_elements().max(1)).max(1);
    let in_grid = |grid: &Grid| grid.rectangles().div_ceil(a_segment(grid));
    let segments: Vec<u64> = jobs.iter().map(|job| job.grid.as_ref().map_or(0, in_grid)).collect();
    let in_order = |job: usize| jobs[job].block_task.task.source.in_order(jobs[job].block_task.task.index);
    let finished = in_segments(&segments, threads, in_order, |job, number, scratch: &mut Scratch| {
        let Job { block_task: BlockTask { task, source, .. }, grid, .. } = &jobs[job];
        let grid = *grid.as_ref().map_err(Clone::clone)?;
        let each = a_segment(&grid);
        let rectangles = number * each..grid.rectangles().min((number + 1) * each);
        let mut accumulator = BlockAccumulator::new(jobs[job].casts(), grid, rectangles.start, source);
        for rectangle in rectangles {
            observe_rectangle(task, &grid.rectangle(rectangle), &mut accumulator, scratch, &read)?;
        }
        Ok(accumulator)
    });

    let mut finished = jobs.iter().zip(finished).peekable();
    let results = tasks.iter().map(|block_task| {
        let BlockTask { task, casts, .. } = block_task;
        let mut stats = vec![BlockStats::default(); casts.len()];
        let mut failures = Vec::new();
        while let Some((job, result)) = finished.next_if(|(job, _)| std::ptr::eq(job.block_task, block_task))
        {
            match result {
                Ok(found) => {
                    for (member, found) in job.members.iter().zip(found) {
                        stats[member.cast] = found;
                    }
                }
                Err(error) => failures.push(task.fault(error)),
            }
        }
        if task.source.column_major(task.index) {
            let worst = stats.iter_mut().flat_map(|stats| &mut stats.worst);
            worst.for_each(|block| block.first = row_major(&task.info.shape, block.first));
        }
        (stats, failures)
    });
    results.collect()
}

/// Casts of a tensor for which it is read once.
struct Job<'a> {
    block_task: &'a BlockTask<'a>,
    grid: Result<Grid>,
    members: Vec<Member>,
}

/// A cast, by its number among those of the tensor.
struct Member {
    cast: usize,
    /// Length of its blocks if they are cut from the tensor in one piece.
    run: Option<u64>,
}

impl<'a> Job<'a> {
    fn of(block_task: &'a BlockTask<'a>) -> impl Iterator<Item = Self> {
        let shapes = block_task.casts.iter().map(|cast| cast.plan.spec.shape);
        let grids = grids(block_task.task, shapes);
        grids.into_iter().map(move |(_, grid, members)| Self { block_task, grid, members })
    }

    fn casts(&self) -> impl Iterator<Item = (&BlockCast, Option<u64>)> {
        self.members.iter().map(|member| (&self.block_task.casts[member.cast], member.run))
    }
}

/// How a tensor is cut for casts with these blocks: once in one piece for all that can be cut from it so, and once for
/// each other shape.
fn grids(
    task: &Task<'_>,
    shapes: impl Iterator<Item = BlockShape>,
) -> Vec<(BlockShape, Result<Grid>, Vec<Member>)> {
    let grid = |shape| match task.source.column_major(task.index) {
        true => Grid::column_major(&task.info.shape, shape),
        false => Grid::new(&task.info.shape, shape),
    };
    let mut grids: Vec<(BlockShape, Result<Grid>, Vec<Member>)> = Vec::new();
    for (cast, shape) in shapes.enumerate() {
        let of_blocks = grid(shape);
        let run = of_blocks.as_ref().ok().and_then(Grid::run).filter(|&run| BlockAccumulator::takes_run(run));
        let shape = if run.is_some() { BlockShape::Tensor } else { shape };
        let member = Member { cast, run };
        match grids.iter_mut().find(|(other, ..)| *other == shape) {
            Some((.., members)) => members.push(member),
            None => grids.push((shape, if run.is_some() { grid(shape) } else { of_blocks }, vec![member])),
        }
    }
    grids
}

/// Bytes that are read of these tensors by an ordinary pass and by [`run_blocks`] with `plans`.
pub fn bytes_to_read<'t>(tasks: impl IntoIterator<Item = &'t Task<'t>>, plans: &[BlockPlan]) -> u64 {
    let of_task = |task: &Task<'_>| {
        let shapes = plans.iter().map(|plan| plan.spec.shape);
        task.info.bytes() * (1 + grids(task, shapes).len() as u64)
    };
    tasks.into_iter().map(of_task).sum()
}

/// A thread's own buffers.
#[derive(Default)]
struct Scratch {
    decoder: Option<Decoder>,
    row: Vec<u8>,
}

fn observe_rectangle(
    task: &Task<'_>,
    rectangle: &Rectangle,
    accumulator: &mut BlockAccumulator<'_>,
    scratch: &mut Scratch,
    read: &(impl Fn(u64) + Sync),
) -> Result<()> {
    use crate::stats::Accumulate as _;
    let decoder = decoder_of(&task.info, &mut scratch.decoder)?;
    let bits = u64::from(task.info.dtype.bits());
    let mut bytes = 0;
    let chunk = decoder.chunk((rectangle.rows * rectangle.columns) as usize, |buffer| {
        bytes = buffer.len() as u64;
        read_rectangle(task.source, task.index, bits, rectangle, &mut scratch.row, buffer)
    })?;
    accumulator.observe(0, chunk);
    read(bytes);
    Ok(())
}

/// Fills `buffer` with the stored bytes of the rectangle's elements, row after row. `row` is a buffer.
fn read_rectangle(
    source: &dyn TensorSource,
    index: usize,
    bits: u64,
    rectangle: &Rectangle,
    row: &mut Vec<u8>,
    buffer: &mut [u8],
) -> Result<()> {
    let &Rectangle { first, rows, columns, stride } = rectangle;
    let on_bytes = |elements: u64| (elements * bits).is_multiple_of(8);
    if (columns == stride || rows == 1) && on_bytes(first) {
        return source.read_at(index, first * bits / 8, buffer);
    }
    if on_bytes(first) && on_bytes(columns) && on_bytes(stride) {
        let mut parts = buffer.chunks_exact_mut((columns * bits / 8) as usize).zip(0..);
        return parts.try_for_each(|(part, number)| {
            source.read_at(index, (first + number * stride) * bits / 8, part)
        });
    }
    // Two elements to a byte, and some row begins or ends within one: half bytes are moved one by one.
    buffer.fill(0);
    for number in 0..rows {
        let from = first + number * stride;
        row.resize(((from + columns).div_ceil(2) - from / 2) as usize, 0);
        source.read_at(index, from / 2, row)?;
        for column in 0..columns {
            let at = (from % 2 + column) as usize;
            let code = row[at / 2] >> (4 * (at % 2)) & 15;
            let to = (number * columns + column) as usize;
            buffer[to / 2] |= code << (4 * (to % 2));
        }
    }
    Ok(())
}
