//! The report of `autocast --list`.

use std::io::{self, Write};

use serde::Serialize;

use crate::error::escape;
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};
use crate::report::{SCHEMA_VERSION, Tool};
use crate::training::autocast::policy::{Policy, Row};
use crate::training::autocast::table::{LISTS_OF, OPS, SOURCE};

/// The lists, or the part of them that was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct ListReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `autocast --list`.
    pub command: &'static str,
    /// The version that the lists are of.
    pub lists: &'static str,
    /// Where they stand.
    pub source: &'static str,
    /// What was asked for.
    pub asked: Option<String>,
    /// The ops.
    pub ops: Vec<ListEntry>,
}

/// An op and its lists; `null` for none.
#[derive(Clone, Debug, Serialize)]
pub struct ListEntry {
    /// Name without `aten::`.
    pub op: &'static str,
    /// Its list on CUDA.
    pub cuda: Option<&'static str>,
    /// What autocast does there.
    pub cuda_meaning: &'static str,
    /// Its list on the CPU.
    pub cpu: Option<&'static str>,
    /// What autocast does there.
    pub cpu_meaning: &'static str,
}

const UNLISTED: &str = "of no list: runs in the types it is given";

impl ListEntry {
    fn new(row: &Row) -> Self {
        let meaning = |policy: Option<Policy>| policy.map_or(UNLISTED, Policy::meaning);
        Self {
            op: row.op,
            cuda: row.cuda.map(Policy::name),
            cuda_meaning: meaning(row.cuda),
            cpu: row.cpu.map(Policy::name),
            cpu_meaning: meaning(row.cpu),
        }
    }
}

const COLUMNS: [&str; 3] = ["op", "cuda", "cpu"];

impl ListReport {
    /// Every op whose name contains `asked`, the one of that name first; or all.
    pub fn new(asked: Option<&str>) -> Self {
        let part = asked.map(|op| op.strip_prefix("aten::").unwrap_or(op).to_ascii_lowercase());
        let part = part.as_deref().unwrap_or("");
        let mut ops: Vec<ListEntry> =
            OPS.iter().filter(|row| row.op.contains(part)).map(ListEntry::new).collect();
        ops.sort_by_key(|entry| entry.op != part);
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "autocast --list",
            lists: LISTS_OF,
            source: SOURCE,
            asked: asked.map(str::to_owned),
            ops,
        }
    }

    /// Says that an op is of no list, if the one that was asked for is.
    fn unlisted(&self) -> Option<String> {
        let asked = self.asked.as_deref()?;
        let name = asked.strip_prefix("aten::").unwrap_or(asked);
        let listed = self.ops.iter().any(|entry| entry.op.eq_ignore_ascii_case(name));
        let name = escape(name);
        (!listed).then(|| format!("{name} is of no list: autocast leaves it the types it is given."))
    }

    /// Writes the lists for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if let Some(sentence) = self.unlisted() {
            for line in wrap("", &sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        let list = |list: Option<&'static str>| list.unwrap_or("–").to_owned();
        if !self.ops.is_empty() {
            let mut table = Table::new(COLUMNS.map(|head| (head, Align::Left)));
            for entry in &self.ops {
                table.row([entry.op.to_owned(), list(entry.cuda), list(entry.cpu)]);
            }
            write_lines(&table.lines(view.width), view, out)?;
            writeln!(out)?;
        }
        for line in wrap("", &self.legend(), view.width) {
            writeln!(out, "{}", view.paint.dim(&line))?;
        }
        Ok(())
    }

    /// What the lists that are shown mean, and whose they are.
    fn legend(&self) -> String {
        let shown = |policy: &Policy| {
            let name = Some(policy.name());
            self.ops.iter().any(|entry| entry.cuda == name || entry.cpu == name)
        };
        let policies = [Policy::Lower, Policy::Fp32, Policy::Promote, Policy::Refused];
        let meaning = |policy: &Policy| match policy {
            Policy::Fp32 => "float32: inputs are cast to float32, or the result is".to_owned(),
            other => format!("{}: {}", other.name(), other.meaning()),
        };
        let mut parts: Vec<String> = policies.iter().filter(|policy| shown(policy)).map(meaning).collect();
        if self.ops.iter().any(|entry| entry.cuda.is_none() || entry.cpu.is_none()) {
            parts.push(format!("–: {UNLISTED}"));
        }
        parts.push(format!("lists of {} ({})", self.lists, self.source));
        parts.join("; ")
    }

    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(["op", "cuda", "cuda_meaning", "cpu", "cpu_meaning"]).map_err(io::Error::other)?;
        for entry in &self.ops {
            let (cuda, cpu) = (entry.cuda.unwrap_or(""), entry.cpu.unwrap_or(""));
            let record = [entry.op, cuda, entry.cuda_meaning, cpu, entry.cpu_meaning];
            csv.write_record(record).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### Autocast lists of {}\n\n| {} |\n|:--|:--|:--|", self.lists, COLUMNS.join(" | "))?;
        for entry in &self.ops {
            let (cuda, cpu) = (entry.cuda.unwrap_or("–"), entry.cpu.unwrap_or("–"));
            writeln!(out, "| `{}` | {cuda} | {cpu} |", entry.op)?;
        }
        Ok(())
    }
}
