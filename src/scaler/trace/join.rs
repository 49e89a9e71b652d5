//! Rows of one or several files become the steps of one trace.

use std::collections::HashMap;

use regex::Regex;

use super::super::schedule::MOST_STEPS;
use super::{Largest, Recorded, Role, Step, TensorIndex, Trace};
use crate::format::FormatSpec;

/// Names of tensors whose gradients autocast makes in float32: embeddings and normalisations.
pub const FP32_GRADS: &str =
    r"(?i)(^|[._/])(wte|wpe|emb|\w*embed\w*|ln|ln_\w+|ln\d+|bn\d*|\w*norm\w*)([._/]|$)";

/// Steps are counted in f64, exactly up to here.
const LARGEST_STEP: f64 = 9e15;

/// One row of a trace.
#[derive(Clone, Debug)]
pub(super) struct Row {
    number: f64,
    found_inf: Option<bool>,
    scale: f64,
    amax: f64,
    scaled_amax: f64,
    norm: f64,
    tensors: Vec<(u32, f64)>,
    /// A tensor with Inf or NaN in its scaled gradient.
    nonfinite: TensorIndex,
}

impl Row {
    /// An empty row, for the step `number` unless a column says otherwise.
    pub(super) fn new(number: u64) -> Self {
        Self {
            number: number as f64,
            found_inf: None,
            scale: f64::NAN,
            amax: f64::NAN,
            scaled_amax: f64::NAN,
            norm: f64::NAN,
            tensors: Vec::new(),
            nonfinite: None,
        }
    }

    /// Takes in the value of a column. A magnitude that is NaN is as good as Inf: both are no number.
    pub(super) fn set(&mut self, role: Role, tensor: TensorIndex, value: f64) -> Result<(), String> {
        let (valid, rule) = match role {
            Role::Step => {
                let whole = value >= 0.0 && value.fract() == 0.0 && value < LARGEST_STEP;
                (whole, "a step is a whole number from 0 to 9e15")
            }
            Role::FoundInf => (value == 0.0 || value == 1.0, "a flag is 0 or 1"),
            Role::Scale => (value >= 0.0, "a scale is a number from 0 on"),
            Role::Nonfinite | Role::TensorNonfinite => (value >= 0.0, "a count is a number from 0 on"),
            Role::Tensor | Role::GradAmax | Role::ScaledAmax | Role::TensorAmax | Role::GradNorm => {
                (value.is_nan() || value >= 0.0, "a magnitude is a number from 0 on")
            }
        };
        if !valid {
            return Err(format!("{rule}, not {value}"));
        }
        let magnitude = if value.is_nan() { f64::INFINITY } else { value };
        match role {
            // A name, which is no number of the step.
            Role::Tensor => {}
            Role::Step => self.number = value,
            Role::Scale => self.scale = value,
            Role::GradNorm => self.norm = value,
            Role::GradAmax => self.amax = magnitude,
            Role::ScaledAmax => self.scaled_amax = magnitude,
            Role::TensorAmax => self.tensors.extend(tensor.map(|tensor| (tensor, magnitude))),
            Role::FoundInf | Role::Nonfinite | Role::TensorNonfinite => {
                let found = value > 0.0;
                self.found_inf = Some(found || self.found_inf == Some(true));
                self.nonfinite = self.nonfinite.or(tensor.filter(|_| found));
            }
        }
        Ok(())
    }

    /// Takes in another row of the same step; `false` if it is of another one.
    pub(super) fn absorb(&mut self, other: &Self) -> bool {
        if self.number != other.number {
            return false;
        }
        let known = |mine: f64, theirs: f64| if mine.is_nan() { theirs } else { mine };
        self.found_inf = match (self.found_inf, other.found_inf) {
            (Some(mine), Some(theirs)) => Some(mine || theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.scale = known(self.scale, other.scale);
        self.norm = known(self.norm, other.norm);
        self.amax = self.amax.max(other.amax);
        self.scaled_amax = self.scaled_amax.max(other.scaled_amax);
        self.tensors.extend(&other.tensors);
        self.nonfinite = self.nonfinite.or(other.nonfinite);
        true
    }
}

/// What decides whether a step overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Recorded flags where they decide, magnitudes elsewhere.
    #[default]
    All,
    /// Magnitudes only: a prediction.
    Magnitudes,
    /// Recorded flags only.
    Flags,
}

/// What can decide: name, choice, what it means.
pub const EVIDENCES: &[(&str, Evidence, &str)] = &[
    ("all", Evidence::All, "recorded flags where they tell, magnitudes elsewhere"),
    ("magnitudes", Evidence::Magnitudes, "magnitudes only: a prediction"),
    ("flags", Evidence::Flags, "recorded flags only"),
];

impl Evidence {
    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        EVIDENCES.iter().find(|(_, evidence, _)| *evidence == self).map_or("", |(name, ..)| name)
    }
}

