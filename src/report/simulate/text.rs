//! The report as CSV (a row for each scaler and step) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::events::{cause, cell, scale_text};
use super::findings::skip_pct;
use super::model::{EventRow, SimulateReport};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, short};

/// Most steps in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

/// A column of the CSV: the head, and the figure as text; undefined is empty.
type Column = (&'static str, fn(&EventRow) -> String);

const COLUMNS: &[Column] = &[
    ("step", |row| row.step.to_string()),
    ("scale_used", |row| full(row.scale_used.0)),
    ("scale_after", |row| full(row.scale_after.0)),
    ("log2_scale_used", |row| full(libm::log2(row.scale_used.0))),
    ("found_inf", |row| u8::from(row.found_inf).to_string()),
    ("event", |row| row.event.to_owned()),
    ("cause", |row| row.cause.to_owned()),
    ("tensor", |row| row.tensor.clone().unwrap_or_default()),
    ("headroom_log2", |row| text(row.headroom_log2)),
    ("underflow_pct", |row| text(row.underflow_pct)),
    ("gradient_factor", |row| full(row.gradient_factor.into())),
    ("corrupt", |row| u8::from(row.corrupt).to_string()),
    ("growth_count", |row| text(row.growth_count)),
    ("growth_after", |row| text(row.growth_after)),
];

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

impl SimulateReport {
    /// Every step of every scaler, whether something happened or not. The last column says if the step was
    /// recorded (1) or repeats one that was (0).
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let (step, others) = (COLUMNS[0], &COLUMNS[1..]);
        let heads = [step.0, "scaler"].into_iter().chain(others.iter().map(|(head, _)| *head));
        csv.write_record(heads.chain(["recorded"])).map_err(io::Error::other)?;
        for run in &self.runs {
            for happened in run.steps() {
                let row = self.event_row(&happened);
                let recorded = self.schedule.is_recorded(&self.trace, self.schedule.turn(happened.position));
                let first = [(step.1)(&row), run.setup.spec.name.to_owned()];
                let cells = others.iter().map(|(_, figure)| figure(&row));
                let record = first.into_iter().chain(cells).chain([u8::from(recorded).to_string()]);
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    /// The tables and sentences.
    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let record = &self.record;
        let subject = match (&record.synthetic, record.inputs.as_slice()) {
            (Some(kind), _) => format!("synthetic record ({kind})"),
            (None, [only]) => format!("`{}`", code(only)),
            (None, inputs) => format!("{} files", inputs.len()),
        };
        writeln!(out, "### amp-inspect simulate-scaler: {subject}\n")?;
        writeln!(
            out,
            "{} steps from {} to {}, {} missing (`--gaps {}`).\n",
            count(record.steps),
            count(record.first_step),
            count(record.last_step),
            count(record.missing),
            self.options.gaps
        )?;
        for sentence in self.findings.iter().map(String::as_str).chain([self.lower_bound]) {
            writeln!(out, "- {sentence}")?;
        }
        if !self.scalers.is_empty() {
            self.scalers_markdown(out)?;
        }
        if let Some(found) = &self.suggestion {
            writeln!(out, "\n| constant scale | overflowing steps | underflow % |\n|--:|--:|--:|")?;
            for row in found.shown() {
                let lost = row.underflow_pct.map_or("–".to_owned(), |share| short(share.0, 3));
                writeln!(out, "| 2^{} | {} | {lost} |", row.log2, count(row.overflow_steps))?;
            }
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }

    fn scalers_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n| scaler | from | to | largest | skipped | warm-up | then % | at floor |")?;
        writeln!(out, "|:--|--:|--:|--:|--:|--:|--:|--:|")?;
        for run in &self.scalers {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                run.scaler,
                scale_text(run.first_scale.0),
                scale_text(run.last_scale.0),
                scale_text(run.largest_scale.0),
                count(run.skipped),
                count(run.warm_up_skipped),
                skip_pct(run),
                count(run.at_floor)
            )?;
        }
        let (moments, total) = self.moments(MARKDOWN_ROWS);
        if moments.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.scalers.iter().map(|run| run.scaler).collect();
        writeln!(out, "\nScale of the next step, and what happened:\n")?;
        writeln!(out, "| step | {} | tensor at fault |", names.join(" | "))?;
        writeln!(out, "|--:|{}:--|", ":--|".repeat(names.len()))?;
        for moment in &moments {
            let cells: Vec<String> =
                moment.rows.iter().map(|row| row.as_ref().map_or("stopped".to_owned(), cell)).collect();
            let cause = moment.rows.iter().flatten().map(cause).find(|cause| !cause.is_empty());
            let cause = cause.map_or(String::new(), |cause| format!("`{}`", code_in_cell(&cause)));
            let step = count(self.schedule.turn(moment.position).number);
            writeln!(out, "| {step} | {} | {cause} |", cells.join(" | "))?;
        }
        let more = total - moments.len() as u64;
        if more > 0 {
            writeln!(out, "\n… and {} more.", count(more))?;
        }
        Ok(())
    }
}
