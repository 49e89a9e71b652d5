//! One histogram of f32 bit patterns that yields every figure of every narrow format.
//!
//! A cast is a step function of the bits. With up to five significand bits, every number of a format,
//! every midpoint and every limit has at most six: they lie on a grid. So elements between the same two
//! neighbours on the grid are cast to one and the same number. A bin keeps how many there are, and exact
//! integer sums of their distances to the nearer neighbour: from these follow all counts and all sums for
//! any number of formats and any power-of-two scale.

mod bin;
mod cast;
mod words;

use bin::Bin;
pub(super) use cast::BinCast;
use words::{Fill, Histogram, ON_GRID, WIDTH, ZEROS};

use super::block::{Block, HIDDEN, INFINITY, LANES};
use super::element::{FormatStats, SourceStats};
use crate::cast::fast::{self, Level};

/// Fraction bits below those of the grid.
const LOW_BITS: u32 = WIDTH.trailing_zeros();
/// First bin of normal numbers: subnormal ones are kept out, since their bins would span many binades.
const FIRST_NORMAL: usize = (HIDDEN >> LOW_BITS) as usize;
/// First bin whose elements are not finite, and the first after them.
const NOT_FINITE: usize = (INFINITY >> LOW_BITS) as usize;
const END: usize = 1 << (31 - LOW_BITS);

/// Histogram of f32 magnitudes.
pub(super) struct Bins {
    histogram: Histogram,
    /// Bits of the extremes over all finite elements, the smallest less one.
    largest: u32,
    smallest: u32,
    /// Σ x and Σ x² over all finite elements.
    sum: f64,
    signal: f64,
}

impl Bins {
    pub(super) fn new() -> Self {
        Self { histogram: Histogram::new(), largest: 0, smallest: u32::MAX, sum: 0.0, signal: 0.0 }
    }

    /// Adds a block. Subnormal elements must be accounted for elsewhere.
    pub(super) fn observe(&mut self, level: Level, block: &Block<'_>) {
        self.largest = self.largest.max(block.largest);
        self.smallest = self.smallest.min(block.smallest.wrapping_sub(1));
        self.sum += block.sum;
        self.signal += block.signal;
        fast::run(level, Fill { histogram: &mut self.histogram, block });
    }

    /// Adds the elements that follow.
    pub(super) fn merge(&mut self, next: &Self) {
        for place in next.places() {
            self.histogram.merge(place, &next.histogram);
        }
        self.largest = self.largest.max(next.largest);
        self.smallest = self.smallest.min(next.smallest);
        self.sum += next.sum;
        self.signal += next.signal;
    }

    /// Forgets all elements: in far less time than it takes to make new bins for a small tensor.
    pub(super) fn clear(&mut self) {
        for place in self.places() {
            self.histogram.clear(place);
        }
        (self.largest, self.smallest) = (0, u32::MAX);
        (self.sum, self.signal) = (0.0, 0.0);
    }

    /// All places where elements may have been added.
    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let bins = (0..FIRST_NORMAL).chain(self.normal()).chain(NOT_FINITE..END);
        bins.flat_map(|bin| [2 * bin, 2 * bin + 1, ON_GRID + bin]).chain(ZEROS..ZEROS + LANES)
    }

    /// The bins between the extremes: among them are all that hold normal elements, and for most tensors
    /// few others.
    fn normal(&self) -> std::ops::Range<usize> {
        let first = ((self.smallest.wrapping_add(1) >> LOW_BITS) as usize).max(FIRST_NORMAL);
        let last = (self.largest >> LOW_BITS) as usize;
        first..(last + 1).min(NOT_FINITE)
    }

    /// Number of elements, and of negative ones, in the bins that are not zero, normal or subnormal.
    fn special(&self) -> Special {
        let sum = |places: std::ops::Range<usize>| {
            let counts = places.map(|place| self.histogram.counts(place));
            counts.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
        };
        let zeros = sum(ZEROS..ZEROS + LANES).0;
        let infinities = sum(ON_GRID + NOT_FINITE..ON_GRID + NOT_FINITE + 1);
        let on_grid = sum(ON_GRID + NOT_FINITE + 1..ON_GRID + END).0;
        let nans = on_grid + sum(2 * NOT_FINITE..2 * END).0;
        Special { zeros, nans, infinities: infinities.0, negative_infinities: infinities.1 }
    }

    /// Adds what the bins say of the source to `source`, and of each cast to its statistics; of both except
    /// the subnormal elements.
    pub(super) fn add_to(&self, source: &mut SourceStats, casts: &mut [(&BinCast, &mut FormatStats)]) {
        let special = self.special();
        source.zero += special.zeros;
        source.nan += special.nans;
        source.positive_inf += special.infinities - special.negative_infinities;
        source.negative_inf += special.negative_infinities;
        source.elements += special.zeros + special.nans + special.infinities;
        source.sum += self.sum;
        source.sum_squares += self.signal;
        source.amax = source.amax.max(f32::from_bits(self.largest).into());
        if self.smallest < u32::MAX {
            source.amin = source.amin.min(f32::from_bits(self.smallest + 1).into());
        }
        for (_, stats) in &mut *casts {
            stats.classes.zero += special.zeros;
            stats.classes.nan += special.nans;
            stats.classes.inf += special.infinities;
            stats.errors.elements += special.zeros;
        }
        self.add_binades(source);
        if !casts.is_empty() {
            for bin in self.normal().filter_map(|number| Bin::new(number, &self.histogram)) {
                for (cast, stats) in &mut *casts {
                    cast.add(&bin, stats);
                }
            }
        }
    }

    fn add_binades(&self, source: &mut SourceStats) {
        let bins = self.normal();
        for field in bins.start / FIRST_NORMAL..bins.end.div_ceil(FIRST_NORMAL) {
            let (mut total, mut negative) = (0, 0);
            for bin in field * FIRST_NORMAL..(field + 1) * FIRST_NORMAL {
                for place in [2 * bin, 2 * bin + 1, ON_GRID + bin] {
                    let counts = self.histogram.counts(place);
                    total += counts.0;
                    negative += counts.1;
                }
            }
            let at_power = self.histogram.counts(ON_GRID + field * FIRST_NORMAL).0;
            source.elements += total;
            source.binades.add(field as i32 - 127, total - negative, negative, at_power);
        }
    }
}

struct Special {
    zeros: u64,
    nans: u64,
    infinities: u64,
    negative_infinities: u64,
}
