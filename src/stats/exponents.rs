//! The stored values alone, where no cast is asked for: a histogram of signs and exponents.

use super::block::{BLOCK, Block, FRACTION, INFINITY};
use super::element::SourceStats;
use crate::cast::fast::{self, Kernel, Level};

/// Signs and exponents, and whether the fraction is zero.
const PLACES: usize = 1 << 10;
const FRACTION_BITS: u32 = FRACTION.count_ones();
const SIGN: usize = 1 << 8;
/// Set in the place of numbers whose fraction is zero.
const POWER: usize = 1 << 9;
/// The exponent field of what is not finite.
const NOT_FINITE: usize = (INFINITY >> FRACTION_BITS) as usize;
/// Copies of the histogram: additions to one and the same place wait for each other.
const COPIES: usize = 4;

/// What is known of f32 elements that were observed.
pub(super) struct Exponents {
    recent: Box<[[u32; PLACES]; COPIES]>,
    /// Elements in `recent`, which must stay below 2^32.
    count: u64,
    settled: Box<[u64; PLACES]>,
    /// Bits of the extremes over all finite elements, the smallest less one.
    largest: u32,
    smallest: u32,
    /// Σ x and Σ x² over finite elements.
    sum: f64,
    sum_squares: f64,
}

impl Exponents {
    pub(super) fn new() -> Self {
        Self {
            recent: Box::new([[0; PLACES]; COPIES]),
            count: 0,
            settled: Box::new([0; PLACES]),
            largest: 0,
            smallest: u32::MAX,
            sum: 0.0,
            sum_squares: 0.0,
        }
    }

    /// Adds a block. Subnormal elements must be accounted for elsewhere.
    pub(super) fn observe(&mut self, level: Level, block: &Block<'_>) {
        self.largest = self.largest.max(block.largest);
        self.smallest = self.smallest.min(block.smallest.wrapping_sub(1));
        self.sum += block.sum;
        self.sum_squares += block.signal;
        fast::run(level, Fill { recent: &mut self.recent, values: block.values() });
        self.count += BLOCK as u64;
        if self.count >= 1 << 31 {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for recent in &mut *self.recent {
            for (settled, recent) in self.settled.iter_mut().zip(recent) {
                *settled += u64::from(std::mem::take(recent));
            }
        }
        self.count = 0;
    }

    /// Adds the elements that follow.
    pub(super) fn merge(&mut self, mut next: Self) {
        next.settle();
        for (settled, next) in self.settled.iter_mut().zip(&*next.settled) {
            *settled += next;
        }
        self.largest = self.largest.max(next.largest);
        self.smallest = self.smallest.min(next.smallest);
        self.sum += next.sum;
        self.sum_squares += next.sum_squares;
    }

    /// Adds all but the subnormal elements to `source`.
    pub(super) fn add_to(mut self, source: &mut SourceStats) {
        self.settle();
        let counts = &self.settled;
        let fractions = |exponent: usize| counts[exponent] + counts[exponent | SIGN];
        source.nan += fractions(NOT_FINITE);
        source.positive_inf += counts[POWER | NOT_FINITE];
        source.negative_inf += counts[POWER | NOT_FINITE | SIGN];
        source.zero += counts[POWER] + counts[POWER | SIGN];
        source.elements +=
            fractions(NOT_FINITE) + [NOT_FINITE, 0].map(|place| fractions(POWER | place)).iter().sum::<u64>();
        for exponent in 1..NOT_FINITE {
            let powers = fractions(POWER | exponent);
            let negative = counts[exponent | SIGN] + counts[POWER | exponent | SIGN];
            let total = fractions(exponent) + powers;
            source.elements += total;
            source.binades.add(exponent as i32 - 127, total - negative, negative, powers);
        }
        source.sum += self.sum;
        source.sum_squares += self.sum_squares;
        source.amax = source.amax.max(f32::from_bits(self.largest).into());
        if self.smallest < u32::MAX {
            source.amin = source.amin.min(f32::from_bits(self.smallest + 1).into());
        }
    }
}

struct Fill<'a> {
    recent: &'a mut [[u32; PLACES]; COPIES],
    values: &'a [f32],
}

impl Kernel for Fill<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { recent, values } = self;
        let mut places = [0_u16; BLOCK];
        for (place, x) in places.iter_mut().zip(values) {
            let bits = x.to_bits();
            let power = if bits & FRACTION == 0 { POWER as u32 } else { 0 };
            *place = (bits >> FRACTION_BITS | power) as u16;
        }
        let mut add = |copy: usize, place: u16| recent[copy][usize::from(place) % PLACES] += 1;
        let (fours, rest) = places[..values.len()].as_chunks::<COPIES>();
        for four in fours {
            (0..COPIES).for_each(|copy| add(copy, four[copy]));
        }
        rest.iter().for_each(|&place| add(0, place));
    }
}
