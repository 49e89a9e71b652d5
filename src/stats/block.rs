//! A few hundred elements in the first-level cache, with what all engines need to know of them.

use crate::cast::fast::{self, Kernel, Level};

/// Elements in a block.
pub(super) const BLOCK: usize = 512;
/// Sums that are kept at once: a vector of the widest processors.
pub(super) const LANES: usize = 16;
/// Bits of +Inf: magnitudes from here on are not finite.
pub(super) const INFINITY: u32 = f32::INFINITY.to_bits();
/// The sign bit of an f32.
pub(super) const SIGN: u32 = 1 << 31;
/// The fraction bits of an f32, and the bit that the significand of a normal number has before them.
pub(super) const FRACTION: u32 = HIDDEN - 1;
pub(super) const HIDDEN: u32 = 1 << 23;

/// A run of elements.
///
/// The loops here run over whole arrays, one step at a time: so they are compiled to vectors.
pub(super) struct Block<'a> {
    /// The elements, and zeros after them.
    values: &'a [f32; BLOCK],
    /// Number of elements.
    len: usize,
    /// 2^31 / significand, the significand being in [1, 2), to the nearest integer; 0 for a zero.
    inverses: [u32; BLOCK],
    /// Number of ±0, NaN and ±Inf elements.
    pub(super) zeros: u64,
    pub(super) nans: u64,
    pub(super) infinities: u64,
    /// Bits of the largest finite and the smallest nonzero magnitude; 0 if there is none.
    pub(super) largest: u32,
    pub(super) smallest: u32,
    /// Σ x² over finite elements.
    pub(super) signal: f64,
    /// Σ x over finite elements.
    pub(super) sum: f64,
}

impl<'a> Block<'a> {
    /// The first `len` of `values`, after which there are only zeros: no sum notices them.
    pub(super) fn new(level: Level, values: &'a [f32; BLOCK], len: usize) -> Self {
        let mut block = Self::without_inverses(level, values, len);
        if level.fuses() {
            fast::run(level, Inverses::<true>(&mut block));
        } else {
            fast::run(level, Inverses::<false>(&mut block));
        }
        block
    }

    /// The same for those who ask for no [`inverses`](Self::inverses).
    pub(super) fn without_inverses(level: Level, values: &'a [f32; BLOCK], len: usize) -> Self {
        let mut block = Self {
            values,
            len,
            inverses: [0; BLOCK],
            zeros: 0,
            nans: 0,
            infinities: 0,
            largest: 0,
            smallest: 0,
            signal: 0.0,
            sum: 0.0,
        };
        fast::run(level, Survey(&mut block));
        if block.largest >= INFINITY {
            fast::run(level, NotFinite(&mut block));
        }
        fast::run(level, Sums(&mut block));
        block
    }

    /// The elements.
    pub(super) fn values(&self) -> &[f32] {
        &self.values[..self.len]
    }

    /// The elements, and zeros up to a multiple of [`LANES`]. (Slices: of arrays the compiler knows the length, and
    /// unrolls a loop to more code than the processor decodes in time.)
    pub(super) fn padded(&self) -> &[f32] {
        &self.values[..self.len.next_multiple_of(LANES)]
    }

    /// 2^31 / significand of each of these, 0 for a zero.
    pub(super) fn inverses(&self) -> &[u32] {
        &self.inverses[..self.len.next_multiple_of(LANES)]
    }

    /// Whether some elements are subnormal.
    pub(super) fn has_subnormals(&self) -> bool {
        (1..HIDDEN).contains(&self.smallest)
    }

    /// Whether every element is finite.
    pub(super) fn is_finite(&self) -> bool {
        self.nans + self.infinities == 0
    }

    /// Number of finite elements.
    pub(super) fn finite(&self) -> u64 {
        self.len as u64 - self.nans - self.infinities
    }
}

/// Zeros and extremes, as if every element were finite.
struct Survey<'b, 'a>(&'b mut Block<'a>);

