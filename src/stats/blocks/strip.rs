//! A few hundred elements in the first-level cache, with what all casts need to know of them.

use super::cast::total;
use crate::cast::fast::{self, Kernel, Level};

/// Elements of a strip.
pub(super) const STRIP: usize = 512;
/// Elements of which largest, smallest and squares are known on their own: the least that a block takes up.
pub(super) const GROUP: usize = 16;
pub(super) const GROUPS: usize = STRIP / GROUP;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = f32::INFINITY.to_bits();
const HIDDEN: u32 = 1 << 23;
const FRACTION: u32 = HIDDEN - 1;

/// A run of elements, or several blocks one after the other, each padded with zeros to the same stride.
///
/// What is computed of each element lies *across*: first the first elements of all groups, then the second ones, and so
/// on, so that the sums of all groups are formed side by side.
pub(super) struct Strip {
    values: [f32; STRIP],
    /// What is in use, padding between blocks included.
    len: usize,
    /// Elements without padding, and zeros among them.
    pub(super) elements: usize,
    pub(super) zeros: usize,
    across: Box<Across>,
    /// By group.
    extremes: [Extremes; GROUPS],
    /// Σ x², by group and of all.
    signal: [f64; GROUPS],
    pub(super) total_signal: f64,
}

/// Of each element of a strip, padded with zeros to its end.
struct Across {
    values: [f32; STRIP],
    /// 1/|x|, 0 of a zero.
    inverses: [f64; STRIP],
    /// What is in use: all, which the compiler must not know, or it unrolls loops to scalar code.
    len: usize,
}

impl Strip {
    pub(super) fn new() -> Self {
        let across = Across { values: [0.0; STRIP], inverses: [0.0; STRIP], len: STRIP };
        Self {
            values: [0.0; STRIP],
            len: 0,
            elements: 0,
            zeros: 0,
            across: Box::new(across),
            extremes: [Extremes::default(); GROUPS],
            signal: [0.0; GROUPS],
            total_signal: 0.0,
        }
    }

    /// Forgets all elements.
    pub(super) fn clear(&mut self) {
        (self.len, self.elements) = (0, 0);
    }

    /// Elements in use, padding included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Elements that still have room.
    pub(super) fn room(&self) -> usize {
        STRIP - self.len
    }

    /// Appends elements, of which there is room for all.
    pub(super) fn push(&mut self, values: &[f32]) {
        self.values[self.len..self.len + values.len()].copy_from_slice(values);
        self.len += values.len();
        self.elements += values.len();
    }

    /// Appends zeros up to the next multiple of `stride`.
    pub(super) fn pad(&mut self, stride: usize) {
        let end = self.len.next_multiple_of(stride);
        self.values[self.len..end].fill(0.0);
        self.len = end;
    }

    /// Finds out what there is to know, once all elements are there. Returns whether all are finite: else only
    /// [`values`](Self::values) mean anything.
    pub(super) fn survey(&mut self, level: Level) -> bool {
        self.values[self.len..].fill(0.0);
        fast::run(level, Survey(self));
        self.zeros -= STRIP - self.elements;
        self.total_signal = total(&self.signal);
        self.extremes.iter().all(|extremes| extremes.largest < INFINITY)
    }

    /// The elements, with the padding between them, in order.
    pub(super) fn values(&self) -> &[f32] {
        &self.values[..self.len]
    }

    /// The elements across.
    pub(super) fn across(&self) -> &[f32] {
        &self.across.values[..self.across.len]
    }

    /// 1/|x| of the elements across, 0 of a zero.
    pub(super) fn inverses(&self) -> &[f64] {
        &self.across.inverses[..self.across.len]
    }

    /// The extremes of each group.
    pub(super) fn extremes(&self) -> &[Extremes; GROUPS] {
        &self.extremes
    }

    /// Σ x² of each group.
    pub(super) fn signal(&self) -> &[f64; GROUPS] {
        &self.signal
    }
}

/// Bits of the largest magnitude, and of the smallest nonzero one less one.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    largest: u32,
    smallest: u32,
}

impl Default for Extremes {
    fn default() -> Self {
        Self { largest: 0, smallest: u32::MAX }
    }
}

impl Extremes {
    pub(super) fn of(level: Level, values: &[f32]) -> Self {
        fast::run(level, FindExtremes(values))
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.largest = self.largest.max(other.largest);
        self.smallest = self.smallest.min(other.smallest);
    }

