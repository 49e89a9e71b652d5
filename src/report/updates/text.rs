//! The report as CSV (a row for each tensor, format, way and number of steps) and as Markdown.

use std::io::{self, Write};

use super::findings::{pct, percent};
use super::model::{FormatRow, Mark, TensorRow, UpdatesReport, WayRow};
use super::terminal::way_name;
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, short};

/// Most tensors in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

impl UpdatesReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record([
            "tensor",
            "format",
            "way",
            "steps",
            "elements",
            "updates",
            "bits",
            "lr",
            "weight_decay",
            "unmoved_pct",
            "off_pct",
            "along",
            "effective_lr",
            "error",
            "mean_relative_error",
            "median_ratio_log2",
            "lr_for_half",
            "overflow",
            "nonfinite",
        ])
        .map_err(io::Error::other)?;
        for row in self.tensors.iter().chain([&self.total]) {
            for format in &row.formats {
                for way in &format.ways {
                    for mark in &way.after {
                        csv.write_record(record(row, format, way, mark)).map_err(io::Error::other)?;
                    }
                }
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [only] => format!("`{}`", code(only)),
            inputs => format!("{} files", inputs.len()),
        };
        writeln!(out, "### amp-inspect updates: {subject}\n")?;
        writeln!(out, "{}.\n", self.rule)?;
        for sentence in &self.findings {
            writeln!(out, "- {sentence}")?;
        }
        writeln!(out, "\n| weights kept in | bits | unmoved % | off % | along % | size % | error % |")?;
        writeln!(out, "|:--|--:|--:|--:|--:|--:|--:|")?;
        for format in &self.total.formats {
            for way in &format.ways {
                let Some(mark) = way.after.first() else { continue };
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | {} |",
                    way_name(format, way),
                    way.bits,
                    mark.unmoved_pct.map_or("–".to_owned(), |share| pct(share.0)),
                    mark.off_pct.map_or("–".to_owned(), |share| pct(share.0)),
                    percent(mark.along),
                    percent(mark.effective_lr),
                    percent(mark.error)
                )?;
            }
        }
        let low = self.total.formats.get(1..).unwrap_or_default();
        if low.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = low.iter().map(|format| format.format).collect();
        writeln!(out, "\nUpdates that vanish, %, rounded to nearest even:\n")?;
        writeln!(out, "| tensor | updates | {} | lr for half |", names.join(" | "))?;
        writeln!(out, "|:--|--:|{}--:|", "--:|".repeat(names.len()))?;
        for row in self.tensors.iter().take(MARKDOWN_ROWS) {
            let formats = row.formats.get(1..).unwrap_or_default();
            let cells: Vec<String> = formats
                .iter()
                .map(|format| {
                    let unmoved = format.nearest().and_then(|mark| mark.unmoved_pct);
                    unmoved.map_or("–".to_owned(), |share| pct(share.0))
                })
                .collect();
            let half = formats.first().and_then(|format| format.lr_for_half);
            writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                code_in_cell(&row.name),
                count(formats.first().map_or(0, |format| format.updates)),
                cells.join(" | "),
                half.map_or("–".to_owned(), |Num(lr)| short(lr, 2))
            )?;
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
fn record(row: &TensorRow, format: &FormatRow, way: &WayRow, mark: &Mark) -> [String; 19] {
    [
        row.name.clone(),
        format.format.to_owned(),
        way.way.to_owned(),
        mark.steps.to_string(),
        row.elements.to_string(),
        format.updates.to_string(),
        way.bits.to_string(),
        text(row.lr.map(Num)),
        text(row.weight_decay.map(Num)),
        text(mark.unmoved_pct),
        text(mark.off_pct),
        text(mark.along),
        text(mark.effective_lr),
        text(mark.error),
        text(mark.mean_relative_error),
        text(format.median_ratio_log2),
        text(format.lr_for_half),
        format.overflow.to_string(),
        mark.nonfinite.map_or(String::new(), |n| n.to_string()),
    ]
}
