//! Other numbers of ranks than were recorded: an estimate, from recorded ranks drawn again.

use super::accumulate::chunk_of;
use super::case::Case;
use super::exact::ExactSum;
use super::order::Token;
use super::sum::Adder;
use super::tally::ErrorTally;
use crate::cast::fast::Level;
use crate::cast::philox::{Place, random};
use crate::stats::Merge;

/// Most chunks of a tensor that are added in an order of their own: of more, neighbours share one. Ranks are drawn,
/// so that an order is as likely as any other.
const CHUNKS: usize = 64;

/// Some elements of a tensor, of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Elements of the whole tensor.
    pub elements: u64,
    /// Their indices, ascending.
    pub indices: Vec<u64>,
    /// For each rank their gradients.
    pub ranks: Vec<Vec<f32>>,
}

impl Sample {
    /// Takes the elements among those from `first` on whose index is a multiple of `stride`.
    pub(super) fn take(&mut self, first: u64, stride: u64, inputs: &[&[f32]]) {
        let length = inputs.first().map_or(0, |values| values.len()) as u64;
        if stride == 0 {
            return;
        }
        self.ranks.resize(inputs.len(), Vec::new());
        let start = first.next_multiple_of(stride);
        self.indices.extend((start..first + length).step_by(stride as usize));
        for (values, kept) in inputs.iter().zip(&mut self.ranks) {
            kept.extend(
                (start..first + length)
                    .step_by(stride as usize)
                    .map(|index| values[(index - first) as usize]),
            );
        }
    }

    /// Adds the elements that follow.
    pub(super) fn append(&mut self, next: Self) {
        self.indices.extend(next.indices);
        self.ranks.resize(self.ranks.len().max(next.ranks.len()), Vec::new());
        self.ranks.iter_mut().zip(next.ranks).for_each(|(kept, next)| kept.extend(next));
    }
}

/// The recorded rank that stands for rank number `rank`: itself, or one drawn by `seed`, each as likely.
pub fn drawn_rank(seed: u64, recorded: usize, rank: usize) -> usize {
    if rank < recorded {
        return rank;
    }
    let draw = random(seed, Place { stream: 0x77_6f72_6c64, index: rank as u64 });
    ((u64::from(draw) * recorded as u64) >> 32) as usize
}

/// Adds up the errors of each case among `ranks` ranks.
pub struct WorldAccumulator<'a> {
    cases: &'a [Case],
    ranks: usize,
    scale: f32,
    drawn: Vec<usize>,
    tallies: Vec<ErrorTally>,
}

impl<'a> WorldAccumulator<'a> {
    /// For `ranks` ranks drawn from `recorded` ones.
    pub fn new(cases: &'a [Case], ranks: usize, recorded: usize, scale: f32, seed: u64) -> Self {
        Self {
            cases,
            ranks,
            scale,
            drawn: (0..ranks).map(|rank| drawn_rank(seed, recorded, rank)).collect(),
            tallies: vec![ErrorTally::default(); cases.len()],
        }
    }

    /// Takes in the sample of a tensor.
    pub fn observe(&mut self, sample: &Sample) {
        let level = Level::best();
        let (mut adder, mut exact, mut mean) = (Adder::default(), ExactSum::default(), Vec::new());
        let mut times = vec![0_u64; sample.ranks.len()];
        self.drawn.iter().for_each(|&rank| times[rank] += 1);
        exact.clear(sample.indices.len());
        for (values, times) in sample.ranks.iter().zip(&times) {
            exact.add(level, *times as f64, values);
        }
        exact.mean(self.ranks, &mut mean);
        for (case, tally) in self.cases.iter().zip(&mut self.tallies) {
            let mut order: Option<(usize, Vec<Token>)> = None;
            let mut at = 0;
            while let Some(&index) = sample.indices.get(at) {
                let chunk_of = |index| {
                    let chunk = chunk_of(case, sample.elements, self.ranks, index);
                    chunk - chunk % case.algorithm.chunks(self.ranks).div_ceil(CHUNKS)
                };
                let chunk = chunk_of(index);
                let inside = |index: &u64| chunk_of(*index) == chunk;
                let end = at + sample.indices[at..].partition_point(inside).min(1 << 10);
                let inputs: Vec<&[f32]> = sample.ranks.iter().map(|values| &values[at..end]).collect();
                let order = match &mut order {
                    Some((known, order)) if *known == chunk => order,
                    slot => &mut slot.insert((chunk, case.algorithm.order(self.ranks, chunk))).1,
                };
                adder.contribute(level, case, self.ranks, self.scale, &inputs);
                let computed = adder.mean(level, case, self.ranks, order, |rank| self.drawn[rank]);
                tally.compare(level, computed, &mean[at..end], self.scale);
                at = end;
            }
        }
    }
}

impl Merge for WorldAccumulator<'_> {
    type Out = Vec<ErrorTally>;

    fn merge(&mut self, next: Self) {
        self.tallies.iter_mut().zip(&next.tallies).for_each(|(sum, tally)| sum.merge(tally));
    }

    fn finish(self) -> Vec<ErrorTally> {
        self.tallies
    }
}
