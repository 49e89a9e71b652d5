//! What is counted of the source and of each cast, and the definition of both for one element.

use super::{Binades, ErrorSums};
use crate::cast::round::{Cast, Class};
use crate::cast::{CastPlan, Place};
use crate::format::{exponent_of, pow2};

/// The stored values themselves, before any cast.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStats {
    /// All elements.
    pub elements: u64,
    /// NaN elements.
    pub nan: u64,
    /// +Inf elements.
    pub positive_inf: u64,
    /// −Inf elements.
    pub negative_inf: u64,
    /// ±0 elements.
    pub zero: u64,
    /// Exponents of the finite nonzero elements.
    pub binades: Binades,
    /// Largest finite magnitude, 0 without finite elements.
    pub amax: f64,
    /// Smallest nonzero magnitude, Inf without finite nonzero elements.
    pub amin: f64,
    /// Σ x over finite elements.
    pub sum: f64,
    /// Σ x² over finite elements.
    pub sum_squares: f64,
}

impl Default for SourceStats {
    fn default() -> Self {
        Self {
            elements: 0,
            nan: 0,
            positive_inf: 0,
            negative_inf: 0,
            zero: 0,
            binades: Binades::default(),
            amax: 0.0,
            amin: f64::INFINITY,
            sum: 0.0,
            sum_squares: 0.0,
        }
    }
}

impl SourceStats {
    /// Adds `count` elements of value `x`.
    pub fn observe(&mut self, x: f64, count: u64) {
        self.count(x, count);
        if x.is_finite() {
            self.sum += count as f64 * x;
            self.sum_squares += count as f64 * (x * x);
        }
    }

    /// Counts `count` elements of value `x`, but leaves the sums alone.
    pub(super) fn count(&mut self, x: f64, count: u64) {
        self.elements += count;
        if x.is_nan() {
            self.nan += count;
        } else if x.is_infinite() {
            *(if x > 0.0 { &mut self.positive_inf } else { &mut self.negative_inf }) += count;
        } else if x == 0.0 {
            self.zero += count;
        } else {
            let exponent = exponent_of(x);
            let (positive, negative) = if x > 0.0 { (count, 0) } else { (0, count) };
            let at_power = if x.abs() == pow2(exponent) { count } else { 0 };
            self.binades.add(exponent, positive, negative, at_power);
            self.amax = self.amax.max(x.abs());
            self.amin = self.amin.min(x.abs());
        }
    }

    /// Adds the statistics of the elements that follow.
    pub fn merge(&mut self, next: &Self) {
        self.elements += next.elements;
        self.nan += next.nan;
        self.positive_inf += next.positive_inf;
        self.negative_inf += next.negative_inf;
        self.zero += next.zero;
        self.binades.merge(&next.binades);
        self.amax = self.amax.max(next.amax);
        self.amin = self.amin.min(next.amin);
        self.sum += next.sum;
        self.sum_squares += next.sum_squares;
    }

    /// ±Inf elements.
    pub fn inf(&self) -> u64 {
        self.positive_inf + self.negative_inf
    }

    /// Finite elements, zeros included.
    pub fn finite(&self) -> u64 {
        self.elements - self.nan - self.inf()
    }

    /// Finite nonzero elements: the denominator of every `*_pct`.
    pub fn nonzero_finite(&self) -> u64 {
        self.finite() - self.zero
    }

    /// Largest finite magnitude; `None` without finite elements.
    pub fn amax(&self) -> Option<f64> {
        (self.finite() > 0).then_some(self.amax)
    }

    /// Smallest nonzero magnitude; `None` without finite nonzero elements.
    pub fn amin(&self) -> Option<f64> {
        (self.nonzero_finite() > 0).then_some(self.amin)
    }

    /// log2(amax / amin); `None` without finite nonzero elements.
    pub fn dynamic_range_log2(&self) -> Option<f64> {
        (self.nonzero_finite() > 0).then(|| libm::log2(self.amax) - libm::log2(self.amin))
    }

    /// Mean of the finite elements.
    pub fn mean(&self) -> Option<f64> {
        (self.finite() > 0).then(|| self.sum / self.finite() as f64)
    }

    /// Root of the mean square of the finite elements.
    pub fn rms(&self) -> Option<f64> {
        (self.finite() > 0).then(|| (self.sum_squares / self.finite() as f64).sqrt())
    }
}

/// How many elements have each class. The counts add up to the number of elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// The source is NaN.
    pub nan: u64,
    /// The source is ±Inf.
    pub inf: u64,
    /// The source is ±0.
    pub zero: u64,
    /// Nonzero, but cast to zero.
    pub underflow: u64,
    /// Cast to a nonzero subnormal number.
    pub subnormal: u64,
    /// Cast to a normal number.
    pub normal: u64,
    /// Outside the format's range once rounded.
    pub overflow: u64,
}

impl ClassCounts {
    /// Adds `count` elements of class `class`.
    pub fn add(&mut self, class: Class, count: u64) {
        let slot = match class {
            Class::Nan => &mut self.nan,
            Class::Inf => &mut self.inf,
            Class::Zero => &mut self.zero,
            Class::Underflow => &mut self.underflow,
            Class::Subnormal => &mut self.subnormal,
            Class::Normal => &mut self.normal,
            Class::Overflow => &mut self.overflow,
        };
        *slot += count;
    }

    /// Adds other counts.
    pub fn merge(&mut self, next: &Self) {
        self.nan += next.nan;
        self.inf += next.inf;
        self.zero += next.zero;
        self.underflow += next.underflow;
        self.subnormal += next.subnormal;
        self.normal += next.normal;
        self.overflow += next.overflow;
    }

    /// All elements.
    pub fn total(&self) -> u64 {
        self.nan + self.inf + self.zero + self.nonzero_finite()
    }

    /// Finite nonzero elements.
    pub fn nonzero_finite(&self) -> u64 {
        self.underflow + self.subnormal + self.normal + self.overflow
    }
}

/// What one cast does to the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FormatStats {
    /// Elements by class.
    pub classes: ClassCounts,
    /// Finite elements with |x·s| above the largest finite number, before rounding (Transformer Engine's
    /// overflow).
    pub exceeds_max: u64,
    /// Errors of q/s against x.
    pub errors: ErrorSums,
}

impl FormatStats {
    /// Casts an element of a source of up to 32 bits. THE definition: every faster engine must count and
    /// sum as this does.
    pub fn observe_f32(&mut self, plan: &CastPlan, x: f32, place: Place) {
        let product = f64::from(x * plan.scale);
        self.observe(plan, x.into(), product, plan.cast_f32(x, place));
    }

    /// Casts an element of a 64-bit source.
    pub fn observe_f64(&mut self, plan: &CastPlan, x: f64, place: Place) {
        self.observe(plan, x, x * f64::from(plan.scale), plan.cast_f64(x, place));
    }

    fn observe(&mut self, plan: &CastPlan, x: f64, product: f64, q: Cast) {
        self.classes.add(q.class, 1);
        if !x.is_finite() {
            return;
        }
        if product.abs() > plan.target.max_finite() {
            self.exceeds_max += 1;
        }
        self.errors.observe(x, plan.dequantise(q), 1);
    }

    /// Adds the statistics of the elements that follow.
    pub fn merge(&mut self, next: &Self) {
        self.classes.merge(&next.classes);
        self.exceeds_max += next.exceeds_max;
        self.errors.merge(&next.errors);
    }
}
