//! Traces in TensorBoard event files: scalars, and the histograms of gradients.
//!
//! A file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data),
//! each a protocol buffer `Event` (tensorflow/core/util/event.proto, framework/summary.proto). Killed runs
//! leave the last record cut.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use crc::{CRC_32_ISCSI, Crc};
use prost::Message;

use crate::error::{Error, Result};

/// What the first record says of the file, and where.
const MARK: &[u8] = b"brain.Event:";
const MARK_AT: usize = 23;

static CRC32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Whether a file that begins with `first` is an event file.
pub(super) fn matches(first: &[u8]) -> bool {
    first.get(MARK_AT..).is_some_and(|rest| rest.starts_with(MARK))
}

/// What was recorded, step by step.
pub(super) struct Table {
    /// What the columns are: tags of scalars, and `amax:TAG` for the largest magnitudes of histograms.
    pub(super) heads: Vec<String>,
    /// The steps in order; of each the values by column. The last value of a step counts.
    pub(super) steps: BTreeMap<i64, Vec<(usize, f64)>>,
    /// What is to be said beside the result.
    pub(super) notices: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    scalar: Option<f32>,
    #[prost(message, optional, tag = "5")]
    histogram: Option<Histogram>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<Tensor>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(double, tag = "1")]
    min: f64,
    #[prost(double, tag = "2")]
    max: f64,
}

/// A scalar of TensorFlow 2 is a tensor without dimensions.
#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(bytes = "vec", tag = "4")]
    content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    floats: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    doubles: Vec<f64>,
}

impl Value {
    /// Its column and number, if it is of use.
    fn number(&self) -> Option<(String, f64)> {
        if let Some(histogram) = &self.histogram {
            let of_gradients = self.tag.to_ascii_lowercase().contains("grad");
            let amax = histogram.min.abs().max(histogram.max.abs());
            return of_gradients.then(|| (format!("amax:{}", self.tag), amax));
        }
        let of_tensor = || self.tensor.as_ref().and_then(Tensor::scalar);
        let value = self.scalar.map(f64::from).or_else(of_tensor)?;
        Some((self.tag.clone(), value))
    }
}

impl Tensor {
    /// The number, if there is just one. Types 1 and 2 are float and double (framework/types.proto).
    fn scalar(&self) -> Option<f64> {
        match (self.dtype, &*self.content, &*self.floats, &*self.doubles) {
            (1, [], &[value], _) => Some(value.into()),
            (2, [], _, &[value]) => Some(value),
            (1, content, [], _) => content.try_into().ok().map(f32::from_le_bytes).map(f64::from),
            (2, content, _, []) => content.try_into().ok().map(f64::from_le_bytes),
            _ => None,
        }
    }
}

/// Reads an event file of `len` bytes.
///
/// # Errors
/// The file cannot be read, or a record is damaged; the error has its byte.
pub(super) fn read(file: &mut impl Read, len: u64) -> Result<Table> {
    let mut table = Table { heads: Vec::new(), steps: BTreeMap::new(), notices: Vec::new() };
    let mut columns: HashMap<String, usize> = HashMap::new();
    let (mut unused, mut at, mut data) = (0_u64, 0, Vec::new());
    loop {
        let next = match record(file, at, len, &mut data).map_err(|error| error.at_byte(at))? {
            Record::Whole(next) => next,
            Record::Cut => {
                table.notices.push(format!("the last record, at byte {at}, is cut off and left out"));
                break;
            }
            Record::None => break,
        };
        let event = Event::decode(&*data).map_err(|error| {
            Error::new(format!("the record is no TensorBoard event: {error}")).at_byte(at)
        })?;
        for value in event.summary.iter().flat_map(|summary| &summary.values) {
            let Some((head, number)) = value.number() else {
                unused += 1;
                continue;
            };
            let column = *columns.entry(head).or_insert_with_key(|head| {
                table.heads.push(head.clone());
                table.heads.len() - 1
            });
            let step = table.steps.entry(event.step).or_default();
            match step.iter_mut().find(|(known, _)| *known == column) {
                Some((_, place)) => *place = number,
                None => step.push((column, number)),
            }
        }
        at = next;
    }
    if unused > 0 {
        table.notices.push(format!(
            "summaries left out, as neither scalars nor histograms of gradients (tags with 'grad'): {unused}"
        ));
    }
    if let Some(&step) = table.steps.keys().next().filter(|step| **step < 0) {
        return Err(Error::new(format!("an event is of step {step}; steps count from 0")));
    }
    Ok(table)
}

enum Record {
    /// The record ends at this byte.
    Whole(u64),
    /// The file ends within it.
    Cut,
    /// The file ends before it.
    None,
}

/// Reads the record at byte `at` into `data`.
fn record(file: &mut impl Read, at: u64, len: u64, data: &mut Vec<u8>) -> Result<Record> {
    const HEAD: u64 = 12;
    const FOOT: u64 = 4;
    if at == len {
        return Ok(Record::None);
    }
    let mut fill =
        |bytes: &mut [u8]| file.read_exact(bytes).map_err(|error| Error::io("cannot read the file", &error));
    if len - at < HEAD {
        return Ok(Record::Cut);
    }
    let (mut size, mut check) = ([0; 8], [0; 4]);
    fill(&mut size)?;
    fill(&mut check)?;
    if masked(&size) != u32::from_le_bytes(check) {
        return Err(Error::new("the checksum of the record's length is wrong"));
    }
    let size = u64::from_le_bytes(size);
    let left = len - at - HEAD;
    let Some(end) = size.checked_add(FOOT).filter(|end| *end <= left) else {
        // A whole length that nothing like follows is as likely a crash as a lie: what is before it counts.
        return Ok(Record::Cut);
    };
    data.resize(usize::try_from(size).map_err(|_| Error::new("the record does not fit in memory"))?, 0);
    fill(data)?;
    fill(&mut check)?;
    if masked(data) != u32::from_le_bytes(check) {
        return Err(Error::new("the checksum of the record is wrong: the file is damaged"));
    }
    Ok(Record::Whole(at + HEAD + end))
}

/// CRC-32C, rotated and shifted as TFRecords store it.
fn masked(data: &[u8]) -> u32 {
    CRC32C.checksum(data).rotate_right(15).wrapping_add(0xa282_ead8)
}
