//! The figures of a `recommend` report, under the names that its JSON uses.

use serde::Serialize;

use super::definitions::DEFINITIONS;
use super::findings::findings;
use crate::recommend::{Bounds, Candidate, Census, Choice, Failure, Measured, choose};
use crate::report::histogram::{Input, as_map};
use crate::report::number::{Num, short};
use crate::report::{SCHEMA_VERSION, Tool};
use crate::stats::SourceStats;

/// Everything that `recommend` has to say.
#[derive(Clone, Debug, Serialize)]
pub struct RecommendReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `recommend`.
    pub command: &'static str,
    /// What the user asked for.
    pub options: Options,
    /// What the names of the figures mean.
    #[serde(serialize_with = "as_map")]
    pub definitions: &'static [(&'static str, &'static str)],
    /// The files read.
    pub inputs: Vec<Input>,
    /// log2 of the loss scale of `float16@loss-scale`; `null` if that was not tried.
    pub loss_scale_log2: Option<i32>,
    /// The cheapest one candidate that will do for every tensor.
    pub whole: Row,
    /// Each tensor, or each layer, worst first.
    pub rows: Vec<Row>,
    /// What the figures mean, in sentences.
    pub findings: Vec<String>,
    /// What was skipped or assumed.
    pub notices: Vec<String>,
    /// What could not be read or cast.
    pub problems: Vec<String>,
    #[serde(skip)]
    pub(super) subjects: Vec<Subject>,
    #[serde(skip)]
    candidates: Vec<&'static Candidate>,
    #[serde(skip)]
    bounds: Bounds,
}

/// The options that fixed the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Largest share of the nonzero values that may be stored as zero, in percent.
    pub max_underflow_pct: Num,
    /// Largest share that may round beyond the largest number, in percent.
    pub max_overflow_pct: Num,
    /// Least SQNR in dB.
    pub min_sqnr_db: Num,
    /// The candidates, cheapest first.
    pub candidates: Vec<&'static str>,
    /// Role that was said of all tensors.
    pub role: Option<&'static str>,
    /// Loss scale that the stored values were divided by first.
    pub unscale: Option<Num>,
    /// What `rows` are.
    pub by: By,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A tensor in all its steps.
    Tensor,
    /// All tensors of a layer.
    Layer,
}

/// A tensor in all its steps, as it was measured.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name.
    pub name: String,
    /// What it is in training.
    pub role: &'static str,
    /// The type that it is stored as, and its bits.
    pub stored: (String, u32),
    /// Elements of one step.
    pub elements: u64,
    /// The values of all steps.
    pub source: SourceStats,
    /// For each candidate what it did at each step.
    pub measured: Vec<Vec<Option<Measured>>>,
}

/// What to take for a tensor, or for all of a layer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Name of the tensor or layer.
    pub name: String,
    /// What it is in training; `null` where there are several.
    pub role: Option<&'static str>,
    /// Tensors.
    pub tensors: u64,
    /// Elements of one step.
    pub elements: u64,
    /// NaN and ±Inf elements in all steps.
    pub nonfinite: u64,
    /// Finite nonzero elements in all steps.
    pub nonzero_finite: u64,
    /// Type that it is stored as; `null` where there are several.
    pub stored: Option<String>,
    /// The format to take; `null` if none will do, and it stays as it is stored.
    pub recommended: Option<Chosen>,
    /// Why, in words.
    pub reason: String,
    /// What makes it fit: a scale, a block recipe, or keeping what is stored.
    pub fix: String,
    /// Cheaper formats, with what is wrong with each.
    pub rejected: Vec<Fails>,
    /// What bfloat16 does here, whose range is that of float32, so that it needs no loss scale.
    pub bfloat16: Option<Chosen>,
    /// Bytes that it takes as stored.
    pub bytes_stored: u64,
    /// Bytes that it takes as recommended.
    pub bytes_recommended: u64,
}

