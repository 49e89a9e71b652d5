//! The report as CSV (a row for each tensor, step and recipe) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::cell::Cell;
use super::events::{FIGURES, spans};
use super::model::{Fp8Report, TensorRow};
use super::terminal::{figure, unless};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, percent, plural, short};

/// Most rows of tensors in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

type Column = (&'static str, fn(&Cell) -> String);

/// Columns of the CSV about a recipe; undefined is empty.
const COLUMNS: &[Column] = &[
    ("recipe", |c| c.recipe.to_owned()),
    ("format", |c| c.format.to_owned()),
    ("scale", |c| text(c.scale)),
    ("scale_bits", |c| c.scale_bits.clone().unwrap_or_default()),
    ("scale_inv", |c| text(c.scale_inv)),
    ("scale_inv_min", |c| text(c.scale_inv_min)),
    ("scale_inv_max", |c| text(c.scale_inv_max)),
    ("blocks", |c| c.blocks.to_string()),
    ("blocks_scale_zero", |c| c.blocks_scale_zero.to_string()),
    ("blocks_scale_subnormal", |c| c.blocks_scale_subnormal.to_string()),
    ("blocks_scale_limited", |c| c.blocks_scale_limited.to_string()),
    ("amax_used", |c| text(c.amax_used)),
    ("bits_off", |c| text(c.bits_off)),
    ("underflow", |c| number(c.underflow)),
    ("underflow_pct", |c| text(c.underflow_pct)),
    ("subnormal", |c| number(c.subnormal)),
    ("saturated", |c| number(c.saturated)),
    ("spoiled", |c| number(c.spoiled)),
    ("exceeds_max", |c| number(c.exceeds_max)),
    ("sqnr_db", |c| text(c.sqnr_db)),
    ("mse", |c| text(c.mse)),
    ("max_rel", |c| text(c.max_rel)),
    ("events", |c| c.events.iter().map(|event| event.event).collect::<Vec<_>>().join(" ")),
];

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

fn number(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn list(numbers: &[u64], between: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(between)
}

impl Fp8Report {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let about = [
            "file",
            "tensor",
            "step",
            "ranks",
            "role",
            "shape",
            "dtype",
            "elements",
            "nan",
            "inf",
            "zero",
            "nonzero_finite",
            "amax",
            "dynamic_range_log2",
        ];
        csv.write_record(about.into_iter().chain(COLUMNS.iter().map(|(head, _)| *head)))
            .map_err(io::Error::other)?;
        for tensor in &self.tensors {
            for cell in &tensor.recipes {
                let first = self.subject(tensor);
                let cells = COLUMNS.iter().map(|(_, figure)| figure(cell));
                csv.write_record(first.into_iter().chain(cells)).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    fn subject(&self, tensor: &TensorRow) -> Vec<String> {
        vec![
            self.inputs.get(tensor.input).map_or(String::new(), |input| input.path.clone()),
            tensor.name.clone(),
            number(tensor.step),
            list(&tensor.ranks, " "),
            tensor.role.to_owned(),
            list(&tensor.shape, "x"),
            tensor.dtype.clone(),
            tensor.elements.to_string(),
            tensor.nan.to_string(),
            tensor.inf.to_string(),
            tensor.zero.to_string(),
            tensor.nonzero_finite.to_string(),
            text(tensor.amax),
            text(tensor.dynamic_range_log2),
        ]
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [only] => format!("`{}`", code(&only.path)),
            inputs => format!("{} files", inputs.len()),
        };
        writeln!(out, "### amp-inspect fp8: {subject}\n")?;
        writeln!(out, "{}, {}\n", plural(self.tensors.len() as u64, self.what()), self.formulation)?;
        for sentence in &self.findings {
            writeln!(out, "- {sentence}")?;
        }
        if self.has_magnitudes_only() {
            return self.rest_of_markdown(out);
        }
        writeln!(out, "\n| recipe | format | bits | underflow % | saturated | SQNR dB | worst dB |")?;
        writeln!(out, "|:--|:--|--:|--:|--:|--:|--:|")?;
        for row in &self.recipes {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                row.recipe,
                row.formats.join(", "),
                short(row.bits_per_element.0, 3),
                unless(row.is_spoiled(), percent(row.underflow, row.nonzero_finite)),
                unless(row.is_spoiled(), count(row.saturated)),
                row.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3)),
                row.worst_sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3)),
            )?;
        }
        let names: Vec<&str> = self.recipes.iter().map(|row| row.recipe).collect();
        let steps = self.tensors.iter().any(|tensor| tensor.step.is_some());
        writeln!(out, "\n{}:\n", self.meaning())?;
        writeln!(out, "| tensor |{} amax | {} |", if steps { " step |" } else { "" }, names.join(" | "))?;
        writeln!(out, "|:--|{}--:|{}", if steps { "--:|" } else { "" }, "--:|".repeat(names.len()))?;
        let tensors = self.sorted();
        for tensor in tensors.iter().take(MARKDOWN_ROWS) {
            let figures: Vec<String> =
                tensor.recipes.iter().map(|cell| figure(cell, tensor, self.options.sort)).collect();
            let step = if steps { format!(" {} |", number(tensor.step)) } else { String::new() };
            let amax = tensor.amax.map_or("–".into(), |amax| short(amax.0, 3));
            writeln!(out, "| `{}` |{step} {amax} | {} |", code_in_cell(&tensor.name), figures.join(" | "))?;
        }
        if tensors.len() > MARKDOWN_ROWS {
            writeln!(out, "\n… and {} more.", count((tensors.len() - MARKDOWN_ROWS) as u64))?;
        }
        self.rest_of_markdown(out)
    }

    fn rest_of_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.events_markdown(out)?;
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }

    fn events_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let spans = spans(self);
        if spans.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n| tensor | step | recipe | {} | event |", FIGURES.join(" | "))?;
        writeln!(out, "|:--|--:|:--|{}:--|", "--:|".repeat(FIGURES.len()))?;
        for span in spans.iter().take(MARKDOWN_ROWS) {
            let (name, figures) = (code_in_cell(&span.tensor().name), span.figures().join(" | "));
            writeln!(
                out,
                "| `{name}` | {} | {} | {figures} | {} |",
                span.steps(),
                span.recipe(),
                span.events()
            )?;
        }
        if spans.len() > MARKDOWN_ROWS {
            writeln!(out, "\n… and {} more.", count((spans.len() - MARKDOWN_ROWS) as u64))?;
        }
        Ok(())
    }
}
