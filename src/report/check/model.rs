//! What `check` found, under the names that its JSON uses.

use serde::Serialize;

use crate::check::judge::{Case, Compared, Judgement, Status};
use crate::check::rules::Severity;
use crate::error::escape;
use crate::report::number::{Num, brief, count};
use crate::report::{SCHEMA_VERSION, Tool};

/// Everything that `check` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `check`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// In a word.
    pub verdict: Verdict,
    /// Tensors looked at.
    pub tensors: u64,
    /// Those that the baseline has too.
    pub in_baseline: u64,
    /// Those whose values are the baseline's, bit for bit.
    pub identical: u64,
    /// A case for each tensor and its rule, and for each tensor that is not as the baseline has it; worst first.
    pub cases: Vec<CaseRow>,
    /// What keeps the check from meaning anything.
    pub troubles: Vec<String>,
    /// What was skipped or assumed.
    pub notices: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// The options that fixed the verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// What was checked, as given.
    pub paths: Vec<String>,
    /// File of rules.
    pub rules: Option<String>,
    /// File of the baseline.
    pub baseline: Option<String>,
    /// Whether what is better than the baseline by more than the tolerance fails.
    pub ratchet: bool,
    /// From which severity on a finding fails the check; `never` is `null`.
    pub fail_on: Option<&'static str>,
    /// The command that makes the baseline what the dump is now.
    pub update: Option<String>,
}

/// The check in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing that fails it was found.
    Pass,
    /// Something was.
    Fail,
    /// It cannot be told.
    Trouble,
}

/// A tensor and what it must keep to.
#[derive(Clone, Debug, Serialize)]
pub struct CaseRow {
    /// Name of the tensor.
    pub tensor: String,
    /// Its step, if known.
    pub step: Option<u64>,
    /// Its rank, if known.
    pub rank: Option<u64>,
    /// Name of the rule, or `no rule`, `vanished`, `new`, `changed`.
    pub rule: String,
    /// `error` or `warn`.
    pub severity: &'static str,
    /// `passed`, `failed`, `untold` or `improved`.
    pub status: &'static str,
    /// Why, in a sentence without its subject; empty if passed.
    pub message: String,
    /// The comparisons that were made.
    pub figures: Vec<FigureRow>,
    #[serde(skip)]
    pub(super) outcome: Status,
}

/// A figure against its limit.
#[derive(Clone, Debug, Serialize)]
pub struct FigureRow {
    /// The comparison as written.
    pub demand: String,
    /// The figure's name.
    pub metric: String,
    /// Its value.
    pub value: Option<Num>,
    /// Its limit.
    pub limit: Option<Num>,
    /// The baseline's value, if the limit follows from it.
    pub baseline: Option<Num>,
    /// Whether it keeps to the limit; `null` if that cannot be told.
    pub holds: Option<bool>,
    /// Whether it is better than the baseline by more than it may be worse.
    pub improved: bool,
}

