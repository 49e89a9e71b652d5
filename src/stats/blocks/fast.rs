//! The elements of one block, cast many at a time: plain loops that compilers vectorise, for each [`Level`].
//!
//! Only for blocks of finite numbers under an ordinary scale; the definition serves the others.

use super::FormatStats;
use crate::cast::block::{BlockPlan, BlockScale, Factor, passes_over_nan};
use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{self, Kernel, Level};
use crate::format::{BlockSpec, FormatSpec};

const LANES: usize = 8;
const SIGN: u32 = 1 << 31;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// The elements of one block, and what all casts need to know of them.
#[derive(Default)]
pub(super) struct Values {
    /// Padded with zeros to a multiple of [`LANES`].
    padded: Vec<f32>,
    /// 1/|x| of each, 0 of a zero.
    inverses: Vec<f64>,
    len: usize,
    zeros: u32,
    nan: bool,
    /// Bits of the largest magnitude that is not NaN, of the largest finite and the smallest nonzero one.
    largest: u32,
    largest_finite: u32,
    smallest: u32,
    /// Σ x² over finite elements.
    signal: f64,
}

impl Values {
    /// Takes in a block, given the parts of its rows.
    pub(super) fn load(&mut self, level: Level, rows: &mut dyn Iterator<Item = &[f32]>) {
        self.padded.clear();
        rows.for_each(|row| self.padded.extend_from_slice(row));
        self.len = self.padded.len();
        let whole = self.len.next_multiple_of(LANES);
        self.padded.resize(whole, 0.0);
        self.inverses.resize(whole, 0.0);
        fast::run(level, Survey(self));
        self.zeros -= (whole - self.len) as u32;
        self.nan = self.largest > INFINITY;
        if self.largest >= INFINITY {
            let magnitudes = || self.padded.iter().map(|x| x.to_bits() & !SIGN);
            self.largest = magnitudes().filter(|&bits| bits <= INFINITY).max().unwrap_or(0);
            self.largest_finite = magnitudes().filter(|&bits| bits < INFINITY).max().unwrap_or(0);
        }
    }

    /// The elements without padding.
    pub(super) fn elements(&self) -> &[f32] {
        &self.padded[..self.len]
    }

    /// The largest magnitude, as `cast::block::largest` has it.
    pub(super) fn largest(&self, spec: &BlockSpec) -> f32 {
        let nan = self.nan && !passes_over_nan(spec.recipe);
        if nan { f32::NAN } else { f32::from_bits(self.largest) }
    }

    /// log2 of the largest over the smallest nonzero finite magnitude; `None` without any.
    pub(super) fn range_log2(&self) -> Option<f64> {
        let magnitude = |bits| f64::from(f32::from_bits(bits));
        // A quotient of two f32 is well inside the range of f64.
        (self.largest_finite > 0)
            .then(|| libm::log2(magnitude(self.largest_finite) / magnitude(self.smallest)))
    }

    fn all_finite(&self) -> bool {
        !self.nan && self.largest < INFINITY
    }
}

/// Zeros, extremes, squares and inverses, as if every element were finite.
struct Survey<'a>(&'a mut Values);

impl Kernel for Survey<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let values = self.0;
        let mut zeros = [0_u32; LANES];
        let (mut highest, mut smallest) = ([0_u32; LANES], [u32::MAX; LANES]);
        let mut squares = [0.0_f64; LANES];
        let inverses = values.inverses.as_chunks_mut::<LANES>().0;
        for (xs, inverses) in values.padded.as_chunks::<LANES>().0.iter().zip(inverses) {
            for lane in 0..LANES {
                let magnitude = xs[lane].to_bits() & !SIGN;
                let x = f64::from(f32::from_bits(magnitude));
                zeros[lane] += u32::from(magnitude == 0);
                highest[lane] = highest[lane].max(magnitude);
                // Zero wraps around to the largest, so that it is never the smallest.
                smallest[lane] = smallest[lane].min(magnitude.wrapping_sub(1));
                squares[lane] += x * x;
                inverses[lane] = if magnitude == 0 { 0.0 } else { 1.0 / x };
            }
        }
        values.zeros = zeros.iter().sum();
        values.largest = highest.iter().copied().max().unwrap_or(0);
        values.largest_finite = values.largest;
        values.smallest = smallest.iter().copied().min().unwrap_or(u32::MAX).wrapping_add(1);
        values.signal = squares.iter().sum();
    }
}

/// Casts f32 magnitudes to one element format, to nearest even.
pub(super) struct Fast {
    nearest: Nearest,
    min_normal: f32,
    max: f32,
}

/// Figures of one block, over its padding too, which adds nothing but zeros.
#[derive(Default)]
struct Sums {
    noise: f64,
    relative: f64,
    max_abs: f64,
    max_rel: f64,
    becomes_zero: u32,
    below_normal: u32,
    overflow: u32,
    clipped: u32,
}

impl Fast {
    /// `None` if these loops do not serve the format.
    pub(super) fn new(format: &FormatSpec) -> Option<Self> {
        let nearest = Nearest::new(format)?;
        // Far from the ends of f32, so that a magnitude rounded up stays finite.
        let fits = format.emin() > -100 && format.emax() < 100 && format.signed;
        let (min_normal, max) = (format.min_normal() as f32, format.max_finite() as f32);
        fits.then_some(Self { nearest, min_normal, max })
    }

