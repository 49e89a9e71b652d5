//! The elements of one block, cast many at a time: plain loops that compilers vectorise.
//!
//! Only for blocks of finite numbers under an ordinary scale; the definition serves the others.

use super::FormatStats;
use crate::cast::block::{BlockPlan, BlockScale, Factor, passes_over_nan};
use crate::cast::fast::nearest::Nearest;
use crate::format::{BlockSpec, FormatSpec};

const LANES: usize = 4;
const SIGN: u32 = 1 << 31;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// The elements of one block, and what all casts need to know of them.
#[derive(Default)]
pub(super) struct Values {
    /// Padded with zeros to a multiple of [`LANES`].
    padded: Vec<f32>,
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
    pub(super) fn load(&mut self, rows: &mut dyn Iterator<Item = &[f32]>) {
        self.padded.clear();
        rows.for_each(|row| self.padded.extend_from_slice(row));
        self.len = self.padded.len();
        let whole = self.len.next_multiple_of(LANES);
        self.padded.resize(whole, 0.0);
        let mut zeros = [0_u32; LANES];
        let (mut highest, mut smallest) = ([0_u32; LANES], [u32::MAX; LANES]);
        let mut squares = [0.0_f64; LANES];
        for xs in self.padded.as_chunks::<LANES>().0 {
            for lane in 0..LANES {
                let magnitude = xs[lane].to_bits() & !SIGN;
                let x = f64::from(f32::from_bits(magnitude));
                zeros[lane] += u32::from(magnitude == 0);
                highest[lane] = highest[lane].max(magnitude);
                // Zero wraps around to the largest, so that it is never the smallest.
                smallest[lane] = smallest[lane].min(magnitude.wrapping_sub(1));
                squares[lane] += x * x;
            }
        }
        self.zeros = zeros.iter().sum::<u32>() - (whole - self.len) as u32;
        self.largest = highest.iter().copied().max().unwrap_or(0);
        self.largest_finite = self.largest;
        self.smallest = smallest.iter().copied().min().unwrap_or(u32::MAX).wrapping_add(1);
        self.signal = squares.iter().sum();
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
        (self.largest_finite > 0)
            .then(|| libm::log2(magnitude(self.largest_finite)) - libm::log2(magnitude(self.smallest)))
    }

    fn all_finite(&self) -> bool {
        !self.nan && self.largest < INFINITY
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

    /// What the cast does to the block; `None` if the definition has to say.
    pub(super) fn observe(
        &self,
        values: &Values,
        plan: &BlockPlan,
        scale: &BlockScale,
    ) -> Option<FormatStats> {
        if !values.all_finite() || !scale.unit.is_finite() || scale.unit == 0.0 {
            return None;
        }
        let back = scale.back(plan);
        let sums = match scale.factor {
            Factor::Times(factor) if factor.is_finite() => {
                self.sum(values, back, |x| (x * plan.scale) * factor)
            }
            Factor::Over(divisor) if divisor > 0.0 => self.sum(values, back, |x| (x * plan.scale) / divisor),
            _ => return None,
        };
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
        (errors.max_abs, errors.max_rel) = (sums.max_abs, sums.max_rel);
        Some(stats)
    }

    #[inline(always)]
    fn sum(&self, values: &Values, back: f64, scaled: impl Fn(f32) -> f32) -> Sums {
        let mut lanes = Lanes::default();
        for xs in values.padded.as_chunks::<LANES>().0 {
            for (lane, &x) in xs.iter().enumerate() {
                let magnitude = f32::from_bits(scaled(x).to_bits() & !SIGN);
                let unlimited = self.nearest.round(magnitude.to_bits());
                let rounded = if unlimited > self.max { self.max } else { unlimited };
                lanes.becomes_zero[lane] += u32::from(rounded == 0.0);
                lanes.below_normal[lane] += u32::from(rounded < self.min_normal);
                lanes.overflow[lane] += u32::from(unlimited > self.max);
                lanes.clipped[lane] += u32::from(magnitude > self.max);
                let x = f64::from(x.abs());
                let error = (x - f64::from(rounded) * back).abs();
                // The error of a zero is zero: any divisor will do.
                let relative = error / if x > 0.0 { x } else { 1.0 };
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
