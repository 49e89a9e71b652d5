//! The elements of a strip, cast many at a time: plain loops that compilers vectorise, for each [`Level`].
//!
//! One step a loop, over slices, so that no loop is unrolled to scalar code. Only for finite numbers under ordinary
//! scales; the definition serves the others.

use super::FormatStats;
use super::strip::{GROUP, GROUPS, STRIP, Strip, sum_groups};
use crate::cast::block::{BlockPlan, BlockScale, Factor};
use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{self, Kernel, Level};
use crate::format::FormatSpec;

const LANES: usize = 16;
const SIGN: u32 = 1 << 31;

/// Casts f32 magnitudes to one element format, to nearest even.
#[derive(Clone, Copy)]
pub(super) struct Element {
    nearest: Nearest,
    min_normal: f32,
    max: f32,
}

impl Element {
    /// `None` if these loops do not serve the format.
    pub(super) fn new(format: &FormatSpec) -> Option<Self> {
        let nearest = Nearest::new(format)?;
        // Far from the ends of f32, so that a magnitude rounded up stays finite.
        let fits = format.emin() > -100 && format.emax() < 100 && format.signed;
        let (min_normal, max) = (format.min_normal() as f32, format.max_finite() as f32);
        fits.then_some(Self { nearest, min_normal, max })
    }
}

/// The scale of each group of a strip.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct GroupScales {
    /// What elements are multiplied by, after the plan's scale.
    times: [f32; GROUPS],
    /// What they are then divided by.
    over: [f32; GROUPS],
    /// What an element's number is multiplied by to come back.
    back: [f64; GROUPS],
}

impl GroupScales {
    pub(super) const NONE: Self = Self { times: [0.0; GROUPS], over: [1.0; GROUPS], back: [0.0; GROUPS] };

    /// The same scale everywhere; `None` if the definition has to serve it.
    pub(super) fn one(plan: &BlockPlan, scale: &BlockScale) -> Option<Self> {
        let mut scales = Self::NONE;
        scales.set(0..GROUPS, plan, scale).then_some(scales)
    }

    /// Sets the scale of some groups. Returns whether it is an ordinary one.
    pub(super) fn set(&mut self, groups: std::ops::Range<usize>, plan: &BlockPlan, scale: &BlockScale) -> bool {
        let (times, over) = match scale.factor {
            // Whatever the codes are, nothing comes back.
            _ if scale.unit == 0.0 => (0.0, 1.0),
            Factor::Times(factor) if factor.is_finite() => (factor, 1.0),
            Factor::Over(divisor) if divisor > 0.0 => (1.0, divisor),
            _ => return false,
        };
        self.times[groups.clone()].fill(times);
        self.over[groups.clone()].fill(over);
        self.back[groups].fill(scale.back(plan));
        scale.unit.is_finite()
    }
}

/// What a cast makes of a strip.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    /// Of all its elements.
    pub(super) stats: FormatStats,
    /// By group: Σ (x − x̂)².
    pub(super) noise: [f64; GROUPS],
}

/// The casts of one strip after the other.
pub(super) struct Caster {
    level: Level,
    times: [f32; STRIP],
    over: [f32; STRIP],
    back: [f64; STRIP],
    rounded: [f32; STRIP],
    /// |x − x̂|, then its square.
    errors: [f64; STRIP],
    /// |x − x̂| / |x|.
    relative: [f64; STRIP],
}

impl Caster {
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            times: [0.0; STRIP],
            over: [1.0; STRIP],
            back: [0.0; STRIP],
            rounded: [0.0; STRIP],
            errors: [0.0; STRIP],
            relative: [0.0; STRIP],
        }
    }

    /// Casts a strip of finite elements. The largest relative error is told only if it is above `max_rel`.
    pub(super) fn cast(
        &mut self,
        strip: &Strip,
        element: &Element,
        scale: f32,
        scales: &GroupScales,
        max_rel: f64,
    ) -> Outcome {
        let divides = scales.over.iter().any(|over| *over != 1.0);
        let (level, caster) = (self.level, &mut *self);
        let found = if divides {
            fast::run(level, Cast::<true> { caster, strip, element, scale, scales })
        } else {
            fast::run(level, Cast::<false> { caster, strip, element, scale, scales })
        };
        let padding = (strip.values().len() - strip.elements) as u64;
        let (elements, zeros) = (strip.elements as u64, strip.zeros as u64);
        let [becomes_zero, below_normal, overflow] =
            [found.becomes_zero, found.below_normal, found.overflow].map(u64::from);
        let mut stats = FormatStats::default();
        stats.classes.zero = zeros;
        stats.classes.underflow = becomes_zero - padding - zeros;
        stats.classes.subnormal = below_normal - becomes_zero;
        stats.classes.overflow = overflow;
        stats.classes.normal = elements + padding - below_normal - overflow;
        stats.exceeds_max = found.clipped.into();
        let errors = &mut stats.errors;
        (errors.elements, errors.nonzero) = (elements, elements - zeros);
        errors.signal = strip.signal().iter().sum();
        errors.noise = found.noise[..strip.signal().len()].iter().sum();
        errors.relative = found.relative;
        errors.max_abs = f64::from_bits(found.max_abs);
        // What multiplication has rounded is less than the addition. No error to nearest exceeds 1, unless the product
        // with the plan's scale has left the range.
        let found_max_rel = f64::from_bits(found.max_rel);
        let beyond = max_rel < 1.0 || found_max_rel > 1.0 + 1e-15;
        if beyond && found_max_rel * (1.0 + 1e-12) > max_rel {
            errors.max_rel = fast::run(self.level, MaxRel { caster: self, strip });
        }
        Outcome { stats, noise: found.noise }
    }
}

