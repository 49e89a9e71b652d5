//! The CRC-32 of data that several threads read in pieces.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use flate2::Crc;

/// Runs of bytes that are kept apart at most; data read in more pieces than that stay unchecked.
const RUNS: usize = 1024;

/// Puts the checksums of pieces together until they cover the whole.
pub(super) struct Checksum {
    wanted: u32,
    len: u64,
    state: Mutex<State>,
}

enum State {
    /// What has been read: from where to where, and its checksum. Runs do not touch.
    Partial(BTreeMap<u64, (u64, Crc)>),
    /// Nothing is left to check.
    Done { damaged: bool },
}

impl Checksum {
    /// A checksum of `len` bytes that should be `wanted`; `None` if the file does not say.
    pub(super) fn new(wanted: Option<u32>, len: u64) -> Self {
        let state = match wanted {
            Some(_) => State::Partial(BTreeMap::new()),
            None => State::Done { damaged: false },
        };
        Self { wanted: wanted.unwrap_or(0), len, state: Mutex::new(state) }
    }

    /// Takes the bytes that were read from `offset` on, whole or in part read before or not. Returns whether
    /// the data are what was written, as far as is known.
    pub(super) fn is_sound_with(&self, offset: u64, bytes: &[u8]) -> bool {
        let new = match &*self.lock() {
            State::Done { damaged } => return !damaged,
            State::Partial(runs) => unread(runs, offset, offset + bytes.len() as u64),
        };
        let mut crc = Crc::new();
        crc.update(&bytes[(new.start - offset) as usize..(new.end - offset) as usize]);
        let mut state = self.lock();
        if let State::Partial(runs) = &mut *state {
            // Another thread may have read the same meanwhile.
            if !new.is_empty() && unread(runs, new.start, new.end) == new {
                add(runs, new, crc);
            }
            match runs.first_key_value() {
                Some((0, (end, crc))) if *end == self.len => {
                    *state = State::Done { damaged: crc.sum() != self.wanted };
                }
                _ if runs.len() > RUNS => *state = State::Done { damaged: false },
                _ => {}
            }
        }
        !matches!(*state, State::Done { damaged: true })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of the bytes from `start` to `end` between the runs at its two ends.
fn unread(runs: &BTreeMap<u64, (u64, Crc)>, start: u64, end: u64) -> Range<u64> {
    let before = runs.range(..=start).next_back().map_or(0, |(_, (its_end, _))| *its_end);
    let start = before.clamp(start, end);
    let behind = runs.range(start..end).next().map_or(end, |(&its_start, _)| its_start);
    start..behind
}

/// Adds a run that overlaps no other, joined with those that it touches.
fn add(runs: &mut BTreeMap<u64, (u64, Crc)>, Range { mut start, mut end }: Range<u64>, mut crc: Crc) {
    let before = runs.range(..start).next_back().map(|(&first, &(its_end, _))| (first, its_end));
    if let Some((first, _)) = before.filter(|&(_, its_end)| its_end == start)
        && let Some((_, mut earlier)) = runs.remove(&first)
    {
        earlier.combine(&crc);
        (start, crc) = (first, earlier);
    }
    if let Some((its_end, later)) = runs.remove(&end) {
        crc.combine(&later);
        end = its_end;
    }
    runs.insert(start, (end, crc));
}
