//! Which recorded step each simulated step takes its gradients from.

use super::trace::{Step, Trace};
use crate::error::{Error, Result};

/// Most steps that are simulated of one scaler.
pub const MOST_STEPS: u64 = 10_000_000;

/// What becomes of steps that the record lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// They have the gradients of the last recorded step before them.
    #[default]
    Hold,
    /// They did not happen.
    Skip,
    /// The record is refused.
    Refuse,
}

/// What can be done with missing steps: name, choice, what it means.
pub const GAPS: &[(&str, Gaps, &str)] = &[
    ("hold", Gaps::Hold, "they repeat the last recorded step before them"),
    ("skip", Gaps::Skip, "they are left out, as if recorded steps followed each other"),
    ("refuse", Gaps::Refuse, "the record is refused"),
];

impl Gaps {
    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        GAPS.iter().find(|(_, gaps, _)| *gaps == self).map_or("", |(name, ..)| name)
    }
}

/// How long the simulation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The record this many times.
    Passes(u64),
    /// The record again and again until the scaler ends it as it has ended it before.
    UntilSteady,
}

/// One simulated step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// Its number.
    pub number: u64,
    /// Index of the recorded step.
    pub step: usize,
}

/// The steps of one pass over a trace.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// First simulated step of each recorded one, counted from 0, and at the end their total.
    starts: Vec<u64>,
    first: u64,
    /// Steps that the record lacks.
    pub missing: u64,
    gaps: Gaps,
    numbers: Vec<u64>,
    /// How long it goes on.
    pub length: Length,
}

impl Schedule {
    /// The steps of `trace`.
    ///
    /// # Errors
    /// There is no step, there are too many, or one is missing and `gaps` refuses that.
    pub fn new(trace: &Trace, gaps: Gaps, length: Length) -> Result<Self> {
        let numbers: Vec<u64> = trace.steps.iter().map(|step| step.number).collect();
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else {
            return Err(Error::new("there is no step to simulate"));
        };
        let missing = last - first + 1 - numbers.len() as u64;
        if missing > 0 && gaps == Gaps::Refuse {
            let after = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1).map_or(first, |pair| pair[0]);
            return Err(Error::new(format!(
                "{missing} steps are missing, the first after step {after}; --gaps hold or skip goes on without them"
            )));
        }
        let held = gaps == Gaps::Hold;
        let pass = if held { last - first + 1 } else { numbers.len() as u64 };
        let passes = if let Length::Passes(passes) = length { passes } else { 1 };
        let total = pass.saturating_mul(passes);
        if total > MOST_STEPS {
            let hint = if held && missing > 0 { "; --gaps skip leaves the missing ones out" } else { "" };
            return Err(Error::new(format!(
                "there are {total} steps to simulate, more than the {MOST_STEPS} that are done{hint}"
            )));
        }
        let starts = match held {
            true => numbers.iter().map(|number| number - first).chain([pass]).collect(),
            false => (0..=pass).collect(),
        };
        Ok(Self { starts, first, missing, gaps, numbers, length })
    }

    /// Simulated steps of one pass.
    pub fn pass(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// What becomes of missing steps.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// Recorded steps.
    pub fn recorded(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// The simulated step at `position`, counted over all passes.
    pub fn turn(&self, position: u64) -> Turn {
        let (pass, within) = (position / self.pass(), position % self.pass());
        let step = self.starts.partition_point(|&start| start <= within) - 1;
        Turn { number: self.number(pass, step, within), step }
    }

    fn number(&self, pass: u64, step: usize, within: u64) -> u64 {
        let span = self.numbers.last().map_or(0, |last| last - self.first + 1);
        let inside = self.numbers[step] + within - self.starts[step];
        // Numbers of far repetitions of a record with a wide gap may not fit.
        inside.saturating_add(pass.saturating_mul(span))
    }

    /// The recorded steps of one pass in order, each with how often it is simulated.
    pub fn spans(&self) -> impl Iterator<Item = (usize, u64)> {
        self.starts.windows(2).map(|span| span[1] - span[0]).enumerate()
    }

    /// Whether the simulated step is one that was recorded.
    pub fn is_recorded(&self, trace: &Trace, turn: Turn) -> bool {
        let span = self.numbers.last().map_or(1, |last| last - self.first + 1);
        let step: &Step = &trace.steps[turn.step];
        (turn.number - self.first) % span == step.number - self.first
    }
}
