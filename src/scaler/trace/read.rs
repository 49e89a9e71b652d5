//! Traces in files: CSV (comma, semicolon or tab), JSON lines and TensorBoard's event files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde_json::Value;

use super::columns::{few, recognise};
use super::join::{Join, Row};
use super::{Column, Role, events};
use crate::error::{Error, Result, escape};

/// Longest line that is read.
const LONGEST_LINE: u64 = 1 << 24;

/// Reads the trace `path` into `join`. `mapped` has the columns named by the user, as `role=name`. Gives what is
/// to be said beside the result.
///
/// # Errors
/// The file cannot be read, has no column of use, or a value or the order of its steps makes no sense; the
/// error names the line.
pub fn read(path: &Path, mapped: &[String], join: &mut Join) -> Result<Vec<String>> {
    read_file(path, mapped, join).map_err(|error| error.in_file(path))
}

fn read_file(path: &Path, mapped: &[String], join: &mut Join) -> Result<Vec<String>> {
    let failed = |error: io::Error| Error::io("cannot open the file", &error);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(Error::new("is a pipe, socket or device; a trace is a regular file"));
    }
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let first = file.fill_buf().map_err(|error| Error::io("cannot read the file", &error))?;
    let Some(&start) = first.iter().find(|byte| !byte.is_ascii_whitespace()) else {
        return Err(Error::new("is empty: there is no step to simulate"));
    };
    if events::matches(first) {
        return read_events(file, metadata.len(), mapped, join);
    }
    if first.contains(&0) {
        return Err(Error::new("is binary; a trace is text in UTF-8"));
    }
    match start {
        b'{' => read_json(file, mapped, join),
        b'[' => Err(Error::new("is a JSON array; a trace in JSON has one object a line")),
        _ => read_csv(file, mapped, join),
    }
}

fn read_csv(mut file: BufReader<File>, mapped: &[String], join: &mut Join) -> Result<Vec<String>> {
    let first = file.fill_buf().map_err(|error| Error::io("cannot read the file", &error))?;
    let head = first.split(|&byte| byte == b'\n').next().unwrap_or(first);
    let count = |delimiter: &u8| head.iter().filter(|byte| *byte == delimiter).count();
    let delimiter = [b',', b'\t', b';'].into_iter().rev().max_by_key(count).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::Headers)
        .from_reader(ShortLines { file, len: 0 });
    let heads = reader.byte_headers().map_err(|error| csv_error(&error))?;
    let heads: Vec<String> = heads.iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect();
    let mut columns = Columns::new(&heads, mapped, join)?;
    let mut record = csv::ByteRecord::new();
    let mut row = 0;
    while reader.read_byte_record(&mut record).map_err(|error| csv_error(&error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let field =
            |index: usize| record.get(index).map_or("", |field| std::str::from_utf8(field).unwrap_or("?"));
        columns.add(row, &format_args!("line {line}"), |index, _| Cell::Text(field(index)), join)?;
        row += 1;
    }
    columns.finish(row, join)
}

/// Refuses lines without an end before they fill the memory.
struct ShortLines {
    file: BufReader<File>,
    len: u64,
}

impl io::Read for ShortLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(newline) => self.len = (read - newline) as u64,
            None => self.len += read as u64,
        }
        if self.len > LONGEST_LINE {
            return Err(io::Error::other(format!(
                "a line is longer than the {LONGEST_LINE} bytes that are read"
            )));
        }
        Ok(read)
    }
}

fn csv_error(error: &csv::Error) -> Error {
    if let csv::ErrorKind::Io(error) = error.kind() {
        return Error::io("cannot read the file", error);
    }
    if let csv::ErrorKind::UnequalLengths { pos, expected_len, len } = error.kind() {
        let line = pos.as_ref().map_or(0, csv::Position::line);
        return Error::new(format!("line {line}: the head has {expected_len} fields, this line {len}"));
    }
    Error::new(format!("is no CSV: {error}"))
}

