//! The pairs of a few hundred f32 elements, in loops that compile to vectors.

use super::super::block::{BLOCK, INFINITY, LANES, SIGN};
use super::ulps::{counter_of, order_of_bits, order_of_code};
use super::{Coarser, PairAccumulator, PairAt, Tolerance};
use crate::cast::fast::slice::SliceCast;
use crate::cast::fast::{self, Kernel};
use crate::cast::{CastPlan, Place};
use crate::format::FormatSpec;

/// Two runs of elements, of `len` and then zeros, that meet at `index` and after.
pub(super) struct Pair<'a> {
    pub(super) x: &'a [f32; BLOCK],
    pub(super) y: &'a [f32; BLOCK],
    pub(super) len: usize,
    pub(super) index: u64,
}

impl Pair<'_> {
    /// Adds every pair.
    pub(super) fn observe(&self, to: &mut PairAccumulator<'_>) {
        let level = to.plan.level;
        let stats = &mut to.stats;
        stats.elements += self.len as u64;
        let bits = fast::run(level, Bits(self));
        if bits.different == 0 && bits.largest < INFINITY {
            stats.finite += self.len as u64;
            let signal = fast::run(level, Signal(self));
            stats.signal_x += signal;
            stats.signal_y += signal;
            stats.dot += signal;
            to.ulps.add(0, self.len as u64);
            return;
        }
        if bits.largest < INFINITY {
            stats.different += u64::from(bits.different);
            return self.observe_finite(0, to);
        }
        // Pairs with a NaN or Inf in them become pairs of zeros, which no figure but the number of distances of 0
        // notices.
        let (mut x, mut y) = (*self.x, *self.y);
        let mut left_out = 0;
        for (offset, (x, y)) in x.iter_mut().zip(&mut y).enumerate() {
            if !(x.is_finite() && y.is_finite()) {
                to.stats.elements -= 1;
                to.observe_pair(self.index + offset as u64, (*x).into(), (*y).into());
                (*x, *y) = (0.0, 0.0);
                left_out += 1;
            }
        }
        let finite = Pair { x: &x, y: &y, ..*self };
        to.stats.different += u64::from(fast::run(level, Bits(&finite)).different);
        finite.observe_finite(left_out, to);
    }

    /// Adds the figures of finite pairs, `left_out` of which are not there.
    fn observe_finite(&self, left_out: u64, to: &mut PairAccumulator<'_>) {
        let (plan, stats) = (to.plan, &mut to.stats);
        let level = plan.level;
        stats.finite += self.len as u64 - left_out;
        let sums = fast::run(level, Errors { pair: self, tolerance: plan.tolerance });
        stats.sum_abs += sums.abs;
        stats.noise += sums.noise;
        stats.signal_x += sums.signal_x;
        stats.signal_y += sums.signal_y;
        stats.dot += sums.dot;
        stats.outside += sums.outside;
        if sums.max_abs > stats.max_abs {
            stats.max_abs = sums.max_abs;
            let mut pairs = (self.index..).zip(self.x.iter().zip(self.y));
            let is_worst = |x: f64, y: f64| (x - y).abs() == sums.max_abs;
            stats.worst = pairs.find_map(|(index, (&x, &y))| {
                let (x, y) = (f64::from(x), f64::from(y));
                is_worst(x, y).then_some(PairAt { index, x, y })
            });
        }
        let mut counters = [0; BLOCK];
        let found = match &plan.coarser {
            Coarser::Format { plan, slice } => {
                let (mut x, mut y) = ([0; BLOCK], [0; BLOCK]);
                for (orders, values) in [(&mut x, self.x), (&mut y, self.y)] {
                    orders_in(plan, slice.as_ref(), level, values, orders);
                }
                fast::run(level, Counters { pair: self, orders: (&x, &y), counters: &mut counters })
            }
            // Chunks of f32 are never of two binary64.
            Coarser::Float32(_) | Coarser::Float64 => {
                fast::run(level, SingleCounters { pair: self, counters: &mut counters })
            }
        };
        stats.sign_flips += found.sign_flips;
        if found.max_distance == 0 {
            to.ulps.add(0, self.len as u64 - left_out);
            return;
        }
        // The padding, and what was left out, count as distances of 0.
        let table = to.ulps.up_to(found.max_distance.into());
        for counter in &counters[..self.len] {
            if let Some(count) = table.get_mut(usize::from(*counter)) {
                *count += 1;
            }
        }
        to.ulps.take_zeros(left_out);
    }
}

/// The orders of values rounded to a format.
fn orders_in(
    plan: &CastPlan,
    slice: Option<&SliceCast>,
    level: fast::Level,
    values: &[f32; BLOCK],
    orders: &mut [i32; BLOCK],
) {
    let mut codes = [0_u32; BLOCK];
    match slice {
        Some(cast) => cast.encode(level, values, &mut codes),
        None => {
            for (code, x) in codes.iter_mut().zip(values) {
                *code = plan.cast_f32(*x, Place::default()).code;
            }
        }
    }
    fast::run(level, Orders { format: &plan.target, codes: &codes, orders });
}

struct Orders<'a> {
    format: &'a FormatSpec,
    codes: &'a [u32; BLOCK],
    orders: &'a mut [i32; BLOCK],
}