/// A format and what it does, at the worst step.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// Candidate.
    pub format: &'static str,
    /// Bits an element.
    pub bits: Num,
    /// What has to be done for it.
    pub needs: &'static str,
    /// Share of the nonzero values stored as zero.
    pub underflow_pct: Num,
    /// Share that rounds beyond the largest number.
    pub overflow_pct: Num,
    /// Signal to quantisation noise ratio; `null` where no value is nonzero.
    pub sqnr_db: Option<Num>,
    /// −log2(largest relative error), 0 where that is 1 or more.
    pub significand_bits: Option<Num>,
}

/// A format that will not do.
#[derive(Clone, Debug, Serialize)]
pub struct Fails {
    /// Candidate.
    pub format: &'static str,
    /// What is wrong with it: `0.12 % underflow, SQNR 19 dB`.
    pub because: String,
}

impl RecommendReport {
    /// Decides for all subjects.
    pub fn new(
        options: Options,
        bounds: Bounds,
        candidates: Vec<&'static Candidate>,
        subjects: Vec<Subject>,
        loss_scale_log2: Option<i32>,
    ) -> Self {
        let mut report = Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "recommend",
            options,
            definitions: DEFINITIONS,
            inputs: Vec::new(),
            loss_scale_log2,
            whole: Row::default(),
            rows: Vec::new(),
            findings: Vec::new(),
            notices: Vec::new(),
            problems: Vec::new(),
            subjects,
            candidates,
            bounds,
        };
        let all: Vec<&Subject> = report.subjects.iter().collect();
        report.whole = report.row("all tensors".into(), &all);
        report.rows = match report.options.by {
            By::Tensor => all.iter().map(|subject| report.row(subject.name.clone(), &[subject])).collect(),
            By::Layer => {
                let mut layers: Vec<(&str, Vec<&Subject>)> = Vec::new();
                for subject in &report.subjects {
                    let layer = layer(&subject.name);
                    match layers.iter_mut().find(|(known, _)| *known == layer) {
                        Some((_, members)) => members.push(subject),
                        None => layers.push((layer, vec![subject])),
                    }
                }
                layers.iter().map(|(layer, members)| report.row((*layer).to_owned(), members)).collect()
            }
        };
        report
            .rows
            .sort_by(|a, b| b.badness().partial_cmp(&a.badness()).unwrap_or(std::cmp::Ordering::Equal));
        report.findings = findings(&report);
        report
    }

    /// What to take for these tensors together.
    fn row(&self, name: String, members: &[&Subject]) -> Row {
        let measured: Vec<Vec<Option<Measured>>> = (0..self.candidates.len())
            .map(|number| {
                members.iter().filter_map(|subject| subject.measured.get(number)).flatten().copied().collect()
            })
            .collect();
        let sum = |count: fn(&SourceStats) -> u64| members.iter().map(|subject| count(&subject.source)).sum();
        let values = Census {
            nan: sum(|source| source.nan),
            inf: sum(SourceStats::inf),
            nonzero: sum(SourceStats::nonzero_finite),
        };
        let Choice { chosen, rejected } = choose(&self.bounds, &values, &self.candidates, &measured);
        let figures = |number: usize| Chosen::new(self.candidates[number], &measured[number]);
        let recommended = chosen.map(figures);
        let bfloat16 = self.candidates.iter().position(|candidate| candidate.name == "bfloat16").map(figures);
        let same = |kind: fn(&Subject) -> &str| {
            let mut kinds = members.iter().map(|subject| kind(subject));
            let first = kinds.next()?;
            kinds.all(|kind| kind == first).then(|| first.to_owned())
        };
        let roles = members.iter().all(|subject| subject.role == members[0].role);
        let rejected: Vec<Fails> = rejected
            .into_iter()
            .map(|(number, failures)| Fails {
                format: self.candidates[number].name,
                because: because(&failures),
            })
            .filter(|fails| !fails.because.is_empty())
            .collect();
        let bytes_stored: u64 =
            members.iter().map(|subject| (subject.elements * u64::from(subject.stored.1)).div_ceil(8)).sum();
        let elements = members.iter().map(|subject| subject.elements).sum();
        let bytes_recommended = match &recommended {
            Some(chosen) => ((elements as f64 * chosen.bits.0 / 8.0).ceil() as u64).min(bytes_stored),
            None => bytes_stored,
        };
        let stored = same(|subject| &subject.stored.0);
        let reason = reason(recommended.as_ref(), &rejected, &values);
        let kept = stored.as_deref().unwrap_or("as it is");
        let fix =
            recommended.as_ref().map_or_else(|| format!("keep {kept}"), |chosen| chosen.needs.to_owned());
        Row {
            name,
            role: members.first().filter(|_| roles).map(|subject| subject.role),
            tensors: members.len() as u64,
            elements,
            nonfinite: values.nan + values.inf,
            nonzero_finite: values.nonzero,
            stored,
            recommended,
            reason,
            fix,
            rejected,
            bfloat16,
            bytes_stored,
            bytes_recommended,
        }
    }

    /// Bytes of all tensors as stored, and with each as recommended.
    pub(super) fn memory(&self) -> (u64, u64) {
        let sum = |bytes: fn(&Row) -> u64| self.rows.iter().map(bytes).sum();
        (sum(|row| row.bytes_stored), sum(|row| row.bytes_recommended))
    }
}

