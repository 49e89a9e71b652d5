//! Finished figures against rules and a baseline → what holds and what does not.

use super::figures::{Figures, Snapshot};
use super::limit::Relation;
use super::metric::Metric;
use super::pairing::{Identity, Pairing};
use super::predicate::{Comparison, Predicate};
use super::rules::{Rule, Rules, Severity};

/// What came of one demand on one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The tensor.
    pub tensor: Identity,
    /// Name of the rule, or what else is looked at: `no rule`, `vanished`, `new`, `changed`.
    pub rule: String,
    /// How much it matters.
    pub severity: Severity,
    /// What came of it.
    pub status: Status,
    /// Why it does not hold or cannot be told, where no figure says that.
    pub messages: Vec<String>,
    /// Every comparison that was made.
    pub figures: Vec<Compared>,
}

/// What came of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// It cannot be told.
    Untold,
    /// It holds by far: the baseline could be better.
    Improved,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Untold => "untold",
            Self::Improved => "improved",
        }
    }
}

/// A figure against its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The comparison as written.
    pub text: String,
    /// The figure.
    pub metric: Metric,
    /// Its value.
    pub value: Option<f64>,
    /// The baseline's, if the limit follows from it.
    pub baseline: Option<f64>,
    /// The limit.
    pub limit: Option<f64>,
    /// Whether the figure keeps to it; `None` if that cannot be told.
    pub holds: Option<bool>,
    /// Whether it is on the good side of the baseline by more than it may be on the bad side.
    pub improved: bool,
}

impl Compared {
    /// How far beyond the limit, relative to it: to order findings by.
    pub fn excess(&self) -> f64 {
        match (self.holds, self.value, self.limit) {
            (Some(false), Some(value), Some(limit)) => {
                let excess = (value - limit).abs() / limit.abs().max(1e-3);
                if excess.is_nan() { f64::INFINITY } else { excess }
            }
            _ => 0.0,
        }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// A case for each tensor and its rule, in the order of the dump, and one for each tensor that is not as the
    /// baseline has it.
    pub cases: Vec<Case>,
    /// What keeps the check from meaning anything, in sentences.
    pub troubles: Vec<String>,
    /// Tensors whose values are those of the baseline, bit for bit.
    pub identical: u64,
    /// Tensors that the baseline has too.
    pub in_baseline: u64,
}

/// Judges the tensors of `now`. With `ratchet` what is better than the baseline by more than the tolerance fails.
pub fn judge(now: &Snapshot, rules: &Rules, baseline: Option<&Snapshot>, ratchet: bool) -> Judgement {
    let mut judgement = Judgement::default();
    let mut before: Vec<Option<&Figures>> = vec![None; now.tensors.len()];
    if let Some(baseline) = baseline {
        let pairing = Pairing::new(&now.identities(), &baseline.identities());
        for (position, old) in pairing.pairs {
            before[position] = baseline.tensors.get(old);
        }
        for vanished in pairing.only_second {
            let message = "in the baseline, but not in the dump".to_owned();
            let tensor = &baseline.tensors[vanished];
            judgement.outside_rules(tensor, "vanished", rules.severities.vanished, message);
        }
    }
    let mut matched = vec![0_u64; rules.rules.len()];
    let mut taken = vec![0_u64; rules.rules.len()];
    for (tensor, old) in now.tensors.iter().zip(&before) {
        match old {
            Some(old) => judgement.against(tensor, old, rules.severities.changed),
            None if baseline.is_some() => {
                let message = "in the dump, but not in the baseline".to_owned();
                judgement.outside_rules(tensor, "new", rules.severities.new, message);
            }
            None => {}
        }
        let mut its_rule = None;
        for (number, rule) in rules.rules.iter().enumerate() {
            if rule.is_for(&tensor.identity.name) {
                match its_rule {
                    None => (its_rule, matched[number]) = (Some(rule), matched[number] + 1),
                    Some(_) => taken[number] += 1,
                }
            }
        }
        match its_rule {
            Some(rule) => judgement.cases.push(case(rule, tensor, *old, ratchet)),
            None => {
                let message = "no pattern of a rule matches its name".to_owned();
                judgement.outside_rules(tensor, "no rule", rules.severities.no_rule, message);
            }
        }
    }
    for ((rule, matched), taken) in rules.rules.iter().zip(matched).zip(taken) {
        if matched == 0 {
            let line = rule.line.map_or(String::new(), |line| format!(" (line {line})"));
            let name = crate::error::escape(&rule.name);
            judgement.troubles.push(match taken {
                0 => format!("rule '{name}'{line} matches no tensor"),
                n => format!(
                    "rule '{name}'{line} is never used: rules before it take all {n} tensors that it matches"
                ),
            });
        }
    }
    let untold = judgement.cases.iter().filter(|case| case.status == Status::Untold);
    let troubles: Vec<String> = untold
        .map(|case| {
            let name = crate::error::escape(&case.tensor.name);
            format!("tensor '{name}': {}", case.messages.join("; "))
        })
        .collect();
    judgement.troubles.extend(troubles);
    judgement
}

impl Judgement {
    /// Adds what rules do not look at.
    fn outside_rules(&mut self, tensor: &Figures, what: &str, severity: Severity, message: String) {
        if severity != Severity::Ignore {
            self.cases.push(Case {
                tensor: tensor.identity.clone(),
                rule: what.to_owned(),
                severity,
                status: Status::Failed,
                messages: vec![message],
                figures: Vec::new(),
            });
        }
    }