impl CheckReport {
    /// The report of a judgement.
    pub fn new(options: Options, tensors: u64, judgement: Judgement, fail_on: Option<Severity>) -> Self {
        let fails = fail_on.is_some_and(|severity| judgement.fails(severity));
        let mut cases: Vec<(f64, CaseRow)> =
            judgement.cases.iter().map(|case| (badness(case), row(case))).collect();
        // Of equally bad ones the first stays first.
        cases.sort_by(|(a, x), (b, y)| {
            (kind(y), b).partial_cmp(&(kind(x), a)).unwrap_or(std::cmp::Ordering::Equal)
        });
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "check",
            options,
            verdict: match (judgement.troubles.is_empty(), fails) {
                (false, _) => Verdict::Trouble,
                (true, true) => Verdict::Fail,
                (true, false) => Verdict::Pass,
            },
            tensors,
            in_baseline: judgement.in_baseline,
            identical: judgement.identical,
            cases: cases.into_iter().map(|(_, row)| row).collect(),
            troubles: judgement.troubles,
            notices: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds what could not be read: then the check means nothing.
    pub fn add_problems(&mut self, problems: Vec<String>) {
        if !problems.is_empty() {
            self.verdict = Verdict::Trouble;
        }
        self.problems.extend(problems);
    }

    /// Cases of a status and, of failures, a severity.
    pub(super) fn of(&self, status: Status, severity: Severity) -> impl Iterator<Item = &CaseRow> {
        self.cases.iter().filter(move |case| {
            case.outcome == status && (status != Status::Failed || case.severity == severity.name())
        })
    }

    /// `2 errors, 1 warning, 38 passed`
    pub(super) fn counts(&self) -> String {
        let number = |status, severity| self.of(status, severity).count() as u64;
        let parts = [
            (number(Status::Failed, Severity::Error), "error", "errors"),
            (number(Status::Failed, Severity::Warn), "warning", "warnings"),
            (number(Status::Untold, Severity::Error), "cannot be told", "cannot be told"),
            (number(Status::Improved, Severity::Error), "improved", "improved"),
            (number(Status::Passed, Severity::Error), "passed", "passed"),
        ];
        let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
        let parts = parts
            .map(|(number, one, many)| format!("{} {}", count(number), if number == 1 { one } else { many }));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// A tensor's name, with its step and rank if there are several.
    pub(super) fn full_name(&self, case: &CaseRow) -> String {
        let several = |number: fn(&CaseRow) -> Option<u64>| {
            self.cases
                .first()
                .is_some_and(|first| self.cases.iter().any(|other| number(other) != number(first)))
        };
        let mut name = escape(shown(&case.tensor));
        if let Some(step) = case.step.filter(|_| several(|case| case.step)) {
            name = format!("{name} (step {step})");
        }
        if let Some(rank) = case.rank.filter(|_| several(|case| case.rank)) {
            name = format!("{name} (rank {rank})");
        }
        name
    }
}

/// A name that can be seen.
pub(super) fn shown(name: &str) -> &str {
    if name.is_empty() { "(no name)" } else { name }
}

/// Errors first, then warnings, then what cannot be told, then improvements.
fn kind(case: &CaseRow) -> u32 {
    match (case.outcome, case.severity) {
        (Status::Failed, "error") => 4,
        (Status::Untold, _) => 3,
        (Status::Failed, _) => 2,
        (Status::Improved, _) => 1,
        (Status::Passed, _) => 0,
    }
}

/// How far beyond its limits: what is not a matter of size comes first.
fn badness(case: &Case) -> f64 {
    let excess = case.figures.iter().map(Compared::excess).fold(0.0, f64::max);
    if case.figures.is_empty() { f64::INFINITY } else { excess }
}

fn row(case: &Case) -> CaseRow {
    let broken = case.figures.iter().filter(|figure| figure.holds == Some(false)).map(broken);
    let better = case.figures.iter().filter(|figure| figure.improved).map(better);
    let mut messages = case.messages.clone();
    match case.status {
        Status::Failed => {
            messages.extend(broken);
            if messages.is_empty() {
                messages.extend(better);
            }
        }
        Status::Improved => messages.extend(better),
        Status::Passed | Status::Untold => {}
    }
    CaseRow {
        tensor: case.tensor.name.clone(),
        step: case.tensor.step,
        rank: case.tensor.rank,
        rule: case.rule.clone(),
        severity: case.severity.name(),
        status: case.status.name(),
        message: messages.join("; "),
        figures: case.figures.iter().map(figure).collect(),
        outcome: case.status,
    }
}

fn figure(compared: &Compared) -> FigureRow {
    FigureRow {
        demand: compared.text.clone(),
        metric: compared.metric.to_string(),
        value: compared.value.map(Num),
        limit: compared.limit.map(Num),
        baseline: compared.baseline.map(Num),
        holds: compared.holds,
        improved: compared.improved,
    }
}

/// `underflow_pct.float16 is 1.24 %, limit 0.500 %`
fn broken(compared: &Compared) -> String {
    let unit = compared.metric.unit().map_or(String::new(), |unit| format!(" {unit}"));
    let number = |number: Option<f64>| number.map_or("undefined".into(), text);
    let (value, limit) = (number(compared.value), number(compared.limit));
    let origin =
        compared.baseline.map_or(String::new(), |baseline| format!(", baseline {}{unit}", text(baseline)));
    format!("{} is {value}{unit}, limit {limit}{unit}{origin}", compared.metric)
}

/// `underflow_pct.float16 is 0.10 %, better than the baseline's 0.50 %`
fn better(compared: &Compared) -> String {
    let unit = compared.metric.unit().map_or(String::new(), |unit| format!(" {unit}"));
    let number = |number: Option<f64>| number.map_or("undefined".into(), text);
    let (value, baseline) = (number(compared.value), number(compared.baseline));
    format!("{} is {value}{unit}, better than the baseline's {baseline}{unit}", compared.metric)
}

/// As exactly as seven characters can be.
fn text(x: f64) -> String {
    brief(x, 7)
}
