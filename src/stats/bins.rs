//! One histogram of f32 bit patterns that yields every figure of every narrow format.
//!
//! A cast is a step function of the bits. With up to five significand bits, every number of a format,
//! every midpoint and every limit has at most six; so elements that agree in sign, exponent and the first
//! five fraction bits, and all have some lower bit set, are cast to one and the same number. A bin keeps
//! how many there are, and exact integer sums of the low bits: from these follow all counts and all
//! sums of squares for any number of formats and any power-of-two scale.

use super::block::{Block, LOW_BITS};
use super::element::{FormatStats, SourceStats};
use crate::cast::round::Class;
use crate::cast::{CastPlan, Place, Rounding};
use crate::format::pow2;

/// Units of the last place in a bin.
const WIDTH: u32 = 1 << LOW_BITS;
const LOW_MASK: u32 = WIDTH - 1;
/// 8 exponent and 5 fraction bits.
const KEYS: usize = 1 << 13;
/// First key of a normal number: subnormal ones are kept out, since their bins would span many binades.
const FIRST_NORMAL: usize = 1 << 5;
/// First key whose elements are not finite.
const NOT_FINITE: usize = 255 << 5;
/// Elements that a [`Window`] can take in before its sums must be put away.
const WINDOW: u64 = 1 << 22;
const COUNT_SHIFT: u32 = 40;

/// What the elements of one key that have some low bit set add up to, over at most [`WINDOW`] elements. `d`
/// is the integer made of the low bits.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Window {
    /// Their number, above Σ d in the low [`COUNT_SHIFT`] bits: 2^22 elements of 18 bits fit.
    count_and_sum: u64,
    sum_squares: u64,
    /// Σ d / significand and Σ (width − d) / significand, the significand being the integer that |x| is in
    /// units of its last place. Both, so that no relative error is a difference of nearly equal sums.
    from_below: f64,
    from_above: f64,
}

/// The extremes of d in one key.
#[derive(Clone, Copy, Default)]
struct Extremes {
    largest: u32,
    /// `LOW_MASK` minus the smallest, so that 0 is the neutral start.
    smallest_complement: u32,
}

/// Everything that is known of the elements of one key that have some low bit set.
#[derive(Clone, Copy, Default)]
struct Between {
    count: u64,
    sum: u64,
    sum_squares: u128,
    from_below: f64,
    from_above: f64,
    extremes: Extremes,
}

/// Histogram of f32 magnitudes.
pub(super) struct Bins {
    /// Elements whose low bits are all zero, by key.
    exact: Box<[u64; KEYS]>,
    /// The others, since the last time they were put away.
    window: Box<[Window; KEYS]>,
    in_window: u64,
    /// The others before; empty until needed.
    settled: Vec<Between>,
    extremes: Box<[Extremes; KEYS]>,
    /// Elements by sign and exponent field.
    signs: Box<[u64; 512]>,
    zeros: u64,
    nans: u64,
    positive_infinities: u64,
    negative_infinities: u64,
    /// Bits of the extremes over all finite elements, and Σ x.
    largest: u32,
    smallest: u32,
    sum: f64,
    /// Σ x² over all finite elements.
    signal: f64,
}

/// A table of zeros, made on the heap.
fn table<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    let table = vec![T::default(); N].into_boxed_slice();
    table.try_into().unwrap_or_else(|_| Box::new([T::default(); N]))
}

impl Bins {
    pub(super) fn new() -> Self {
        Self {
            exact: table(),
            window: table(),
            in_window: 0,
            settled: Vec::new(),
            extremes: table(),
            signs: table(),
            zeros: 0,
            nans: 0,
            positive_infinities: 0,
            negative_infinities: 0,
            largest: 0,
            smallest: u32::MAX,
            sum: 0.0,
            signal: 0.0,
        }
    }

    /// Adds a block. Subnormal elements must be accounted for elsewhere.
    pub(super) fn observe(&mut self, block: &Block) {
        self.zeros += block.zeros;
        self.nans += block.nans;
        self.positive_infinities += block.infinities - block.negative_infinities;
        self.negative_infinities += block.negative_infinities;
        self.largest = self.largest.max(block.largest);
        self.smallest = self.smallest.min(block.smallest.wrapping_sub(1));
        self.sum += block.sum;
        self.signal += block.signal;
        let elements = block.values().len() as u64;
        if self.in_window + elements > WINDOW {
            self.settle();
        }
        self.in_window += elements;
        for (x, above_start, below_end) in block.with_distances() {
            let bits = x.to_bits();
            let key = (bits >> LOW_BITS) as usize % KEYS;
            let low = bits & LOW_MASK;
            self.signs[(bits >> 23) as usize] += 1;
            if low == 0 {
                self.exact[key] += 1;
                continue;
            }
            let bin = &mut self.window[key];
            bin.count_and_sum += 1 << COUNT_SHIFT | u64::from(low);
            bin.sum_squares += u64::from(low) * u64::from(low);
            bin.from_below += above_start;
            bin.from_above += below_end;
            // New extremes soon become rare, so that these branches cost less than storing each time.
            let extremes = &mut self.extremes[key];
            if low > extremes.largest {
                extremes.largest = low;
            }
            if LOW_MASK - low > extremes.smallest_complement {
                extremes.smallest_complement = LOW_MASK - low;
            }
        }
    }