/// Figures of one strip, over its padding too, which adds nothing but zeros.
struct Found {
    noise: [f64; GROUPS],
    relative: f64,
    max_abs: u64,
    max_rel: u64,
    becomes_zero: u32,
    below_normal: u32,
    overflow: u32,
    clipped: u32,
}

/// Casts every element, and adds up what becomes of them.
struct Cast<'a, const DIVIDES: bool> {
    caster: &'a mut Caster,
    strip: &'a Strip,
    element: &'a Element,
    scale: f32,
    scales: &'a GroupScales,
}

impl<const DIVIDES: bool> Kernel for Cast<'_, DIVIDES> {
    type Out = Found;

    #[inline(always)]
    fn run(self) -> Found {
        let Self { caster, strip, element: &Element { nearest, min_normal, max }, scale, scales } = self;
        let values = strip.values();
        let len = values.len();
        expand(&scales.times, &mut caster.times);
        expand(&scales.back, &mut caster.back);
        if DIVIDES {
            expand(&scales.over, &mut caster.over);
        }

        let rounded = &mut caster.rounded[..len];
        let (mut becomes_zero, mut below_normal, mut overflow, mut clipped) = (0_u32, 0_u32, 0_u32, 0_u32);
        for (((x, times), over), rounded) in
            values.iter().zip(&caster.times[..len]).zip(&caster.over[..len]).zip(&mut *rounded)
        {
            let product = (x * scale) * times;
            let scaled = if DIVIDES { product / over } else { product };
            let magnitude = f32::from_bits(scaled.to_bits() & !SIGN);
            let unlimited = nearest.round(magnitude.to_bits());
            let limited = if unlimited > max { max } else { unlimited };
            becomes_zero += u32::from(limited == 0.0);
            below_normal += u32::from(limited < min_normal);
            overflow += u32::from(unlimited > max);
            clipped += u32::from(magnitude > max);
            *rounded = limited;
        }
        let errors = &mut caster.errors[..len];
        let mut max_abs = 0;
        for (((x, rounded), back), error) in
            values.iter().zip(&*rounded).zip(&caster.back[..len]).zip(&mut *errors)
        {
            *error = (f64::from(x.abs()) - f64::from(*rounded) * back).abs();
            // Bits of numbers that are not negative are in their order.
            max_abs = error.to_bits().max(max_abs);
        }
        let relative = &mut caster.relative[..len];
        let mut max_rel = 0;
        for ((error, inverse), relative) in errors.iter_mut().zip(strip.inverses()).zip(&mut *relative) {
            *relative = *error * inverse;
            max_rel = relative.to_bits().max(max_rel);
            *error *= *error;
        }
        let mut noise = [0.0; GROUPS];
        sum_groups(errors, &mut noise);
        let relative = sum(relative);
        Found { noise, relative, max_abs, max_rel, becomes_zero, below_normal, overflow, clipped }
    }
}

/// Gives every element what its group has.
#[inline(always)]
fn expand<T: Copy>(groups: &[T; GROUPS], elements: &mut [T; STRIP]) {
    for (elements, group) in elements.as_chunks_mut::<GROUP>().0.iter_mut().zip(groups) {
        *elements = [*group; GROUP];
    }
}

/// Σ x, in an order that does not depend on the width of the processor's vectors.
#[inline(always)]
fn sum(terms: &[f64]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    for terms in terms.as_chunks::<LANES>().0 {
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += term;
        }
    }
    sums.iter().sum()
}

/// The largest relative error to the last bit: a quotient, not a product with a rounded inverse.
struct MaxRel<'a> {
    caster: &'a Caster,
    strip: &'a Strip,
}

impl Kernel for MaxRel<'_> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let casts = self.strip.values().iter().zip(&self.caster.rounded).zip(&self.caster.back);
        let mut largest = 0;
        for ((x, rounded), back) in casts {
            let x = f64::from(x.abs());
            let error = (x - f64::from(*rounded) * back).abs();
            let relative = if x == 0.0 { 0.0 } else { error / x };
            largest = relative.to_bits().max(largest);
        }
        f64::from_bits(largest)
    }
}
