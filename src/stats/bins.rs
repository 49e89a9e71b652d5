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
/// Keys per sign: 8 exponent and 5 fraction bits.
const KEYS: usize = 1 << 13;
/// First key whose elements are not finite.
const NOT_FINITE: usize = 255 << 5;

/// The elements of one key that have some low bit set. `d` is the integer made of the low bits.
#[derive(Clone, Copy, Default)]
struct Between {
    count: u64,
    sum: u64,
    sum_squares: u128,
    /// Σ d / significand and Σ (width − d) / significand, the significand being the integer that |x| is in
    /// units of its last place. Both, so that no relative error is a difference of nearly equal sums.
    from_below: f64,
    from_above: f64,
    largest: u32,
    /// `LOW_MASK` minus the smallest d, so that 0 is the neutral start.
    smallest_complement: u32,
}

/// Histogram of f32 elements.
pub(super) struct Bins {
    /// Elements whose low bits are all zero, by sign and key.
    exact: Vec<u64>,
    /// The others.
    between: Vec<Between>,
}

impl Bins {
    pub(super) fn new() -> Self {
        Self { exact: vec![0; 2 * KEYS], between: vec![Between::default(); 2 * KEYS] }
    }

    /// Adds a block. Returns the number of tiny elements, which the caller must account for.
    pub(super) fn observe(&mut self, block: &Block) -> u64 {
        let tiny_before = self.tiny();
        for (x, above_start, below_end) in block.with_distances() {
            let bits = x.to_bits();
            let key = (bits >> LOW_BITS) as usize;
            let low = bits & LOW_MASK;
            if low == 0 {
                self.exact[key] += 1;
                continue;
            }
            let bin = &mut self.between[key];
            bin.count += 1;
            bin.sum += u64::from(low);
            bin.sum_squares += u128::from(u64::from(low) * u64::from(low));
            bin.from_below += above_start;
            bin.from_above += below_end;
            // New extremes soon become rare, so that these branches cost less than storing each time.
            if low > bin.largest {
                bin.largest = low;
            }
            if LOW_MASK - low > bin.smallest_complement {
                bin.smallest_complement = LOW_MASK - low;
            }
        }
        self.tiny() - tiny_before
    }

    fn tiny(&self) -> u64 {
        self.between[0].count + self.between[KEYS].count
    }

    pub(super) fn merge(&mut self, next: &Self) {
        for (bin, other) in self.exact.iter_mut().zip(&next.exact) {
            *bin += other;
        }
        for (bin, other) in self.between.iter_mut().zip(&next.between).filter(|(_, other)| other.count > 0) {
            bin.count += other.count;
            bin.sum += other.sum;
            bin.sum_squares += other.sum_squares;
            bin.from_below += other.from_below;
            bin.from_above += other.from_above;
            bin.largest = bin.largest.max(other.largest);
            bin.smallest_complement = bin.smallest_complement.max(other.smallest_complement);
        }
    }

    /// Adds what the bins say of the source to `source`, except tiny elements.
    pub(super) fn add_source(&self, source: &mut SourceStats) {
        for negative in [false, true] {
            let offset = if negative { KEYS } else { 0 };
            let (zero, infinite) = (self.exact[offset], self.exact[offset + NOT_FINITE]);
            let not_finite = offset + NOT_FINITE..offset + KEYS;
            let nan = self.exact[not_finite.clone()].iter().sum::<u64>() - infinite
                + self.between[not_finite].iter().map(|bin| bin.count).sum::<u64>();
            source.elements += zero + infinite + nan;
            source.zero += zero;
            source.nan += nan;
            *(if negative { &mut source.negative_inf } else { &mut source.positive_inf }) += infinite;
        }
        for bin in self.finite() {
            let base = bin.base * bin.unit;
            let exponent = crate::format::exponent_of(base);
            source.elements += bin.exact + bin.between.count;
            source.binades.add(exponent, bin.negative, base == pow2(exponent), bin.exact);
            source.binades.add(exponent, bin.negative, false, bin.between.count);
            let (smallest, largest) = bin.extremes();
            source.amax = source.amax.max(largest * bin.unit);
            source.amin = source.amin.min(smallest * bin.unit);
            let sum = ((bin.exact + bin.between.count) as f64 * bin.base + bin.between.sum as f64) * bin.unit;
            source.sum += if bin.negative { -sum } else { sum };
            source.sum_squares += bin.signal();
        }
    }

