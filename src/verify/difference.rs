//! What differs, sorted by the kind of the input and by what was stored instead.

use super::{Check, Source};
use crate::cast::round::{Class, cast};
use crate::cast::{Overflow, Place, Rounding};
use crate::format::FormatSpec;
use crate::format::decode::{CodeClass, classify, decode};

/// What an input is, or what the definition makes of it. An input is of the first kind that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// NaN.
    Nan,
    /// ±Inf.
    Inf,
    /// ±0.
    Zero,
    /// A float32 that is subnormal itself.
    SubnormalInput,
    /// A float64 so little above a tie in magnitude that shortening it makes it one.
    AboveTie,
    /// A float64 as little below a tie.
    BelowTie,
    /// Beyond the range of the target.
    Overflow,
    /// Rounded to zero.
    Underflow,
    /// A subnormal number of the target.
    Subnormal,
    /// A normal number of the target.
    Normal,
}

/// What stands in place of the definition's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A NaN with the other sign and the same payload.
    NanSign,
    /// A NaN with another payload.
    NanPayload,
    /// NaN for something else.
    BecomesNan,
    /// Inf for something else.
    BecomesInf,
    /// The largest number for Inf, NaN or an overflow.
    Saturates,
    /// Zero for something else.
    BecomesZero,
    /// The same magnitude with the other sign.
    Sign,
    /// The number next to it.
    Neighbour,
    /// Another number.
    Other,
    /// Bits that are no code of the format.
    NoCode,
}

impl Kind {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Nan,
        Self::Inf,
        Self::Zero,
        Self::SubnormalInput,
        Self::AboveTie,
        Self::BelowTie,
        Self::Overflow,
        Self::Underflow,
        Self::Subnormal,
        Self::Normal,
    ];

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nan => "NaN",
            Self::Inf => "Inf",
            Self::Zero => "zero",
            Self::SubnormalInput => "subnormal input",
            Self::AboveTie => "just above a tie",
            Self::BelowTie => "just below a tie",
            Self::Overflow => "overflow",
            Self::Underflow => "underflow",
            Self::Subnormal => "subnormal",
            Self::Normal => "normal",
        }
    }

    fn of(check: &Check, input: u64) -> Self {
        let format = &check.plan.target;
        let class = match check.source {
            Source::Codes => {
                return match classify(format, input as u32) {
                    CodeClass::Nan => Self::Nan,
                    CodeClass::Infinite => Self::Inf,
                    CodeClass::Zero => Self::Zero,
                    CodeClass::Subnormal => Self::Subnormal,
                    CodeClass::Normal => Self::Normal,
                };
            }
            Source::Float32 => {
                let x = f32::from_bits(input as u32);
                if x.is_subnormal() {
                    return Self::SubnormalInput;
                }
                check.plan.cast_f32(x, Place::default()).class
            }
            Source::Float64 => {
                let x = f64::from_bits(input);
                if let Some(beside) = beside_tie(format, x) {
                    return beside;
                }
                check.plan.cast_f64(x, Place::default()).class
            }
        };
        match class {
            Class::Nan => Self::Nan,
            Class::Inf => Self::Inf,
            Class::Zero => Self::Zero,
            Class::Overflow => Self::Overflow,
            Class::Underflow => Self::Underflow,
            Class::Subnormal => Self::Subnormal,
            Class::Normal => Self::Normal,
        }
    }
}

/// Whether `x`, itself no tie of the format, becomes one when it is rounded to float32, or when the lower half
/// of its bits is dropped.
fn beside_tie(format: &FormatSpec, x: f64) -> Option<Kind> {
    let x = x.abs();
    if !x.is_finite() || is_tie(format, x) {
        return None;
    }
    let shortened = [f64::from(x as f32), f64::from_bits(x.to_bits() >> 32 << 32)];
    let tie = shortened.into_iter().find(|&y| is_tie(format, y))?;
    Some(if x > tie { Kind::AboveTie } else { Kind::BelowTie })
}

/// Whether a magnitude is where rounding to nearest changes its result, and an even code decides.
fn is_tie(format: &FormatSpec, x: f64) -> bool {
    let away = |x| {
        let q = cast(format, Rounding::NearestAway, Overflow::Saturate, x);
        (q.code, q.class == Class::Overflow)
    };
    x > 0.0 && x.is_finite() && away(x) != away(x.next_down())
}