/// The largest magnitude of a tensor at one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Magnitude {
    /// The step.
    pub step: u64,
    /// The tensor; `None` for all together.
    pub tensor: TensorIndex,
    /// The magnitude; Inf for a NaN too.
    pub amax: f64,
}

/// Collects files into one trace.
pub struct Join {
    trace: Trace,
    fp32_grads: Regex,
    evidence: Evidence,
    known: HashMap<String, u32>,
    /// Whether a tensor's gradient is made in float32.
    single: Vec<bool>,
    /// Steps of the file at hand.
    file: Vec<Step>,
    /// Every magnitude that was read, where they are asked for.
    magnitudes: Option<Vec<Magnitude>>,
}

impl Join {
    /// An empty trace of gradients in `format`, apart from those of tensors that `fp32_grads` matches.
    pub fn new(format: FormatSpec, fp32_grads: Regex, evidence: Evidence) -> Self {
        Self {
            trace: Trace::new(format),
            fp32_grads,
            evidence,
            known: HashMap::new(),
            single: Vec::new(),
            file: Vec::new(),
            magnitudes: None,
        }
    }

    /// The same, which remembers the magnitude of each tensor at each step.
    #[must_use]
    pub fn remembering(self) -> Self {
        Self { magnitudes: Some(Vec::new()), ..self }
    }

    /// The index of the tensor called `name`.
    pub fn tensor(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.known.get(name) {
            return index;
        }
        let index = self.trace.tensors.len() as u32;
        self.trace.tensors.push(name.to_owned());
        self.single.push(self.fp32_grads.is_match(name));
        self.known.insert(name.to_owned(), index);
        index
    }

    /// Whether the gradient of a tensor is made in float32.
    pub fn is_single(&self, tensor: u32) -> bool {
        self.single.get(tensor as usize).is_some_and(|single| *single)
    }

    pub(super) fn start_file(&mut self) {
        self.file.clear();
    }

    /// Adds a row of the file at hand.
    pub(super) fn push(&mut self, row: &Row) -> Result<(), String> {
        if self.file.len() as u64 >= MOST_STEPS {
            return Err(format!("there are more than the {MOST_STEPS} steps that are read"));
        }
        let step = self.step(row);
        if let Some(magnitudes) = &mut self.magnitudes {
            let all =
                [(None, row.amax)].into_iter().filter(|(_, amax)| row.tensors.is_empty() && !amax.is_nan());
            let tensors = row.tensors.iter().map(|&(tensor, amax)| (Some(tensor), amax));
            let of_step = |(tensor, amax)| Magnitude { step: step.number, tensor, amax };
            magnitudes.extend(tensors.chain(all).map(of_step));
        }
        match self.file.last() {
            Some(last) if last.number == step.number => {
                return Err(format!("step {} is there twice", step.number));
            }
            Some(last) if last.number > step.number => {
                return Err(format!("step {} follows step {}; steps must ascend", step.number, last.number));
            }
            _ => self.file.push(step),
        }
        Ok(())
    }

