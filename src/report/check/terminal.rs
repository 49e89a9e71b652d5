//! The report on a terminal: a line if all is well, else the findings, worst first, and what to do.

use std::io::{self, Write};

use super::{CaseRow, CheckReport, Verdict};
use crate::check::judge::Status;
use crate::error::escape;
use crate::report::number::{count, plural};
use crate::report::style::View;
use crate::report::table::{shorten, wrap};

impl CheckReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let word = match self.verdict {
            Verdict::Pass => view.paint.wrap("32;1", "PASS"),
            Verdict::Fail => view.paint.wrap("31;1", "FAIL"),
            Verdict::Trouble => view.paint.wrap("31;1", "TROUBLE"),
        };
        let counts = self.counts();
        let counts = if counts.is_empty() { String::new() } else { format!(": {counts}") };
        let head = format!("{} checked against {}{counts}", plural(self.tensors, "tensor"), self.against());
        let lines = wrap("", &head, view.width.saturating_sub(9));
        for (number, line) in lines.iter().enumerate() {
            if number == 0 { writeln!(out, "{word}  {line}")? } else { writeln!(out, "      {line}")? }
        }
        let told: Vec<&CaseRow> = self.cases.iter().filter(|case| case.outcome != Status::Passed).collect();
        let top = if view.top == 0 { told.len() } else { view.top.min(told.len()) };
        if !told.is_empty() || !self.troubles.is_empty() {
            writeln!(out)?;
        }
        for case in &told[..top] {
            self.finding(case, view, out)?;
        }
        if top < told.len() {
            let more = count((told.len() - top) as u64);
            writeln!(out, "{}", view.paint.dim(&format!("… {more} more; --top 0 shows all")))?;
        }
        let rules = self.troubles.iter().filter(|trouble| trouble.starts_with("rule "));
        for trouble in rules {
            for line in wrap("trouble  ", trouble, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        if let Some(update) = self.options.update.as_ref().filter(|_| self.is_off_baseline()) {
            writeln!(out)?;
            writeln!(out, "If this is as it should be, make it the baseline:")?;
            writeln!(out, "  {}", escape(update))?;
        }
        Ok(())
    }

    fn finding(&self, case: &CaseRow, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let (word, style) = word(case);
        let name = shorten(&self.full_name(case), view.width.saturating_sub(9 + 20).max(20));
        let rule = escape(&case.rule);
        writeln!(
            out,
            "{}  {}  {}",
            view.paint.wrap(style, &format!("{word:<7}")),
            view.paint.bold(&name),
            view.paint.dim(&rule)
        )?;
        for message in case.message.split("; ") {
            for line in wrap("         ", message, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// `rules.toml and base.json`
    pub(super) fn against(&self) -> String {
        let files = [&self.options.rules, &self.options.baseline].into_iter().flatten();
        files.map(|file| escape(file)).collect::<Vec<_>>().join(" and ")
    }

    /// Whether a new baseline would change the verdict.
    pub(super) fn is_off_baseline(&self) -> bool {
        let off = |case: &CaseRow| {
            case.outcome == Status::Improved
                || matches!(case.rule.as_str(), "new" | "vanished" | "changed")
                || case
                    .figures
                    .iter()
                    .any(|figure| figure.improved || figure.baseline.is_some() && figure.holds == Some(false))
        };
        self.cases.iter().any(|case| case.outcome != Status::Passed && off(case))
    }
}

/// What a finding is called, and its ANSI style.
pub(super) fn word(case: &CaseRow) -> (&'static str, &'static str) {
    match (case.outcome, case.severity) {
        (Status::Failed, "warn") => ("warn", "33"),
        (Status::Failed, _) => ("error", "31"),
        (Status::Untold, _) => ("trouble", "31"),
        (Status::Improved, _) => ("better", "32"),
        (Status::Passed, _) => ("passed", "2"),
    }
}
