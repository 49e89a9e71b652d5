//! Which loss scales would have kept the values: read off the exponent histogram, exactly.

use super::SourceStats;
use crate::format::{FormatSpec, exponent_of, pow2};

/// Largest share of the nonzero values that may be flushed at a scale called safe: 1 in 10,000.
pub const MAX_FLUSHED_SHARE: f64 = 1e-4;

/// log2 of the smallest scale that is a normal f32.
const SMALLEST_SCALE: i32 = -126;

/// The power-of-two scales 2^`smallest` … 2^`largest` at which a cast to nearest flushes at most
/// [`MAX_FLUSHED_SHARE`] of the nonzero values and overflows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeScales {
    /// log2 of the smallest scale.
    pub smallest: i32,
    /// log2 of the largest scale.
    pub largest: i32,
}

impl SafeScales {
    /// `None` if no scale satisfies both ends, or there is nothing to scale.
    pub fn find(source: &SourceStats, format: &FormatSpec) -> Option<Self> {
        let largest = largest_without_overflow(source, format)?;
        let allowed = (MAX_FLUSHED_SHARE * source.nonzero_finite() as f64) as u64;
        // More scale never flushes more, so the safe ones end at `largest` and begin where it gets too much.
        let smallest =
            (SMALLEST_SCALE..=largest).rev().take_while(|&k| flushed(source, format, k) <= allowed).last()?;
        Some(Self { smallest, largest })
    }
}

/// log2 of the largest power-of-two scale that is a normal f32 and at which nothing overflows.
pub fn largest_without_overflow(source: &SourceStats, format: &FormatSpec) -> Option<i32> {
    let amax = source.amax().filter(|&amax| amax > 0.0)?;
    let limit = format.overflow_threshold();
    let fits = |k: i32| {
        let product = amax * pow2(k);
        product < limit || (product == limit && !format.overflow_includes_tie())
    };
    let estimate = exponent_of(limit) - exponent_of(amax);
    (estimate - 1..=estimate + 1)
        .rev()
        .find(|&k| fits(k))
        .map(|k| k.min(127))
        .filter(|&k| k >= SMALLEST_SCALE)
}

/// Number of nonzero elements that a cast to nearest flushes to zero at the scale 2^`k`.
pub fn flushed(source: &SourceStats, format: &FormatSpec, k: i32) -> u64 {
    // The threshold is half the smallest number, a power of two, and the tie goes to zero.
    format.flush_threshold().map_or(0, |limit| source.binades.at_or_below_power(exponent_of(limit) - k))
}
