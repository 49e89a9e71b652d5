//! A few hundred elements in the first-level cache, with what all casts need to know of them.

use super::BlockStats;
use crate::cast::fast::{self, Kernel, Level};
use crate::format::exponent_of;

/// Elements of a strip.
pub(super) const STRIP: usize = 512;
/// Elements of which largest, smallest and squares are known on their own: the least that a block takes up.
pub(super) const GROUP: usize = 16;
pub(super) const GROUPS: usize = STRIP / GROUP;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = f32::INFINITY.to_bits();
/// Of an f64.
const FRACTION: u64 = (1 << 52) - 1;

/// A run of elements, or several blocks one after the other, each padded with zeros to the same stride.
pub(super) struct Strip {
    values: [f32; STRIP],
    /// What is in use, padding included: a multiple of [`GROUP`].
    len: usize,
    /// Elements without padding, and zeros among them.
    pub(super) elements: usize,
    pub(super) zeros: usize,
    /// 1/|x| of each, 0 of a zero.
    inverses: [f64; STRIP],
    /// By group: bits of the largest magnitude, and of the smallest nonzero one less one, `u32::MAX` without any.
    largest: [u32; GROUPS],
    smallest: [u32; GROUPS],
    /// By group: Σ x².
    signal: [f64; GROUPS],
}

impl Strip {
    pub(super) fn new() -> Self {
        Self {
            values: [0.0; STRIP],
            len: 0,
            elements: 0,
            zeros: 0,
            inverses: [0.0; STRIP],
            largest: [0; GROUPS],
            smallest: [0; GROUPS],
            signal: [0.0; GROUPS],
        }
    }

    /// Forgets all elements.
    pub(super) fn clear(&mut self) {
        (self.len, self.elements) = (0, 0);
    }

    /// Elements in use, padding included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Elements that still have room.
    pub(super) fn room(&self) -> usize {
        STRIP - self.len
    }

    /// Appends elements, of which there is room for all.
    pub(super) fn push(&mut self, values: &[f32]) {
        self.values[self.len..self.len + values.len()].copy_from_slice(values);
        self.len += values.len();
        self.elements += values.len();
    }

    /// Appends zeros up to the next multiple of `stride`.
    pub(super) fn pad(&mut self, stride: usize) {
        let end = self.len.next_multiple_of(stride);
        self.values[self.len..end].fill(0.0);
        self.len = end;
    }

    /// Finds out what there is to know, once all elements are there. Returns whether all are finite: else only
    /// [`values`](Self::values) mean anything.
    pub(super) fn survey(&mut self, level: Level) -> bool {
        self.pad(GROUP);
        fast::run(level, Survey(self));
        self.zeros -= self.len - self.elements;
        self.largest().iter().all(|&bits| bits < INFINITY)
    }

    /// The elements and their padding.
    pub(super) fn values(&self) -> &[f32] {
        &self.values[..self.len]
    }

    pub(super) fn inverses(&self) -> &[f64] {
        &self.inverses[..self.len]
    }

    pub(super) fn largest(&self) -> &[u32] {
        &self.largest[..self.len / GROUP]
    }

    /// Largest and smallest of the groups of a segment.
    fn extremes(&self, segment: &Segment) -> Extremes {
        let largest = self.largest[segment.groups()].iter().fold(0, |high, &bits| bits.max(high));
        let smallest = self.smallest[segment.groups()].iter().fold(u32::MAX, |low, &bits| bits.min(low));
        Extremes { largest, smallest }
    }

    pub(super) fn signal(&self) -> &[f64] {
        &self.signal[..self.len / GROUP]
    }
}

/// A block in a strip.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// Position in the tensor of its first element.
    pub(super) first: u64,
    /// Place in the strip of its first element, a multiple of [`GROUP`].
    pub(super) start: usize,
    /// Elements.
    pub(super) len: usize,
}

impl Segment {
    /// The blocks of `elements` elements that begin at position `first`.
    pub(super) fn runs(first: u64, elements: usize, run: usize) -> impl Iterator<Item = Self> {
        let segment = move |start| Self { first: first + start as u64, start, len: run.min(elements - start) };
        (0..elements).step_by(run).map(segment)
    }

    pub(super) fn groups(&self) -> std::ops::Range<usize> {
        self.start / GROUP..(self.start + self.len).div_ceil(GROUP)
    }
}

/// Bits of the largest magnitude, and of the smallest nonzero one less one.
pub(super) struct Extremes {
    largest: u32,
    smallest: u32,
}

impl Default for Extremes {
    fn default() -> Self {
        Self { largest: 0, smallest: u32::MAX }
    }
}

