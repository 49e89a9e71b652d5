//! One histogram of f32 bit patterns that yields every figure of every narrow format.
//!
//! A cast is a step function of the bits. With up to five significand bits, every number of a format,
//! every midpoint and every limit has at most six: they lie on a grid. So elements between the same two
//! neighbours on the grid are cast to one and the same number. A bin keeps how many there are, and exact
//! integer sums of their distances to the nearer neighbour: from these follow all counts and all sums for
//! any number of formats and any power-of-two scale.

mod cast;
mod words;

pub(super) use cast::BinCast;
use words::{Extremes, Fill, Histogram, ON_GRID, Totals, WIDTH, ZEROS};

use super::block::{Block, HIDDEN, INFINITY, LANES};
use super::element::{FormatStats, SourceStats};
use crate::cast::fast::{self, Level};
use crate::format::pow2;

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
        let bins = next.normal().chain(NOT_FINITE..END);
        let places = bins.flat_map(|bin| [2 * bin, 2 * bin + 1, ON_GRID + bin]);
        for place in places.chain(ZEROS..ZEROS + LANES) {
            self.histogram.merge(place, &next.histogram);
        }
        self.largest = self.largest.max(next.largest);
        self.smallest = self.smallest.min(next.smallest);
        self.sum += next.sum;
        self.signal += next.signal;
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
            let mut sum = Totals::default();
            places.for_each(|place| sum.add(&self.histogram.totals(place)));
            (sum.count, sum.negative)
        };
        let zeros = sum(ZEROS..ZEROS + LANES).0;
        let infinities = sum(ON_GRID + NOT_FINITE..ON_GRID + NOT_FINITE + 1);
        let on_grid = sum(ON_GRID + NOT_FINITE + 1..ON_GRID + END).0;
        let nans = on_grid + sum(2 * NOT_FINITE..2 * END).0;
        Special { zeros, nans, infinities: infinities.0, negative_infinities: infinities.1 }
    }

    /// Adds what the bins say of the source to `source`, except the number of subnormal elements.
    pub(super) fn add_source(&self, source: &mut SourceStats) {
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
        for bin in self.occupied() {
            let halves = &bin.between;
            let total = bin.on_grid.count + halves[0].totals.count + halves[1].totals.count;
            let negative = bin.on_grid.negative + halves[0].totals.negative + halves[1].totals.negative;
            let exponent = (bin.number / FIRST_NORMAL) as i32 - 127;
            let at_power = if bin.number % FIRST_NORMAL == 0 { bin.on_grid.count } else { 0 };
            source.elements += total;
            source.binades.add(exponent, total - negative, negative, at_power);
        }
    }

    /// Adds what `cast` does to the elements in the bins to `stats`, except subnormal elements.
    pub(super) fn add_format(&self, cast: &BinCast, stats: &mut FormatStats) {
        let special = self.special();
        stats.classes.zero += special.zeros;
        stats.classes.nan += special.nans;
        stats.classes.inf += special.infinities;
        stats.errors.elements += special.zeros;
        for bin in self.occupied() {
            cast.add(&bin, stats);
        }
    }

    /// The occupied bins of normal elements.
    fn occupied(&self) -> impl Iterator<Item = Bin> {
        self.normal().filter_map(|number| Bin::new(number, &self.histogram))
    }
}

struct Special {
    zeros: u64,
    nans: u64,
    infinities: u64,
    negative_infinities: u64,
}

/// One bin: the elements on a grid point, and those between it and the next one.
struct Bin {
    number: usize,
    /// The elements at `base`, and those above it: nearer to `base`, and nearer to `base` + [`WIDTH`].
    on_grid: Totals,
    between: [Half; 2],
    /// Weight of the last significand bit, a power of two.
    unit: f64,
}

/// Elements on one side of a grid point, at most half a bin away.
struct Half {
    /// The grid point: an integer significand.
    point: i64,
    /// 1 for elements above the point, −1 for those below.
    side: i64,
    totals: Totals,
    extremes: Extremes,
}

impl Bin {
    /// `None` if the bin is empty.
    fn new(number: usize, histogram: &Histogram) -> Option<Self> {
        let places = [2 * number, 2 * number + 1];
        if histogram.is_empty(ON_GRID + number) && places.iter().all(|&place| histogram.is_empty(place)) {
            return None;
        }
        let base = i64::from((32 + (number & 31) as u32) * WIDTH);
        let half = |place: usize, point: i64, side: i64| Half {
            point,
            side,
            totals: histogram.totals(place),
            extremes: histogram.extremes[place],
        };
        let between = [half(places[0], base, 1), half(places[1], base + i64::from(WIDTH), -1)];
        let unit = pow2((number / FIRST_NORMAL) as i32 - 150);
        Some(Self { number, on_grid: histogram.totals(ON_GRID + number), between, unit })
    }

    /// The magnitude of the elements on the grid point.
    fn base(&self) -> f64 {
        self.between[0].point as f64 * self.unit
    }
}
