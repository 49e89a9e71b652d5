//! The blocks in a strip.

use super::BlockStats;
use super::strip::{Extremes, GROUP, GROUPS, Strip};
use crate::format::exponent_of;

/// The fraction bits of an f64.
const FRACTION: u64 = (1 << 52) - 1;

/// A block in a strip.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// Position in the tensor of its first element.
    pub(super) first: u64,
    /// Place in the strip of its first element.
    pub(super) start: usize,
    /// Elements.
    pub(super) len: usize,
}

/// Blocks one after the other, and what all casts of them need to know.
pub(super) struct Segments {
    list: Vec<Segment>,
    /// Groups from one to the next.
    groups: usize,
    /// Largest magnitude and Σ x² of each.
    amax: Vec<f32>,
    signal: [f64; GROUPS],
    ranges: Ranges,
}

/// Dynamic ranges of the blocks with nonzero elements.
#[derive(Default)]
struct Ranges {
    count: u64,
    max_log2: f64,
    sum_log2: f64,
}

impl Segments {
    /// None, of up to `stride` places each, a multiple of [`GROUP`].
    pub(super) fn new(stride: usize) -> Self {
        Self {
            list: Vec::new(),
            groups: stride / GROUP,
            amax: Vec::new(),
            signal: [0.0; GROUPS],
            ranges: Ranges::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    pub(super) fn push(&mut self, segment: Segment) {
        self.list.push(segment);
    }

    /// Makes these the runs of `length` elements that `elements` elements from position `first` on consist of.
    pub(super) fn cut(&mut self, first: u64, elements: usize, length: usize) {
        self.groups = length / GROUP;
        self.list.clear();
        let starts = (0..elements).step_by(length);
        let segment =
            |start| Segment { first: first + start as u64, start, len: length.min(elements - start) };
        self.list.extend(starts.map(segment));
    }

    /// Finds out what there is to know in a strip of finite elements.
    pub(super) fn survey(&mut self, strip: &Strip) {
        let Self { list, groups, amax, ranges, .. } = self;
        amax.clear();
        *ranges = Ranges::default();
        let (mut widest, mut exponents, mut above, mut below) = ((0.0, 1.0), 0, 1.0, 1.0);
        for blocks in strip.extremes().chunks(*groups).take(list.len()) {
            let mut extremes = Extremes::default();
            blocks.iter().for_each(|group| extremes.merge(group));
            // (Of elements that are not finite there is no use for it.)
            amax.push(extremes.amax().unwrap_or(f32::INFINITY));
            if let Some((largest, smallest)) = extremes.magnitudes() {
                ranges.count += 1;
                if largest * widest.1 > widest.0 * smallest {
                    widest = (largest, smallest);
                }
                // One logarithm serves all blocks: products of their significands stay below 2^32.
                exponents += exponent_of(largest) - exponent_of(smallest);
                above *= significand(largest);
                below *= significand(smallest);
            }
        }
        if ranges.count > 0 {
            ranges.max_log2 = libm::log2(widest.0 / widest.1);
            ranges.sum_log2 = f64::from(exponents) + libm::log2(above / below);
        }
        self.signal = self.sums(strip.signal());
    }

    /// By block, what groups have.
    fn sums(&self, groups: &[f64; GROUPS]) -> [f64; GROUPS] {
        if self.groups == 1 {
            return *groups;
        }
        let mut sums = [0.0; GROUPS];
        for (sum, groups) in sums.iter_mut().zip(groups.chunks(self.groups)) {
            *sum = groups.iter().sum();
        }
        sums
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.list.iter()
    }

    /// Groups from one block to the next.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// The largest magnitude of each block.
    pub(super) fn amax(&self) -> &[f32] {
        &self.amax
    }

    /// Adds the dynamic ranges of the blocks, and ranks them by their errors, of which `noise` has the squares by group.
    pub(super) fn add_to(&self, stats: &mut BlockStats, noise: &[f64; GROUPS]) {
        let Ranges { count, max_log2, sum_log2 } = self.ranges;
        stats.ranged += count;
        stats.range_max = stats.range_max.max(max_log2);
        stats.range_sum += sum_log2;
        let noise = self.sums(noise);
        let mut any = false;
        let least = stats.least_ranked();
        for (noise, signal) in noise.iter().zip(&self.signal) {
            any |= *noise > signal * least;
        }
        if any {
            for (segment, (&noise, &signal)) in self.list.iter().zip(noise.iter().zip(&self.signal)) {
                stats.rank_block(segment.first, noise, signal);
            }
        }
    }
}

fn significand(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & FRACTION | 1.0_f64.to_bits())
}
