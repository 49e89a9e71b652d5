//! Hugging Face's `.safetensors`: header length, a JSON directory of tensors, their data without gaps.
//!
//! The directory is read entry by entry, so that one entry that cannot be used leaves the others
//! readable. What makes every entry doubtful (overlaps, holes, a name used twice, data that no tensor
//! claims) fails the file, as it does in the reference implementation.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::TensorSource;
use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::limits::{self, element_count, quote, show_shape, stored_bytes};
use crate::error::{Error, Result};
use crate::tensor::{ByteOrder, Dtype, TensorInfo};

/// The container's element types that are numbers: its name and the one of the format.
const FLOATS: &[(&str, &str)] = &[
    ("F64", "float64"),
    ("F32", "float32"),
    ("F16", "float16"),
    ("BF16", "bfloat16"),
    ("F8_E4M3", "e4m3fn"),
    ("F8_E5M2", "e5m2"),
    ("F8_E8M0", "e8m0fnu"),
    ("F8_E4M3FNUZ", "e4m3fnuz"),
    ("F8_E5M2FNUZ", "e5m2fnuz"),
    ("F4", "e2m1fn_x2"),
];

/// The others, with their width in bits.
const OTHERS: &[(&str, u32)] = &[
    ("BOOL", 8),
    ("U8", 8),
    ("I8", 8),
    ("U16", 16),
    ("I16", 16),
    ("U32", 32),
    ("I32", 32),
    ("U64", 64),
    ("I64", 64),
    ("C64", 64),
];

/// Bytes before the JSON text: its length, 64 bits little-endian.
const PREFIX: u64 = 8;

/// Whether a file that begins with `first` is meant as a safetensors file. It has no magic: a length
/// below 4 GiB, of either byte order, before an opening brace is mark enough, and no text has it.
pub(super) fn matches(first: &[u8], _file_len: u64) -> bool {
    match first.first_chunk() {
        Some(&length) => {
            let length = u64::from_le_bytes(length);
            first.get(8) == Some(&b'{') && length.min(length.swap_bytes()) <= u64::from(u32::MAX)
        }
        None => false,
    }
}

/// Reads and checks the directory.
///
/// # Errors
/// The directory as a whole cannot be used. Single tensors that cannot are
/// [`TensorSource::problems`].
pub(super) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let length = file.header("the header length", 0, PREFIX, PREFIX)?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    if length > file.len() && length.swap_bytes() <= file.len() {
        return Err(
            Error::new("the header length is written big-endian; it must be little-endian").at_byte(0)
        );
    }
    let header = file
        .header("the header", PREFIX, length, limits::SAFETENSORS_HEADER_BYTES)
        .map_err(|error| if length > limits::SAFETENSORS_HEADER_BYTES { error.at_byte(0) } else { error })?;
    let data_at = PREFIX + length;
    let text = std::str::from_utf8(&header).map_err(|error| {
        Error::new("the header is not UTF-8 text").at_byte(PREFIX + error.valid_up_to() as u64)
    })?;
    if !text.starts_with('{') {
        return Err(Error::new("the header must begin with an opening brace").at_byte(PREFIX));
    }
    let directory: Directory<'_> =
        serde_json::from_str(text).map_err(|error| json_error("the header", text, PREFIX, &error))?;

    let mut survey = Survey { data_at, data_len: file.len() - data_at, ..Survey::default() };
    let mut seen = HashSet::new();
    for (name, value) in &directory.0 {
        // Both point into the same text.
        let at = PREFIX + (value.get().as_ptr().addr() - text.as_ptr().addr()) as u64;
        if !seen.insert(name.as_str()) {
            let what = format!("the header names {} twice", quote(name));
            return Err(Error::new(what).at_byte(at));
        }
        if name == "__metadata__" {
            survey.metadata(value.get(), at);
        } else {
            survey.tensor(name, value.get(), at);
        }
    }
    survey.check_layout()?;
    let (tensors, starts) = survey
        .spans
        .into_iter()
        .filter_map(|span| span.tensor.map(|tensor| (tensor, data_at + span.begin)))
        .unzip();
    let located = |sentences: Vec<Error>| -> Vec<_> {
        sentences.into_iter().map(|sentence| sentence.in_file(file.path())).collect()
    };
    let (problems, notices) = (located(survey.problems), located(survey.notices));
    let metadata = survey.metadata;
    Ok(Box::new(Safetensors { file, tensors, starts, metadata, problems, notices }))
}

struct Safetensors {
    file: DumpFile,
    tensors: Vec<TensorInfo>,
    /// Where the data of each tensor begin in the file.
    starts: Vec<u64>,
    metadata: Vec<(String, String)>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

impl TensorSource for Safetensors {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn notices(&self) -> &[Error] {
        &self.notices
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match (self.tensors.get(index), self.starts.get(index)) {
            (Some(tensor), Some(&start)) => self.file.read_tensor(tensor, start, offset, bytes),
            _ => Err(super::no_such_tensor(index)),
        }
        .map_err(|error| error.in_file(self.file.path()))
    }
}

/// The header's pairs as they stand, repeated names included, each value unread.
pub(super) struct Directory<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Directory<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs).map(Self)
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object with dtype, shape and data_offsets")]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The bytes that one entry claims, counted from the start of the data.
struct Span {
    name: String,
    begin: u64,
    end: u64,
    /// `None` if the entry cannot be used otherwise.
    tensor: Option<TensorInfo>,
}

