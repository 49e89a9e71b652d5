//! Deflated data as they are unpacked: forward, with a stretch behind the current position kept.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::super::bytes::Bytes;
use super::super::file::DumpFile;
use crate::error::{Error, Result};
use crate::source::limits;

/// Bytes taken from the file, and unpacked, at a time.
const STEP: usize = 1 << 16;
/// Bytes behind the position that can be read again without starting anew: a band of 32 rows of 32,768
/// float32. Up to twice as many are kept.
const KEPT: usize = 1 << 22;

/// Where the packed data are, and what they should unpack to.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    /// Where they begin in the file.
    pub(super) start: u64,
    /// Their length there.
    pub(super) size: u64,
    /// Length when unpacked.
    pub(super) unpacked: u64,
    /// CRC-32 when unpacked, if the file says.
    pub(super) crc: Option<u32>,
}

/// A position in the unpacked data. Takes a few times 64 KiB and up to twice 4 MiB of memory, whatever the
/// data unpack to.
pub(super) struct Cursor {
    packed: Packed,
    inflate: Decompress,
    /// Bytes of the file that are not unpacked yet, from `next` on.
    input: Vec<u8>,
    next: usize,
    /// Packed bytes that have been read from the file.
    taken: u64,
    /// The last unpacked bytes, up to `at`.
    recent: Vec<u8>,
    /// Unpacked so far.
    at: u64,
    crc: Crc,
}

impl Cursor {
    pub(super) fn new(packed: Packed) -> Self {
        Self {
            packed,
            inflate: Decompress::new(false),
            input: Vec::new(),
            next: 0,
            taken: 0,
            recent: Vec::new(),
            at: 0,
            crc: Crc::new(),
        }
    }

    /// Whether the bytes from `offset` on can still be had without starting anew.
    pub(super) fn reaches(&self, offset: u64) -> bool {
        offset >= self.at - self.recent.len() as u64
    }

    /// Whether everything has been unpacked and found sound.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.packed.unpacked
    }

    /// Fills `bytes` with what unpacks from `offset` on; the caller has checked that it is within reach.
    pub(super) fn read(&mut self, file: &DumpFile, mut offset: u64, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            while offset >= self.at {
                self.advance(file)?;
            }
            let from = self.recent.len() - (self.at - offset) as usize;
            let count = bytes.len().min(self.recent.len() - from);
            let (now, rest) = bytes.split_at_mut(count);
            now.copy_from_slice(&self.recent[from..from + count]);
            offset += count as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Unpacks up to [`STEP`] bytes more, and checks the end where it is reached.
    fn advance(&mut self, file: &DumpFile) -> Result<()> {
        if self.recent.len() >= 2 * KEPT {
            self.recent.drain(..self.recent.len() - KEPT);
        }
        let old = self.recent.len();
        self.recent.resize(old + STEP, 0);
        let mut filled = old;
        // One more byte than there should be shows whether there is too much.
        let wanted = (self.packed.unpacked - self.at).saturating_add(1).min(STEP as u64) as usize;
        let mut ended = false;
        while filled < old + wanted && !ended {
            if self.next == self.input.len() {
                self.refill(file)?;
            }
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let place = &mut self.recent[filled..old + wanted];
            let status = self.inflate.decompress(&self.input[self.next..], place, FlushDecompress::None);
            let status = status.map_err(|_| self.damaged("the compressed data are damaged"))?;
            let read = (self.inflate.total_in() - read) as usize;
            let written = (self.inflate.total_out() - written) as usize;
            self.next += read;
            filled += written;
            ended = status == Status::StreamEnd;
            if read == 0 && written == 0 && !ended && self.taken == self.packed.size {
                break;
            }
        }
        self.recent.truncate(filled);
        self.crc.update(&self.recent[old..]);
        self.at += (filled - old) as u64;
        let Packed { unpacked, crc, .. } = self.packed;
        if self.at > unpacked {
            let what = format!("unpacks to more than the {} it should have", limits::bytes(unpacked));
            return Err(self.damaged(&what));
        }
        if filled < old + wanted && self.at < unpacked {
            let what = format!("the compressed data end after {} of {}", self.at, limits::bytes(unpacked));
            return Err(self.damaged(&what));
        }
        if self.at == unpacked && crc.is_some_and(|crc| crc != self.crc.sum()) {
            return Err(Error::new(super::DAMAGED));
        }
        Ok(())
    }

    fn refill(&mut self, file: &DumpFile) -> Result<()> {
        let count = (self.packed.size - self.taken).min(STEP as u64);
        self.input.resize(count as usize, 0);
        file.read_exact_at(self.packed.start + self.taken, &mut self.input)?;
        self.taken += count;
        self.next = 0;
        Ok(())
    }

    /// An error with the place in the file up to which the packed data made sense.
    fn damaged(&self, what: &str) -> Error {
        let unread = (self.input.len() - self.next) as u64;
        let at = self.packed.start + self.taken - unread;
        Error::new(format!("{what}, at byte {at} of the file"))
    }
}