    fn step(&self, row: &Row) -> Step {
        let mut step = Step::new(row.number as u64);
        step.norm = row.norm;
        let mut amax = row.amax;
        let mut found_inf = row.found_inf;
        if row.scaled_amax.is_infinite() {
            found_inf = Some(true);
        } else if !row.scaled_amax.is_nan() {
            found_inf = Some(found_inf == Some(true));
            if amax.is_nan() && row.scale > 0.0 {
                amax = row.scaled_amax / row.scale;
            }
        }
        if self.evidence != Evidence::Magnitudes {
            step.recorded =
                found_inf.map(|found_inf| Recorded { scale: row.scale, found_inf, tensor: row.nonfinite });
        }
        if self.evidence == Evidence::Flags {
            return step;
        }
        let all = [(None, amax)];
        let tensors = row.tensors.iter().map(|&(tensor, amax)| (Some(tensor), amax));
        // What is known of each tensor says more than the largest of all.
        for (tensor, amax) in tensors.chain(all.into_iter().filter(|_| row.tensors.is_empty())) {
            if amax.is_infinite() {
                step.nonfinite.get_or_insert(tensor);
            } else if !amax.is_nan() {
                let single = tensor.is_some_and(|tensor| self.is_single(tensor));
                let largest = if single { &mut step.single } else { &mut step.low };
                largest.raise(amax, tensor);
            }
        }
        step
    }

    /// Joins the file at hand with those before it, step by step.
    pub(super) fn end_file(&mut self) {
        let file = std::mem::take(&mut self.file);
        if self.trace.steps.is_empty() {
            self.trace.steps = file;
            return;
        }
        let before = std::mem::take(&mut self.trace.steps);
        let (mut left, mut right) = (before.into_iter().peekable(), file.into_iter().peekable());
        loop {
            let step = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a.number == b.number => {
                    let (a, b) = (left.next(), right.next());
                    a.zip(b).map(|(a, b)| both(&a, &b))
                }
                (Some(a), Some(b)) if a.number < b.number => left.next(),
                (_, Some(_)) => right.next(),
                (_, None) => left.next(),
            };
            match step {
                Some(step) => self.trace.steps.push(step),
                None => break,
            }
        }
    }

    /// Adds a step that was made otherwise, less what is no evidence; steps may come in any order.
    pub fn add(&mut self, mut step: Step) {
        match self.evidence {
            Evidence::All => {}
            Evidence::Magnitudes => step.recorded = None,
            Evidence::Flags => {
                (step.low, step.single, step.nonfinite) = (Largest::UNKNOWN, Largest::UNKNOWN, None);
            }
        }
        self.file.push(step);
    }

    /// The trace to which histograms can be added.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The names of tensors, and what was remembered of them, in the order read.
    pub fn into_magnitudes(self) -> (Vec<String>, Vec<Magnitude>) {
        (self.trace.tensors, self.magnitudes.unwrap_or_default())
    }

    /// The joined trace, and the tensors whose gradients are taken to be made in float32.
    pub fn finish(mut self) -> (Trace, Vec<String>) {
        if !self.file.is_empty() {
            self.file.sort_by_key(|step| step.number);
            self.end_file();
        }
        let names = self.trace.tensors.iter().zip(&self.single);
        let single = names.filter(|(_, single)| **single).map(|(name, _)| name.clone()).collect();
        (self.trace, single)
    }
}

/// What two files say of one step.
fn both(a: &Step, b: &Step) -> Step {
    let by_tensor = |step: &Step| step.low.tensor.is_some() || step.single.tensor.is_some();
    // What is known of each tensor says more than the largest of all; of what is alike the larger counts.
    let (mut low, mut single) = (a.low, a.single);
    match (by_tensor(a), by_tensor(b)) {
        (true, false) => {}
        (false, true) => (low, single) = (b.low, b.single),
        (true, true) | (false, false) => {
            low.raise(b.low.amax, b.low.tensor);
            single.raise(b.single.amax, b.single.tensor);
        }
    }
    let recorded = match (a.recorded, b.recorded) {
        (Some(a), Some(b)) => Some(Recorded {
            scale: if a.scale.is_nan() { b.scale } else { a.scale },
            found_inf: a.found_inf || b.found_inf,
            tensor: a.tensor.or(b.tensor),
        }),
        (a, b) => a.or(b),
    };
    Step {
        number: a.number,
        low,
        single,
        nonfinite: a.nonfinite.or(b.nonfinite),
        recorded,
        norm: if a.norm.is_nan() { b.norm } else { a.norm },
        histogram: a.histogram.or(b.histogram),
    }
}