impl Kernel for Orders<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for (order, code) in self.orders.iter_mut().zip(self.codes) {
            *order = order_of_code(self.format, *code);
        }
    }
}

/// What the bits alone tell.
struct Bits<'p, 'a>(&'p Pair<'a>);

struct FoundInBits {
    /// Pairs with other bits.
    different: u32,
    /// Bits of the largest magnitude of either.
    largest: u32,
}

impl Kernel for Bits<'_, '_> {
    type Out = FoundInBits;

    #[inline(always)]
    fn run(self) -> FoundInBits {
        let (mut different, mut largest) = (0_u32, 0_u32);
        for (x, y) in self.0.x.iter().zip(self.0.y) {
            let (x, y) = (x.to_bits(), y.to_bits());
            different += u32::from(x != y);
            largest = largest.max(x & !SIGN).max(y & !SIGN);
        }
        FoundInBits { different, largest }
    }
}

/// Σ x² of pairs that are all equal.
struct Signal<'p, 'a>(&'p Pair<'a>);

impl Kernel for Signal<'_, '_> {
    type Out = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        super::super::block::sum_of_squares(self.0.x)
    }
}

/// Sums of products and errors, and the largest error, in an order that does not depend on the width of the
/// processor's vectors.
struct Errors<'p, 'a> {
    pair: &'p Pair<'a>,
    tolerance: Tolerance,
}

struct ErrorsFound {
    abs: f64,
    noise: f64,
    signal_x: f64,
    signal_y: f64,
    dot: f64,
    max_abs: f64,
    outside: u64,
}

impl Kernel for Errors<'_, '_> {
    type Out = ErrorsFound;

    #[inline(always)]
    fn run(self) -> ErrorsFound {
        let Tolerance { rtol, atol } = self.tolerance;
        let (mut abs, mut noise, mut max_abs) = ([0.0; LANES], [0.0; LANES], [0.0_f64; LANES]);
        let (mut signal_x, mut signal_y, mut dot) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let mut outside = [0_u64; LANES];
        let xs = self.pair.x.as_chunks::<LANES>().0;
        let ys = self.pair.y.as_chunks::<LANES>().0;
        for (xs, ys) in xs.iter().zip(ys) {
            for lane in 0..LANES {
                let (x, y) = (f64::from(xs[lane]), f64::from(ys[lane]));
                let error = (x - y).abs();
                abs[lane] += error;
                noise[lane] += error * error;
                signal_x[lane] += x * x;
                signal_y[lane] += y * y;
                dot[lane] += x * y;
                max_abs[lane] = if error > max_abs[lane] { error } else { max_abs[lane] };
                outside[lane] += u64::from(error > atol + rtol * x.abs());
            }
        }
        ErrorsFound {
            abs: abs.iter().sum(),
            noise: noise.iter().sum(),
            signal_x: signal_x.iter().sum(),
            signal_y: signal_y.iter().sum(),
            dot: dot.iter().sum(),
            max_abs: max_abs.iter().fold(0.0, |max, &lane| if lane > max { lane } else { max }),
            outside: outside.iter().sum(),
        }
    }
}

/// The counters of distances between f32, and what else integers tell.
struct SingleCounters<'p, 'a> {
    pair: &'p Pair<'a>,
    counters: &'p mut [u16; BLOCK],
}

struct CountersFound {
    max_distance: u32,
    sign_flips: u64,
}

impl Kernel for SingleCounters<'_, '_> {
    type Out = CountersFound;

    #[inline(always)]
    fn run(self) -> CountersFound {
        let (mut max_distance, mut sign_flips) = (0_u32, 0_u32);
        for (counter, (x, y)) in self.counters.iter_mut().zip(self.pair.x.iter().zip(self.pair.y)) {
            let (x, y) = (x.to_bits(), y.to_bits());
            let distance = order_of_bits(x).abs_diff(order_of_bits(y));
            max_distance = max_distance.max(distance);
            *counter = counter_of(distance) as u16;
            sign_flips += is_flip(x, y);
        }
        CountersFound { max_distance, sign_flips: sign_flips.into() }
    }
}

/// The counters of distances between values rounded to a format, and the signs of the values themselves.
struct Counters<'p, 'a> {
    pair: &'p Pair<'a>,
    orders: (&'p [i32; BLOCK], &'p [i32; BLOCK]),
    counters: &'p mut [u16; BLOCK],
}

impl Kernel for Counters<'_, '_> {
    type Out = CountersFound;

    #[inline(always)]
    fn run(self) -> CountersFound {
        let (mut max_distance, mut sign_flips) = (0_u32, 0_u32);
        for (counter, (x, y)) in self.counters.iter_mut().zip(self.orders.0.iter().zip(self.orders.1)) {
            let distance = x.abs_diff(*y);
            max_distance = max_distance.max(distance);
            *counter = counter_of(distance) as u16;
        }
        for (x, y) in self.pair.x.iter().zip(self.pair.y) {
            sign_flips += is_flip(x.to_bits(), y.to_bits());
        }
        CountersFound { max_distance, sign_flips: sign_flips.into() }
    }
}

/// 1 if both are nonzero and of opposite signs, else 0.
#[inline(always)]
fn is_flip(x: u32, y: u32) -> u32 {
    let nonzero = |bits: u32| u32::from(bits & !SIGN != 0);
    (x ^ y) >> 31 & nonzero(x) & nonzero(y)
}