impl Outcome {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::NanSign,
        Self::NanPayload,
        Self::BecomesNan,
        Self::BecomesInf,
        Self::Saturates,
        Self::BecomesZero,
        Self::Sign,
        Self::Neighbour,
        Self::Other,
        Self::NoCode,
    ];

    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NanSign => "other sign",
            Self::NanPayload => "another payload",
            Self::BecomesNan => "becomes NaN",
            Self::BecomesInf => "becomes Inf",
            Self::Saturates => "saturates",
            Self::BecomesZero => "becomes zero",
            Self::Sign => "other sign",
            Self::Neighbour => "neighbour",
            Self::Other => "another number",
            Self::NoCode => "no code",
        }
    }

    fn of(check: &Check, defined: u64, found: u64) -> Self {
        let format = &check.plan.target;
        if check.source == Source::Codes {
            return Self::of_values(f64::from_bits(defined), f64::from_bits(found), format.max_finite());
        }
        let mask = u64::from(format.magnitude_mask() | format.sign_bit());
        if found & !mask != 0 {
            return Self::NoCode;
        }
        let (q, r) = (decode(format, defined as u32), decode(format, found as u32));
        let payload = u64::from(format.magnitude_mask());
        if q.is_nan() && r.is_nan() {
            let same_payload = defined & payload == found & payload;
            return if same_payload { Self::NanSign } else { Self::NanPayload };
        }
        match Self::of_values(q, r, format.max_finite()) {
            Self::Other if q.is_finite() && defined.abs_diff(found) == 1 => Self::Neighbour,
            outcome => outcome,
        }
    }

    fn of_values(defined: f64, found: f64, largest: f64) -> Self {
        const SIGN: u64 = 1 << 63;
        if defined.is_nan() && found.is_nan() {
            let same_payload = (defined.to_bits() ^ found.to_bits()) & !SIGN == 0;
            return if same_payload { Self::NanSign } else { Self::NanPayload };
        }
        if found.is_nan() {
            return Self::BecomesNan;
        }
        if found.to_bits() ^ defined.to_bits() == SIGN {
            return Self::Sign;
        }
        if found.is_infinite() {
            return Self::BecomesInf;
        }
        if !defined.is_finite() && found.abs() == largest {
            return Self::Saturates;
        }
        if found == 0.0 { Self::BecomesZero } else { Self::Other }
    }
}

/// One input on which an implementation differs, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The input.
    pub input: u64,
    /// What the definition gives: a code, or the bits of a float64 value.
    pub defined: u64,
    /// What the implementation gives.
    pub found: u64,
}

/// Inputs of one kind with results that differ in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the inputs are.
    pub kind: Kind,
    /// What is stored for them.
    pub outcome: Outcome,
    /// How many there are.
    pub count: u64,
    /// The first of them, in the order of the inputs, at most [`Tally::EXAMPLES`].
    pub first: Vec<Example>,
}

/// How one implementation fared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Inputs compared.
    pub inputs: u64,
    /// By kind and outcome; empty until something differs.
    found: Vec<Found>,
}

#[derive(Clone, Debug, Default)]
struct Found {
    count: u64,
    /// With the position of the input.
    first: Vec<(u64, Example)>,
}

impl Tally {
    /// Inputs that a difference shows.
    pub const EXAMPLES: usize = 3;

    /// Counts a difference at `position` among the inputs. Positions may come in any order.
    pub(super) fn add(&mut self, check: &Check, position: u64, example: Example) {
        let kind = Kind::of(check, example.input);
        let outcome = Outcome::of(check, example.defined, example.found);
        if self.found.is_empty() {
            self.found = vec![Found::default(); Kind::ALL.len() * Outcome::ALL.len()];
        }
        let found = &mut self.found[kind as usize * Outcome::ALL.len() + outcome as usize];
        found.count += 1;
        found.keep(position, example);
    }

    /// Adds what another thread has found. The order does not matter.
    pub(super) fn merge(&mut self, other: Self) {
        self.inputs += other.inputs;
        if self.found.is_empty() {
            self.found = other.found;
            return;
        }
        for (mine, theirs) in self.found.iter_mut().zip(other.found) {
            mine.count += theirs.count;
            theirs.first.into_iter().for_each(|(position, example)| mine.keep(position, example));
        }
    }

    /// Inputs on which the implementation differs.
    pub fn differing(&self) -> u64 {
        self.found.iter().map(|found| found.count).sum()
    }

    /// What differs.
    pub fn differences(&self) -> Vec<Difference> {
        let classes = Kind::ALL.into_iter().flat_map(|kind| Outcome::ALL.map(|outcome| (kind, outcome)));
        let seen = classes.zip(&self.found).filter(|(_, found)| found.count > 0);
        seen.map(|((kind, outcome), found)| {
            let first = found.first.iter().map(|(_, example)| *example).collect();
            Difference { kind, outcome, count: found.count, first }
        })
        .collect()
    }
}

impl Found {
    fn keep(&mut self, position: u64, example: Example) {
        let full = self.first.len() == Tally::EXAMPLES;
        if full && self.first.last().is_some_and(|(last, _)| *last < position) {
            return;
        }
        let at = self.first.partition_point(|(other, _)| *other < position);
        self.first.insert(at, (position, example));
        self.first.truncate(Tally::EXAMPLES);
    }
}
