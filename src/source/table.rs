//! CSV and TSV files: a column a tensor, or rows with the columns `tensor` (or `name`) and `value`.
//!
//! Numbers are float64. Empty cells are left out. Text is parsed as it is read, row by row, so that memory does
//! not depend on the file.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::TensorSource;
use super::bytes::{Bytes as _, check_range};
use super::file::DumpFile;
use super::limits::{self, quote};
use crate::error::{Error, Result};
use crate::tensor::{ByteOrder, Dtype, TensorInfo};

/// Bytes read at a time.
const STEP: u64 = 1 << 16;
/// Longest line.
const LINE: usize = 1 << 24;

/// Whether `path` is called like a table.
pub(super) fn is_named(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["csv", "tsv"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Reads the whole table once, to know how many numbers each tensor has.
///
/// # Errors
/// It has no rows of cells, or cannot be read. Columns with a cell that is no number are
/// [`TensorSource::problems`].
pub(super) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let file = Arc::new(file);
    let delimiter = delimiter(&file)?;
    let mut reader = reader(&file, delimiter);
    let heads: Vec<String> = match reader.byte_headers() {
        Ok(heads) => heads.iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect(),
        Err(error) => return Err(unreadable(&error)),
    };
    let place = |names: &[&str]| {
        heads.iter().position(|head| names.iter().any(|name| head.eq_ignore_ascii_case(name)))
    };
    let long = place(&["tensor", "name"]).zip(place(&["value"]));
    let mut series: Vec<Series> = match long {
        Some(_) => Vec::new(),
        None => {
            heads.iter().enumerate().map(|(column, head)| Series::new(head, Cells::Column(column))).collect()
        }
    };
    let mut by_name: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| unreadable(&error))? {
        let line = record.position().map_or(0, csv::Position::line);
        match long {
            None => series.iter_mut().zip(&record).for_each(|(series, cell)| series.count(cell, line)),
            Some((name, value)) => {
                let (Some(name), Some(cell)) = (record.get(name), record.get(value)) else { continue };
                let number = match by_name.get(name) {
                    Some(&number) => number,
                    None if series.len() == limits::TENSORS => {
                        return Err(Error::new(format!(
                            "the table has more than {} tensors",
                            limits::TENSORS
                        )));
                    }
                    None => {
                        by_name.insert(name.to_owned(), series.len());
                        series
                            .push(Series::new(&String::from_utf8_lossy(name), Cells::Named(name.to_owned())));
                        series.len() - 1
                    }
                };
                series[number].count(cell, line);
            }
        }
    }
    let mut table = Table {
        file,
        delimiter,
        long,
        tensors: Vec::new(),
        cells: Vec::new(),
        cursors: Vec::new(),
        problems: Vec::new(),
        notices: Vec::new(),
    };
    for series in series {
        table.take(series);
    }
    Ok(Box::new(table))
}

/// The character between cells: that of which the first line has most.
fn delimiter(file: &DumpFile) -> Result<u8> {
    let first = file.first_bytes(STEP)?;
    let line = first.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: &u8| line.iter().filter(|byte| *byte == delimiter).count();
    Ok([b',', b'\t', b';'].into_iter().rev().max_by_key(count).unwrap_or(b','))
}

fn reader(file: &Arc<DumpFile>, delimiter: u8) -> Reader<Forward> {
    let forward = Forward { file: Arc::clone(file), at: 0, line: 0 };
    ReaderBuilder::new().delimiter(delimiter).flexible(true).trim(csv::Trim::All).from_reader(forward)
}

fn unreadable(error: &csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Io(error) => Error::new(error.to_string()),
        _ => Error::new(format!("the table cannot be read: {error}")),
    }
}

/// A file read from start to end, unless a line is too long.
struct Forward {
    file: Arc<DumpFile>,
    at: u64,
    /// Length of the line so far.
    line: usize,
}

impl Read for Forward {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (self.file.len() - self.at).min(buffer.len() as u64) as usize;
        let read = self.file.read_exact_at(self.at, &mut buffer[..count]);
        read.map_err(|error| io::Error::other(error.what().to_owned()))?;
        self.line = match buffer[..count].iter().rposition(|&byte| byte == b'\n') {
            Some(place) => count - place,
            None => self.line + count,
        };
        if self.line > LINE {
            return Err(io::Error::other(format!("a line is longer than {LINE} bytes")));
        }
        self.at += count as u64;
        Ok(count)
    }
}

