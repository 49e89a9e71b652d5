//! Adds the gradients of ranks in an order, rounded as a [`Case`] says, and exactly.

use super::case::{Accumulate, Case};
use super::order::Token;
use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;

/// Buffers for the sums of one piece.
#[derive(Debug, Default)]
pub struct Adder {
    /// What each recorded rank contributes.
    contributions: Vec<Vec<f32>>,
    stack: Vec<Vec<f32>>,
    /// Buffers that are not in use.
    spare: Vec<Vec<f32>>,
    result: Vec<f32>,
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
        self.contributions.resize(inputs.len(), Vec::new());
        let (before, _) = case.divide.factors(ranks);
        let mut lost = 0;
        for (values, out) in inputs.iter().zip(&mut self.contributions) {
            out.resize(values.len(), 0.0);
            let (param, wire) = (case.param, case.wire);
            lost += run(level, Contribute { param, wire, scale, before, values, out });
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
        let stored = match case.accumulate {
            Accumulate::Same => Some(case.wire),
            Accumulate::Float32 => None,
        };
        let mut position = 0;
        while let Some(token) = order.get(position) {
            position += 1;
            match *token {
                Token::Rank(rank) => {
                    let values = &self.contributions[recorded(rank)];
                    if let (Some(Token::Add), Some(sum)) = (order.get(position), self.stack.last_mut()) {
                        position += 1;
                        add(level, stored.as_ref(), sum, values);
                    } else {
                        let mut top = self.spare.pop().unwrap_or_default();
                        top.clear();
                        top.extend_from_slice(values);
                        self.stack.push(top);
                    }
                }
                Token::Add => {
                    if let (Some(top), Some(sum)) = (self.stack.pop(), self.stack.last_mut()) {
                        add(level, stored.as_ref(), sum, &top);
                        self.spare.push(top);
                    }
                }
            }
        }
        let (_, after) = case.divide.factors(ranks);
        self.result.clear();
        if let Some(sum) = self.stack.pop() {
            self.result.extend_from_slice(&sum);
            self.spare.push(sum);
        }
        run(level, Finish { wire: case.wire, after, values: &mut self.result });
        &self.result
    }
}

fn add(level: Level, stored: Option<&Stored>, sum: &mut [f32], values: &[f32]) {
    match stored {
        Some(stored) => run(level, AddRounded { stored: *stored, sum, values }),
        None => run(level, Add { sum, values }),
    }
}

struct Contribute<'a> {
    param: Option<Stored>,
    wire: Stored,
    scale: f32,
    before: f32,
    values: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Contribute<'_> {
    type Out = u64;

    /// The frameworks cast first and divide in the format.
    #[inline(always)]
    fn run(self) -> u64 {
        let Self { param, wire, scale, before, values, out } = self;
        let mut lost = 0_u64;
        for (x, out) in values.iter().zip(out) {
            let mut q = x * scale;
            if let Some(param) = param {
                q = param.round(q);
            }
            q = wire.round(q);
            if before != 1.0 {
                q = wire.round(q / before);
            }
            lost += u64::from((*x != 0.0) & (q == 0.0));
            *out = q;
        }
        lost
    }
}

struct AddRounded<'a> {
    stored: Stored,
    sum: &'a mut [f32],
    values: &'a [f32],
}

impl Kernel for AddRounded<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = self.stored;
        for (sum, x) in self.sum.iter_mut().zip(self.values) {
            *sum = stored.round(*sum + x);
        }
    }
}

struct Add<'a> {
    sum: &'a mut [f32],
    values: &'a [f32],
}

impl Kernel for Add<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for (sum, x) in self.sum.iter_mut().zip(self.values) {
            *sum += x;
        }
    }
}

struct Finish<'a> {
    wire: Stored,
    after: f32,
    values: &'a mut [f32],
}

impl Kernel for Finish<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for x in self.values {
            *x = self.wire.round(*x);
            if self.after != 1.0 {
                *x = self.wire.round(*x / self.after);
            }
        }
    }
}

/// A sum of float32 in two float64: what an addition loses is kept (Knuth's two-sum), so that the error is below
/// 2^-100 of the sum of magnitudes for any number of ranks there is.
#[derive(Debug, Default)]
pub struct ExactSum {
    sum: Vec<f64>,
    lost: Vec<f64>,
}

impl ExactSum {
    /// Starts anew, with `length` sums of nothing.
    pub fn clear(&mut self, length: usize) {
        for buffer in [&mut self.sum, &mut self.lost] {
            buffer.clear();
            buffer.resize(length, 0.0);
        }
    }

    /// Adds `times` · `values`, the product being exact for up to 2^29 times.
    pub fn add(&mut self, level: Level, times: f64, values: &[f32]) {
        run(level, TwoSum { times, values, sum: &mut self.sum, lost: &mut self.lost });
    }

    /// Writes the sums divided by `ranks`, rounded once to float64 and once more by the division.
    pub fn mean(&self, ranks: usize, mean: &mut Vec<f64>) {
        mean.clear();
        mean.extend(self.sum.iter().zip(&self.lost).map(|(sum, lost)| (sum + lost) / ranks as f64));
    }
}

struct TwoSum<'a> {
    times: f64,
    values: &'a [f32],
    sum: &'a mut [f64],
    lost: &'a mut [f64],
}

impl Kernel for TwoSum<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for ((x, sum), lost) in self.values.iter().zip(self.sum).zip(self.lost) {
            let x = f64::from(*x) * self.times;
            let new = *sum + x;
            let back = new - *sum;
            *lost += (*sum - (new - back)) + (x - back);
            *sum = new;
        }
    }
}