    /// Adds what `cast` does to the elements in the bins to `stats`, except tiny elements.
    pub(super) fn add_format(&self, cast: &BinCast, stats: &mut FormatStats) {
        let classes = &mut stats.classes;
        for offset in [0, KEYS] {
            let infinite = self.exact[offset + NOT_FINITE];
            let not_finite = offset + NOT_FINITE..offset + KEYS;
            classes.zero += self.exact[offset];
            classes.inf += infinite;
            classes.nan += self.exact[not_finite.clone()].iter().sum::<u64>() - infinite
                + self.between[not_finite].iter().map(|bin| bin.count).sum::<u64>();
            stats.errors.elements += self.exact[offset];
        }
        for bin in self.finite() {
            let [on, above] = cast.outcomes[bin.key];
            if bin.exact > 0 {
                let x = bin.base * bin.unit;
                on.count(stats, bin.exact);
                stats.errors.observe(x, on.dequantised, bin.exact);
            }
            if bin.between.count > 0 {
                above.count(stats, bin.between.count);
                bin.add_errors(above.dequantised, stats);
            }
        }
    }

    /// The occupied bins of finite elements that are neither zero nor tiny.
    fn finite(&self) -> impl Iterator<Item = Bin<'_>> {
        let signs = [(false, 0), (true, KEYS)];
        signs.into_iter().flat_map(move |(negative, offset)| {
            (1..NOT_FINITE).filter_map(move |key| {
                let (exact, between) = (self.exact[offset + key], &self.between[offset + key]);
                (exact > 0 || between.count > 0).then(|| Bin::new(key, negative, exact, between))
            })
        })
    }
}

/// One bin: its elements are `base` (the exact ones) or `base` + d, in units of `unit`.
struct Bin<'a> {
    key: usize,
    negative: bool,
    exact: u64,
    between: &'a Between,
    /// The integer significand with all low bits zero.
    base: f64,
    /// Weight of the last significand bit, a power of two.
    unit: f64,
}

impl<'a> Bin<'a> {
    fn new(key: usize, negative: bool, exact: u64, between: &'a Between) -> Self {
        let field = (key >> 5) as i32;
        let fraction = (key & 31) as u32;
        let implicit = if field > 0 { 32 } else { 0 };
        let base = f64::from((implicit + fraction) << LOW_BITS);
        Self { key, negative, exact, between, base, unit: pow2(field.max(1) - 150) }
    }

    /// Smallest and largest magnitude, in units.
    fn extremes(&self) -> (f64, f64) {
        let (smallest, largest) = self.between_extremes();
        match (self.exact, self.between.count) {
            (_, 0) => (self.base, self.base),
            (0, _) => (smallest, largest),
            _ => (self.base, largest),
        }
    }

    fn between_extremes(&self) -> (f64, f64) {
        let smallest = LOW_MASK - self.between.smallest_complement;
        (self.base + f64::from(smallest), self.base + f64::from(self.between.largest))
    }

    /// Σ x².
    fn signal(&self) -> f64 {
        (self.exact as f64 * (self.base * self.base) + self.between.sum_squares_about(-self.base))
            * self.unit
            * self.unit
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
    /// Σ (d − centre)². In exact integers where the centre is one, since near a number of the format the
    /// terms cancel.
    fn sum_squares_about(&self, centre: f64) -> f64 {
        const EXACT: f64 = (1_u64 << 40) as f64;
        if centre.abs() < EXACT && centre == centre.trunc() {
            let c = i128::from(centre as i64);
            let (n, sum) = (i128::from(self.count), i128::from(self.sum));
            (n * c * c - 2 * c * sum + self.sum_squares as i128) as f64
        } else {
            let (n, sum) = (self.count as f64, self.sum as f64);
            n * centre * centre - 2.0 * centre * sum + self.sum_squares as f64
        }
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
        // The finest midpoint is half the smallest number. Seen from x it must lie on the grid of the
        // bins, which is 2^-131 below the normal numbers, and a product must reach it unrounded.
        let finest = format.emin() - format.trailing_bits() as i32 - 1;
        let on_grid = finest - shift >= -131 && (shift >= 0 || finest >= -126);
        if format.trailing_bits() > 4 || !format.signed || !format.subnormals || !determined || !on_grid {
            return None;
        }
        let outcomes = (0..NOT_FINITE as u32).map(|key| {
            let base = key << LOW_BITS;
            [base, base | 1].map(|bits| Outcome::of(plan, f32::from_bits(bits)))
        });
        Some(Self { outcomes: outcomes.collect() })
    }
}
