//! All elements of a tensor's gradients on all ranks, piece by piece.

use super::case::{Case, Limits};
use super::exact::Means;
use super::order::Token;
use super::sum::Adder;
use super::tally::ErrorTally;
use super::worlds::Sample;
use crate::cast::fast::Level;
use crate::error::Error;
use crate::stats::{AccumulateTogether, Merge};
use crate::tensor::Chunk;
use crate::training::Extremes;
use crate::training::stored::Range;

/// Elements that all cases are computed for before the next: what is needed of them stays in the first caches.
const PIECE: usize = 1 << 10;

/// What becomes of the gradients of a tensor.
#[derive(Clone, Debug, Default)]
pub struct TensorReductions {
    /// For each case.
    pub cases: Vec<ErrorTally>,
    /// Elements kept for other numbers of ranks.
    pub sample: Sample,
    /// Largest magnitude of a gradient of any rank.
    pub amax: f32,
    /// NaN and Inf of the rank that has the first of them: the rank's position, their number and the first index.
    nonfinite: Option<(usize, u64, u64)>,
}

impl TensorReductions {
    /// Adds another tensor's figures.
    pub fn merge(&mut self, next: &Self) {
        self.cases.resize(next.cases.len().max(self.cases.len()), ErrorTally::default());
        self.cases.iter_mut().zip(&next.cases).for_each(|(sum, tally)| sum.merge(tally));
        self.amax = self.amax.max(next.amax);
    }
}

/// What a case has in common with those before it.
struct Relation {
    /// The first case whose ranks send the same.
    contributes_as: usize,
    /// The first other case that adds the same in the same order, but for when it is divided.
    twin: Option<usize>,
    limits: Limits,
}

impl Relation {
    fn of(cases: &[Case], number: usize, ranks: usize) -> Self {
        let (before, case) = (&cases[..number], &cases[number]);
        Self {
            contributes_as: before.iter().position(|other| case.contributes_as(other)).unwrap_or(number),
            twin: before.iter().position(|other| case.adds_as(other)),
            limits: case.limits(ranks),
        }
    }
}

/// Adds up the errors of each case.
pub struct ReduceAccumulator<'a> {
    cases: &'a [Case],
    /// Elements of the tensor.
    elements: u64,
    scale: f32,
    /// Every so many elements one is kept as a sample; none for 0.
    stride: u64,
    level: Level,
    out: TensorReductions,
    adder: Adder,
    exact: Means,
    narrowed: Vec<Vec<f32>>,
    /// For each case.
    relations: Vec<Relation>,
    /// For each case the order of the chunk it was last in.
    orders: Vec<Option<(usize, Vec<Token>)>>,
}

impl<'a> ReduceAccumulator<'a> {
    /// For a tensor of `elements` elements, gradients being multiplied by `scale` first; every `stride`-th element
    /// is kept as a sample, none for 0.
    pub fn new(cases: &'a [Case], elements: u64, scale: f32, stride: u64) -> Self {
        Self {
            cases,
            elements,
            scale,
            stride,
            level: Level::best(),
            out: TensorReductions {
                cases: vec![ErrorTally::default(); cases.len()],
                sample: Sample { elements, ..Sample::default() },
                ..TensorReductions::default()
            },
            adder: Adder::default(),
            exact: Means::default(),
            narrowed: Vec::new(),
            relations: Vec::new(),
            orders: vec![None; cases.len()],
        }
    }

    /// The extremes of all ranks, if all of them are finite.
    fn check(&mut self, first: u64, inputs: &[&[f32]]) -> Option<Extremes> {
        let mut all = Extremes::NONE;
        for (rank, values) in inputs.iter().enumerate() {
            let extremes = Extremes::of(self.level, values);
            if extremes.are_finite() {
                all = all.and(extremes);
                continue;
            }
            let bad = values.iter().filter(|x| !x.is_finite()).count() as u64;
            let at = first + values.iter().position(|x| !x.is_finite()).unwrap_or(0) as u64;
            match &mut self.out.nonfinite {
                Some((known, count, _)) if *known == rank => *count += bad,
                Some(_) => {}
                none => *none = Some((rank, bad, at)),
            }
        }
        self.out.amax = self.out.amax.max(all.amax());
        self.out.nonfinite.is_none().then_some(all)
    }