impl Row {
    /// The wider the format, and the less of the signal is left, the worse.
    fn badness(&self) -> (f64, f64) {
        let bits = self.recommended.as_ref().map_or(f64::INFINITY, |chosen| chosen.bits.0);
        let sqnr =
            self.recommended.as_ref().and_then(|chosen| chosen.sqnr_db).map_or(f64::INFINITY, |sqnr| sqnr.0);
        (bits, -sqnr)
    }
}

impl Chosen {
    fn new(candidate: &Candidate, steps: &[Option<Measured>]) -> Self {
        let steps = || steps.iter().flatten();
        let share = |part: fn(&Measured) -> u64| {
            let share = |step: &Measured| {
                if step.nonzero == 0 { 0.0 } else { part(step) as f64 / step.nonzero as f64 }
            };
            Num(100.0 * steps().map(share).fold(0.0, f64::max))
        };
        let max_rel = steps().filter_map(|step| step.max_rel).reduce(f64::max);
        Self {
            format: candidate.name,
            bits: Num(candidate.bits()),
            needs: candidate.needs,
            underflow_pct: share(|step| step.underflow),
            overflow_pct: share(|step| step.overflow),
            sqnr_db: steps().filter_map(|step| step.sqnr_db).reduce(f64::min).map(Num),
            significand_bits: max_rel
                .filter(|&rel| rel > 0.0)
                .map(|rel| Num((-libm::log2(rel)).max(0.0) + 0.0)),
        }
    }
}

/// `0.12 % underflow, SQNR 19.0 dB`; empty where nothing was measured.
fn because(failures: &[Failure]) -> String {
    let text = |failure: &Failure| match failure {
        Failure::Underflow(share) => Some(format!("{} % underflow", short(100.0 * share, 2))),
        Failure::Overflow(share) => Some(format!("{} % overflow", short(100.0 * share, 2))),
        Failure::Sqnr(sqnr) if sqnr.is_finite() => Some(format!("SQNR {} dB", short(*sqnr, 3))),
        Failure::Sqnr(_) => Some("no signal left".to_owned()),
        Failure::NotHeld => Some("cannot keep NaN/Inf".to_owned()),
        Failure::NotMeasured => None,
    };
    failures.iter().filter_map(text).collect::<Vec<_>>().join(", ")
}

fn reason(recommended: Option<&Chosen>, rejected: &[Fails], values: &Census) -> String {
    let fails = rejected.last().map(|fails| format!("{}: {}", fails.format, fails.because));
    match recommended {
        None if values.is_blank() => "only NaN/Inf or 0 to judge by".to_owned(),
        None => fails.unwrap_or_else(|| "nothing could be measured".into()),
        Some(_) if values.nonzero == 0 => "no nonzero value: nothing to lose".to_owned(),
        Some(_) => fails.unwrap_or_else(|| "the cheapest will do".into()),
    }
}

/// The layer of a tensor: its name up to the first number, or without its last part.
fn layer(name: &str) -> &str {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return &name[..end];
        }
        end += 1;
    }
    name.rsplit_once('.').map_or(name, |(layer, _)| layer)
}