    /// Puts the window's sums away, so that it can begin anew.
    fn settle(&mut self) {
        self.settled.resize(KEYS, Between::default());
        for (total, window) in self.settled.iter_mut().zip(&mut *self.window) {
            if window.count_and_sum > 0 {
                total.add(&window.totals());
                *window = Window::default();
            }
        }
        self.in_window = 0;
    }

    /// Adds the elements that follow.
    pub(super) fn merge(&mut self, mut next: Self) {
        self.settle();
        next.settle();
        for (total, other) in self.settled.iter_mut().zip(&next.settled) {
            total.add(other);
        }
        for (extremes, other) in self.extremes.iter_mut().zip(&*next.extremes) {
            extremes.largest = extremes.largest.max(other.largest);
            extremes.smallest_complement = extremes.smallest_complement.max(other.smallest_complement);
        }
        self.exact.iter_mut().zip(&*next.exact).for_each(|(sum, n)| *sum += n);
        self.signs.iter_mut().zip(&*next.signs).for_each(|(sum, n)| *sum += n);
        self.zeros += next.zeros;
        self.nans += next.nans;
        self.positive_infinities += next.positive_infinities;
        self.negative_infinities += next.negative_infinities;
        self.largest = self.largest.max(next.largest);
        self.smallest = self.smallest.min(next.smallest);
        self.sum += next.sum;
        self.signal += next.signal;
    }

    /// Adds what the bins say of the source to `source`, except the number of subnormal elements.
    pub(super) fn add_source(&self, source: &mut SourceStats) {
        source.zero += self.zeros;
        source.nan += self.nans;
        source.positive_inf += self.positive_infinities;
        source.negative_inf += self.negative_infinities;
        source.elements += self.zeros + self.nans + self.positive_infinities + self.negative_infinities;
        source.sum += self.sum;
        source.sum_squares += self.signal;
        source.amax = source.amax.max(f32::from_bits(self.largest).into());
        if self.smallest < u32::MAX {
            source.amin = source.amin.min(f32::from_bits(self.smallest + 1).into());
        }
        for field in 1..255 {
            let (positive, negative) = (self.signs[field], self.signs[256 + field]);
            let exponent = field as i32 - 127;
            source.elements += positive + negative;
            source.binades.add(exponent, positive, negative, self.exact[field << 5]);
        }
    }

    /// Adds what `cast` does to the elements in the bins to `stats`, except subnormal elements.
    pub(super) fn add_format(&self, cast: &BinCast, stats: &mut FormatStats) {
        stats.classes.zero += self.zeros;
        stats.classes.nan += self.nans;
        stats.classes.inf += self.positive_infinities + self.negative_infinities;
        stats.errors.elements += self.zeros;
        for bin in self.finite() {
            let [on, above] = cast.outcomes[bin.key];
            if bin.exact > 0 {
                on.count(stats, bin.exact);
                stats.errors.observe(bin.base * bin.unit, on.dequantised, bin.exact);
            }
            if bin.between.count > 0 {
                above.count(stats, bin.between.count);
                bin.add_errors(above.dequantised, stats);
            }
        }
    }

    /// The occupied bins of normal elements.
    fn finite(&self) -> impl Iterator<Item = Bin> {
        // Between these keys lie all elements, and for most tensors few others.
        let first = ((self.smallest.wrapping_add(1) >> LOW_BITS) as usize).max(FIRST_NORMAL);
        let last = (self.largest >> LOW_BITS) as usize;
        (first..(last + 1).min(NOT_FINITE)).filter_map(move |key| {
            let mut between = self.settled.get(key).copied().unwrap_or_default();
            between.add(&self.window[key].totals());
            between.extremes = self.extremes[key];
            let exact = self.exact[key];
            (exact > 0 || between.count > 0).then(|| Bin::new(key, exact, between))
        })
    }
}

impl Window {
    fn totals(&self) -> Between {
        Between {
            count: self.count_and_sum >> COUNT_SHIFT,
            sum: self.count_and_sum & ((1 << COUNT_SHIFT) - 1),
            sum_squares: self.sum_squares.into(),
            from_below: self.from_below,
            from_above: self.from_above,
            extremes: Extremes::default(),
        }
    }
}

/// One bin: its elements are `base` (the exact ones) or `base` + d, in units of `unit`.
struct Bin {
    key: usize,
    exact: u64,
    between: Between,
    /// The integer significand with all low bits zero.
    base: f64,
    /// Weight of the last significand bit, a power of two.
    unit: f64,
}

