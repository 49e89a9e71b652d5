//! The largest magnitude of a slice and whether all of it is finite, in one pass.

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
}

impl Extremes {
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
        let (mut largest, mut signed) = (0, 0);
        for x in self.values {
            let bits = x.to_bits();
            largest = largest.max(bits & !SIGN);
            signed = signed.max(bits);
        }
        Extremes { largest, signed }
    }
}
