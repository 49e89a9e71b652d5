//! Rules in TOML: which tensors must keep to what.
//!
//! ```toml
//! [[rule]]
//! name = "fp16 gradients"
//! tensor = '^h\.'
//! check = "underflow_pct.float16 <= 0.5 and (sqnr_db.e4m3fn >= 25 or underflow_pct.e4m3fn <= baseline * 1.1 + 0.05)"
//! severity = "warn"
//! allow_nan = true
//!
//! [severity]
//! no_rule = "error"
//! ```

use std::ops::Range;

use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::figures::Snapshot;
use super::metric::{Metric, TENSOR_METRICS};
use super::predicate::{Predicate, SyntaxError};
use crate::error::{Error, Result};

/// How much it matters that something is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is not looked at.
    Ignore,
    /// It is told.
    Warn,
    /// It fails the check.
    Error,
}

impl Severity {
    /// The name in rules and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What a tensor must keep to.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What reports call it.
    pub name: String,
    /// Which tensors it is for: those whose name matches, or all.
    pub tensor: Option<Regex>,
    /// What is demanded.
    pub predicate: Predicate,
    /// How much it matters.
    pub severity: Severity,
    /// Whether figures may be undefined, or of tensors with NaN and Inf.
    pub allow_nan: bool,
    /// Line of the file on which it begins.
    pub line: Option<usize>,
}

impl Rule {
    /// Whether it is for the tensor of this name, unless one before it is.
    pub fn is_for(&self, name: &str) -> bool {
        self.tensor.as_ref().is_none_or(|pattern| pattern.is_match(name))
    }
}

/// How much it matters that a tensor is not as the baseline or the rules have it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Severities {
    /// No rule is for it.
    pub no_rule: Severity,
    /// Only the baseline has it.
    pub vanished: Severity,
    /// The baseline does not have it.
    pub new: Severity,
    /// Its shape or type is another.
    pub changed: Severity,
}

impl Default for Severities {
    fn default() -> Self {
        Self {
            no_rule: Severity::Error,
            vanished: Severity::Error,
            new: Severity::Warn,
            changed: Severity::Error,
        }
    }
}

/// All rules: the first one whose pattern matches is a tensor's.
#[derive(Clone, Debug)]
pub struct Rules {
    /// In the order of the file.
    pub rules: Vec<Rule>,
    /// How much other things matter.
    pub severities: Severities,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
    #[serde(default)]
    severity: Severities,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: Option<String>,
    tensor: Option<Spanned<String>>,
    check: Spanned<String>,
    severity: Option<Severity>,
    #[serde(default)]
    allow_nan: bool,
}

