//! What the benches share: files to read, the program to compare with, times.
#![allow(unsafe_code, clippy::unwrap_used, unreachable_pub)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const THREADS: usize = 2;
pub const RUNS: usize = 7;

pub fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status().unwrap();
    // Findings are no failure.
    assert!(status.code().is_some_and(|code| code < 2));
    start.elapsed()
}

pub fn median<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> T {
    let mut values: Vec<T> = values.collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    values[values.len() / 2]
}

/// The sum of all elements, as quickly as memory allows.
pub fn sum(path: &Path) -> f32 {
    let file = File::open(path).unwrap();
    // SAFETY: the benchmark has written the file and nobody changes it.
    let map = unsafe { memmap2::Mmap::map(&file) }.unwrap();
    let values: &[f32] = bytemuck::cast_slice(&map[128..]);
    let half = values.len() / THREADS;
    let part = |values: &[f32]| {
        let mut lanes = [0.0_f32; 64];
        for chunk in values.as_chunks::<64>().0 {
            lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
        }
        lanes.iter().sum::<f32>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            values.chunks(half.max(1)).map(|values| scope.spawn(move || part(values))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    })
}

/// Writes elements that look like gradients; each is what `change` makes of it.
pub fn write_gradients(path: &Path, elements: usize, change: impl Fn(f32) -> f32) {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({elements},), }}");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    out.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
    writeln!(out, "{header:<117}").unwrap();
    let mut uniform = uniform();
    for _ in 0..elements {
        out.write_all(&change(gradient(&mut uniform)).to_le_bytes()).unwrap();
    }
    out.flush().unwrap();
}

/// Numbers in [0, 1), the same in each run.
pub fn uniform() -> impl FnMut() -> f32 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32
    }
}

/// Log-normal magnitudes around 1e-5 over some 40 binades, both signs, one zero in a hundred.
pub fn gradient(uniform: &mut impl FnMut() -> f32) -> f32 {
    // The sum of four uniform numbers is close enough to normal.
    let normal = (uniform() + uniform() + uniform() + uniform() - 2.0) * 3.0_f32.sqrt();
    let magnitude = (1e-5_f32.ln() + 3.2 * normal).exp();
    let pick = uniform();
    if pick < 0.01 {
        0.0
    } else if pick < 0.5 {
        -magnitude
    } else {
        magnitude
    }
}