fn read_json(mut file: BufReader<File>, mapped: &[String], join: &mut Join) -> Result<Vec<String>> {
    let mut columns: Option<Columns> = None;
    let (mut line, mut row, mut text) = (0, 0, Vec::new());
    loop {
        text.clear();
        let read = file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text);
        let read = read.map_err(|error| Error::io("cannot read the file", &error))? as u64;
        line += 1;
        if read == 0 {
            break;
        }
        if read == LONGEST_LINE && text.last() != Some(&b'\n') {
            return Err(Error::new(format!(
                "line {line} is longer than the {LONGEST_LINE} bytes that are read"
            )));
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let value: serde_json::Map<String, Value> = serde_json::from_slice(&text)
            .map_err(|error| Error::new(format!("line {line} is no JSON object: {error}")))?;
        let fields = flatten(value);
        let columns = match &mut columns {
            Some(columns) => columns,
            none => {
                let heads: Vec<String> = fields.iter().map(|(head, _)| head.clone()).collect();
                none.insert(Columns::new(&heads, mapped, join)?)
            }
        };
        let by_head = |index: usize, head: &str| {
            // Lines mostly have the same keys in the same order.
            let near = fields.get(index).filter(|(key, _)| key == head);
            near.or_else(|| fields.iter().find(|(key, _)| key == head)).map(|(_, value)| value)
        };
        let cell = |index: usize, head: &str| by_head(index, head).map_or(Cell::Text(""), Cell::of);
        columns.add(row, &format_args!("line {line}"), cell, join)?;
        row += 1;
    }
    match columns {
        Some(columns) => columns.finish(row, join),
        None => Err(Error::new("is empty: there is no step to simulate")),
    }
}

fn read_events(
    mut file: BufReader<File>,
    len: u64,
    mapped: &[String],
    join: &mut Join,
) -> Result<Vec<String>> {
    let events::Table { mut heads, steps, mut notices } = events::read(&mut file, len)?;
    let step_head = heads.len();
    heads.push("step".into());
    let mut columns = Columns::new(&heads, mapped, join)?;
    let count = steps.len() as u64;
    for (row, (step, values)) in (0..).zip(steps) {
        let cell = |index: usize, _: &str| match values.iter().find(|(column, _)| *column == index) {
            Some(&(_, value)) => Cell::Number(value),
            None if index == step_head => Cell::Number(step as f64),
            None => Cell::Text(""),
        };
        columns.add(row, &format_args!("step {step}"), cell, join)?;
    }
    notices.extend(columns.finish(count, join)?);
    Ok(notices)
}

/// Objects within the object become `outer:inner`, as CSV has tensors.
fn flatten(object: serde_json::Map<String, Value>) -> Vec<(String, Value)> {
    let mut fields = Vec::new();
    for (key, value) in object {
        match value {
            Value::Object(inner) => {
                fields.extend(inner.into_iter().map(|(name, value)| (format!("{key}:{name}"), value)));
            }
            value => fields.push((key, value)),
        }
    }
    fields
}

/// The value of a column in one row.
enum Cell<'a> {
    Text(&'a str),
    Number(f64),
}

impl<'a> Cell<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Text(""),
            Value::Bool(flag) => Self::Number(f64::from(u8::from(*flag))),
            Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::Text(text),
            Value::Array(_) | Value::Object(_) => Self::Text("?"),
        }
    }

    /// The text as it is.
    fn text(&self) -> String {
        match self {
            Self::Text(text) => (*text).to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }

    /// The number; `None` for an empty field.
    fn number(&self) -> std::result::Result<Option<f64>, String> {
        match self {
            Self::Number(number) => Ok(Some(*number)),
            Self::Text(text) => match text.trim() {
                "" => Ok(None),
                "true" | "True" => Ok(Some(1.0)),
                "false" | "False" => Ok(Some(0.0)),
                text => text.parse().map(Some).map_err(|_| escape(text)),
            },
        }
    }
}