    /// Compares what a tensor is with what it was.
    fn against(&mut self, tensor: &Figures, old: &Figures, severity: Severity) {
        self.in_baseline += 1;
        self.identical += u64::from(tensor.digest.is_some() && tensor.digest == old.digest);
        let mut changes = Vec::new();
        if tensor.shape != old.shape {
            let text = |shape: &Option<Vec<u64>>| {
                shape.as_ref().map_or("unknown".into(), |shape| format!("{shape:?}"))
            };
            changes.push(format!("shape {}, in the baseline {}", text(&tensor.shape), text(&old.shape)));
        }
        if tensor.dtype != old.dtype {
            let text = |dtype: &Option<String>| crate::error::escape(dtype.as_deref().unwrap_or("unknown"));
            changes.push(format!("type {}, in the baseline {}", text(&tensor.dtype), text(&old.dtype)));
        }
        if !changes.is_empty() {
            self.outside_rules(tensor, "changed", severity, changes.join("; "));
        }
    }

    /// Whether something of this severity, or a greater one, is not as it should be.
    pub fn fails(&self, from: Severity) -> bool {
        self.cases.iter().any(|case| case.status == Status::Failed && case.severity >= from)
    }
}

/// One tensor against its rule.
fn case(rule: &Rule, tensor: &Figures, old: Option<&Figures>, ratchet: bool) -> Case {
    let mut figures = Vec::new();
    let mut doubts = Vec::new();
    let holds = evaluate(&rule.predicate, &mut |comparison| {
        let (compared, doubt) = compare(rule, comparison, tensor, old);
        doubts.extend(doubt);
        let holds = compared.holds;
        figures.push(compared);
        holds
    });
    let improved = figures.iter().any(|compared| compared.improved);
    let status = match holds {
        None => Status::Untold,
        Some(false) => Status::Failed,
        Some(true) if improved && ratchet => Status::Failed,
        Some(true) if improved => Status::Improved,
        Some(true) => Status::Passed,
    };
    doubts.dedup();
    let messages = if status == Status::Untold { doubts } else { Vec::new() };
    Case {
        tensor: tensor.identity.clone(),
        rule: rule.name.clone(),
        severity: rule.severity,
        status,
        messages,
        figures,
    }
}

/// Three-valued: what cannot be told decides only where nothing else does. Every comparison is made.
fn evaluate(predicate: &Predicate, compare: &mut impl FnMut(&Comparison) -> Option<bool>) -> Option<bool> {
    let mut each = |parts: &[Predicate], deciding: bool| {
        let outcomes: Vec<Option<bool>> = parts.iter().map(|part| evaluate(part, &mut *compare)).collect();
        if outcomes.contains(&Some(deciding)) {
            Some(deciding)
        } else if outcomes.contains(&None) {
            None
        } else {
            Some(!deciding)
        }
    };
    match predicate {
        Predicate::All(parts) => each(parts, false),
        Predicate::Any(parts) => each(parts, true),
        Predicate::Compare(comparison) => compare(comparison),
    }
}

/// Makes a comparison; if it cannot be made, also why.
fn compare(
    rule: &Rule,
    comparison: &Comparison,
    tensor: &Figures,
    old: Option<&Figures>,
) -> (Compared, Option<String>) {
    let Comparison { metric, relation, limit, text } = comparison;
    let relative = limit.is_relative();
    let value = tensor.value(metric);
    let baseline = old.filter(|_| relative).and_then(|old| old.value(metric));
    let mut compared = Compared {
        text: text.clone(),
        metric: metric.clone(),
        value,
        baseline,
        limit: None,
        holds: Some(true),
        improved: false,
    };
    let not_finite = tensor.not_finite();
    let doubt = if relative && old.is_none() {
        // That it is new is told apart.
        return (compared, None);
    } else if !metric.counts_all() && not_finite > 0.0 && !rule.allow_nan {
        Some(format!("{not_finite} NaN or Inf, which {metric} leaves out (allow_nan = true accepts that)"))
    } else if value.is_none() {
        Some(format!("{metric} is undefined or was not computed"))
    } else if relative && baseline.is_none() {
        Some(format!("{metric} is undefined or missing in the baseline"))
    } else {
        None
    };
    if relative && value.is_none() && baseline.is_some() {
        compared.holds = Some(false);
        return (compared, None);
    }
    let both_undefined = relative && value.is_none() && baseline.is_none();
    let (Some(value), None) = (value, &doubt) else {
        compared.holds = (rule.allow_nan || both_undefined).then_some(true);
        return (compared, doubt.filter(|_| !rule.allow_nan && !both_undefined));
    };
    let baseline = baseline.unwrap_or(0.0);
    let bound = limit.value(baseline);
    compared.limit = Some(bound);
    if !limit.is_meaningful(baseline) {
        compared.holds = None;
        let doubt = format!("the limit of {metric} is no finite number, with {baseline:?} in the baseline");
        return (compared, Some(doubt));
    }
    compared.holds = Some(relation.holds(value, bound));
    if relative {
        // As far on the other side of the baseline as the limit is on this.
        let mirrored = 2.0 * baseline - bound;
        compared.improved = match relation {
            Relation::AtMost | Relation::Below => bound >= baseline && value < mirrored,
            Relation::AtLeast | Relation::Above => bound <= baseline && value > mirrored,
            Relation::Equal | Relation::Unequal => false,
        };
    }
    (compared, None)
}