    /// The largest magnitude, if all elements are finite.
    pub(super) fn largest(&self) -> f32 {
        f32::from_bits(self.largest)
    }

    /// The largest magnitude; `None` if some element is not finite.
    pub(super) fn amax(&self) -> Option<f32> {
        (self.largest < INFINITY).then(|| f32::from_bits(self.largest))
    }

    /// The largest and the smallest nonzero magnitude, if all elements are finite; `None` if all are zero.
    pub(super) fn magnitudes(&self) -> Option<(f64, f64)> {
        let magnitude = |bits| f64::from(f32::from_bits(bits));
        (self.largest > 0).then(|| (magnitude(self.largest), magnitude(self.smallest + 1)))
    }
}

/// Magnitudes of elements as if all were finite.
struct FindExtremes<'a>(&'a [f32]);

impl Kernel for FindExtremes<'_> {
    type Out = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        let (mut largest, mut smallest) = (0, u32::MAX);
        for x in self.0 {
            let magnitude = x.to_bits() & !SIGN;
            largest = magnitude.max(largest);
            // Zero wraps around to the largest, so that it is never the smallest.
            smallest = magnitude.wrapping_sub(1).min(smallest);
        }
        Extremes { largest, smallest }
    }
}

/// The even places, then the odd ones.
#[inline(always)]
fn unzip(from: &[f32; STRIP], to: &mut [f32; STRIP]) {
    let (even, odd) = to.split_at_mut(STRIP / 2);
    for ((pair, even), odd) in from.as_chunks::<2>().0.iter().zip(even).zip(odd) {
        (*even, *odd) = (pair[0], pair[1]);
    }
}

struct Survey<'a>(&'a mut Strip);

impl Kernel for Survey<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Strip { values, across, extremes, signal, zeros, .. } = self.0;
        // Each turn takes the last bit of the place to the front: after four, what was the place in a group is the row.
        let mut turned = [0.0; STRIP];
        unzip(values, &mut turned);
        unzip(&turned, &mut across.values);
        unzip(&across.values, &mut turned);
        unzip(&turned, &mut across.values);
        let Across { values, inverses, len } = &mut **across;
        let values = &values[..*len];
        let mut count = 0_u32;
        for x in values {
            count += u32::from(*x == 0.0);
        }
        *zeros = count as usize;
        let (mut largest, mut smallest) = ([0; GROUPS], [u32::MAX; GROUPS]);
        for row in values.chunks_exact(GROUPS) {
            for ((x, largest), smallest) in row.iter().zip(&mut largest).zip(&mut smallest) {
                let magnitude = x.to_bits() & !SIGN;
                *largest = magnitude.max(*largest);
                // Zero wraps around to the largest, so that it is never the smallest.
                *smallest = magnitude.wrapping_sub(1).min(*smallest);
            }
        }
        for ((extremes, largest), smallest) in extremes.iter_mut().zip(largest).zip(smallest) {
            *extremes = Extremes { largest, smallest };
        }
        for (inverse, x) in inverses[..*len].iter_mut().zip(values) {
            let magnitude = x.to_bits() & !SIGN;
            // The quotient of significands in f32, which takes a fraction of the time of one in f64, and a Newton step.
            let significand = f32::from_bits(magnitude & FRACTION | 1.0_f32.to_bits());
            let estimate = f64::from(1.0 / significand);
            let residual = 1.0 - f64::from(significand) * estimate;
            let of_significand = estimate + estimate * residual;
            let power = f64::from_bits((1023 + 127 - u64::from(magnitude >> 23)) << 52);
            *inverse = if magnitude == 0 { 0.0 } else { of_significand * power };
        }
        if extremes.iter().any(|extremes| extremes.smallest < HIDDEN - 1) {
            // Subnormal numbers have no significand like the others'.
            for (inverse, x) in inverses[..*len].iter_mut().zip(values) {
                let x = f64::from(x.abs());
                *inverse = if x == 0.0 { 0.0 } else { 1.0 / x };
            }
        }
        *signal = [0.0; GROUPS];
        for row in values.chunks_exact(GROUPS) {
            for (x, signal) in row.iter().zip(&mut *signal) {
                let x = f64::from(*x);
                *signal += x * x;
            }
        }
    }
}
