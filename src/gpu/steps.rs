//! What this tool's casts say, in the form in which a card answers: lists of steps over all float32, and
//! tables over all codes; and the comparison of two lists.

use crate::cast::round::cast;
use crate::cast::{CastPlan, Place, Rounding};
use crate::format::FormatSpec;
use crate::format::decode::decode;

/// From this input on, up to the next step, the result is this.
pub type Step = (u32, u32);

/// Bits of float32 Inf, of either sign.
const INFINITIES: [u32; 2] = [0x7f80_0000, 0xff80_0000];

/// The steps of a cast over all 2^32 float32, in order; the first begins at 0. As no cast of this tool falls
/// between 0 and Inf of either sign, they are found by halving. (`tests/gpu` compares with walks through all inputs.)
pub fn steps(plan: &CastPlan) -> Vec<Step> {
    halve_all(|u| plan.cast_f32(f32::from_bits(u), Place::default()).code)
}

/// The steps of the same cast, rounded stochastically by these random bits, as many of which count as `bits` says.
pub fn steps_at(plan: &CastPlan, bits: u32, random: u32) -> Vec<Step> {
    halve_all(|u| cast_at(plan, bits, random, u))
}

/// One of its results.
pub fn cast_at(plan: &CastPlan, bits: u32, random: u32, u: u32) -> u32 {
    let x = f32::from_bits(u);
    if x.is_nan() {
        return plan.cast_f32(x, Place::default()).code;
    }
    cast(&plan.target, Rounding::Stochastic { bits, random }, plan.overflow, x.into()).code
}

/// Steps of a cast whose result, of either sign, does not come back to a code that it has left between zero
/// and Inf, and is one for all NaNs of a sign.
fn halve_all(code: impl Fn(u32) -> u32) -> Vec<Step> {
    let mut steps = vec![(0, code(0))];
    let [infinity, negative_infinity] = INFINITIES;
    for (first, last) in [(0, infinity), (1 << 31, negative_infinity)] {
        add(&mut steps, first, code(first));
        halve(&mut steps, &code, (first, code(first)), (last, code(last)));
        add(&mut steps, last + 1, code(last + 1));
    }
    steps
}

fn add(steps: &mut Vec<Step>, u: u32, code: u32) {
    if steps.last().is_none_or(|last| last.1 != code) {
        steps.push((u, code));
    }
}

fn halve(steps: &mut Vec<Step>, code: &impl Fn(u32) -> u32, low: Step, high: Step) {
    if low.1 == high.1 {
        return;
    }
    if high.0 - low.0 == 1 {
        return add(steps, high.0, high.1);
    }
    let middle = low.0 + (high.0 - low.0) / 2;
    let middle = (middle, code(middle));
    halve(steps, code, low, middle);
    halve(steps, code, middle, high);
}

/// The list with each result put through `change`; steps between equal results vanish.
pub fn map(steps: &[Step], change: impl Fn(u32) -> u32) -> Vec<Step> {
    let mut mapped = Vec::with_capacity(steps.len());
    steps.iter().for_each(|&(u, code)| add(&mut mapped, u, change(code)));
    mapped
}

/// The code that NVIDIA's conversions give for a value of a narrower format: exact, and all NaNs one.
pub fn widened(from: &FormatSpec, code: u32, plan: &CastPlan) -> u32 {
    plan.cast_f64(decode(from, code), Place::default()).code
}

/// One input with two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Bits of the input.
    pub input: u32,
    /// What the card gave.
    pub found: u32,
    /// What the tool gives.
    pub expected: u32,
    /// Where several values are converted at once: what was around this one.
    pub beside: Option<Beside>,
}

/// What a value is converted beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Bits of the values in the other lanes.
    pub partner: u32,
    /// The lane of the value, the lowest 0.
    pub lane: u32,
    /// The operand of stochastic rounding; 0 of all else.
    pub random: u32,
}

/// Inputs on which two lists differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Mismatch>,
}

impl Mismatches {
    /// How many are kept.
    pub const KEPT: usize = 20;

    /// Counts one.
    pub fn add(&mut self, mismatch: Mismatch) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(mismatch);
        }
    }

    /// Adds those of another comparison, made beside another partner.
    pub fn extend(&mut self, other: Self, beside: Option<Beside>) {
        self.count += other.count;
        let room = Self::KEPT - self.first.len();
        self.first.extend(other.first.into_iter().take(room).map(|first| Mismatch { beside, ..first }));
    }
}

/// Every input on which two lists, both beginning at 0, give different results; NaN inputs only if `nans`.
pub fn compare(found: &[Step], expected: &[Step], nans: bool) -> Mismatches {
    let mut mismatches = Mismatches::default();
    let (mut left, mut right) = (0, 0);
    let mut from = 0_u64;
    let end = |steps: &[Step], at: usize| steps.get(at + 1).map_or(1 << 32, |step| u64::from(step.0));
    while from < 1 << 32 {
        let (Some(a), Some(b)) = (found.get(left), expected.get(right)) else { break };
        let to = end(found, left).min(end(expected, right));
        if a.1 != b.1 {
            for (first, last) in judged(from, to, nans) {
                mismatches.count += last - first;
                let room = Mismatches::KEPT - mismatches.first.len();
                let kept = (first..last).take(room);
                mismatches.first.extend(kept.map(|u| Mismatch {
                    input: u as u32,
                    found: a.1,
                    expected: b.1,
                    beside: None,
                }));
            }
        }
        left += usize::from(end(found, left) == to);
        right += usize::from(end(expected, right) == to);
        from = to;
    }
    mismatches
}

/// The parts of `from..to` that are compared: without `nans`, those up to Inf of either sign.
fn judged(from: u64, to: u64, nans: bool) -> impl Iterator<Item = (u64, u64)> {
    let parts = match nans {
        true => [(0, 1 << 32), (0, 0)],
        false => [(0, u64::from(INFINITIES[0]) + 1), (1 << 31, u64::from(INFINITIES[1]) + 1)],
    };
    parts.into_iter().map(move |(first, last)| (first.max(from), last.min(to))).filter(|(a, b)| a < b)
}
