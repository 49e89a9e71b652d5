//! The report as CSV (a row for each comparison) and as Markdown (for a pull request or a job's summary).

use std::io::{self, Write};

use super::terminal::word;
use super::{CheckReport, Verdict};
use crate::check::judge::Status;
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, plural};

/// Most bytes of Markdown: GitHub drops a summary of more than 1 MiB, and leaves room for what a step wrote before.
const MOST_BYTES: usize = 900 << 10;

impl CheckReport {
    /// A row for each case and comparison; a case without figures has one row.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let heads =
            ["tensor", "step", "rank", "rule", "severity", "status", "demand", "value", "limit", "baseline"];
        csv.write_record(heads.iter().chain(&["holds", "message"])).map_err(io::Error::other)?;
        let whole = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let text = |num: Option<Num>| num.map_or(String::new(), |num| full(num.0));
        for case in &self.cases {
            let start = [
                case.tensor.clone(),
                whole(case.step),
                whole(case.rank),
                case.rule.clone(),
                case.severity.to_owned(),
                case.status.to_owned(),
            ];
            let figures = case.figures.iter().map(|figure| {
                let holds = figure.holds.map_or(String::new(), |holds| holds.to_string());
                [figure.demand.clone(), text(figure.value), text(figure.limit), text(figure.baseline), holds]
            });
            let mut figures: Vec<[String; 5]> = figures.collect();
            if figures.is_empty() {
                figures.push(Default::default());
            }
            for figure in figures {
                let record = start.iter().chain(&figure).chain([&case.message]);
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    /// The findings as a table, worst first, as many as fit.
    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let mark = match self.verdict {
            Verdict::Pass => "✅",
            Verdict::Fail => "❌",
            Verdict::Trouble => "⚠️",
        };
        writeln!(out, "### {mark} amp-inspect check {}\n", self.title())?;
        let counts = self.counts();
        let counts = if counts.is_empty() { String::new() } else { format!(": {counts}") };
        let tensors = plural(self.tensors, "tensor");
        writeln!(out, "{tensors} checked against `{}`{counts}.", code(&self.against()))?;
        if self.in_baseline > 0 {
            let (same, all) = (count(self.identical), count(self.in_baseline));
            writeln!(out, "\n{same} of {all} have the baseline's values, bit for bit.")?;
        }
        let told: Vec<_> = self.cases.iter().filter(|case| case.outcome != Status::Passed).collect();
        if !told.is_empty() {
            writeln!(out, "\n| | tensor | rule | finding |\n|:--|:--|:--|:--|")?;
        }
        let mut written = 0;
        for (number, case) in told.iter().enumerate() {
            let name = code_in_cell(&self.full_name(case));
            let (rule, message) = (code_in_cell(&case.rule), code_in_cell(&case.message));
            let line = format!("| {} | `{name}` | `{rule}` | {message} |", word(case).0);
            written += line.len() + 1;
            if written > MOST_BYTES {
                writeln!(out, "\n… and {} more.", told.len() - number)?;
                break;
            }
            writeln!(out, "{line}")?;
        }
        for trouble in self.troubles.iter().chain(&self.problems).chain(&self.notices).take(100) {
            writeln!(out, "\n> `{}`", code(trouble))?;
        }
        if let Some(update) = self.options.update.as_ref().filter(|_| self.is_off_baseline()) {
            writeln!(out, "\nIf this is as it should be, make it the baseline: `{}`", code(update))?;
        }
        Ok(())
    }
}
