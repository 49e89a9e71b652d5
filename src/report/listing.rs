//! The report of `ls`: what is in the dumps.

use std::io::{self, Write};
use std::path::Path;

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

    /// Shape, type and sizes, for a table.
    fn facts(&self) -> Vec<String> {
        vec![self.shape_text("scalar"), escape(&self.dtype), count(self.elements), bytes(self.bytes)]
    }

    /// Its shape as people write it: `256x64`.
    fn shape_text(&self, none: &str) -> String {
        match self.shape.as_slice() {
            [] => none.to_owned(),
            shape => shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
        }
    }
}

/// The last columns of the tables.
const SIZES: [(&str, Align); 2] = [("elements", Align::Right), ("size", Align::Right)];

/// Columns of the CSV.
const COLUMNS: [&str; 8] = ["file", "tensor", "shape", "dtype", "elements", "bytes", "step", "rank"];

impl ListingReport {
    /// Writes the report for people: a table a file, but one for all neighbouring files of a single tensor.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let mut of_file: Vec<Vec<&Entry>> = vec![Vec::new(); self.files.len()];
        self.tensors.iter().for_each(|entry| of_file[entry.file].push(entry));
        let mut files = of_file.iter().enumerate().peekable();
        let mut first = true;
        while let Some((number, tensors)) = files.next() {
            if !std::mem::take(&mut first) {
                writeln!(out)?;
            }
            let mut alone: Vec<&Entry> = tensors.clone();
            while let ([_], Some((_, [next]))) = (&tensors[..], files.peek().map(|(n, file)| (n, &file[..])))
            {
                alone.push(next);
                files.next();
            }
            match alone.len() > tensors.len() {
                true => self.table_of_files(&alone, view, out)?,
                false => self.table_of_file(number, tensors, view, out)?,
            }
        }
        Ok(())
    }

    fn table_of_file(
        &self,
        number: usize,
        tensors: &[&Entry],
        view: &View,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let total: u64 = tensors.iter().map(|entry| entry.bytes).sum();
        let mut facts = vec![plural(tensors.len() as u64, "tensor"), bytes(total)];
        if let Some(first) = tensors.first() {
            facts.extend(first.step.map(|step| format!("step {step}")));
            facts.extend(first.rank.map(|rank| format!("rank {rank}")));
        }
        writeln!(out, "{}: {}", view.paint.bold(&escape(&self.files[number])), facts.join(", "))?;
        if tensors.is_empty() {
            return Ok(());
        }
        let head = [("tensor", Align::Left), ("shape", Align::Left), ("dtype", Align::Left)];
        let mut table = Table::new(head.into_iter().chain(SIZES));
        for entry in tensors {
            table.row([vec![escape(&entry.name)], entry.facts()].concat());
        }
        write_lines(&table.lines(view.width), view, out)
    }

    /// Files of one tensor each, named like it.
    fn table_of_files(&self, tensors: &[&Entry], view: &View, out: &mut dyn Write) -> io::Result<()> {
        let total: u64 = tensors.iter().map(|entry| entry.bytes).sum();
        let folder = self.folder(tensors);
        let files = plural(tensors.len() as u64, "file");
        writeln!(out, "{}: {files} of one tensor, {}", view.paint.bold(&escape(folder)), bytes(total))?;
        let head = [("file", Align::Left), ("step", Align::Right), ("rank", Align::Right)];
        let head = head.into_iter().chain([("shape", Align::Left), ("dtype", Align::Left)]).chain(SIZES);
        let mut table = Table::new(head);
        let number = |number: Option<u64>| number.map_or("–".to_owned(), |number| number.to_string());
        for entry in tensors {
            let path = &self.files[entry.file];
            let short = path.get(folder.len()..).unwrap_or(path);
            let named = Path::new(path).file_stem().is_some_and(|stem| stem.to_string_lossy() == entry.name);
            let name = if named { short.to_owned() } else { format!("{short}: {}", entry.name) };
            table.row([vec![escape(&name), number(entry.step), number(entry.rank)], entry.facts()].concat());
        }
        write_lines(&table.lines(view.width), view, out)
    }

    /// The folder that all these files share, up to its last slash.
    fn folder(&self, tensors: &[&Entry]) -> &str {
        let Some(first) = tensors.first().map(|entry| &self.files[entry.file]) else { return "" };
        let shared = |entry: &&Entry| {
            first.bytes().zip(self.files[entry.file].bytes()).take_while(|(a, b)| a == b).count()
        };
        let common = tensors.iter().map(shared).min().unwrap_or(0);
        let end =
            first.as_bytes()[..common].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        first.get(..end).unwrap_or("")
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
