//! The report as CSV (a row for each tensor or layer) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::model::{By, Chosen, RecommendReport, Row};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, short};

/// Most rows in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

type Column = (&'static str, fn(&Row) -> String);

const COLUMNS: &[Column] = &[
    ("name", |row| row.name.clone()),
    ("role", |row| row.role.unwrap_or_default().to_owned()),
    ("tensors", |row| row.tensors.to_string()),
    ("elements", |row| row.elements.to_string()),
    ("nonfinite", |row| row.nonfinite.to_string()),
    ("nonzero_finite", |row| row.nonzero_finite.to_string()),
    ("stored", |row| row.stored.clone().unwrap_or_default()),
    ("recommended", |row| row.recommended.as_ref().map_or(String::new(), |chosen| chosen.format.to_owned())),
    ("bits", |row| of(row.recommended.as_ref(), |chosen| Some(chosen.bits))),
    ("needs", |row| row.fix.clone()),
    ("underflow_pct", |row| of(row.recommended.as_ref(), |chosen| Some(chosen.underflow_pct))),
    ("overflow_pct", |row| of(row.recommended.as_ref(), |chosen| Some(chosen.overflow_pct))),
    ("sqnr_db", |row| of(row.recommended.as_ref(), |chosen| chosen.sqnr_db)),
    ("significand_bits", |row| of(row.recommended.as_ref(), |chosen| chosen.significand_bits)),
    ("bfloat16_sqnr_db", |row| of(row.bfloat16.as_ref(), |chosen| chosen.sqnr_db)),
    ("bfloat16_significand_bits", |row| of(row.bfloat16.as_ref(), |chosen| chosen.significand_bits)),
    ("bytes_stored", |row| row.bytes_stored.to_string()),
    ("bytes_recommended", |row| row.bytes_recommended.to_string()),
    ("rejected", rejected),
];

fn of(chosen: Option<&Chosen>, figure: fn(&Chosen) -> Option<Num>) -> String {
    chosen.and_then(figure).map_or(String::new(), |num| full(num.0))
}

fn rejected(row: &Row) -> String {
    row.rejected
        .iter()
        .map(|fails| format!("{}: {}", fails.format, fails.because))
        .collect::<Vec<_>>()
        .join("; ")
}

impl RecommendReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().map(|(head, _)| *head)).map_err(io::Error::other)?;
        for row in self.rows.iter().chain([&self.whole]) {
            csv.write_record(COLUMNS.iter().map(|(_, figure)| figure(row))).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [only] => format!("`{}`", code(&only.path)),
            inputs => format!("{} files", inputs.len()),
        };
        writeln!(out, "### amp-inspect recommend: {subject}\n\n{}.\n", self.bounds())?;
        for sentence in &self.findings {
            writeln!(out, "- {sentence}")?;
        }
        let first = if self.options.by == By::Layer { "layer" } else { "tensor" };
        writeln!(out, "\n| {first} | take | bits | underflow % | SQNR dB | needs | cheaper ones fail by |")?;
        writeln!(out, "|:--|:--|--:|--:|--:|:--|:--|")?;
        for row in self.rows.iter().take(MARKDOWN_ROWS) {
            let name = code_in_cell(&row.name);
            let num = |figure: fn(&Chosen) -> Option<Num>| {
                row.recommended.as_ref().and_then(figure).map_or("–".into(), |num| short(num.0, 3))
            };
            let take = row.recommended.as_ref().map_or("as stored", |chosen| chosen.format);
            writeln!(
                out,
                "| `{name}` | {take} | {} | {} | {} | {} | {} |",
                num(|chosen| Some(chosen.bits)),
                num(|chosen| Some(chosen.underflow_pct)),
                num(|chosen| chosen.sqnr_db),
                row.fix,
                rejected(row)
            )?;
        }
        if self.rows.len() > MARKDOWN_ROWS {
            writeln!(out, "\n… and {} more.", count((self.rows.len() - MARKDOWN_ROWS) as u64))?;
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}