/// Which cells are a tensor's.
enum Cells {
    /// Those of a column.
    Column(usize),
    /// The values of rows with this name.
    Named(Vec<u8>),
}

/// The numbers of a tensor, as they are counted.
struct Series {
    name: String,
    cells: Cells,
    count: u64,
    /// The first cell that is no number: its line, and what it says.
    wrong: Option<(u64, String)>,
}

impl Series {
    fn new(name: &str, cells: Cells) -> Self {
        Self { name: name.to_owned(), cells, count: 0, wrong: None }
    }

    fn count(&mut self, cell: &[u8], line: u64) {
        if cell.is_empty() || self.wrong.is_some() {
            return;
        }
        match number(cell) {
            Some(_) => self.count += 1,
            None => self.wrong = Some((line, String::from_utf8_lossy(cell).into_owned())),
        }
    }
}

/// The number that a cell says.
fn number(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

struct Table {
    file: Arc<DumpFile>,
    delimiter: u8,
    /// The columns of names and values, if a row has one of each.
    long: Option<(usize, usize)>,
    tensors: Vec<TensorInfo>,
    cells: Vec<Cells>,
    cursors: Vec<Mutex<Option<Cursor>>>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

/// A position among the numbers of a tensor.
struct Cursor {
    reader: Reader<Forward>,
    /// Numbers that have been read.
    next: u64,
}

impl Table {
    fn take(&mut self, series: Series) {
        let Series { name, cells, count, wrong } = series;
        match wrong {
            // A column of text beside those of numbers.
            Some(_) if count == 0 => {
                let what = format!("the column {} is text; it is ignored", quote(&name));
                self.notices.push(Error::new(what).in_file(self.file.path()));
            }
            Some((line, text)) => {
                let what = format!("line {line}: {} is no number", quote(&text));
                self.problems.push(Error::new(what).in_tensor(&name).in_file(self.file.path()));
            }
            None => {
                let (dtype, byte_order) = (Dtype::Float64, ByteOrder::Little);
                self.tensors.push(TensorInfo {
                    name,
                    shape: vec![count],
                    dtype,
                    byte_order,
                    elements: count,
                });
                self.cells.push(cells);
                self.cursors.push(Mutex::default());
            }
        }
    }

    /// Gives the numbers of tensor `index` from number `first` on to `take`, which says whether it wants more.
    fn numbers(&self, index: usize, first: u64, mut take: impl FnMut(f64) -> bool) -> Result<()> {
        let mut place = self.cursors[index].lock().unwrap_or_else(PoisonError::into_inner);
        let mut cursor = place
            .take()
            .filter(|cursor| cursor.next <= first)
            .unwrap_or_else(|| Cursor { reader: reader(&self.file, self.delimiter), next: 0 });
        let mut record = ByteRecord::new();
        while cursor.reader.read_byte_record(&mut record).map_err(|error| unreadable(&error))? {
            let cell = match (&self.cells[index], self.long) {
                (Cells::Named(name), Some((names, values))) if record.get(names) == Some(name) => {
                    record.get(values)
                }
                (Cells::Named(_), _) => None,
                (Cells::Column(column), _) => record.get(*column),
            };
            let Some(value) = cell.and_then(number) else { continue };
            cursor.next += 1;
            if cursor.next > first && !take(value) {
                if cursor.next < self.tensors[index].elements {
                    *place = Some(cursor);
                }
                return Ok(());
            }
        }
        Err(Error::new("the table has become shorter than it was"))
    }
}

impl TensorSource for Table {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn notices(&self) -> &[Error] {
        &self.notices
    }

    fn in_order(&self, _index: usize) -> bool {
        true
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let Some(info) = self.tensors.get(index) else {
            return Err(super::no_such_tensor(index).in_file(self.file.path()));
        };
        let located = |error: Error| error.in_tensor(&info.name).in_file(self.file.path());
        check_range(info, offset, bytes.len() as u64).map_err(located)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (first, within) = (offset / 8, (offset % 8) as usize);
        let mut filled = 0;
        let take = |value: f64| {
            let skipped = if filled == 0 { within } else { 0 };
            let value = &value.to_le_bytes()[skipped..];
            let count = value.len().min(bytes.len() - filled);
            bytes[filled..filled + count].copy_from_slice(&value[..count]);
            filled += count;
            filled < bytes.len()
        };
        self.numbers(index, first, take).map_err(located)
    }
}