impl Kernel for Survey<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let (mut zeros, mut largest, mut smallest) = (0_u32, 0_u32, u32::MAX);
        for x in block.padded() {
            let magnitude = x.to_bits() & !SIGN;
            zeros += u32::from(magnitude == 0);
            largest = largest.max(magnitude);
            // Zero wraps around to the largest and is never the smallest.
            smallest = smallest.min(magnitude.wrapping_sub(1));
        }
        block.zeros = u64::from(zeros) - (block.padded().len() - block.len) as u64;
        block.largest = largest;
        block.smallest = smallest.wrapping_add(1);
        block.nans = 0;
        block.infinities = 0;
    }
}

/// What [`Survey`] leaves to find out where some elements are not finite.
struct NotFinite<'b, 'a>(&'b mut Block<'a>);

impl Kernel for NotFinite<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let (mut infinities, mut not_finite, mut largest) = (0_u32, 0_u32, 0_u32);
        for x in block.padded() {
            let magnitude = x.to_bits() & !SIGN;
            infinities += u32::from(magnitude == INFINITY);
            not_finite += u32::from(magnitude >= INFINITY);
            largest = largest.max(if magnitude < INFINITY { magnitude } else { 0 });
        }
        block.nans = u64::from(not_finite - infinities);
        block.infinities = infinities.into();
        block.largest = largest;
        if block.smallest >= INFINITY {
            block.smallest = 0;
        }
    }
}

/// Sums of the finite elements.
struct Sums<'b, 'a>(&'b mut Block<'a>);

impl Kernel for Sums<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let mut finite = [0.0_f32; BLOCK];
        let values = if block.is_finite() {
            block.padded()
        } else {
            for (finite, x) in finite.iter_mut().zip(block.values()) {
                *finite = if x.is_finite() { *x } else { 0.0 };
            }
            &finite
        };
        (block.signal, block.sum) = (sum_of_squares(values), sum(values));
    }
}

/// Σ x, in an order that does not depend on the width of the processor's vectors.
#[inline(always)]
fn sum(terms: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    for xs in terms.as_chunks::<LANES>().0 {
        for (sum, x) in sums.iter_mut().zip(xs.map(f64::from)) {
            *sum += x;
        }
    }
    sums.iter().sum()
}

/// Σ x², likewise.
#[inline(always)]
pub(super) fn sum_of_squares(terms: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    for xs in terms.as_chunks::<LANES>().0 {
        for (sum, x) in sums.iter_mut().zip(xs.map(f64::from)) {
            *sum += x * x;
        }
    }
    sums.iter().sum()
}

/// Inverses of the significands. `FUSED` where the processor multiplies and adds in one step.
struct Inverses<'b, 'a, const FUSED: bool>(&'b mut Block<'a>);

impl<const FUSED: bool> Kernel for Inverses<'_, '_, FUSED> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let block = self.0;
        let padded = block.len.next_multiple_of(LANES);
        for (inverse, x) in block.inverses[..padded].iter_mut().zip(block.values) {
            let of_significand = inverse_of::<FUSED>(x.to_bits() & FRACTION);
            *inverse = if *x == 0.0 { 0 } else { of_significand };
        }
    }
}

/// 2^31 / (1 + `fraction`·2^-23), to the nearest integer or one beside it; the same for both values of
/// `FUSED`.
#[inline(always)]
fn inverse_of<const FUSED: bool>(fraction: u32) -> u32 {
    const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
    /// Adding it leaves an integer in the low bits of the sum.
    const ROUNDER: f32 = (3 << 22) as f32;
    let significand = f32::from_bits(1.0_f32.to_bits() | fraction);
    // One Newton step doubles the bits of the quotient. Its residual fits an f32, since the product is within
    // 2^-23 of 1 and has no bit below 2^-47.
    let estimate = (1.0 / significand).min(BELOW_ONE);
    let residual = if FUSED {
        (-significand).mul_add(estimate, 1.0)
    } else {
        (1.0 - f64::from(significand) * f64::from(estimate)) as f32
    };
    let correction = estimate * residual * (1_u32 << 31) as f32;
    let rounded = (correction + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
    // The estimate is in [1/2, 1): its significand, an integer of 24 bits, is worth 2^-24 each.
    (((estimate.to_bits() & FRACTION) | HIDDEN) << 7).wrapping_add(rounded)
}
