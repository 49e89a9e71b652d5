//! Adds the gradients of ranks in an order, rounded as a [`Case`] says.

use super::case::{Accumulate, Case};
use super::order::Token;
use crate::cast::fast::Level;
use crate::training::Stored;
use crate::training::stored::{Range, Rounds, run_rounding, run_unrounded};

/// Buffers for the sums of one piece.
#[derive(Debug, Default)]
pub struct Adder {
    /// What each recorded rank contributes.
    contributions: Vec<Vec<f32>>,
    /// What a backward pass made of a rank's.
    made: Vec<f32>,
    stack: Vec<Operand>,
    /// Buffers that are not in use.
    spare: Vec<Vec<f32>>,
    result: Vec<f32>,
    /// What is known of all that is rounded.
    range: Range,
}

/// What is to be added.
#[derive(Debug)]
enum Operand {
    /// The contribution of this recorded rank.
    Rank(usize),
    Sum(Vec<f32>),
}

impl Adder {
    /// Rounds what each rank has, times `scale`, to what it sends, among `ranks` ranks. Returns how many nonzero
    /// gradients became zero.
    pub fn contribute(
        &mut self,
        level: Level,
        case: &Case,
        ranks: usize,
        scale: f32,
        inputs: &[&[f32]],
    ) -> u64 {
        self.contribute_in(Range::Any, level, case, ranks, scale, inputs)
    }

    /// The same where something is known of all that is rounded.
    pub(super) fn contribute_in(
        &mut self,
        range: Range,
        level: Level,
        case: &Case,
        ranks: usize,
        scale: f32,
        inputs: &[&[f32]],
    ) -> u64 {
        self.range = range;
        let Self { contributions, made: buffer, .. } = self;
        contributions.resize(inputs.len(), Vec::new());
        let (before, _) = case.divide.factors(ranks);
        let (wire, division) = (case.wire, Division::by(before));
        let mut lost = 0;
        for (gradients, out) in inputs.iter().zip(contributions) {
            out.resize(gradients.len(), 0.0);
            if range == Range::Normal && (scale / before).is_normal() {
                // What is divided is a number of the format still.
                let scale = scale / before;
                run_rounding(level, &wire, range, Make { stored: &wire, scale, gradients, made: out });
                continue;
            }
            let (mut values, mut factor) = (*gradients, scale);
            if let Some(param) = &case.param {
                buffer.resize(gradients.len(), 0.0);
                let made = Make { stored: param, scale, gradients, made: &mut *buffer };
                run_rounding(level, param, Range::Any, made);
                (values, factor) = (buffer.as_slice(), 1.0);
            }
            let sent = Contribute { wire: &wire, scale: factor, division, gradients, values, out };
            lost += u64::from(run_rounding(level, &wire, range, sent));
        }
        lost
    }

    /// The mean in the format of the wire, after all roundings: of the ranks of `order`, each of which stands for
    /// the recorded rank that `recorded` gives.
    pub fn mean(
        &mut self,
        level: Level,
        case: &Case,
        ranks: usize,
        order: &[Token],
        recorded: impl Fn(usize) -> usize,
    ) -> &[f32] {
        for token in order {
            match *token {
                Token::Rank(rank) => self.stack.push(Operand::Rank(recorded(rank))),
                Token::Add => self.add(level, case),
            }
        }
        match self.stack.pop() {
            Some(Operand::Sum(sum)) => self.spare.push(std::mem::replace(&mut self.result, sum)),
            Some(Operand::Rank(rank)) => self.result.clone_from(&self.contributions[rank]),
            None => self.result.clear(),
        }
        let (_, after) = case.divide.factors(ranks);
        // Sums in the format are rounded already.
        if case.accumulate == Accumulate::Float32 || after != 1.0 {
            let (wire, division) = (&case.wire, Division::by(after));
            let finish = Finish { wire, division, values: &mut self.result };
            run_rounding(level, wire, self.range, finish);
        }
        &self.result
    }

