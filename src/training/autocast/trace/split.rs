//! Cuts a JSON text that is too large to hold into its values, one at a time in memory.
//!
//! It only finds where a value ends; whether it is sound JSON is for the parser that is given it.

use std::io::{self, Read};

use crate::error::Error;

/// Bytes taken from the source at a time, at least.
const STEP: usize = 1 << 18;

/// Longest single value, in bytes: an event has some hundreds.
const LONGEST: usize = 1 << 26;

/// What is wrong, and the byte at which.
pub(super) type Failure = (Error, u64);

/// A JSON text, read forwards.
pub(super) struct Splitter<R> {
    source: R,
    buffer: Vec<u8>,
    /// The first byte that has not been used.
    next: usize,
    /// Bytes before the buffer.
    before: u64,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), next: 0, before: 0 }
    }

    /// Where the next byte is in the text.
    pub(super) fn position(&self) -> u64 {
        self.before + self.next as u64
    }

    /// Reads more behind what there is; `false` at the end.
    fn read_on(&mut self) -> Result<bool, Failure> {
        self.buffer.drain(..self.next);
        self.before += self.next as u64;
        self.next = 0;
        let old = self.buffer.len();
        if old > LONGEST {
            let what = format!("is not read: a single value of it has more than {LONGEST} bytes");
            return Err((Error::new(what), self.before));
        }
        // Long values are not searched from their start for each step.
        self.buffer.resize(old + STEP.max(old), 0);
        let mut filled = old;
        while filled < self.buffer.len() {
            match self.source.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let at = self.before + filled as u64;
                    let cut = error.kind() == io::ErrorKind::UnexpectedEof;
                    return Err(if cut { cut_off(at) } else { (Error::io("cannot be read on", &error), at) });
                }
            }
        }
        self.buffer.truncate(filled);
        Ok(filled > old)
    }

    /// The next byte that is no white space, which stays; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Failure> {
        loop {
            let rest = &self.buffer[self.next..];
            if let Some(at) = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
                self.next += at;
                return Ok(Some(self.buffer[self.next]));
            }
            self.next = self.buffer.len();
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// The same where the text must go on.
    pub(super) fn peek_some(&mut self) -> Result<u8, Failure> {
        self.peek()?.ok_or_else(|| cut_off(self.position()))
    }

    /// Steps over the next byte that is no white space, which must be one of `wanted`.
    pub(super) fn expect(&mut self, wanted: &[u8]) -> Result<u8, Failure> {
        let byte = self.peek_some()?;
        if wanted.contains(&byte) {
            self.next += 1;
            return Ok(byte);
        }
        let wanted: Vec<String> = wanted.iter().map(|&byte| format!("'{}'", char::from(byte))).collect();
        let what = format!("is not a JSON trace: {} should be here", wanted.join(" or "));
        Err((Error::new(what), self.position()))
    }

    /// The next value as it is written, and where it begins.
    pub(super) fn value(&mut self) -> Result<(&[u8], u64), Failure> {
        self.peek_some()?;
        let mut end = End::default();
        let mut searched = 0;
        let length = loop {
            match end.search(&self.buffer[self.next + searched..]) {
                Some(length) => break searched + length,
                None => searched = self.buffer.len() - self.next,
            }
            if !self.read_on()? {
                // A number has no end of its own.
                if end.is_scalar {
                    break searched;
                }
                return Err(cut_off(self.before + searched as u64));
            }
        };
        let start = self.next;
        self.next += length;
        Ok((&self.buffer[start..self.next], self.before + start as u64))
    }
}

fn cut_off(at: u64) -> Failure {
    (Error::new("the trace is cut off here, so nothing of it is reported"), at)
}

/// The search for the end of a value, in pieces.
#[derive(Default)]
struct End {
    depth: u32,
    in_text: bool,
    escaped: bool,
    is_scalar: bool,
}

impl End {
    /// The length up to the end of the value, if that is in `bytes`.
    fn search(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            if self.in_text {
                if self.escaped {
                    self.escaped = false;
                } else if byte == b'\\' {
                    self.escaped = true;
                } else if byte == b'"' {
                    self.in_text = false;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                b'}' | b']' | b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => {
                    // Nothing at all is one byte, which no parser takes.
                    return Some((at - 1).max(usize::from(!self.is_scalar)));
                }
                _ => self.is_scalar |= self.depth == 0,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let (Some((&first, rest)), Some(place)) = (self.0.split_first(), bytes.first_mut()) else {
                return Ok(0);
            };
            (*place, self.0) = (first, rest);
            Ok(1)
        }
    }

    #[test]
    fn values_end_where_json_says() {
        let values = [r#"{"a":[1,{"]":"}\"\\"}]}"#, "[]", r#""x,\"]""#, "-1.5e3", "true", "{}"];
        let text = values.join(" ,\n");
        let mut splitter = Splitter::new(Slow(text.as_bytes()));
        for (index, value) in values.iter().enumerate() {
            let place = text.find(value).map(|at| at as u64);
            let (bytes, at) = splitter.value().unwrap_or((b"", 0));
            assert_eq!(std::str::from_utf8(bytes), Ok(*value));
            assert!(place.is_some_and(|place| place == at || index > 0 && place <= at));
            if index + 1 < values.len() {
                assert!(splitter.expect(b",").is_ok());
            }
        }
        assert!(matches!(splitter.peek(), Ok(None)));
    }
}
