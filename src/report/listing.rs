//! The report of `ls`: what is in the dumps.

use std::io::{self, Write};

use serde::Serialize;

use super::histogram::code_in_cell;
use super::number::{bytes, count, plural};
use super::style::View;
use super::table::{Align, Table, write_lines};
use super::{Report, SCHEMA_VERSION, Tool, json};
use crate::error::escape;
use crate::tensor::TensorInfo;

/// What is in some files.
#[derive(Clone, Debug, Serialize)]
pub struct ListingReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `ls`.
    pub command: &'static str,
    /// The files read.
    pub files: Vec<String>,
    /// Each tensor, in the order of the files.
    pub tensors: Vec<Entry>,
    /// What was skipped or is odd.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl Default for ListingReport {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "ls",
            files: Vec::new(),
            tensors: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// A tensor.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Index into `files`.
    pub file: usize,
    /// Name in the dump.
    pub name: String,
    /// Extent of each dimension.
    pub shape: Vec<u64>,
    /// Stored element type.
    pub dtype: String,
    /// Number of elements.
    pub elements: u64,
    /// Number of bytes that these take, unpacked.
    pub bytes: u64,
    /// Training step, if known.
    pub step: Option<u64>,
    /// Rank, if known.
    pub rank: Option<u64>,
}

impl Entry {
    /// A tensor of file number `file`, from this step and rank.
    pub fn new(file: usize, info: &TensorInfo, (step, rank): (Option<u64>, Option<u64>)) -> Self {
        Self {
            file,
            name: info.name.clone(),
            shape: info.shape.clone(),
            dtype: info.dtype.name().to_owned(),
            elements: info.elements,
            bytes: info.bytes(),
            step,
            rank,
        }
    }

    /// Its shape as people write it: `256x64`.
    fn shape_text(&self, none: &str) -> String {
        match self.shape.as_slice() {
            [] => none.to_owned(),
            shape => shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
        }
    }
}

/// Columns of the CSV, and the texts in them.
const COLUMNS: [&str; 8] = ["file", "tensor", "shape", "dtype", "elements", "bytes", "step", "rank"];

impl ListingReport {
    /// Writes the report for people: a table a file.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for (number, file) in self.files.iter().enumerate() {
            let tensors: Vec<&Entry> = self.tensors.iter().filter(|entry| entry.file == number).collect();
            if number > 0 {
                writeln!(out)?;
            }
            let total: u64 = tensors.iter().map(|entry| entry.bytes).sum();
            let mut facts = vec![plural(tensors.len() as u64, "tensor"), bytes(total)];
            if let Some(first) = tensors.first() {
                facts.extend(first.step.map(|step| format!("step {step}")));
                facts.extend(first.rank.map(|rank| format!("rank {rank}")));
            }
            writeln!(out, "{}: {}", view.paint.bold(&escape(file)), facts.join(", "))?;
            if tensors.is_empty() {
                continue;
            }
            let right = ["elements", "size"].map(|head| (head, Align::Right));
            let head = [("tensor", Align::Left), ("shape", Align::Left), ("dtype", Align::Left)];
            let mut table = Table::new(head.into_iter().chain(right));
            for entry in tensors {
                table.row([
                    escape(&entry.name),
                    entry.shape_text("scalar"),
                    escape(&entry.dtype),
                    count(entry.elements),
                    bytes(entry.bytes),
                ]);
            }
            write_lines(&table.lines(view.width), view, out)?;
        }
        Ok(())
    }

    fn records(&self) -> impl Iterator<Item = [String; 8]> {
        let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        self.tensors.iter().map(move |entry| {
            [
                self.files[entry.file].clone(),
                entry.name.clone(),
                entry.shape_text(""),
                entry.dtype.clone(),
                entry.elements.to_string(),
                entry.bytes.to_string(),
                number(entry.step),
                number(entry.rank),
            ]
        })
    }
}

impl Report for ListingReport {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS).map_err(io::Error::other)?;
        for record in self.records() {
            csv.write_record(record).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect ls\n")?;
        writeln!(out, "| {} |", COLUMNS.join(" | "))?;
        writeln!(out, "|:--|:--|:--|:--|--:|--:|--:|--:|")?;
        for record in self.records() {
            let [file, tensor, rest @ ..] = record.map(|cell| code_in_cell(&cell));
            writeln!(out, "| `{file}` | `{tensor}` | {} |", rest.join(" | "))?;
        }
        Ok(())
    }
}