impl Rules {
    /// Reads a file of rules.
    ///
    /// # Errors
    /// It is no TOML, has other fields, or a rule's pattern or predicate cannot be read: with line and column.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            // Its lines after the first are a drawing of the place.
            located(text, at, error.message().lines().collect::<Vec<_>>().join(", "))
        })?;
        if file.rule.is_empty() {
            return Err(Error::new("has no [[rule]]"));
        }
        let rules = file.rule.into_iter().enumerate().map(|(number, rule)| Self::rule(text, number, rule));
        Ok(Self { rules: rules.collect::<Result<_>>()?, severities: file.severity })
    }

    fn rule(text: &str, number: usize, rule: Spanned<RuleText>) -> Result<Rule> {
        let line = line_and_column(text, rule.span().start).0;
        let rule = rule.into_inner();
        let tensor = rule.tensor.as_ref().map(|pattern| Regex::new(pattern.get_ref())).transpose();
        let tensor = tensor.map_err(|error| {
            let at = rule.tensor.as_ref().map_or(0, |pattern| pattern.span().start);
            // The last line says what is wrong; those before it draw where.
            let what = error.to_string();
            located(text, at, what.lines().last().unwrap_or_default().trim_start_matches("error: "))
        })?;
        let predicate = Predicate::parse(rule.check.get_ref()).map_err(|SyntaxError { at, what }| {
            located(text, place_inside(text, rule.check.span(), rule.check.get_ref(), at), what)
        })?;
        let name = rule.name.unwrap_or_else(|| format!("rule {}", number + 1));
        let severity = rule.severity.unwrap_or(Severity::Error);
        Ok(Rule { name, tensor, predicate, severity, allow_nan: rule.allow_nan, line: Some(line) })
    }

    /// What holds without rules: no figure that matters may be worse than the baseline's by more than a tenth and 0.05
    /// percent of the values, or 1 dB; and there may be no more NaN and Inf.
    pub fn keep_to(baseline: &Snapshot) -> Self {
        let counts = TENSOR_METRICS.iter().filter(|name| **name == "nan" || name.ends_with("_inf"));
        let mut demands: Vec<String> = counts.map(|name| format!("{name} <= baseline")).collect();
        for format in baseline.formats() {
            demands.push(format!("underflow_pct.{format} <= baseline * 1.1 + 0.05"));
            demands.push(format!("overflow_pct.{format} <= baseline * 1.1 + 0.05"));
            demands.push(format!("sqnr_db.{format} >= baseline - 1"));
        }
        let predicates = demands.iter().filter_map(|demand| Predicate::parse(demand).ok());
        let rule = Rule {
            name: "no worse than the baseline".into(),
            tensor: None,
            predicate: Predicate::All(predicates.collect()),
            severity: Severity::Error,
            allow_nan: true,
            line: None,
        };
        Self { rules: vec![rule], severities: Severities::default() }
    }

    /// The formats that figures are named of, each once.
    pub fn formats(&self) -> Vec<&'static str> {
        let mut formats = Vec::new();
        for comparison in self.rules.iter().flat_map(|rule| rule.predicate.comparisons()) {
            formats.extend(comparison.metric.format().filter(|format| !formats.contains(format)));
        }
        formats
    }

    /// The first figure that is limited by the baseline's, and the line of its rule.
    pub fn relative(&self) -> Option<(&Metric, Option<usize>)> {
        self.rules.iter().find_map(|rule| {
            let comparisons = rule.predicate.comparisons();
            let relative = comparisons.into_iter().find(|comparison| comparison.limit.is_relative())?;
            Some((&relative.metric, rule.line))
        })
    }
}

/// Where byte `at` of a TOML string stands in the file. With escapes before it that is not known: its start.
fn place_inside(text: &str, span: Range<usize>, value: &str, at: usize) -> usize {
    let written = text.get(span.clone()).unwrap_or_default();
    let quotes = if written.starts_with("'''") || written.starts_with("\"\"\"") { 3 } else { 1 };
    let newline =
        |from: usize| written[from..].len() - written[from..].trim_start_matches(['\r', '\n']).len();
    let start = quotes + if quotes == 3 && written.len() > 3 { newline(3) } else { 0 };
    let plain = written.get(start..).is_some_and(|inside| inside.starts_with(value));
    if plain { span.start + start + at } else { span.start }
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

fn located(text: &str, at: usize, what: impl AsRef<str>) -> Error {
    let (line, column) = line_and_column(text, at);
    Error::new(format!("line {line}, column {column}: {}", crate::error::escape(what.as_ref())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Rules::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_have_line_and_column() {
        assert_eq!(
            error("[[rule]]\ntensor = 'x'\ncheck = \"nan == 0 and amx < 1\"\n").split(';').next(),
            Some("line 3, column 23: there is no figure 'amx'")
        );
        assert_eq!(
            error("[[rule]]\ncheck = '''\nnan == 0\nand amax > x'''\n"),
            "line 4, column 12: expected a number or 'baseline', found 'x'"
        );
        assert!(error("[[rule]]\ncheck = \"nan == 0\"\ntensor = '('\n").starts_with("line 3, column 10: "));
        assert!(
            error("[[rule]]\ncheck = \"nan == 0\"\nseverity = 'fatal'\n").starts_with("line 3, column 12: ")
        );
        assert!(error("[[rule]]\ncheck = \"nan == 0\"\ntensr = 'x'\n").starts_with("line 3, column 1: "));
        assert!(error("[[rule]\n").starts_with("line 1, column 8: "), "{}", error("[[rule]\n"));
        assert_eq!(error("\n"), "has no [[rule]]");
    }

    #[test]
    fn defaults() {
        let rules = Rules::parse("[[rule]]\ncheck = 'nan == 0'\n[severity]\nnew = 'ignore'\n").unwrap();
        let rule = &rules.rules[0];
        assert_eq!(
            (rule.name.as_str(), rule.severity, rule.allow_nan, rule.line),
            ("rule 1", Severity::Error, false, Some(1))
        );
        assert_eq!((rules.severities.new, rules.severities.vanished), (Severity::Ignore, Severity::Error));
        assert!(rule.is_for("anything") && rules.relative().is_none());
    }
}
