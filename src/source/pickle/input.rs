//! The bytes of a pickle, read forward in small pieces; long strings are passed over, not read.

use crate::error::{Error, Result};
use crate::source::bytes::Bytes;

/// Bytes read at a time.
const STEP: u64 = 1 << 16;

/// A position in a pickle.
pub(super) struct Input<'a> {
    bytes: &'a dyn Bytes,
    buffer: Vec<u8>,
    /// Where `buffer` begins.
    start: u64,
    /// The position, counted from there.
    next: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a dyn Bytes, start: u64) -> Self {
        Self { bytes, buffer: Vec::new(), start, next: 0 }
    }

    /// The position.
    pub(super) fn at(&self) -> u64 {
        self.start + self.next as u64
    }

    /// The next `len` bytes, which must be few.
    pub(super) fn take(&mut self, len: usize) -> Result<&[u8]> {
        if self.buffer.len() - self.next < len {
            let at = self.at();
            let left = self.bytes.len().saturating_sub(at);
            if left < len as u64 {
                let what = format!("the {} ends within a pickle", self.bytes.kind());
                return Err(Error::new(what).at_byte(self.bytes.len()));
            }
            let count = STEP.max(len as u64).min(left);
            self.buffer = self.bytes.header("the pickle", at, count, count)?;
            (self.start, self.next) = (at, 0);
        }
        self.next += len;
        Ok(&self.buffer[self.next - len..self.next])
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// The next `N` bytes as a number, the lowest byte first.
    pub(super) fn number(&mut self, len: usize) -> Result<u64> {
        Ok(self.take(len)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Passes over `len` bytes and returns where they begin.
    pub(super) fn skip(&mut self, len: u64) -> Result<u64> {
        let at = self.at();
        let left = self.bytes.len().saturating_sub(at);
        if len > left {
            let what = format!("a string of {len} bytes is longer than the {left} bytes that are left");
            return Err(Error::new(what).at_byte(at));
        }
        if len <= (self.buffer.len() - self.next) as u64 {
            self.next += len as usize;
        } else {
            self.buffer.clear();
            (self.start, self.next) = (at + len, 0);
        }
        Ok(at)
    }

    /// The text up to the end of the line, without it.
    pub(super) fn line(&mut self) -> Result<String> {
        let at = self.at();
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => break,
                byte if line.len() < super::TEXT as usize => line.push(byte),
                _ => return Err(Error::new("a line of text is too long").at_byte(at)),
            }
        }
        String::from_utf8(line).map_err(|_| Error::new("a line is not UTF-8 text").at_byte(at))
    }
}