    /// Elements that lie in one chunk of every case.
    fn piece(&mut self, first: u64, inputs: &[&[f32]], extremes: Extremes) {
        let (ranks, level) = (inputs.len(), self.level);
        self.exact.take(level, inputs, extremes);
        let scale = f64::from(self.scale.abs());
        let (low, high) = (scale * f64::from(extremes.amin()), scale * f64::from(extremes.amax()));
        let mut found: Vec<ErrorTally> = Vec::with_capacity(self.cases.len());
        let (mut contributed, mut lost) = (usize::MAX, 0);
        for (number, (case, relation)) in self.cases.iter().zip(&self.relations).enumerate() {
            let range = relation.limits.range(low, high);
            // In this range it is the same when sums are divided.
            if let Some(twin) = relation.twin
                && range == Range::Normal
                && self.relations[twin].limits.range(low, high) == range
            {
                found.push(found[twin]);
                continue;
            }
            let chunk = chunk_of(case, self.elements, ranks, first);
            let order = match &mut self.orders[number] {
                Some((known, order)) if *known == chunk => order,
                slot => &mut slot.insert((chunk, case.algorithm.order(ranks, chunk))).1,
            };
            if contributed != relation.contributes_as {
                contributed = relation.contributes_as;
                lost = self.adder.contribute_in(range, level, case, ranks, self.scale, inputs);
            }
            let computed = self.adder.mean(level, case, ranks, order, |rank| rank);
            found.push(ErrorTally { lost, ..ErrorTally::of_piece(level, computed, &self.exact, self.scale) });
        }
        self.out.cases.iter_mut().zip(&found).for_each(|(sum, tally)| sum.merge(tally));
    }
}

/// The chunk of element `index` of `elements`: chunks are equally long, but for the last.
pub(super) fn chunk_of(case: &Case, elements: u64, ranks: usize, index: u64) -> usize {
    (index / chunk_length(case, elements, ranks)) as usize
}

/// Length of a chunk.
pub(super) fn chunk_length(case: &Case, elements: u64, ranks: usize) -> u64 {
    elements.div_ceil(case.algorithm.chunks(ranks) as u64).max(1)
}

impl AccumulateTogether for ReduceAccumulator<'_> {
    fn observe(&mut self, first: u64, chunks: &[Chunk<'_>]) {
        let mut narrowed = std::mem::take(&mut self.narrowed);
        narrowed.resize(chunks.len(), Vec::new());
        for (chunk, narrow) in chunks.iter().zip(&mut narrowed) {
            if let Chunk::F64(values) = chunk {
                narrow.clear();
                narrow.extend(values.iter().map(|&x| x as f32));
            }
        }
        let inputs: Vec<&[f32]> = chunks
            .iter()
            .zip(&narrowed)
            .map(|(chunk, narrow)| match chunk {
                Chunk::F32(values) => *values,
                Chunk::F64(_) => narrow,
            })
            .collect();
        if self.relations.is_empty() {
            let relation = |number| Relation::of(self.cases, number, inputs.len());
            self.relations = (0..self.cases.len()).map(relation).collect();
        }
        let length = inputs.first().map_or(0, |values| values.len());
        let mut at = 0;
        while at < length {
            let index = first + at as u64;
            // A piece ends where any case's chunk does.
            let ends = self.cases.iter().map(|case| {
                let long = chunk_length(case, self.elements, inputs.len());
                (index / long + 1) * long - index
            });
            let room = ends.min().unwrap_or(u64::MAX).min(PIECE as u64) as usize;
            let end = length.min(at + room);
            let piece: Vec<&[f32]> = inputs.iter().map(|values| &values[at..end]).collect();
            if let Some(extremes) = self.check(index, &piece) {
                self.piece(index, &piece, extremes);
            }
            at = end;
        }
        if self.out.nonfinite.is_none() {
            self.out.sample.take(first, self.stride, &inputs);
        }
        self.narrowed = narrowed;
    }
}

impl Merge for ReduceAccumulator<'_> {
    type Out = std::result::Result<TensorReductions, (usize, Error)>;

    fn merge(&mut self, next: Self) {
        let Self { out, .. } = self;
        out.merge(&next.out);
        out.sample.append(next.out.sample);
        out.nonfinite = match (out.nonfinite, next.out.nonfinite) {
            (Some((rank, a, first)), Some((other, b, _))) if rank == other => Some((rank, a + b, first)),
            (one, other) => one.or(other),
        };
    }

    /// The error comes with the position of the rank that it is about.
    fn finish(self) -> Self::Out {
        match self.out.nonfinite {
            None => Ok(self.out),
            Some((rank, count, first)) => {
                let (elements, are) = if count == 1 { ("element", "is") } else { ("elements", "are") };
                let what = format!(
                    "{count} {elements} {are} NaN or Inf, first at index {first}: there is no mean to compare with"
                );
                Err((rank, Error::new(what)))
            }
        }
    }
}