impl Bin {
    fn new(key: usize, exact: u64, between: Between) -> Self {
        let base = f64::from((32 + (key & 31) as u32) << LOW_BITS);
        Self { key, exact, between, base, unit: pow2((key >> 5) as i32 - 150) }
    }

    fn between_extremes(&self) -> (f64, f64) {
        let smallest = LOW_MASK - self.between.extremes.smallest_complement;
        (self.base + f64::from(smallest), self.base + f64::from(self.between.extremes.largest))
    }

    /// Adds the errors of the elements between, all of which come back as ±`dequantised`.
    fn add_errors(&self, dequantised: f64, stats: &mut FormatStats) {
        let errors = &mut stats.errors;
        let n = self.between.count;
        if !dequantised.is_finite() {
            errors.left_out += n;
            return;
        }
        // In units: the elements are base + d, their quantised value is q, and no element lies on the
        // other side of q than its neighbours in the bin.
        let q = dequantised.abs() / self.unit;
        let gap = self.base - q;
        let (smallest, largest) = self.between_extremes();
        let (first, last) = ((smallest - q).abs(), (largest - q).abs());
        errors.elements += n;
        errors.nonzero += n;
        errors.signal += self.between.sum_squares_about(-self.base) * self.unit * self.unit;
        errors.noise += self.between.sum_squares_about(-gap) * self.unit * self.unit;
        let (below, above) = (self.between.from_below, self.between.from_above);
        let reciprocals = (below + above) / f64::from(WIDTH);
        errors.relative += if gap >= 0.0 {
            gap * reciprocals + below
        } else {
            (-gap - f64::from(WIDTH)) * reciprocals + above
        };
        errors.max_abs = errors.max_abs.max(first.max(last) * self.unit);
        errors.max_rel = errors.max_rel.max((first / smallest).max(last / largest));
    }
}

impl Between {
    fn add(&mut self, next: &Self) {
        self.count += next.count;
        self.sum += next.sum;
        self.sum_squares += next.sum_squares;
        self.from_below += next.from_below;
        self.from_above += next.from_above;
    }

    /// Σ (d − centre)². In exact integers where the centre is one, since near a number of the format the
    /// terms cancel.
    fn sum_squares_about(&self, centre: f64) -> f64 {
        let c = centre as i64;
        let (n, sum) = (self.count, self.sum);
        if c as f64 != centre || c.unsigned_abs() >= 1 << 40 {
            let (n, sum) = (n as f64, sum as f64);
            return n * centre * centre - 2.0 * centre * sum + self.sum_squares as f64;
        }
        if n < 1 << 12 && c.unsigned_abs() < 1 << 25 {
            // Most bins of most tensors: here no term reaches 2^63.
            return (n as i64 * c * c - 2 * c * sum as i64 + self.sum_squares as i64) as f64;
        }
        let (n, c, sum) = (i128::from(n), i128::from(c), i128::from(sum));
        (n * c * c - 2 * c * sum + self.sum_squares as i128) as f64
    }
}

/// What a cast makes of each bin, tabulated once a run.
pub(super) struct BinCast {
    /// By key: of the elements with no low bit set, and of those with some.
    outcomes: Vec<[Outcome; 2]>,
}

#[derive(Clone, Copy)]
struct Outcome {
    class: Class,
    exceeds_max: bool,
    /// Magnitude that comes back.
    dequantised: f64,
}

impl Outcome {
    fn of(plan: &CastPlan, x: f32) -> Self {
        let q = plan.cast_f32(x, Place::default());
        let exceeds_max = f64::from(x * plan.scale) > plan.target.max_finite();
        Self { class: q.class, exceeds_max, dequantised: plan.dequantise(q) }
    }

    fn count(&self, stats: &mut FormatStats, n: u64) {
        stats.classes.add(self.class, n);
        if self.exceeds_max {
            stats.exceeds_max += n;
        }
    }
}

impl BinCast {
    /// `None` if bins do not determine the outcome of this cast.
    pub(super) fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        let stochastic = matches!(plan.rounding, Rounding::Stochastic { .. });
        let determined = plan.rounding.is_symmetric() && !stochastic && !plan.flush_subnormal_inputs;
        let shift = plan.scale_log2()?;
        // Where the scale makes products smaller, those that f32 would round must not reach a midpoint, the
        // finest of which is half the smallest number.
        let finest = format.emin() - format.trailing_bits() as i32 - 1;
        let exact = shift >= 0 || finest >= -126;
        if format.trailing_bits() > 4 || !format.signed || !format.subnormals || !determined || !exact {
            return None;
        }
        let outcomes = (0..NOT_FINITE as u32).map(|key| {
            let base = key << LOW_BITS;
            [base, base | 1].map(|bits| Outcome::of(plan, f32::from_bits(bits)))
        });
        Some(Self { outcomes: outcomes.collect() })
    }
}
