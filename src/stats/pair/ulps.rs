//! Distances between codes: how many numbers of a type lie from one value to another.
//!
//! The finite numbers of a format, and Inf after them, have consecutive codes. So the distance of two values in
//! units in the last place is the difference of two integers; −0 and +0 are the same one.

use crate::cast::fast::slice::SliceCast;
use crate::cast::{CastPlan, Place};
use crate::format::FormatSpec;
use crate::tensor::Dtype;

/// Counters to an octave: up to 64 each distance has its own.
const PARTS: u32 = 5;
/// Number of counters: one for 0, and those of the 64 octaves of a u64.
const COUNTERS: usize = 1 + (64 << PARTS);

/// The type whose units in the last place are counted: the one of two with fewer significand bits, or else fewer
/// bits. Values of the other type are rounded to it first, to nearest even.
#[derive(Clone, Debug)]
pub enum Coarser {
    /// Both are IEEE 754 binary64.
    Float64,
    /// binary32: the codes are the bits of the f32.
    Float32(FormatSpec),
    /// Any narrower format.
    Format {
        /// How values are rounded to it.
        plan: CastPlan,
        /// The same for slices, where there is such a cast.
        slice: Option<SliceCast>,
    },
}

impl Coarser {
    /// Of these two types.
    pub fn of(a: &Dtype, b: &Dtype) -> Self {
        let width = |format: &FormatSpec| (format.precision, format.bits);
        let formats = [a.format(), b.format()].into_iter().flatten();
        match formats.min_by_key(|format| width(format)) {
            None => Self::Float64,
            Some(format) if width(format) == (24, 32) => Self::Float32(*format),
            Some(format) => {
                let plan = CastPlan::new(*format);
                Self::Format { plan, slice: SliceCast::new(&plan) }
            }
        }
    }

    /// Name of the type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Float64 => "float64",
            Self::Float32(format) => format.name,
            Self::Format { plan, .. } => plan.target.name,
        }
    }

    /// Distance of two finite values.
    pub fn distance(&self, x: f64, y: f64) -> u64 {
        match self {
            Self::Float64 => {
                let order = |x: f64| {
                    let magnitude = (x.to_bits() & (u64::MAX >> 1)) as i64;
                    if x.is_sign_negative() { -magnitude } else { magnitude }
                };
                order(x).abs_diff(order(y))
            }
            Self::Float32(_) => {
                let order = |x: f64| order_of_bits((x as f32).to_bits());
                order(x).abs_diff(order(y)).into()
            }
            Self::Format { plan, .. } => {
                let order = |x: f64| order_of_code(&plan.target, plan.cast_f64(x, Place::default()).code);
                order(x).abs_diff(order(y)).into()
            }
        }
    }
}

/// Position of an f32 among all f32, from its bits; 0 for ±0.
#[inline(always)]
pub(super) fn order_of_bits(bits: u32) -> i32 {
    let sign = bits as i32 >> 31;
    ((bits & (u32::MAX >> 1)) as i32 ^ sign) - sign
}

/// Position of a number among all of its format, from its code; 0 for ±0.
pub(super) fn order_of_code(format: &FormatSpec, code: u32) -> i32 {
    let (negative, magnitude) = format.split(code);
    if negative { -(magnitude as i32) } else { magnitude as i32 }
}

/// The counter of a distance.
#[inline(always)]
pub(super) fn counter_of(distance: u32) -> u32 {
    // As a floating-point number a distance has its octave and, below, its place in it; bits that might round it
    // up to the next are cut first.
    let cut = if distance < 1 << 24 { distance } else { distance & !0xff };
    ((cut as f32).to_bits() >> (23 - PARTS)).saturating_sub((127 << PARTS) - 1)
}

/// The counter of a distance of any size: the same up to 2^32.
fn wide_counter_of(distance: u64) -> usize {
    let cut = if distance < 1 << 53 { distance } else { distance & !0x7ff };
    ((cut as f64).to_bits() >> (52 - PARTS)).saturating_sub((1023 << PARTS) - 1) as usize
}

