//! The elements of a strip, cast many at a time: plain loops that compilers vectorise, for each [`Level`].
//!
//! One step a loop, over slices, so that no loop is unrolled to scalar code. Only for finite numbers under ordinary
//! scales; the definition serves the others.

use super::FormatStats;
use super::strip::{GROUPS, STRIP, Strip};
use crate::cast::block::{BlockPlan, BlockScale, Factor};
use crate::cast::fast::block_scales::Scales;
use crate::cast::fast::{self, Kernel, Level};
use crate::format::{FormatSpec, pow2};

const SIGN: u32 = 1 << 31;
const EXPONENT: u32 = 0xff << 23;

/// Casts f32 magnitudes to one element format, to nearest even.
#[derive(Clone, Copy)]
pub(super) struct Element {
    /// Added to the exponent of a number, it gives that of one whose last place weighs as much as the number's in the
    /// format: adding such a power of two rounds.
    up: u32,
    /// The same for subnormal numbers: the least power of two that is added.
    least: u32,
    min_normal: f32,
    max: f32,
}

impl Element {
    /// `None` if these loops do not serve the format.
    pub(super) fn new(format: &FormatSpec) -> Option<Self> {
        let dropped = 23 - format.trailing_bits() as i32;
        let least = format.emin() + dropped;
        // Powers of two and rounded magnitudes of up to 4 · max stay inside the range of f32.
        let fits = least > -100 && format.emin() > -100 && format.emax() + 3 + dropped < 128;
        let ordinary = format.signed && format.subnormals && format.precision > 1;
        let (min_normal, max) = (format.min_normal() as f32, format.max_finite() as f32);
        let least = (pow2(least.max(-126)) as f32).to_bits();
        (fits && ordinary).then_some(Self { up: (dropped as u32) << 23, least, min_normal, max })
    }

    /// A magnitude of up to 4 · max, rounded as if there were no largest number.
    #[inline(always)]
    fn round(&self, magnitude: f32) -> f32 {
        let power = f32::from_bits(((magnitude.to_bits() & EXPONENT) + self.up).max(self.least));
        (magnitude + power) - power
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
        scales.set(plan, scale).then_some(scales)
    }

    /// Those of blocks that take up so many groups each. Returns whether these loops serve all of them.
    pub(super) fn set_all(&mut self, plan: &BlockPlan, scales: &Scales, groups: usize) -> bool {
        // Padding behind the last block is zero whatever it is multiplied by, but not if it is divided by zero.
        let nothing = if scales.divide { 1.0 } else { 0.0 };
        let (mut by, mut unit, mut ordinary) = ([nothing; GROUPS], [0.0; GROUPS], true);
        let blocks = by.iter_mut().zip(&mut unit).zip(&scales.factors).zip(&scales.values);
        for (((by, unit), &factor), &value) in blocks {
            *unit = f64::from(value) * f64::from(scales.decode);
            // Where nothing comes back, whatever the codes are.
            *by = if *unit == 0.0 && !scales.divide { 0.0 } else { factor };
            ordinary &= by.is_finite() && unit.is_finite() && (*by > 0.0 || !scales.divide);
            *unit /= f64::from(plan.scale);
        }
        (self.times, self.over) = if scales.divide { ([1.0; GROUPS], by) } else { (by, [1.0; GROUPS]) };
        self.back = unit;
        if groups > 1 {
            spread(&mut self.back, groups);
            spread(if scales.divide { &mut self.over } else { &mut self.times }, groups);
        }
        ordinary
    }

    /// Sets the scale of all. Returns whether it is an ordinary one.
    fn set(&mut self, plan: &BlockPlan, scale: &BlockScale) -> bool {
        let (times, over) = match scale.factor {
            // Whatever the codes are, nothing comes back.
            _ if scale.unit == 0.0 => (0.0, 1.0),
            Factor::Times(factor) if factor.is_finite() => (factor, 1.0),
            Factor::Over(divisor) if divisor > 0.0 => (1.0, divisor),
            _ => return false,
        };
        (self.times, self.over) = ([times; GROUPS], [over; GROUPS]);
        self.back = [scale.back(plan); GROUPS];
        scale.unit.is_finite()
    }
}

/// Gives each run of `groups` groups what is said of it, one place for each.
fn spread<T: Copy>(of_blocks: &mut [T; GROUPS], groups: usize) {
    let blocks = *of_blocks;
    match groups {
        2 => of_blocks.as_chunks_mut().0.iter_mut().zip(blocks).for_each(|(all, one)| *all = [one; 2]),
        _ => of_blocks.chunks_mut(groups).zip(blocks).for_each(|(all, one)| all.fill(one)),
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
    /// Across, as in a strip: as all of these.
    rounded: [f32; STRIP],
    /// |x − x̂|, then that over |x|.
    errors: [f64; STRIP],
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
        let padding = (STRIP - strip.elements) as u64;
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
        errors.noise = found.noise.iter().sum();
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
        let Self { caster, strip, element, scale, scales } = self;
        let values = strip.across();
        let len = values.len();
        let Element { min_normal, max, .. } = *element;
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
            let in_reach = if magnitude > 4.0 * max { 4.0 * max } else { magnitude };
            let unlimited = element.round(in_reach);
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
        let mut noise = [0.0; GROUPS];
        for row in errors.chunks_exact(GROUPS) {
            for (error, noise) in row.iter().zip(&mut noise) {
                *noise += error * error;
            }
        }
        let mut max_rel = 0;
        for (error, inverse) in errors.iter_mut().zip(strip.inverses()) {
            *error *= inverse;
            max_rel = error.to_bits().max(max_rel);
        }
        let mut relative = [0.0; GROUPS];
        for row in errors.chunks_exact(GROUPS) {
            for (error, relative) in row.iter().zip(&mut relative) {
                *relative += error;
            }
        }
        let relative = relative.iter().sum();
        Found { noise, relative, max_abs, max_rel, becomes_zero, below_normal, overflow, clipped }
    }
}

/// Gives every element what its group has.
#[inline(always)]
fn expand<T: Copy>(groups: &[T; GROUPS], elements: &mut [T; STRIP]) {
    for row in elements.chunks_exact_mut(GROUPS) {
        row.copy_from_slice(groups);
    }
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
        let casts = self.strip.across().iter().zip(&self.caster.rounded).zip(&self.caster.back);
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
