//! All checks on all threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Check, Convert, Example, Inputs, Source, Tally};

/// Inputs that a thread takes at once, and those that it works on while they stay in its cache.
const SHARE: u64 = 1 << 20;
const BLOCK: usize = 1 << 12;

/// Compares every implementation of every check; the results are in the same order. `progress` is told how
/// many inputs more have been compared.
pub fn run(checks: &[Check], threads: NonZero<usize>, progress: impl Fn(u64) + Sync) -> Vec<Vec<Tally>> {
    let shares: Vec<(usize, u64, u64)> = checks
        .iter()
        .enumerate()
        .flat_map(|(index, check)| {
            let count = check.inputs.count();
            (0..count.div_ceil(SHARE))
                .map(move |share| (index, share * SHARE, count.min((share + 1) * SHARE)))
        })
        .collect();
    let empty = || -> Vec<Vec<Tally>> {
        checks.iter().map(|check| vec![Tally::default(); check.implementations.len()]).collect()
    };
    let (next, total) = (AtomicUsize::new(0), Mutex::new(empty()));
    thread::scope(|scope| {
        for _ in 0..threads.get().min(shares.len()) {
            scope.spawn(|| {
                let (mut tallies, mut buffers) = (empty(), Buffers::default());
                while let Some(&(index, start, end)) = shares.get(next.fetch_add(1, Relaxed)) {
                    let mut at = start;
                    while at < end {
                        let block_end = end.min(at + BLOCK as u64);
                        buffers.compare(&checks[index], at, block_end, &mut tallies[index]);
                        at = block_end;
                    }
                    progress(end - start);
                }
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                let pairs = total.iter_mut().flatten().zip(tallies.into_iter().flatten());
                pairs.for_each(|(sum, part)| sum.merge(part));
            });
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// One block of inputs in each form, what is defined and what was found.
#[derive(Default)]
struct Buffers {
    bits: Vec<u64>,
    float32: Vec<f32>,
    float64: Vec<f64>,
    codes: Vec<u32>,
    defined: Vec<u64>,
    found: Vec<u64>,
}

impl Buffers {
    fn compare(&mut self, check: &Check, start: u64, end: u64, tallies: &mut [Tally]) {
        self.load(check, start, end);
        for (implementation, tally) in check.implementations.iter().zip(tallies) {
            self.found.clear();
            self.found.resize(self.bits.len(), 0);
            match (&implementation.convert, check.source) {
                (Convert::Float32(convert), Source::Float32) => convert(&self.float32, &mut self.found),
                (Convert::Float64(convert), Source::Float64) => convert(&self.float64, &mut self.found),
                (Convert::Codes(convert), Source::Codes) => convert(&self.codes, &mut self.found),
                _ => continue,
            }
            tally.inputs += self.bits.len() as u64;
            if self.found == self.defined {
                continue;
            }
            let results = self.defined.iter().zip(&self.found);
            for ((position, &input), (&defined, &found)) in (start..).zip(&self.bits).zip(results) {
                if defined != found {
                    tally.add(check, position, Example { input, defined, found });
                }
            }
        }
    }

    fn load(&mut self, check: &Check, start: u64, end: u64) {
        self.bits.clear();
        match &check.inputs {
            Inputs::AllFloat32 => self.bits.extend(start..end),
            Inputs::List(list) => self.bits.extend(&list[start as usize..end as usize]),
        }
        let bits = || self.bits.iter().copied();
        self.float32.clear();
        self.float64.clear();
        self.codes.clear();
        match check.source {
            Source::Float32 => self.float32.extend(bits().map(|bits| f32::from_bits(bits as u32))),
            Source::Float64 => self.float64.extend(bits().map(f64::from_bits)),
            Source::Codes => self.codes.extend(bits().map(|bits| bits as u32)),
        }
        self.defined.clear();
        self.defined.extend(bits().map(|input| check.defined(input)));
    }
}
