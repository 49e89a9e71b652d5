//! The same work by this tool's own SIMD casts, on all threads: what a machine without a card has.

use std::hint::black_box;
use std::num::NonZero;
use std::thread;
use std::time::Instant;

use super::throughput::{Timing, Work};
use crate::cast::CastPlan;
use crate::cast::block::{BlockPlan, TensorScale, largest};
use crate::cast::fast::Level;
use crate::cast::fast::slice::{Code, SliceCast};
use crate::cast::fast::slice_blocks::SliceBlocks;
use crate::cast::fast::slice_decode::SliceDecode;
use crate::format::block::{Nvfp4, Recipe};
use crate::format::{FormatSpec, Named};

/// Reproducible numbers of both signs, magnitudes over 32 binades around 1 (xorshift).
pub fn numbers(count: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f32::from_bits((state & 0x8fff_ffff) | 0x3000_0000)
    };
    (0..count).map(|_| next()).collect()
}

/// Times a copy, then each format there, back, and both; of block formats the way there alone, scales and all.
/// Formats that the SIMD loops lack are left out.
pub fn run(
    formats: &[Named],
    values: usize,
    repeats: usize,
    threads: NonZero<usize>,
    mut progress: impl FnMut(),
) -> Vec<Timing> {
    let source = numbers(values);
    let mut floats = vec![0.0_f32; values];
    let copy = time(repeats, || {
        in_parts(threads, &source, &mut floats, |from, to| to.copy_from_slice(from));
    });
    let mut timings = vec![Timing::new(None, Work::Copy, values as u64, 32, copy)];
    for format in formats {
        let format = match format {
            Named::Plain(format) => format,
            Named::Block(spec) => {
                timings.extend(blocks(&BlockPlan { spec: *spec, scale: 1.0 }, &source, repeats, threads));
                progress();
                continue;
            }
        };
        let three = match format.bits {
            ..=8 => three::<u8>(format, &source, &mut floats, repeats, threads),
            9..=16 => three::<u16>(format, &source, &mut floats, repeats, threads),
            _ => three::<u32>(format, &source, &mut floats, repeats, threads),
        };
        timings.extend(three.into_iter().flatten());
        progress();
    }
    timings
}

fn three<C: Code>(
    format: &FormatSpec,
    source: &[f32],
    floats: &mut [f32],
    repeats: usize,
    threads: NonZero<usize>,
) -> Option<[Timing; 3]> {
    /// Values that stay in a core's cache between the two halves of a round trip.
    const CACHED: usize = 1 << 12;
    let cast = SliceCast::new(&CastPlan::new(*format))?;
    let decode = SliceDecode::new(format)?;
    let level = Level::best();
    let mut codes = vec![C::default(); source.len()];
    let timing = |work, seconds| Timing::new(Some(format.name), work, source.len() as u64, C::BITS, seconds);
    let encoded = time(repeats, || {
        in_parts(threads, source, &mut codes, |from, to| cast.encode(level, from, to));
    });
    let decoded = time(repeats, || {
        in_parts(threads, &codes, floats, |from, to| decode.decode(level, from, to));
    });
    let both = time(repeats, || {
        in_parts(threads, source, floats, |from, to| {
            let mut codes = [C::default(); CACHED];
            for (from, to) in from.chunks(CACHED).zip(to.chunks_mut(CACHED)) {
                let codes = &mut codes[..from.len()];
                cast.encode(level, from, codes);
                decode.decode(level, codes, to);
            }
        });
    });
    Some([timing(Work::Encode, encoded), timing(Work::Decode, decoded), timing(Work::Roundtrip, both)])
}

/// To scales and codes, the values being rows of a matrix. Where a recipe has a scale for the whole tensor its
/// largest magnitude is looked for first, and that counts as time, but its reading not as bytes.
fn blocks(plan: &BlockPlan, source: &[f32], repeats: usize, threads: NonZero<usize>) -> Option<Timing> {
    /// Of the matrix.
    const COLUMNS: usize = 4096;
    let cast = SliceBlocks::new(plan)?;
    let level = Level::best();
    let has_tensor_scale = matches!(plan.spec.recipe, Recipe::Nvfp4(Nvfp4::Te | Nvfp4::Torchao));
    // Whole bands of blocks for each thread.
    let length = source.len().div_ceil(threads.get()).next_multiple_of(cast.rows() * COLUMNS);
    let mut codes = vec![0_u8; source.len()];
    let mut scales = vec![0_u8; cast.scale_bytes(COLUMNS, source.len())];
    let seconds = time(repeats, || {
        let tensor = match has_tensor_scale {
            true => {
                let mut amax = vec![0.0_f32; source.len().div_ceil(length)];
                thread::scope(|scope| {
                    for (from, to) in source.chunks(length).zip(&mut amax) {
                        scope.spawn(move || *to = cast.amax(level, from));
                    }
                });
                TensorScale::new(&plan.spec, largest(&plan.spec, &amax))
            }
            false => TensorScale::ONE,
        };
        thread::scope(|scope| {
            let scales = scales.chunks_mut(cast.scale_bytes(COLUMNS, length));
            for ((from, to), scales) in source.chunks(length).zip(codes.chunks_mut(length)).zip(scales) {
                scope.spawn(move || cast.encode(level, tensor, COLUMNS, black_box(from), (to, scales)));
            }
        });
        black_box((&mut codes, &mut scales));
    });
    let bytes = size_of_val(source) + codes.len() + scales.len();
    let what = (Some(plan.spec.name), Work::Encode);
    Some(Timing::of_bytes(what, source.len() as u64, bytes as u64, seconds))
}

/// Seconds of each run, after one that does not count.
fn time(repeats: usize, mut work: impl FnMut()) -> Vec<f64> {
    work();
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..repeats).map(run).collect()
}

/// A part of both slices for each thread.
fn in_parts<A: Sync, B: Send>(
    threads: NonZero<usize>,
    source: &[A],
    result: &mut [B],
    work: impl Fn(&[A], &mut [B]) + Sync,
) {
    let length = source.len().div_ceil(threads.get()).max(1);
    thread::scope(|scope| {
        for (from, to) in source.chunks(length).zip(result.chunks_mut(length)) {
            let work = &work;
            scope.spawn(move || work(black_box(from), to));
        }
    });
    black_box(result);
}