impl Extremes {
    pub(super) fn of(level: Level, values: &[f32]) -> Self {
        fast::run(level, FindExtremes(values))
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.largest = self.largest.max(other.largest);
        self.smallest = self.smallest.min(other.smallest);
    }

    /// The largest magnitude; `None` if some element is not finite.
    pub(super) fn amax(&self) -> Option<f32> {
        (self.largest < INFINITY).then(|| f32::from_bits(self.largest))
    }

    /// The largest over the smallest magnitude of finite elements, which is well inside the range of f64; `None` if all
    /// are zero.
    fn ratio(&self) -> Option<f64> {
        let magnitude = |bits| f64::from(f32::from_bits(bits));
        (self.largest > 0).then(|| magnitude(self.largest) / magnitude(self.smallest + 1))
    }

    /// log2 of that.
    pub(super) fn range_log2(&self) -> Option<f64> {
        self.ratio().map(libm::log2)
    }
}

/// Magnitudes of elements as if all were finite.
struct FindExtremes<'a>(&'a [f32]);

impl Kernel for FindExtremes<'_> {
    type Out = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        let (mut largest, mut smallest) = (0, u32::MAX);
        for x in self.0 {
            let magnitude = x.to_bits() & !SIGN;
            largest = magnitude.max(largest);
            // Zero wraps around to the largest, so that it is never the smallest.
            smallest = magnitude.wrapping_sub(1).min(smallest);
        }
        Extremes { largest, smallest }
    }
}

/// Dynamic ranges of the blocks of a strip.
#[derive(Default)]
pub(super) struct Ranges {
    /// Blocks that have one.
    count: u64,
    max_log2: f64,
    sum_log2: f64,
}

impl Ranges {
    /// Those of blocks of finite elements.
    pub(super) fn of(strip: &Strip, segments: &[Segment]) -> Self {
        let (mut count, mut largest, mut exponents, mut product) = (0, 1.0_f64, 0, 1.0_f64);
        for ratio in segments.iter().filter_map(|segment| strip.extremes(segment).ratio()) {
            count += 1;
            largest = largest.max(ratio);
            // One logarithm serves all: the significands' product stays below 2^32.
            exponents += exponent_of(ratio);
            product *= f64::from_bits(ratio.to_bits() & FRACTION | 1.0_f64.to_bits());
        }
        let sum_log2 = f64::from(exponents) + libm::log2(product);
        Self { count, max_log2: libm::log2(largest), sum_log2 }
    }

    pub(super) fn add_to(&self, stats: &mut BlockStats) {
        stats.ranged += self.count;
        stats.range_sum += self.sum_log2;
        if self.count > 0 {
            stats.range_max = stats.range_max.max(self.max_log2);
        }
    }
}

struct Survey<'a>(&'a mut Strip);

impl Kernel for Survey<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let strip = self.0;
        let values = &strip.values[..strip.len];
        let groups = values.as_chunks::<GROUP>().0;
        let mut zeros = 0_u32;
        for x in values {
            zeros += u32::from(*x == 0.0);
        }
        strip.zeros = zeros as usize;
        let extremes = strip.largest.iter_mut().zip(&mut strip.smallest);
        for (group, (largest, smallest)) in groups.iter().zip(extremes) {
            (*largest, *smallest) = (0, u32::MAX);
            for x in group {
                let magnitude = x.to_bits() & !SIGN;
                *largest = magnitude.max(*largest);
                // Zero wraps around to the largest, so that it is never the smallest.
                *smallest = magnitude.wrapping_sub(1).min(*smallest);
            }
        }
        for (inverse, x) in strip.inverses[..strip.len].iter_mut().zip(values) {
            let x = f64::from(x.abs());
            *inverse = if x == 0.0 { 0.0 } else { 1.0 / x };
        }
        let mut squares = [0.0; STRIP];
        for (square, x) in squares[..strip.len].iter_mut().zip(values) {
            let x = f64::from(*x);
            *square = x * x;
        }
        sum_groups(&squares[..strip.len], &mut strip.signal);
    }
}

/// The sum of each group, in an order that does not depend on the width of the processor's vectors.
#[inline(always)]
pub(super) fn sum_groups(terms: &[f64], sums: &mut [f64; GROUPS]) {
    let groups = terms.as_chunks::<GROUP>().0;
    for (group, sum) in groups.iter().zip(sums) {
        let mut eight = [0.0; 8];
        for (index, sum) in eight.iter_mut().enumerate() {
            *sum = group[index] + group[index + 8];
        }
        let mut four = [0.0; 4];
        for (index, sum) in four.iter_mut().enumerate() {
            *sum = eight[index] + eight[index + 4];
        }
        *sum = (four[0] + four[2]) + (four[1] + four[3]);
    }
}