/// Largest distance that is counted in this counter.
fn largest_in(counter: usize) -> u64 {
    match counter {
        0 => 0,
        _ => {
            let (octave, part) = ((counter - 1) >> PARTS, (counter - 1) as u64 & ((1 << PARTS) - 1));
            // The least distance of the next counter, less one: (32 + part + 1)·2^octave / 32, rounded up.
            let next = (u128::from(part) + 33) << octave;
            (next.div_ceil(1 << PARTS) - 1) as u64
        }
    }
}

/// How often each distance occurs: exactly up to 63, beyond that to 1/32 of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Ulps {
    /// Largest distance, exact.
    max: u64,
    /// Number of distances of 0 that are not in the first counter.
    zeros: u64,
    /// Empty as long as every distance is 0.
    counters: Vec<u64>,
}

impl Ulps {
    /// Adds `count` pairs at this distance.
    pub(super) fn add(&mut self, distance: u64, count: u64) {
        if distance == 0 {
            // Equal tensors need no counters.
            self.zeros += count;
        } else {
            self.max = self.max.max(distance);
            self.counters()[wide_counter_of(distance)] += count;
        }
    }

    /// The counters, to count in, of distances of at most `max`.
    pub(super) fn up_to(&mut self, max: u64) -> &mut [u64] {
        self.max = self.max.max(max);
        self.counters()
    }

    /// Takes away pairs that were counted at a distance of 0.
    pub(super) fn take_zeros(&mut self, count: u64) {
        if let Some(zeros) = self.counters.first_mut() {
            *zeros -= count;
        }
    }

    fn counters(&mut self) -> &mut [u64] {
        if self.counters.is_empty() {
            self.counters.resize(COUNTERS, 0);
        }
        &mut self.counters
    }

    /// Adds other distances.
    pub(super) fn merge(&mut self, next: &Self) {
        self.max = self.max.max(next.max);
        self.zeros += next.zeros;
        if !next.counters.is_empty() {
            self.counters().iter_mut().zip(&next.counters).for_each(|(sum, count)| *sum += count);
        }
    }

    /// Number of pairs.
    pub(super) fn pairs(&self) -> u64 {
        self.zeros + self.counters.iter().sum::<u64>()
    }

    /// Largest distance; `None` without pairs.
    pub(super) fn max(&self) -> Option<u64> {
        (self.pairs() > 0).then_some(self.max)
    }

    /// The least distance that at least `percent` % of the pairs do not exceed; of distances of 64 and more at most
    /// 1/32 above it, and never above [`max`](Self::max). `None` without pairs.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let pairs = self.pairs();
        let wanted = (u128::from(pairs) * u128::from(percent)).div_ceil(100) as u64;
        let mut seen = self.zeros;
        if pairs == 0 || seen >= wanted {
            return (pairs > 0).then_some(0);
        }
        let position = self.counters.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        position.map(|counter| largest_in(counter).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_exact_up_to_63_and_narrow_beyond() {
        for distance in (0..1 << 17).chain([u32::MAX, u32::MAX - 1, 1 << 24, (1 << 24) - 1, 0xff00_0000]) {
            let counter = counter_of(distance) as usize;
            assert_eq!(counter, wide_counter_of(distance.into()), "{distance}");
            let largest = largest_in(counter);
            assert!(largest >= distance.into(), "{distance}: {largest}");
            if distance < 64 {
                assert_eq!(largest, u64::from(distance));
            }
            assert!(largest - u64::from(distance) <= u64::from(distance) / 32, "{distance}: {largest}");
            assert_eq!(wide_counter_of(largest), counter, "{distance}");
            assert!(wide_counter_of(largest + 1) > counter, "{distance}");
        }
        assert_eq!(largest_in(wide_counter_of(u64::MAX)), u64::MAX);
        assert!(wide_counter_of(u64::MAX) < COUNTERS);
    }
}
