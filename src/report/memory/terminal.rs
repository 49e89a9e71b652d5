//! The ledgers on a terminal: the terms of one recipe, or several side by side; the stages of a step.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::model::{LedgerEntry, MemoryReport, StageEntry};
use crate::error::escape;
use crate::report::number::{bytes, count, full, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};
use crate::training::memory::recipe::PARTS;

/// A size with three digits, in a binary unit.
pub(super) fn size(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", short(size, 3), UNITS[unit])
}

impl MemoryReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for line in wrap("", &self.heading(), view.width) {
            writeln!(out, "{}", view.paint.bold(&line))?;
        }
        match self.recipes.as_slice() {
            [only] => self.ledger(only, view, out)?,
            several => self.comparison(several, view, out)?,
        }
        for recipe in self.recipes.iter().filter(|recipe| !recipe.flow.is_empty()) {
            writeln!(out, "\n{}", view.paint.dim(&format!("{}: a step, on one rank", recipe.recipe)))?;
            write_flow(&recipe.flow, view, out)?;
        }
        writeln!(out)?;
        let own = match self.recipes.as_slice() {
            [only] => vec![only.sum.clone(), only.doubt.to_owned()],
            _ => {
                vec!["--recipe NAME shows the terms of one, their source and what it leaves open.".to_owned()]
            }
        };
        for sentence in own.iter().chain(&self.doubts) {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// What it is the memory of.
    pub(super) fn heading(&self) -> String {
        let mut parts = vec![plural(self.parameters, "parameter")];
        if let Some(counted) = &self.counted {
            let files = match counted.files.as_slice() {
                [only] => escape(only),
                files => plural(files.len() as u64, "file"),
            };
            parts[0].push_str(&format!(" in {} of {files}", plural(counted.tensors, "tensor")));
            let others = [
                (counted.states, "optimizer"),
                (counted.buffers, "buffer"),
                (counted.not_floats, "integer or boolean"),
            ];
            for ((tensors, _, size), what) in others {
                if tensors > 0 {
                    let tensors = plural(tensors, &format!("{what} tensor"));
                    parts.push(format!("not counted: {tensors} ({})", bytes(size)));
                }
            }
        }
        if self.ranks == 1 && self.sharding != "none" {
            parts.push(format!("sharding {} over 1 rank divides nothing: give --ranks", self.sharding));
        }
        if self.ranks > 1 {
            parts.push(format!("{} ranks, sharding {}", count(self.ranks), self.sharding));
        }
        if let Some(shape) = &self.model {
            let mut text =
                format!("h={} L={} s={} b={}", shape.hidden, shape.layers, shape.sequence, shape.batch);
            text.extend(shape.heads.map(|heads| format!(" a={heads}")));
            text.extend(shape.vocabulary.map(|words| format!(" v={words}")));
            parts.push(format!("{text}, recompute {}", shape.recompute));
        }
        parts.join("; ")
    }

    fn ledger(&self, ledger: &LedgerEntry, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for text in [format!("{}: {}", ledger.recipe, ledger.about), format!("source: {}", ledger.source)] {
            for line in wrap("", &text, view.width) {
                writeln!(out, "{}", view.paint.dim(&line))?;
            }
        }
        let shared = self.ranks > 1;
        let rank = |text: String| shared.then_some(text);
        let mut heads = vec![("term", Align::Left), ("type", Align::Left), ("bytes each", Align::Right)];
        heads.push(("all", Align::Right));
        heads.extend(shared.then_some(("on a rank", Align::Right)));
        let mut table = Table::new(heads.into_iter().chain([("", Align::Left)]));
        for term in ledger.terms.iter().filter(|term| !term.passing) {
            let note = if shared && term.divided { format!("1/{}", self.ranks) } else { String::new() };
            let figures =
                [term.what.to_owned(), term.dtype.to_owned(), full(term.bytes_each), size(term.bytes)];
            table.row(figures.into_iter().chain(rank(size(term.rank_bytes))).chain([note]));
        }
        let sum = |what: &str, each: String, all: String, on_rank: u64, note: &str| {
            [what.to_owned(), String::new(), each, all]
                .into_iter()
                .chain(rank(size(on_rank)))
                .chain([note.to_owned()])
                .collect::<Vec<_>>()
        };
        let each = full(ledger.bytes_per_parameter);
        table.row(sum("kept", each, size(ledger.kept_bytes), ledger.rank_kept_bytes, ""));
        let passing: Vec<_> = ledger.terms.iter().filter(|term| term.passing).collect();
        for term in &passing {
            let figures =
                [term.what.to_owned(), term.dtype.to_owned(), full(term.bytes_each), size(term.bytes)];
            table.row(
                figures.into_iter().chain(rank(size(term.rank_bytes))).chain(["for a while".to_owned()]),
            );
        }
        for term in &ledger.activations {
            let what = format!("activations, {}", term.what);
            table.row(sum(&what, String::new(), size(term.bytes), term.bytes, &term.formula));
        }
        if !passing.is_empty() || !ledger.activations.is_empty() {
            let all = if shared { String::new() } else { size(ledger.rank_peak_bytes) };
            table.row(sum("at most", String::new(), all, ledger.rank_peak_bytes, ""));
        }
        writeln!(out)?;
        write_lines(&table.lines(view.width), view, out)
    }

    fn comparison(&self, ledgers: &[LedgerEntry], view: &View, out: &mut dyn Write) -> io::Result<()> {
        let shared = self.ranks > 1;
        let shape = self.model.is_some();
        let mut heads = vec![("recipe", Align::Left)];
        heads.extend(PARTS.iter().map(|(_, name)| (*name, Align::Right)));
        heads.push(("sum", Align::Right));
        // Both would be wider than a narrow terminal.
        heads.push((if shared { "on a rank" } else { "all" }, Align::Right));
        heads.extend(shape.then_some(("at most", Align::Right)));
        let mut table = Table::new(heads);
        for ledger in ledgers {
            let mut cells = vec![ledger.recipe.to_owned()];
            for (_, part) in PARTS {
                let of = |passing: bool| -> f64 {
                    let terms =
                        ledger.terms.iter().filter(|term| term.part == *part && term.passing == passing);
                    terms.filter(|term| term.bytes >= self.parameters).map(|term| term.bytes_each).sum()
                };
                let (kept, passing) = (of(false), of(true));
                cells.push(match (kept > 0.0, passing > 0.0) {
                    (true, _) => short_each(kept),
                    (false, true) => format!("({})", short_each(passing)),
                    (false, false) => "–".to_owned(),
                });
            }
            let kept = if shared { ledger.rank_kept_bytes } else { ledger.kept_bytes };
            cells.extend([short_each(ledger.bytes_per_parameter), size(kept)]);
            cells.extend(shape.then(|| size(ledger.rank_peak_bytes)));
            table.row(cells);
        }
        writeln!(out)?;
        write_lines(&table.lines(view.width), view, out)?;
        let legend = "bytes a parameter; (in brackets) only for a part of the step";
        writeln!(out, "{}", view.paint.dim(legend))
    }
}

