//! Numbers of a format as float32, rounded by whole slices: what both commands of training are made of.
//!
//! The definition is [`crate::cast::round`]; this computes the same without codes, in a few operations that
//! vectorise. Which operations these are depends on the format: see [`kind`].

use crate::cast::fast::nearest::Nearest;
use crate::cast::fast::{Kernel, Level, run};
use crate::cast::{Overflow, Rounding};
use crate::error::{Error, Result};
use crate::format::{FormatSpec, pow2};

/// How the numbers of a format lie among those of float32, least work first.
mod kind {
    /// They are those of float32: nothing is rounded.
    pub(super) const ALL: u8 = 0;
    /// They are those of float32 whose last bits are 0, as in bfloat16, and Inf comes after the largest.
    pub(super) const TRUNCATED: u8 = 1;
    /// Their range is smaller than that of float32, as in float16.
    pub(super) const NARROW: u8 = 2;
    /// The same, and all that is rounded is in that range.
    pub(super) const IN_RANGE: u8 = 3;
    /// Anything else, such as more random bits than are dropped.
    pub(super) const ANY: u8 = 4;
}
use kind::{ALL, ANY, IN_RANGE, NARROW, TRUNCATED};

/// Bits below the sign.
const MAGNITUDE: u32 = u32::MAX >> 1;
/// Bits of the exponent.
const EXPONENT: u32 = f32::INFINITY.to_bits();

/// A format that weights or gradients are kept in.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The format.
    pub format: FormatSpec,
    kind: u8,
    nearest: Nearest,
    largest: f32,
    /// The largest float32 that is rounded to a number of the format.
    limit: f32,
    /// What is stored beyond the largest number.
    overflow: f32,
    /// Random bits of stochastic rounding.
    random_bits: u32,
    /// As many ones.
    random_mask: u32,
    /// 2^-bits of them.
    per_draw: f32,
    /// Bits of a float32 below the format's last, in a normal number.
    mask: u32,
    /// From these bits to as many as are random.
    shift_right: u32,
    shift_left: u32,
    /// 2^bits.
    draws: f32,
    /// Smallest subnormal number, and its inverse.
    unit: f32,
    per_unit: f32,
    /// What brings the bits of a power of two to those of one and a half times that whose unit in the last place is
    /// the format's beside the power of two.
    raise: u32,
    /// Whether subnormal numbers begin where those of float32 do, so that one rule serves both.
    aligned: bool,
}

impl Stored {
    /// Numbers of `format`, with as many random bits as NVIDIA's `cvt.rs` takes if `random_bits` is `None`.
    ///
    /// # Errors
    /// A format that is of no use here: unsigned, an integer, of one significand bit, or beyond float32.
    pub fn new(format: FormatSpec, random_bits: Option<u32>) -> Result<Self> {
        let number = Nearest::new(&format).filter(|_| format.signed && !format.twos_complement);
        let Some(nearest) = number else {
            return Err(Error::new(format!("{} is no format to train in", format.name)));
        };
        let unit = pow2(format.emin() - format.trailing_bits() as i32);
        let Rounding::Stochastic { bits, .. } = Rounding::stochastic(&format, random_bits) else {
            return Err(Error::new(format!("{} has no stochastic rounding", format.name)));
        };
        let largest = format.max_finite() as f32;
        let saturates = Overflow::default_for(&format) == Overflow::Saturate;
        let tie = format.overflow_threshold() as f32;
        let limit = if format.overflow_includes_tie() { tie.next_down() } else { tie };
        let dropped = nearest.dropped;
        let aligned = format.emin() == -126;
        let mask = (1 << dropped) - 1;
        // What is drawn and what was dropped are added as one number, which is an integer of draws below the smallest
        // normal number.
        let draws_per_unit = format.trailing_bits() as i32 + bits as i32;
        let kind =
            match () {
                _ if bits > dropped.max(1) => ANY,
                _ if aligned && !saturates && largest.to_bits() | mask == f32::MAX.to_bits() => {
                    if dropped == 0 { ALL } else { TRUNCATED }
                }
                _ if dropped < 2 || format.emax() + dropped as i32 > 125 => ANY,
                _ if draws_per_unit > 23 || draws_per_unit - format.emin() > 126 => ANY,
                _ => NARROW,
            };
        Ok(Self {
            format,
            kind,
            nearest,
            largest,
            limit,
            overflow: if saturates { largest } else { f32::INFINITY },
            random_bits: bits,
            random_mask: u32::MAX >> (32 - bits),
            per_draw: pow2(-(bits as i32)) as f32,
            mask,
            shift_right: dropped.saturating_sub(bits),
            shift_left: bits.saturating_sub(dropped),
            draws: pow2(bits as i32) as f32,
            unit: unit as f32,
            per_unit: pow2(format.trailing_bits() as i32 - format.emin()) as f32,
            raise: (dropped << 23) | 1 << 22,
            aligned,
        })
    }