    /// What the cast does to the block; `None` if the definition has to say. The largest relative error is told only if
    /// it is above `max_rel`.
    pub(super) fn observe(
        &self,
        level: Level,
        values: &Values,
        plan: &BlockPlan,
        scale: &BlockScale,
        max_rel: f64,
    ) -> Option<FormatStats> {
        if !values.all_finite() || !scale.unit.is_finite() || scale.unit == 0.0 {
            return None;
        }
        let (times, over) = match scale.factor {
            Factor::Times(factor) if factor.is_finite() => (factor, 1.0),
            Factor::Over(divisor) if divisor > 0.0 => (1.0, divisor),
            _ => return None,
        };
        let sum = Sum { fast: self, values, scale: plan.scale, times, over, back: scale.back(plan) };
        let sums = fast::run(level, sum);
        let (elements, zeros) = (values.len as u64, u64::from(values.zeros));
        let padding = (values.padded.len() - values.len) as u64;
        let [becomes_zero, below_normal, overflow] =
            [sums.becomes_zero, sums.below_normal, sums.overflow].map(u64::from);
        let mut stats = FormatStats::default();
        stats.classes.zero = zeros;
        stats.classes.underflow = becomes_zero - padding - zeros;
        stats.classes.subnormal = below_normal - becomes_zero;
        stats.classes.overflow = overflow;
        stats.classes.normal = elements + padding - below_normal - overflow;
        stats.exceeds_max = sums.clipped.into();
        let errors = &mut stats.errors;
        (errors.elements, errors.nonzero) = (elements, elements - zeros);
        (errors.signal, errors.noise, errors.relative) = (values.signal, sums.noise, sums.relative);
        errors.max_abs = sums.max_abs;
        // What multiplication has rounded is less than the addition. No error to nearest exceeds 1, unless the product
        // with the plan's scale has left the range.
        let beyond = max_rel < 1.0 || sums.max_rel > 1.0 + 1e-15;
        if beyond && sums.max_rel * (1.0 + 1e-12) > max_rel {
            errors.max_rel = sum.max_rel();
        }
        Some(stats)
    }
}

/// Casts every element, and adds up what becomes of them.
#[derive(Clone, Copy)]
struct Sum<'a> {
    fast: &'a Fast,
    values: &'a Values,
    /// The plan's scale, the factor of the block, and what it is divided by: whichever it is not is 1.
    scale: f32,
    times: f32,
    over: f32,
    /// What an element's number is multiplied by to come back.
    back: f64,
}

impl Kernel for Sum<'_> {
    type Out = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        let Self { fast: Fast { nearest, min_normal, max }, values, scale, times, over, back } = self;
        let mut lanes = Lanes::default();
        let inverses = values.inverses.as_chunks::<LANES>().0;
        for (xs, inverses) in values.padded.as_chunks::<LANES>().0.iter().zip(inverses) {
            for lane in 0..LANES {
                let x = xs[lane];
                let magnitude = f32::from_bits(((x * scale) * times / over).to_bits() & !SIGN);
                let unlimited = nearest.round(magnitude.to_bits());
                let rounded = if unlimited > *max { *max } else { unlimited };
                lanes.becomes_zero[lane] += u32::from(rounded == 0.0);
                lanes.below_normal[lane] += u32::from(rounded < *min_normal);
                lanes.overflow[lane] += u32::from(unlimited > *max);
                lanes.clipped[lane] += u32::from(magnitude > *max);
                let error = (f64::from(x.abs()) - f64::from(rounded) * back).abs();
                let relative = error * inverses[lane];
                lanes.noise[lane] += error * error;
                lanes.relative[lane] += relative;
                lanes.max_abs[lane] = if error > lanes.max_abs[lane] { error } else { lanes.max_abs[lane] };
                lanes.max_rel[lane] =
                    if relative > lanes.max_rel[lane] { relative } else { lanes.max_rel[lane] };
            }
        }
        Sums {
            noise: lanes.noise.iter().sum(),
            relative: lanes.relative.iter().sum(),
            max_abs: lanes.max_abs.iter().fold(0.0, |m, x| x.max(m)),
            max_rel: lanes.max_rel.iter().fold(0.0, |m, x| x.max(m)),
            becomes_zero: lanes.becomes_zero.iter().sum(),
            below_normal: lanes.below_normal.iter().sum(),
            overflow: lanes.overflow.iter().sum(),
            clipped: lanes.clipped.iter().sum(),
        }
    }
}

impl Sum<'_> {
    /// The largest relative error to the last bit: a quotient, not a product with a rounded inverse.
    fn max_rel(&self) -> f64 {
        let Fast { nearest, max, .. } = self.fast;
        let errors = self.values.elements().iter().filter(|x| **x != 0.0).map(|&x| {
            let magnitude = ((x * self.scale) * self.times / self.over).to_bits() & !SIGN;
            let rounded = nearest.round(magnitude).min(*max);
            let x = f64::from(x.abs());
            (x - f64::from(rounded) * self.back).abs() / x
        });
        errors.fold(0.0, f64::max)
    }
}

#[derive(Default)]
struct Lanes {
    noise: [f64; LANES],
    relative: [f64; LANES],
    max_abs: [f64; LANES],
    max_rel: [f64; LANES],
    becomes_zero: [u32; LANES],
    below_normal: [u32; LANES],
    overflow: [u32; LANES],
    clipped: [u32; LANES],
}