/// The columns of use, and how their values become steps.
struct Columns {
    heads: Vec<String>,
    /// Position, meaning and tensor.
    used: Vec<(usize, Column, super::TensorIndex)>,
    unused: Vec<String>,
    /// The column that names the tensor of a row.
    tensor: Option<usize>,
    /// What the rows of the step at hand have said so far, where there is one for each tensor.
    step: Option<Row>,
}

impl Columns {
    fn new(heads: &[String], mapped: &[String], join: &mut Join) -> Result<Self> {
        let recognised = recognise(heads, mapped)?;
        let mut used = Vec::new();
        let mut unused = Vec::new();
        let mut tensor = None;
        for (index, column) in recognised.into_iter().enumerate() {
            match column {
                Some(Column { role: Role::Tensor, .. }) => tensor = Some(index),
                Some(column) => {
                    let tensor = column.tensor.as_deref().map(|name| join.tensor(name));
                    used.push((index, column, tensor));
                }
                None => unused.push(heads[index].clone()),
            }
        }
        let telling = |role: Role| !matches!(role, Role::Step | Role::Scale | Role::GradNorm);
        if !used.iter().any(|(_, column, _)| telling(column.role)) {
            return Err(Error::new(format!(
                "no column says whether a step overflows (found_inf, grad_amax, amax:TENSOR, …); the columns are \
                 {}, and --column grad_amax=NAME names one",
                few(heads)
            )));
        }
        let has = |role: Role| used.iter().any(|(_, column, _)| column.role == role);
        if has(Role::ScaledAmax) && !has(Role::Scale) && !has(Role::GradAmax) {
            return Err(Error::new(
                "the largest scaled gradient is of use only with the scale in force, for which there \
                                   is no column; --column scale=NAME names one",
            ));
        }
        if tensor.is_some() && !has(Role::Step) {
            return Err(Error::new(
                "a row for each tensor takes a column for the step; --column step=NAME names one",
            ));
        }
        join.start_file();
        Ok(Self { heads: heads.to_vec(), used, unused, tensor, step: None })
    }

    fn add<'c>(
        &mut self,
        row: u64,
        place: &dyn fmt::Display,
        cell: impl Fn(usize, &str) -> Cell<'c>,
        join: &mut Join,
    ) -> Result<()> {
        let named = self.tensor.map(|index| join.tensor(&cell(index, &self.heads[index]).text()));
        let mut filled = Row::new(row);
        for (index, column, tensor) in &self.used {
            let head = || escape(&self.heads[*index]);
            let value = cell(*index, &self.heads[*index])
                .number()
                .map_err(|text| Error::new(format!("{place}, column '{}': '{text}' is no number", head())))?;
            // In a row about a tensor, what is said of gradients is said of its own.
            let role = match column.role {
                Role::GradAmax if named.is_some() => Role::TensorAmax,
                Role::Nonfinite if named.is_some() => Role::TensorNonfinite,
                role => role,
            };
            if let Some(value) = value {
                filled
                    .set(role, tensor.or(named.filter(|_| role != Role::FoundInf)), value)
                    .map_err(|what| Error::new(format!("{place}, column '{}': {what}", head())))?;
            }
        }
        let finished = if named.is_none() {
            Some(filled)
        } else if self.step.as_mut().is_some_and(|step| step.absorb(&filled)) {
            None
        } else {
            self.step.replace(filled)
        };
        finished.map_or(Ok(()), |row| join.push(&row).map_err(|what| Error::new(format!("{place}: {what}"))))
    }

    fn finish(self, rows: u64, join: &mut Join) -> Result<Vec<String>> {
        if rows == 0 {
            return Err(Error::new("has a head but no row: there is no step to simulate"));
        }
        if let Some(step) = &self.step {
            join.push(step).map_err(|what| Error::new(format!("the last line: {what}")))?;
        }
        join.end_file();
        let mut notices = Vec::new();
        if !self.used.iter().any(|(_, column, _)| column.role == Role::Step) {
            notices.push("the trace has no column for the step; rows are counted from 0".to_owned());
        }
        if !self.unused.is_empty() {
            notices.push(format!("columns not used: {}", few(&self.unused)));
        }
        Ok(notices)
    }
}
