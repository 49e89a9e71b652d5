//! Which tensors of several ranks are the same, byte for byte.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Task;
use crate::error::Result;

/// Bytes compared at a time.
const STEP: u64 = 1 << 20;

/// For each group of tasks, which are called the same but come from several ranks: the position in it of
/// those that equal an earlier one. Types, shapes and all bytes must agree; what cannot be read equals
/// nothing.
pub fn replicas(groups: &[Vec<&Task<'_>>], threads: NonZero<usize>) -> Vec<Vec<usize>> {
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Vec<usize>>> = groups.iter().map(|_| Mutex::default()).collect();
    let worker = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (Some(group), Some(place)) = (groups.get(number), found.get(number)) else { break };
            let repeated = repeated(group);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = repeated;
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.get().min(groups.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    found.into_iter().map(|found| found.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn repeated(group: &[&Task<'_>]) -> Vec<usize> {
    let mut different: Vec<&Task<'_>> = Vec::new();
    let mut repeated = Vec::new();
    for (position, task) in group.iter().enumerate() {
        if different.iter().any(|other| are_equal(other, task).unwrap_or(false)) {
            repeated.push(position);
        } else {
            different.push(task);
        }
    }
    repeated
}

fn are_equal(a: &Task<'_>, b: &Task<'_>) -> Result<bool> {
    let same_kind = a.info.dtype == b.info.dtype
        && a.info.byte_order == b.info.byte_order
        && a.info.shape == b.info.shape
        && a.source.column_major(a.index) == b.source.column_major(b.index);
    if !same_kind {
        return Ok(false);
    }
    let total = a.info.bytes();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for offset in (0..total).step_by(STEP as usize) {
        let count = STEP.min(total - offset) as usize;
        left.resize(count, 0);
        right.resize(count, 0);
        a.source.read_at(a.index, offset, &mut left)?;
        b.source.read_at(b.index, offset, &mut right)?;
        if left != right {
            return Ok(false);
        }
    }
    Ok(true)
}
