//! The report as CSV (a row for each tensor and format) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::metric::Metric;
use super::{Blocks, Cell, FormatRow, HistogramReport, Subject};
use crate::cast::Rounding;
use crate::error::escape;
use crate::report::number::{Num, count, full, plural};

/// Most rows of tensors in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

/// A column of the CSV that differs by format.
type Column = (&'static str, fn(&Cell) -> String);

/// Columns of the CSV: the head, and the figure as text; undefined is empty.
const CELL_COLUMNS: &[Column] = &[
    ("underflow", |c| c.underflow.to_string()),
    ("subnormal", |c| c.subnormal.to_string()),
    ("normal", |c| c.normal.to_string()),
    ("overflow", |c| c.overflow.to_string()),
    ("exceeds_max", |c| c.exceeds_max.to_string()),
    ("underflow_pct", |c| text(c.underflow_pct)),
    ("underflow_pct_of_all", |c| text(c.underflow_pct_of_all)),
    ("subnormal_pct", |c| text(c.subnormal_pct)),
    ("subnormal_pct_of_all", |c| text(c.subnormal_pct_of_all)),
    ("overflow_pct", |c| text(c.overflow_pct)),
    ("overflow_pct_of_all", |c| text(c.overflow_pct_of_all)),
    ("mse", |c| text(c.mse)),
    ("rel_l2", |c| text(c.rel_l2)),
    ("sqnr_db", |c| text(c.sqnr_db)),
    ("max_abs", |c| text(c.max_abs)),
    ("max_rel", |c| text(c.max_rel)),
    ("mean_rel", |c| text(c.mean_rel)),
    ("left_out_of_errors", |c| c.left_out_of_errors.to_string()),
    ("headroom_log2", |c| text(c.headroom_log2)),
];

/// A column of the CSV that only block formats fill.
type BlockColumn = (&'static str, fn(&Blocks) -> String);

/// Columns of the CSV for block formats.
const BLOCK_COLUMNS: &[BlockColumn] = &[
    ("blocks", |b| b.count.to_string()),
    ("blocks_all_zero", |b| b.all_zero.to_string()),
    ("blocks_scale_zero", |b| b.scale_zero.to_string()),
    ("blocks_scale_subnormal", |b| b.scale_subnormal.to_string()),
    ("blocks_scale_raised", |b| b.scale_raised.to_string()),
    ("blocks_scale_normal", |b| b.scale_normal.to_string()),
    ("blocks_scale_saturated", |b| b.scale_saturated.to_string()),
    ("blocks_scale_nan", |b| b.scale_nan.to_string()),
    ("clipped", |b| b.clipped.to_string()),
    ("clipped_pct", |b| text(b.clipped_pct)),
    ("scale_min", |b| text(b.scale_min)),
    ("scale_max", |b| text(b.scale_max)),
    ("block_dynamic_range_log2_max", |b| text(b.dynamic_range_log2_max)),
    ("block_dynamic_range_log2_mean", |b| text(b.dynamic_range_log2_mean)),
    ("worst_block_index", |b| b.worst.first().map_or(String::new(), |w| index(&w.index))),
    ("worst_block_rel_l2", |b| b.worst.first().map_or(String::new(), |w| full(w.rel_l2.0))),
];

fn index(index: &[u64]) -> String {
    index.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn number(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

impl HistogramReport {
    /// One row for each tensor and format, and for all tensors together (without a file).
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let subject_heads = [
            "file",
            "tensor",
            "step",
            "rank",
            "shape",
            "dtype",
            "elements",
            "nan",
            "positive_inf",
            "negative_inf",
            "zero",
            "nonzero_finite",
            "amax",
            "amin",
            "dynamic_range_log2",
            "mean",
            "rms",
            "format",
            "scale",
            "overflow_policy",
            "rounding",
            "ftz",
            "daz",
            "profile",
        ];
        let heads = subject_heads.iter().chain(CELL_COLUMNS.iter().map(|(head, _)| head));
        let heads = heads.chain(BLOCK_COLUMNS.iter().map(|(head, _)| head));
        csv.write_record(heads).map_err(io::Error::other)?;
        for subject in self.tensors.iter().chain([&self.total]) {
            for (row, cell) in self.formats.iter().zip(&subject.formats) {
                let mut record = self.subject_record(subject);
                record.extend(self.cast_record(row));
                record.extend(CELL_COLUMNS.iter().map(|(_, figure)| figure(cell)));
                let blocks = cell.blocks.as_ref();
                record.extend(
                    BLOCK_COLUMNS
                        .iter()
                        .map(|(_, figure)| blocks.map_or(String::new(), |blocks| figure(blocks))),
                );
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    /// The cast of a format. Block formats have their elements rounded to nearest even, whatever the options.
    fn cast_record(&self, row: &FormatRow) -> [String; 7] {
        let plain = row.target.plain();
        [
            row.name.to_owned(),
            self.options.scale.to_string(),
            row.overflow.to_owned(),
            plain.map_or(Rounding::NearestEven, |plan| plan.rounding).name().to_owned(),
            plain.is_some_and(|plan| plan.flush_subnormal_results).to_string(),
            plain.is_some_and(|plan| plan.flush_subnormal_inputs).to_string(),
            plain.and(self.options.profile).unwrap_or_default().to_owned(),
        ]
    }

    fn subject_record(&self, subject: &Subject) -> Vec<String> {
        let file = subject
            .input
            .and_then(|index| self.inputs.get(index))
            .map_or(String::new(), |input| input.path.clone());
        let shape: Vec<String> = subject.shape.iter().flatten().map(u64::to_string).collect();
        vec![
            file,
            subject.name.clone(),
            number(subject.step),
            if subject.ranks.is_empty() { number(subject.rank) } else { index(&subject.ranks) },
            shape.join("x"),
            subject.dtype.clone().unwrap_or_default(),
            subject.elements.to_string(),
            subject.nan.to_string(),
            subject.positive_inf.to_string(),
            subject.negative_inf.to_string(),
            subject.zero.to_string(),
            subject.nonzero_finite.to_string(),
            text(subject.amax),
            text(subject.amin),
            text(subject.dynamic_range_log2),
            text(subject.mean),
            text(subject.rms),
        ]
    }

    /// The tables and sentences.
    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let files: Vec<String> = self.inputs.iter().map(|input| format!("`{}`", code(&input.path))).collect();
        let files = if files.len() > 3 { format!("{} files", files.len()) } else { files.join(", ") };
        writeln!(out, "### amp-inspect histogram: {files}\n")?;
        let scale =
            if self.options.scale == 1.0 { String::new() } else { format!(", scale {}", self.options.scale) };
        let rows = plural(self.tensors.len() as u64, self.options.by);
        writeln!(out, "{rows}, {} elements{scale}.\n", count(self.total.elements))?;
        for sentence in &self.findings {
            writeln!(out, "- {sentence}")?;
        }
        writeln!(
            out,
            "\n| format | underflow % | subnormal % | overflow % | SQNR dB | max rel | headroom bits |"
        )?;
        writeln!(out, "|:--|--:|--:|--:|--:|--:|--:|")?;
        let metrics = [
            Metric::Underflow,
            Metric::Subnormal,
            Metric::Overflow,
            Metric::Sqnr,
            Metric::MaxRel,
            Metric::Headroom,
        ];
        for cell in &self.total.formats {
            let figures: Vec<String> = metrics.iter().map(|metric| metric.text(cell)).collect();
            writeln!(out, "| {} | {} |", cell.format, figures.join(" | "))?;
        }
        self.write_blocks_markdown(out)?;
        let (sort, tensors) = (self.options.sort, self.sorted());
        let by = self.options.by;
        writeln!(out, "\nBy {by}: {}.\n", sort.metric().meaning())?;
        let names: Vec<&str> = self.formats.iter().map(|row| row.name).collect();
        writeln!(out, "| {by} | {} |", names.join(" | "))?;
        writeln!(out, "|:--|{}", "--:|".repeat(names.len()))?;
        for tensor in tensors.iter().take(MARKDOWN_ROWS) {
            let figures: Vec<String> = tensor.formats.iter().map(|cell| sort.metric().text(cell)).collect();
            writeln!(out, "| `{}` | {} |", code_in_cell(&self.full_name(tensor)), figures.join(" | "))?;
        }
        if tensors.len() > MARKDOWN_ROWS {
            writeln!(out, "\n… and {} more.", tensors.len() - MARKDOWN_ROWS)?;
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}

/// Text inside backquotes, which cannot be closed from within.
pub(in crate::report) fn code(text: &str) -> String {
    escape(text).replace('`', "'")
}

/// The same in a cell of a table, which cannot be closed either.
pub(in crate::report) fn code_in_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_escaped_only_where_they_end_a_cell() {
        assert_eq!(code("a|b`\u{1b}"), "a|b'\\u{1b}");
        assert_eq!(code_in_cell("a|b`"), "a\\|b'");
    }
}