fn short_each(bytes: f64) -> String {
    if bytes.fract() == 0.0 { full(bytes) } else { short(bytes, 4) }
}

/// The stages below each other, what is said about each beside it or, where there is no room, below it.
fn write_flow(stages: &[StageEntry], view: &View, out: &mut dyn Write) -> io::Result<()> {
    let lines = flow_table(stages, true).lines(usize::MAX / 2);
    if lines.iter().all(|line| line.width() <= view.width) {
        return write_lines(&lines, view, out);
    }
    let lines = flow_table(stages, false).lines(view.width);
    let mut stages = stages.iter();
    for (index, line) in lines.iter().enumerate() {
        if index == 0 {
            writeln!(out, "{}", view.paint.bold(line))?;
            continue;
        }
        writeln!(out, "{line}")?;
        let note = stages.next().map_or("", |stage| &stage.note);
        for line in wrap("│     ", note, view.width).iter().filter(|_| !note.is_empty()) {
            writeln!(out, "{}", view.paint.dim(line))?;
        }
    }
    Ok(())
}

fn flow_table(stages: &[StageEntry], notes: bool) -> Table {
    let heads = ["stage", "tensor", "type"].map(|head| (head, Align::Left));
    let figures = [("bytes each", Align::Right), ("size", Align::Right), ("", Align::Left)];
    let heads = heads.into_iter().chain(figures).chain(notes.then_some(("", Align::Left)));
    let mut table = Table::new(heads);
    let mut before = "";
    for stage in stages {
        let name = if stage.stage == before { "│".to_owned() } else { format!("▼ {}", stage.stage) };
        before = stage.stage;
        let cells = [
            name,
            stage.tensor.to_owned(),
            stage.dtype.to_owned(),
            stage.bytes_each.map_or(String::new(), short_each),
            stage.bytes.map_or(String::new(), size),
            stage.divided_by.map_or(String::new(), |ranks| format!("1/{ranks}")),
        ];
        table.row(cells.into_iter().chain(notes.then(|| stage.note.clone())));
    }
    table
}
