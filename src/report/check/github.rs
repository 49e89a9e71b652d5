//! What GitHub Actions reads of a job's output: annotations. Names of tensors must not become commands.
//!
//! Source: docs.github.com, "Workflow commands for GitHub Actions": at most 10 annotations of each level a step; `%`,
//! CR and LF are escaped in a message, `:` and `,` too in a property.

use super::model::shown;
use super::{CaseRow, CheckReport, Verdict};
use crate::check::judge::Status;
use crate::check::rules::Severity;
use crate::error::escape;

/// Most annotations of one level.
const MOST: usize = 10;

impl CheckReport {
    /// The annotations, a line each: the worst, and in place of the last one how many more there are.
    pub fn annotations(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let troubles = self.troubles.iter().chain(&self.problems);
        let troubles = troubles.map(|trouble| ("cannot be told".to_owned(), escape(trouble)));
        let told = |case: &CaseRow| (format!("{}: {}", shown(&case.tensor), case.rule), self.sentence(case));
        let failed = |severity| self.of(Status::Failed, severity).map(told);
        let errors: Vec<_> = failed(Severity::Error).chain(troubles).collect();
        let warnings: Vec<_> = failed(Severity::Warn).collect();
        for (level, findings) in [("error", errors), ("warning", warnings)] {
            let shown = if findings.len() > MOST { MOST - 1 } else { findings.len() };
            for (title, message) in &findings[..shown] {
                lines.push(format!("::{level} title={}::{}", property(title), message_text(message)));
            }
            if shown < findings.len() {
                let more = findings.len() - shown;
                lines.push(format!(
                    "::{level} title=amp-inspect check::{more} more like these, see the summary"
                ));
            }
        }
        lines
    }

    /// A finding as a sentence.
    pub(super) fn sentence(&self, case: &CaseRow) -> String {
        format!("{}: {}", self.full_name(case), case.message)
    }

    /// The verdict as a title.
    pub(super) fn title(&self) -> &'static str {
        match self.verdict {
            Verdict::Pass => "passed",
            Verdict::Fail => "failed",
            Verdict::Trouble => "cannot be told",
        }
    }
}

fn message_text(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message_text(&escape(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_commands() {
        assert_eq!(escape("::error::x"), "\\u{3a}:error::x");
        assert_eq!(escape("  ::add-mask::x"), "\\u{3a}:add-mask::x");
        assert_eq!(escape("a::b"), "a::b");
        assert_eq!(escape("x##[error]y"), "x#\\u{23}[error]y");
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25\\n");
    }
}
