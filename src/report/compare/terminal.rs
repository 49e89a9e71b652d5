//! The report on a terminal: what was compared, the tensors worst first, sentences.

use std::io::{self, Write};

use super::findings::{index_text, ulps};
use super::{CompareReport, Row, Verdict};
use crate::error::escape;
use crate::report::number::{Num, count, percent, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, shorten, wrap, write_lines};

/// A column: its head, the columns that a terminal must have for it to be shown, and the figure.
type Column = (&'static str, usize, fn(&Row) -> String);

const COLUMNS: &[Column] = &[
    ("outside %", 0, |row| percent(row.outside, row.elements)),
    ("rel L2", 0, |row| figure(row.rel_l2)),
    ("max abs", 0, |row| figure(row.max_abs)),
    ("mean abs", 110, |row| figure(row.mean_abs)),
    ("max ulp", 0, |row| ulps(row.max_ulp)),
    ("p99 ulp", 0, |row| ulps(row.p99_ulp)),
    ("cosine", 100, |row| row.cosine.map_or("–".into(), |cosine| cosine_text(cosine.0))),
    ("sign flips", 120, |row| count(row.sign_flips)),
    ("NaN, Inf", 0, |row| count(row.nan_mismatch + row.inf_mismatch)),
];
/// Columns from which on the worst element is shown.
const ROOMY: usize = 150;

fn figure(num: Option<Num>) -> String {
    num.map_or("–".into(), |num| short(num.0, 3))
}

/// A cosine near 1 by how far it is from it.
pub(super) fn cosine_text(cosine: f64) -> String {
    if cosine > 0.999 && cosine < 1.0 { format!("1−{}", short(1.0 - cosine, 2)) } else { short(cosine, 3) }
}

impl CompareReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        if self.first_different.is_some() || view.top == 0 {
            self.table(view, out)?;
        }
        if !self.findings.is_empty() {
            writeln!(out)?;
        }
        for sentence in &self.findings {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for (what, side) in [("reference", &self.reference), ("other", &self.other)] {
            let files =
                if side.files == 1 { String::new() } else { format!(" ({} files)", count(side.files)) };
            let room = view.width.saturating_sub("reference  ".len() + files.len());
            writeln!(out, "{what:<9}  {}{files}", view.paint.bold(&shorten(&escape(&side.path), room)))?;
        }
        let elements = self.tensors.iter().map(|row| row.elements).sum();
        let verdicts = format!(
            "{} compared, {}: {} equal, {} within tolerance, {} outside",
            plural(self.tensors.len() as u64, "tensor"),
            plural(elements, "element"),
            count(self.equal),
            count(self.within),
            count(self.outside)
        );
        let alone = [
            (self.missing.len(), "missing"),
            (self.extra.len(), "extra"),
            (self.reshaped.len(), "of another shape"),
        ];
        let alone = alone.into_iter().filter(|(number, _)| *number > 0);
        let alone: String =
            alone.map(|(number, what)| format!(", {} {what}", count(number as u64))).collect();
        let text = format!("{verdicts}{alone}");
        wrap("", &text, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let tolerance = self.tolerance();
        wrap("", &tolerance, view.width).iter().try_for_each(|line| writeln!(out, "{}", view.paint.dim(line)))
    }

    /// The tolerance in force.
    fn tolerance(&self) -> String {
        let mut tolerances: Vec<String> = Vec::new();
        for row in &self.tensors {
            let text = format!("|x − y| ≤ {} + {}·|x|", short_or_whole(row.atol), short_or_whole(row.rtol));
            if !tolerances.contains(&text) {
                tolerances.push(text);
            }
        }
        match tolerances.as_slice() {
            [] => String::new(),
            [one] => format!("tolerance {one}; x is the reference's"),
            [first, ..] => format!("tolerance {first} and others, by type; x is the reference's"),
        }
    }

    fn table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        let mismatches = self.tensors.iter().any(|row| row.nan_mismatch + row.inf_mismatch > 0);
        let shown = |&&(head, least, _): &&Column| view.width >= least && (head != "NaN, Inf" || mismatches);
        let columns: Vec<&Column> = COLUMNS.iter().filter(shown).collect();
        let worst = view.width >= ROOMY;
        let mut heads = vec![("tensor", Align::Left), ("", Align::Left)];
        heads.extend(columns.iter().map(|(head, ..)| (*head, Align::Right)));
        heads.extend(worst.then_some(("worst element", Align::Left)));
        let mut table = Table::new(heads);
        let mut rows = self.sorted();
        if view.top > 0 {
            rows.retain(|row| row.verdict != Verdict::Equal);
        }
        let top = if view.top == 0 { rows.len() } else { view.top.min(rows.len()) };
        for row in &rows[..top] {
            let figures = columns.iter().map(|(_, _, figure)| figure(row));
            let element = row.telling().map_or(String::new(), |element| {
                let (x, y) = (short(element.reference.0, 4), short(element.other.0, 4));
                format!("{}: {x} → {y}", index_text(&element.index))
            });
            let names = [self.full_name(row), word(row.verdict).to_owned()];
            table.row(names.into_iter().chain(figures).chain(worst.then_some(element)));
        }
        write_lines(&table.lines(view.width), view, out)?;
        let equal = self.tensors.len() - rows.len();
        let hidden = [(rows.len() - top, "more"), (equal, "equal")];
        let hidden: Vec<String> = hidden
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(*number as u64)))
            .collect();
        if !hidden.is_empty() {
            let total = count(self.tensors.len() as u64);
            let line = format!("… {}; --top 0 shows all {total}", hidden.join(", "));
            writeln!(out, "{}", view.paint.dim(&line))?;
        }
        Ok(())
    }

    /// A tensor's name, with its step and rank if there are several.
    pub(super) fn full_name(&self, row: &Row) -> String {
        let several = |number: fn(&Row) -> Option<u64>| {
            self.tensors
                .first()
                .is_some_and(|first| self.tensors.iter().any(|row| number(row) != number(first)))
        };
        let mut name = escape(&row.tensor);
        if let Some(step) = row.step.filter(|_| several(|row| row.step)) {
            name = format!("[step {step}] {name}");
        }
        if let Some(rank) = row.rank.filter(|_| several(|row| row.rank)) {
            name = format!("[rank {rank}] {name}");
        }
        name
    }
}

/// 1.3e-6, 0.016, 0.
fn short_or_whole(x: f64) -> String {
    crate::report::number::brief(x, 8)
}

pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::Within => "within",
        Verdict::Outside => "OUTSIDE",
    }
}