/// What has been found in the directory so far.
#[derive(Default)]
struct Survey {
    data_at: u64,
    data_len: u64,
    spans: Vec<Span>,
    /// Whether some entry does not say which bytes it claims, so that holes prove nothing.
    claims_unknown: bool,
    metadata: Vec<(String, String)>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

impl Survey {
    /// Takes `__metadata__`. Values that are not strings, which the container forbids, are kept as JSON.
    fn metadata(&mut self, json: &str, at: u64) {
        let pairs = match serde_json::from_str::<Directory<'_>>(json) {
            Ok(Directory(pairs)) => pairs,
            Err(error) => return self.notices.push(json_error("__metadata__", json, at, &error)),
        };
        for (key, value) in pairs {
            let value = serde_json::from_str(value.get()).unwrap_or_else(|_| {
                let what = format!("the value of {} in __metadata__ is not a string", quote(&key));
                self.notices.push(Error::new(what).at_byte(at));
                value.get().to_owned()
            });
            self.metadata.push((key, value));
        }
    }

    fn tensor(&mut self, name: &str, json: &str, at: u64) {
        let located = |error: Error| error.in_tensor(name);
        let entry: Entry = match serde_json::from_str(json) {
            Ok(entry) => entry,
            Err(error) => {
                self.claims_unknown = true;
                return self.problems.push(located(json_error("the entry", json, at, &error)));
            }
        };
        let (begin, end) = entry.data_offsets;
        if begin > end {
            self.claims_unknown = true;
            let what = format!("data_offsets [{begin}, {end}] end before they begin");
            return self.problems.push(located(Error::new(what).at_byte(at)));
        }
        let tensor = match self.check(name, entry, at) {
            Ok(tensor) => Some(tensor),
            Err(error) => {
                self.problems.push(located(error));
                None
            }
        };
        self.spans.push(Span { name: name.to_owned(), begin, end, tensor });
    }

    fn check(&self, name: &str, entry: Entry, at: u64) -> Result<TensorInfo> {
        let Entry { dtype, shape, data_offsets: (begin, end) } = entry;
        let in_header = |error: Error| error.at_byte(at);
        let dtype = element(&dtype).map_err(in_header)?;
        let elements = element_count(&shape).map_err(in_header)?;
        let bytes = stored_bytes(elements, dtype.bits()).map_err(in_header)?;
        let claimed = end - begin;
        if bytes != claimed {
            let (shape, dtype, bytes) = (show_shape(&shape), dtype.name(), limits::bytes(bytes));
            let what = format!("shape {shape} of {dtype} takes {bytes}, but data_offsets span {claimed}");
            return Err(Error::new(what).at_byte(at));
        }
        if end > self.data_len {
            let left = self.data_len.saturating_sub(begin);
            let what = format!("the data are cut off: {left} of {} are there", limits::bytes(bytes));
            return Err(Error::new(what).at_byte(self.data_at + self.data_len));
        }
        Ok(TensorInfo { name: name.to_owned(), shape, dtype, byte_order: ByteOrder::Little, elements })
    }

    /// Puts the tensors in the order of their data, and checks that these follow one another.
    fn check_layout(&mut self) -> Result<()> {
        self.spans.sort_by_key(|span| (span.begin, span.end));
        let mut end = 0;
        for span in &self.spans {
            if span.begin < end {
                let overlap = limits::bytes(end - span.begin);
                let what = format!("the data overlap those of the tensor before by {overlap}");
                return Err(Error::new(what)
                    .in_tensor(&span.name)
                    .at_byte(self.data_at.saturating_add(span.begin)));
            }
            if span.begin > end && !self.claims_unknown {
                let what = format!("no tensor has the {} before its data", limits::bytes(span.begin - end));
                return Err(Error::new(what).in_tensor(&span.name).at_byte(self.data_at.saturating_add(end)));
            }
            end = span.end;
        }
        if end < self.data_len && !self.claims_unknown {
            let what = format!("no tensor has the last {}", limits::bytes(self.data_len - end));
            return Err(Error::new(what).at_byte(self.data_at + end));
        }
        Ok(())
    }
}

/// The element type of the container's name.
fn element(name: &str) -> Result<Dtype> {
    if let Some((_, format)) = FLOATS.iter().find(|(known, _)| *known == name) {
        return Dtype::parse(format);
    }
    if let Some((_, bits)) = OTHERS.iter().find(|(known, _)| *known == name) {
        return Ok(Dtype::Other { name: name.to_owned(), bits: *bits });
    }
    Err(Error::new(match name {
        "F6_E2M3" | "F6_E3M2" => {
            format!("dtype {name} packs 6-bit codes in an order that safetensors does not define")
        }
        _ => format!("dtype {} is unknown to safetensors 0.8", quote(name)),
    }))
}

/// Words serde_json's error, and turns its line and column into a byte of the file.
pub(super) fn json_error(what: &str, text: &str, at: u64, error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let byte = (before + error.column().saturating_sub(1)).min(text.len());
    let message: String = crate::error::escape(message).chars().take(200).collect();
    Error::new(format!("{what} is not as it should be: {message}")).at_byte(at + byte as u64)
}