    /// Random bits that stochastic rounding looks at.
    pub fn random_bits(&self) -> u32 {
        self.random_bits
    }

    /// The largest magnitude that is rounded to a number that the format has.
    pub(super) fn limit(&self) -> f64 {
        self.limit.into()
    }

    /// `x` rounded to the nearest number, ties to even; a NaN stays one.
    pub fn round(&self, x: f32) -> f32 {
        match self.kind {
            ALL => self.round_as::<ALL>(x),
            TRUNCATED => self.round_as::<TRUNCATED>(x),
            NARROW => self.round_as::<NARROW>(x),
            _ => self.round_as::<ANY>(x),
        }
    }

    /// The same where the kind is known. No NaN but those that processors make may come.
    #[inline(always)]
    pub(super) fn round_as<const KIND: u8>(&self, x: f32) -> f32 {
        let bits = x.to_bits();
        match KIND {
            ALL => x,
            TRUNCATED => {
                let odd = (bits >> self.nearest.dropped) & 1;
                f32::from_bits(bits.wrapping_add((self.mask >> 1) + odd) & !self.mask)
            }
            NARROW | IN_RANGE => {
                // The sum with a number whose last place is the format's is rounded by the processor.
                let power = (bits & EXPONENT).max(self.nearest.min_normal);
                let raised = f32::from_bits(power.wrapping_add(self.raise));
                let rounded = (x + raised) - raised;
                let beyond = KIND == NARROW && x.abs() > self.limit;
                (if beyond { self.overflow } else { rounded }).copysign(x)
            }
            _ => self.bounded(self.nearest.round(bits & MAGNITUDE)).copysign(x),
        }
    }

    #[inline(always)]
    fn bounded(&self, magnitude: f32) -> f32 {
        if magnitude > self.largest { self.overflow } else { magnitude }
    }

    /// The number below |x|, the gap to the next, and how far x has gone into it: the first `random_bits` bits of
    /// the fraction, as an integer.
    #[inline(always)]
    fn split(&self, x: f32) -> (f32, f32, u32) {
        let magnitude = x.to_bits() & MAGNITUDE;
        let below = magnitude & !self.mask;
        let low = f32::from_bits(below);
        let gap = f32::from_bits(below.wrapping_add(self.mask + 1)) - low;
        let rest = magnitude & self.mask;
        let part = (rest >> self.shift_right) << self.shift_left;
        // Below the smallest normal number all gaps are alike. Where float32 is subnormal too, so are its bits.
        let units = f32::from_bits(magnitude) * self.per_unit;
        let whole = units.floor();
        let small = ((units - whole) * self.draws) as u32;
        let normal = self.aligned || magnitude >= self.nearest.min_normal;
        if normal { (low, gap, part) } else { (whole * self.unit, self.unit, small) }
    }

    /// The magnitude of a number below the smallest normal one, in draws of the smallest subnormal.
    #[inline(always)]
    fn in_draws(&self, magnitude: u32) -> i32 {
        /// A number whose last place is 1: a sum with an integer below it has that in its last bits.
        const ONES: f32 = (1 << 23) as f32;
        let below = f32::from_bits(magnitude.min(self.nearest.min_normal));
        // Exact: a product with a power of two.
        let draws = (below * (self.per_unit * self.draws)).floor();
        ((draws + ONES).to_bits() - ONES.to_bits()) as i32
    }

    /// The opposite, without what is less than a unit.
    #[inline(always)]
    fn of_draws(&self, draws: i32) -> f32 {
        (draws >> self.random_bits) as f32 * self.unit
    }

    /// `x` rounded away from zero where the low bits of `random` added to the fraction carry.
    pub fn round_stochastically(&self, x: f32, random: u32) -> f32 {
        match self.kind {
            ALL => self.round_stochastically_as::<ALL>(x, random),
            TRUNCATED => self.round_stochastically_as::<TRUNCATED>(x, random),
            NARROW => self.round_stochastically_as::<NARROW>(x, random),
            _ => self.round_stochastically_as::<ANY>(x, random),
        }
    }

