//! The npy header: the one kind of Python dict that numpy writes, read in one pass and without recursion.

use super::descr;
use crate::error::{Error, Result};
use crate::source::limits::{self, quote};
use crate::tensor::{ByteOrder, Dtype};

/// What a header says.
pub(super) struct Header {
    pub(super) dtype: Dtype,
    pub(super) byte_order: ByteOrder,
    pub(super) shape: Vec<u64>,
    /// Whether the first index runs fastest.
    pub(super) column_major: bool,
}

/// Reads the header `text`, which begins at byte `at` of the file. The rules are numpy's: the keys
/// `descr`, `fortran_order` and `shape`, each once, in any order, and no others.
pub(super) fn parse(text: &[u8], at: u64) -> Result<Header> {
    let mut scan = Scan { text, at, next: 0 };
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    scan.expect(b'{', "the header's opening brace")?;
    while !scan.take(b'}') {
        scan.skip_blanks();
        let key_at = scan.next;
        let key = scan.string("a header key in quotes")?;
        scan.expect(b':', "a colon after the key")?;
        let repeated = match key.as_str() {
            "descr" => element.replace(scan.element()?).is_some(),
            "fortran_order" => fortran_order.replace(scan.boolean()?).is_some(),
            "shape" => shape.replace(scan.shape()?).is_some(),
            _ => {
                scan.next = key_at;
                return Err(scan.fail(format!("header key {} is not one of numpy's", quote(&key))));
            }
        };
        if repeated {
            scan.next = key_at;
            return Err(scan.fail(format!("header key '{key}' occurs twice")));
        }
        if !scan.take(b',') {
            scan.expect(b'}', "a comma or the header's closing brace")?;
            break;
        }
    }
    scan.skip_blanks();
    if scan.next < text.len() {
        return Err(scan.fail("text follows the header's closing brace".to_owned()));
    }
    let missing = |key| Error::new(format!("the header has no key '{key}'")).at_byte(at);
    let (dtype, byte_order) = element.ok_or_else(|| missing("descr"))?;
    let column_major = fortran_order.ok_or_else(|| missing("fortran_order"))?;
    Ok(Header { dtype, byte_order, shape: shape.ok_or_else(|| missing("shape"))?, column_major })
}

/// A position in the header text.
struct Scan<'a> {
    text: &'a [u8],
    /// Where the text begins in the file.
    at: u64,
    next: usize,
}

impl Scan<'_> {
    fn fail(&self, what: String) -> Error {
        Error::new(what).at_byte(self.at + self.next as u64)
    }

    fn skip_blanks(&mut self) {
        let rest = self.text.get(self.next..).unwrap_or_default();
        self.next += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.text.get(self.next).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8, what: &str) -> Result<()> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    fn unexpected(&mut self, wanted: &str) -> Error {
        let found = match self.peek() {
            None => "the header ends".to_owned(),
            Some(byte) => quote(&char::from(byte).to_string()),
        };
        self.fail(format!("{found} where {wanted} should be"))
    }

    fn string(&mut self, what: &str) -> Result<String> {
        // Python 2 may mark a string as text or bytes; it means the same here.
        if matches!(self.peek(), Some(b'u' | b'b')) {
            self.next += 1;
        }
        let quote_mark = match self.text.get(self.next) {
            Some(&(b'\'' | b'"')) => self.text[self.next],
            _ => return Err(self.unexpected(what)),
        };
        let rest = &self.text[self.next + 1..];
        match rest.iter().position(|&byte| byte == quote_mark) {
            Some(end) => {
                self.next += end + 2;
                Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
            }
            None => Err(self.fail("a quoted text does not end".to_owned())),
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        self.skip_blanks();
        for (word, value) in [("False", false), ("True", true)] {
            if self.text[self.next..].starts_with(word.as_bytes()) {
                self.next += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False for fortran_order"))
    }

    fn element(&mut self) -> Result<(Dtype, ByteOrder)> {
        if self.peek() == Some(b'[') {
            let fields = self.text[self.next + 1..].trim_ascii_start();
            if fields.starts_with(b"(") {
                let holds_objects = fields.windows(3).any(|text| matches!(text, b"'|O" | b"\"|O"));
                let what = if holds_objects { descr::OBJECTS } else { descr::STRUCTURED };
                return Err(self.fail(what.to_owned()));
            }
        }
        let start = self.next;
        let text = self.string("descr in quotes")?;
        descr::element(&text).map_err(|error| error.at_byte(self.at + start as u64))
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        let mut shape = Vec::new();
        let start = self.next;
        self.expect(b'(', "the tuple of the shape")?;
        while !self.take(b')') {
            if shape.len() == limits::RANK {
                return Err(self.fail(format!("the shape has more than {} dimensions", limits::RANK)));
            }
            shape.push(self.extent()?);
            if !self.take(b',') {
                self.expect(b')', "a comma or the end of the shape")?;
                if shape.len() == 1 {
                    self.next = start;
                    self.skip_blanks();
                    return Err(self.fail(format!("shape ({}) is a number; a tuple has a comma", shape[0])));
                }
                break;
            }
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<u64> {
        if self.peek() == Some(b'-') {
            return Err(self.fail("the shape has a negative dimension".to_owned()));
        }
        let rest = &self.text[self.next..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.unexpected("a dimension of the shape"));
        }
        let value = rest[..digits]
            .iter()
            .try_fold(0_u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte - b'0')));
        let value =
            value.ok_or_else(|| self.fail("a dimension of the shape does not fit in 64 bits".to_owned()))?;
        self.next += digits;
        // Python 2 wrote long integers as 3L.
        self.next += usize::from(self.text.get(self.next) == Some(&b'L'));
        Ok(value)
    }
}