    /// Puts the sum of the upper two in their place.
    fn add(&mut self, level: Level, case: &Case) {
        let Self { contributions, stack, spare, .. } = self;
        let (Some(second), Some(first)) = (stack.pop(), stack.pop()) else { return };
        let mut sum = spare.pop().unwrap_or_default();
        let [a, b] = [&first, &second].map(|operand| match operand {
            Operand::Rank(rank) => &contributions[*rank],
            Operand::Sum(sum) => sum,
        });
        sum.resize(a.len(), 0.0);
        let add = Add { stored: &case.wire, first: a, second: b, sum: &mut sum };
        match case.accumulate {
            Accumulate::Same => run_rounding(level, &case.wire, self.range, add),
            Accumulate::Float32 => run_unrounded(level, add),
        }
        for operand in [first, second] {
            if let Operand::Sum(free) = operand {
                spare.push(free);
            }
        }
        stack.push(Operand::Sum(sum));
    }
}

/// A division of float32.
#[derive(Clone, Copy)]
enum Division {
    /// By 1.
    None,
    /// By a power of two, whose inverse this is: the product with it is the quotient.
    Times(f32),
    By(f32),
}

impl Division {
    fn by(divisor: f32) -> Self {
        let inverse = 1.0 / divisor;
        let fraction = |x: f32| x.to_bits() << 9;
        match divisor {
            1.0 => Self::None,
            _ if inverse.is_normal() && fraction(divisor) == 0 && fraction(inverse) == 0 => {
                Self::Times(inverse)
            }
            _ => Self::By(divisor),
        }
    }
}

/// Gradients in a format.
struct Make<'a> {
    stored: &'a Stored,
    scale: f32,
    gradients: &'a [f32],
    made: &'a mut [f32],
}

impl Rounds for Make<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let stored = *self.stored;
        for (x, made) in self.gradients.iter().zip(self.made) {
            *made = stored.round_as::<KIND>(x * self.scale);
        }
    }
}

struct Contribute<'a> {
    wire: &'a Stored,
    scale: f32,
    division: Division,
    /// What is not to be lost.
    gradients: &'a [f32],
    values: &'a [f32],
    out: &'a mut [f32],
}

impl Contribute<'_> {
    #[inline(always)]
    fn each(self, send: impl Fn(f32) -> f32) -> u32 {
        let mut lost = 0;
        for ((g, x), out) in self.gradients.iter().zip(self.values).zip(self.out) {
            let sent = send(x * self.scale);
            lost += u32::from((*g != 0.0) & (sent == 0.0));
            *out = sent;
        }
        lost
    }
}

impl Rounds for Contribute<'_> {
    /// How many nonzero gradients became zero.
    type Out = u32;

    /// The frameworks cast first and divide in the format.
    #[inline(always)]
    fn run<const KIND: u8>(self) -> u32 {
        let wire = *self.wire;
        let round = |x| wire.round_as::<KIND>(x);
        match self.division {
            Division::None => self.each(round),
            Division::Times(inverse) => self.each(|x| round(round(x) * inverse)),
            Division::By(divisor) => self.each(|x| round(round(x) / divisor)),
        }
    }
}

struct Add<'a> {
    stored: &'a Stored,
    first: &'a [f32],
    second: &'a [f32],
    sum: &'a mut [f32],
}

impl Rounds for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let stored = *self.stored;
        for ((a, b), sum) in self.first.iter().zip(self.second).zip(self.sum) {
            *sum = stored.round_as::<KIND>(a + b);
        }
    }
}

struct Finish<'a> {
    wire: &'a Stored,
    division: Division,
    values: &'a mut [f32],
}

impl Finish<'_> {
    #[inline(always)]
    fn each(self, finish: impl Fn(f32) -> f32) {
        self.values.iter_mut().for_each(|x| *x = finish(*x));
    }
}

impl Rounds for Finish<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const KIND: u8>(self) {
        let wire = *self.wire;
        let round = |x| wire.round_as::<KIND>(x);
        match self.division {
            Division::None => self.each(round),
            Division::Times(inverse) => self.each(|x| round(round(x) * inverse)),
            Division::By(divisor) => self.each(|x| round(round(x) / divisor)),
        }
    }
}
