//! The largest and smallest magnitude of a slice and whether all of it is finite, in one pass.

use crate::cast::fast::{Kernel, Level, run};

/// Bits of Inf.
const INFINITY: u32 = f32::INFINITY.to_bits();
/// Bits of the sign.
const SIGN: u32 = 1 << 31;

/// What the bits of all values have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    /// Largest magnitude, as bits: in the order of the magnitudes, NaN above all.
    largest: u32,
    /// Largest bits, those of negative values being larger than all others.
    signed: u32,
    /// Smallest magnitude but zero, as bits less one.
    smallest: u32,
}

impl Extremes {
    /// Those of no values.
    pub(super) const NONE: Self = Self { largest: 0, signed: 0, smallest: u32::MAX };

    pub(super) fn of(level: Level, values: &[f32]) -> Self {
        run(level, Scan { values })
    }

    /// Whether there is no NaN and no Inf.
    pub(super) fn are_finite(self) -> bool {
        self.largest < INFINITY
    }

    /// Whether a value is negative and not −0.
    pub(super) fn have_negative(self) -> bool {
        self.signed > SIGN
    }

    /// Those of the values of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            signed: self.signed.max(other.signed),
            smallest: self.smallest.min(other.smallest),
        }
    }

    /// Binades from the smallest magnitude but zero to the largest; 0 if there are only zeros.
    pub(super) fn octaves(self) -> u32 {
        // Subnormal numbers have the last place of the first binade.
        let binade = |bits: u32| (bits >> 23).max(1);
        if self.largest == 0 { 0 } else { binade(self.largest) + 1 - binade(self.smallest + 1) }
    }

    /// Smallest magnitude but zero; 0 if there are only zeros.
    pub(super) fn amin(self) -> f32 {
        f32::from_bits(self.smallest.wrapping_add(1))
    }

    /// Largest magnitude.
    pub(super) fn amax(self) -> f32 {
        f32::from_bits(self.largest)
    }
}

struct Scan<'a> {
    values: &'a [f32],
}

impl Kernel for Scan<'_> {
    type Out = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        let Extremes { mut largest, mut signed, mut smallest } = Extremes::NONE;
        for x in self.values {
            let bits = x.to_bits();
            largest = largest.max(bits & !SIGN);
            signed = signed.max(bits);
            smallest = smallest.min((bits & !SIGN).wrapping_sub(1));
        }
        Extremes { largest, signed, smallest }
    }
}
