//! The report as CSV (a row for each tensor or number of ranks, and case) and as Markdown.

use std::io::{self, Write};

use super::findings::{error_pct, size};
use super::model::{CaseRow, ReduceReport};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{count, full, percent};

/// Most tensors in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

impl ReduceReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record([
            "tensor",
            "ranks",
            "estimate",
            "format",
            "algorithm",
            "accumulate",
            "divide",
            "sent_bytes",
            "error",
            "max_error",
            "overflow",
            "flushed",
            "nonzero",
            "lost",
        ])
        .map_err(io::Error::other)?;
        let recorded = self.ranks.len() as u64;
        let tensors = self.tensors.iter().map(|row| (row.name.as_str(), &row.cases));
        let measured = tensors.chain([("", &self.total)]).map(|(name, cases)| (name, recorded, "0", cases));
        let estimated = self.worlds.iter().map(|world| ("", world.ranks, "1", &world.cases));
        for (name, ranks, estimate, cases) in measured.chain(estimated) {
            for case in cases {
                csv.write_record(record(name, ranks, estimate, case)).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect reduce: {} ranks\n", self.ranks.len())?;
        for sentence in &self.findings {
            writeln!(out, "- {sentence}")?;
        }
        writeln!(out, "\n| format | algorithm | sums | divided | sent | error % | overflow | lost % |")?;
        writeln!(out, "|:--|:--|:--|:--|--:|--:|--:|--:|")?;
        let gradients = self.elements * self.ranks.len() as u64;
        for row in &self.total {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                row.format,
                row.algorithm,
                row.accumulate,
                row.divide,
                size(row.sent_bytes),
                error_pct(row.error),
                count(row.overflow),
                percent(row.lost, gradients)
            )?;
        }
        let formats = self.formats();
        let heads = || format!("{} |\n|--:|{}", formats.join(" | "), "--:|".repeat(formats.len()));
        let cells = |cases: &[CaseRow]| -> String {
            let base = formats.iter().map(|format| Self::base(cases, format).and_then(|row| row.error));
            base.map(error_pct).collect::<Vec<_>>().join(" | ")
        };
        if !self.worlds.is_empty() {
            writeln!(out, "\nEstimate from the recorded ranks drawn again: error of the mean, %\n")?;
            writeln!(out, "| ranks | {}", heads())?;
            for world in &self.worlds {
                writeln!(out, "| {} | {} |", count(world.ranks), cells(&world.cases))?;
            }
        }
        writeln!(out, "\nError of the mean by tensor, %\n\n| tensor | {}", heads())?;
        for row in self.tensors.iter().take(MARKDOWN_ROWS) {
            writeln!(out, "| `{}` | {} |", code_in_cell(&row.name), cells(&row.cases))?;
        }
        let more = self.tensors.len().saturating_sub(MARKDOWN_ROWS);
        if more > 0 {
            writeln!(out, "\n… and {more} more.")?;
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}

/// A row of the CSV; the name of all tensors together is empty.
fn record(name: &str, ranks: u64, estimate: &str, case: &CaseRow) -> [String; 14] {
    [
        name.to_owned(),
        ranks.to_string(),
        estimate.to_owned(),
        case.format.to_owned(),
        case.algorithm.to_owned(),
        case.accumulate.to_owned(),
        case.divide.clone(),
        full(case.sent_bytes.0),
        case.error.map_or(String::new(), |error| full(error.0)),
        full(case.max_error.0),
        case.overflow.to_string(),
        case.flushed.to_string(),
        case.nonzero.to_string(),
        case.lost.to_string(),
    ]
}
