//! One trace through several scalers, side by side.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::scaler::run::{Run, Setup};
use crate::scaler::schedule::Schedule;
use crate::scaler::simulate::simulate;
use crate::scaler::trace::Trace;

/// Simulates every scaler of `setups`; results come in their order. `done` is told of steps, from any thread.
pub fn run_scalers(
    trace: &Trace,
    schedule: &Schedule,
    setups: &[Setup],
    clip: Option<f64>,
    threads: NonZero<usize>,
    done: impl Fn(u64) + Sync,
) -> Vec<Run> {
    let next = AtomicUsize::new(0);
    let runs: Vec<Mutex<Option<Run>>> = setups.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < setups.len()) {
            let run = simulate(trace, schedule, &setups[index], clip, &done);
            *runs[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.get().min(setups.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    runs.into_iter().filter_map(|run| run.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
