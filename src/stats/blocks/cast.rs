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

/// The casts of one strip after the other. All arrays are across, as a strip's are.
pub(super) struct Caster {
    level: Level,
    times: [f32; STRIP],
    over: [f32; STRIP],
    back: [f64; STRIP],
    rounded: [f32; STRIP],
    /// |x − x̂|.
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
        let counts = self.round(strip, element, scale, scales);
        let found = fast::run(self.level, Errors { caster: self, strip, scales });
        let padding = (STRIP - strip.elements) as u64;
        let (elements, zeros) = (strip.elements as u64, strip.zeros as u64);
        let [becomes_zero, below_normal, overflow] =
            [counts.becomes_zero, counts.below_normal, counts.overflow].map(u64::from);
        let mut stats = FormatStats::default();
        stats.classes.zero = zeros;
        stats.classes.underflow = becomes_zero - padding - zeros;
        stats.classes.subnormal = below_normal - becomes_zero;
        stats.classes.overflow = overflow;
        stats.classes.normal = elements + padding - below_normal - overflow;
        stats.exceeds_max = counts.clipped.into();
        let errors = &mut stats.errors;
        (errors.elements, errors.nonzero) = (elements, elements - zeros);
        errors.signal = strip.total_signal;
        errors.noise = total(&found.noise);
        errors.relative = total(&found.relative);
        errors.max_abs = f64::from_bits(found.max_abs);
        // What multiplication has rounded is less than the addition. No error to nearest exceeds 1, unless the product
        // with the plan's scale has left the range.
        let found_max_rel = f64::from_bits(found.max_rel);
        let beyond = max_rel < 1.0 || found_max_rel > 1.0 + 1e-15;
        if beyond && found_max_rel * (1.0 + 1e-12) > max_rel {
            errors.max_rel = fast::run(self.level, MaxRel { errors: &self.errors, strip });
        }
        Outcome { stats, noise: found.noise }
    }

    /// The numbers that elements become, before they come back.
    fn round(&mut self, strip: &Strip, element: &Element, scale: f32, scales: &GroupScales) -> Counts {
        let (level, caster) = (self.level, self);
        let clips = strip.extremes().iter().zip(&scales.times).zip(&scales.over);
        let clips = clips.fold(false, |clips, ((extremes, times), over)| {
            clips | ((extremes.largest() * scale) * times / over > element.max)
        });
        let divides = scales.over.iter().fold(false, |divides, over| divides | (*over != 1.0));
        match (clips, divides) {
            (false, false) => {
                fast::run(level, Round::<false, false> { caster, strip, element, scale, scales })
            }
            (true, false) => fast::run(level, Round::<true, false> { caster, strip, element, scale, scales }),
            (_, true) => fast::run(level, Round::<true, true> { caster, strip, element, scale, scales }),
        }
    }
}

/// Elements of a strip, and of its padding, which adds nothing but zeros.
struct Counts {
    becomes_zero: u32,
    below_normal: u32,
    overflow: u32,
    clipped: u32,
}

/// Rounds every element. `CLIPS`: some may be above the largest number; `DIVIDES`: some scales divide.
struct Round<'a, const CLIPS: bool, const DIVIDES: bool> {
    caster: &'a mut Caster,
    strip: &'a Strip,
    element: &'a Element,
    scale: f32,
    scales: &'a GroupScales,
}

impl<const CLIPS: bool, const DIVIDES: bool> Kernel for Round<'_, CLIPS, DIVIDES> {
    type Out = Counts;

    #[inline(always)]
    fn run(self) -> Counts {
        let Self { caster, strip, element, scale, scales } = self;
        let Element { min_normal, max, .. } = *element;
        let values = strip.across();
        expand(&scales.times, &mut caster.times);
        if DIVIDES {
            expand(&scales.over, &mut caster.over);
        }
        let (mut becomes_zero, mut below_normal, mut overflow, mut clipped) = (0_u32, 0_u32, 0_u32, 0_u32);
        let scalings = values.iter().zip(&caster.times).zip(&caster.over);
        for (((x, times), over), rounded) in scalings.zip(&mut caster.rounded) {
            let product = (x * scale) * times;
            let scaled = if DIVIDES { product / over } else { product };
            let magnitude = f32::from_bits(scaled.to_bits() & !SIGN);
            let limited = if CLIPS {
                let in_reach = if magnitude > 4.0 * max { 4.0 * max } else { magnitude };
                let unlimited = element.round(in_reach);
                overflow += u32::from(unlimited > max);
                clipped += u32::from(magnitude > max);
                if unlimited > max { max } else { unlimited }
            } else {
                element.round(magnitude)
            };
            becomes_zero += u32::from(limited == 0.0);
            below_normal += u32::from(limited < min_normal);
            *rounded = limited;
        }
        Counts { becomes_zero, below_normal, overflow, clipped }
    }
}

/// Errors of a strip; the largest as bits, which are in the order of numbers that are not negative.
struct Found {
    noise: [f64; GROUPS],
    relative: [f64; GROUPS],
    max_abs: u64,
    max_rel: u64,
}

/// Brings every rounded number back, and adds up its errors.
struct Errors<'a> {
    caster: &'a mut Caster,
    strip: &'a Strip,
    scales: &'a GroupScales,
}

impl Kernel for Errors<'_> {
    type Out = Found;

    #[inline(always)]
    fn run(self) -> Found {
        let Self { caster, strip, scales } = self;
        expand(&scales.back, &mut caster.back);
        let Caster { back, rounded, errors, .. } = caster;
        let values = strip.across();
        let mut max_abs = 0;
        for (((x, rounded), back), error) in values.iter().zip(&*rounded).zip(&*back).zip(&mut *errors) {
            *error = (f64::from(x.abs()) - f64::from(*rounded) * back).abs();
            max_abs = error.to_bits().max(max_abs);
        }
        let inverses = strip.inverses();
        let errors = &errors[..values.len()];
        let (mut noise, mut relative) = ([0.0; GROUPS], [0.0; GROUPS]);
        for (errors, inverses) in errors.chunks_exact(GROUPS).zip(inverses.chunks_exact(GROUPS)) {
            for ((error, inverse), (noise, relative)) in
                errors.iter().zip(inverses).zip(noise.iter_mut().zip(&mut relative))
            {
                *noise += error * error;
                *relative += error * inverse;
            }
        }
        let mut max_rel = 0;
        for (error, inverse) in errors.iter().zip(inverses) {
            max_rel = (error * inverse).to_bits().max(max_rel);
        }
        Found { noise, relative, max_abs, max_rel }
    }
}

/// Gives every element what its group has.
#[inline(always)]
fn expand<T: Copy>(groups: &[T; GROUPS], elements: &mut [T; STRIP]) {
    for row in elements.chunks_exact_mut(GROUPS) {
        row.copy_from_slice(groups);
    }
}

/// The sum over all groups, four at a time.
pub(super) fn total(groups: &[f64; GROUPS]) -> f64 {
    let mut sums = [0.0; 4];
    for four in groups.as_chunks::<4>().0 {
        sums.iter_mut().zip(four).for_each(|(sum, group)| *sum += group);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// The largest relative error to the last bit: a quotient, not a product with a rounded inverse.
struct MaxRel<'a> {
    errors: &'a [f64; STRIP],
    strip: &'a Strip,
}

impl Kernel for MaxRel<'_> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut largest = 0;
        for (x, error) in self.strip.across().iter().zip(self.errors) {
            let relative = if *x == 0.0 { 0.0 } else { error / f64::from(x.abs()) };
            largest = relative.to_bits().max(largest);
        }
        f64::from_bits(largest)
    }
}