    /// The same where the kind is known.
    #[inline(always)]
    pub(super) fn round_stochastically_as<const KIND: u8>(&self, x: f32, random: u32) -> f32 {
        let bits = x.to_bits();
        let random = random & self.random_mask;
        let carried = |bits: u32| f32::from_bits(bits.wrapping_add(random << self.shift_right) & !self.mask);
        match KIND {
            ALL => x,
            TRUNCATED => carried(bits),
            NARROW => {
                let magnitude = bits & MAGNITUDE;
                let small = self.of_draws(self.in_draws(magnitude) + random as i32);
                let normal = magnitude >= self.nearest.min_normal;
                self.bounded(if normal { carried(magnitude) } else { small }).copysign(x)
            }
            _ => {
                let (low, gap, part) = self.split(x);
                // part + random ≥ 2^bits, without a carry out of 32.
                let carries = part > self.random_mask - random;
                self.bounded(if carries { low + gap } else { low }).copysign(x)
            }
        }
    }

    /// The two numbers that stochastic rounding gives for `x`, and the probability of the second.
    pub fn outcomes(&self, x: f32) -> (f32, f32, f32) {
        match self.kind {
            ALL => self.outcomes_as::<ALL>(x),
            TRUNCATED => self.outcomes_as::<TRUNCATED>(x),
            NARROW => self.outcomes_as::<NARROW>(x),
            _ => self.outcomes_as::<ANY>(x),
        }
    }

    /// The same where the kind is known.
    #[inline(always)]
    pub(super) fn outcomes_as<const KIND: u8>(&self, x: f32) -> (f32, f32, f32) {
        let bits = x.to_bits();
        let part = |bits: u32| ((bits & self.mask) >> self.shift_right) as f32 * self.per_draw;
        match KIND {
            ALL => (x, x, 0.0),
            TRUNCATED => {
                let low = bits & !self.mask;
                (f32::from_bits(low), f32::from_bits(low.wrapping_add(self.mask + 1)), part(bits))
            }
            NARROW => {
                let magnitude = bits & MAGNITUDE;
                let below = magnitude & !self.mask;
                let draws = self.in_draws(magnitude);
                let small = self.of_draws(draws);
                let part_of_small = (draws as u32 & self.random_mask) as f32 * self.per_draw;
                let above = f32::from_bits(below.wrapping_add(self.mask + 1));
                let normal = magnitude >= self.nearest.min_normal;
                let low = if normal { f32::from_bits(below) } else { small };
                let high = if normal { above } else { small + self.unit };
                let up = if normal { part(bits) } else { part_of_small };
                (self.bounded(low).copysign(x), self.bounded(high).copysign(x), up)
            }
            _ => {
                let (low, gap, part) = self.split(x);
                let probability = part as f32 * self.per_draw;
                (self.bounded(low).copysign(x), self.bounded(low + gap).copysign(x), probability)
            }
        }
    }

    /// Distance from |x|, a number of the format, to the next larger magnitude.
    pub fn ulp(&self, x: f32) -> f32 {
        pow2(self.ulp_log2(x)) as f32
    }

    /// log2 of that.
    #[inline(always)]
    pub(super) fn ulp_log2(&self, x: f32) -> i32 {
        let power = (x.to_bits() & EXPONENT).max(self.nearest.min_normal);
        (power >> 23) as i32 - 127 - (23 - self.nearest.dropped as i32)
    }
}

/// Work that rounds to a format: compiled for each kind of formats, within each level.
pub(super) trait Rounds {
    /// What the work gives.
    type Out;

    /// Does the work with operations of formats of `KIND`; `#[inline(always)]`, as for [`Kernel`].
    fn run<const KIND: u8>(self) -> Self::Out;
}

/// What is known of all numbers that are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Range {
    /// Nothing.
    #[default]
    Any,
    /// They are rounded to finite numbers.
    Finite,
    /// They are rounded to normal numbers, or need not be rounded: there, formats hardly differ.
    Normal,
}

/// Runs work that rounds to `stored`.
pub(super) fn run_rounding<R: Rounds>(level: Level, stored: &Stored, range: Range, rounds: R) -> R::Out {
    match (stored.kind, range) {
        (ALL, _) => run(level, OfKind::<R, ALL>(rounds)),
        (TRUNCATED, _) | (_, Range::Normal) => run(level, OfKind::<R, TRUNCATED>(rounds)),
        (NARROW, Range::Finite) => run(level, OfKind::<R, IN_RANGE>(rounds)),
        (NARROW, Range::Any) => run(level, OfKind::<R, NARROW>(rounds)),
        _ => run(level, OfKind::<R, ANY>(rounds)),
    }
}

/// Runs the same work in float32.
pub(super) fn run_unrounded<R: Rounds>(level: Level, rounds: R) -> R::Out {
    run(level, OfKind::<R, ALL>(rounds))
}

struct OfKind<R, const KIND: u8>(R);

impl<R: Rounds, const KIND: u8> Kernel for OfKind<R, KIND> {
    type Out = R::Out;

    #[inline(always)]
    fn run(self) -> R::Out {
        self.0.run::<KIND>()
    }
}
