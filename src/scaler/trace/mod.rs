//! What was recorded of each training step, and what that says about another scale.
//!
//! Three kinds of evidence are joined. The largest magnitude of the *true* gradients decides any scale by the
//! format's own rounding. A recorded flag decides the scale it was recorded at, every smaller one if it was
//! clean, and every larger one if it overflowed. A true gradient that is itself NaN or Inf overflows at any
//! scale. Gradients of parameters give a lower bound: those of activations can overflow before them.

mod columns;
mod events;
mod join;
mod read;
mod synthetic;

pub use columns::{Column, ROLES, Role};
pub use join::{EVIDENCES, Evidence, FP32_GRADS, Join, Magnitude};
pub use read::read;
pub use synthetic::{SYNTHETICS, Synthetic};

use crate::format::{FormatSpec, pow2};
use crate::stats::SourceStats;

/// Which tensor, as an index into [`Trace::tensors`].
pub type TensorIndex = Option<u32>;

/// The largest magnitude of some gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Largest {
    /// In true units; NaN if it is not known.
    pub amax: f64,
    /// The tensor that has it.
    pub tensor: TensorIndex,
}

impl Largest {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { amax: f64::NAN, tensor: None };

    /// Takes the larger of both.
    pub fn raise(&mut self, amax: f64, tensor: TensorIndex) {
        if self.amax.is_nan() || amax > self.amax {
            *self = Self { amax, tensor };
        }
    }
}

/// What the training itself found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// The scale that was in force; NaN if it was not recorded.
    pub scale: f64,
    /// Whether the scaled gradients were non-finite.
    pub found_inf: bool,
    /// A tensor that was.
    pub tensor: TensorIndex,
}

/// One recorded step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its number in the run.
    pub number: u64,
    /// The gradients that pass through the low-precision format.
    pub low: Largest,
    /// The gradients that are made in float32.
    pub single: Largest,
    /// Whether the true gradients hold NaN or Inf: then no scale helps.
    pub nonfinite: Option<TensorIndex>,
    /// What the training found.
    pub recorded: Option<Recorded>,
    /// Norm of all true gradients; NaN if it is not known.
    pub norm: f64,
    /// Index into [`Trace::histograms`] of the gradients that pass through the format.
    pub histogram: Option<u32>,
}

impl Step {
    /// A step of which nothing is known.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            low: Largest::UNKNOWN,
            single: Largest::UNKNOWN,
            nonfinite: None,
            recorded: None,
            norm: f64::NAN,
            histogram: None,
        }
    }

    /// The largest magnitude of all gradients; NaN if it is not known.
    pub fn amax(&self) -> f64 {
        self.low.amax.max(self.single.amax)
    }
}

/// What a step's gradients would be at some scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// All finite.
    Finite,
    /// All finite as far as is known: the flag was recorded at a smaller scale, and there is nothing else.
    FinitePresumably,
    /// The product of this tensor and the scale is beyond the format's range.
    TooHigh(TensorIndex),
    /// The training recorded an overflow, at this scale or a smaller one.
    Recorded(TensorIndex),
    /// As `Recorded`, but at a larger scale or at one that is not known, and there is nothing else.
    RecordedPresumably(TensorIndex),
    /// The true gradients are NaN or Inf.
    NonFinite(TensorIndex),
}

impl Found {
    /// Whether the scaler sees an Inf or NaN.
    pub fn found_inf(self) -> bool {
        !matches!(self, Self::Finite | Self::FinitePresumably)
    }

    /// Whether a flag is taken for a scale that it does not decide.
    pub fn presumed(self) -> bool {
        matches!(self, Self::FinitePresumably | Self::RecordedPresumably(_))
    }

    /// The tensor at fault.
    pub fn tensor(self) -> TensorIndex {
        match self {
            Self::Finite | Self::FinitePresumably => None,
            Self::TooHigh(tensor)
            | Self::Recorded(tensor)
            | Self::RecordedPresumably(tensor)
            | Self::NonFinite(tensor) => tensor,
        }
    }

    /// Why, as CSV and JSON have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finite | Self::FinitePresumably => "",
            Self::TooHigh(_) => "scale too high",
            Self::Recorded(_) | Self::RecordedPresumably(_) => "recorded",
            Self::NonFinite(_) => "no scale helps",
        }
    }
}

/// Recorded steps, in ascending order of their numbers.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The steps.
    pub steps: Vec<Step>,
    /// Names of the tensors that the steps point to.
    pub tensors: Vec<String>,
    /// Exact histograms of the gradients of a step, where dumps were read.
    pub histograms: Vec<SourceStats>,
    /// The same for each tensor over all steps, in the order of `tensors`.
    pub by_tensor: Vec<SourceStats>,
    format: FormatSpec,
    /// Scaled gradients from here on overflow.
    limit: f64,
}

impl Trace {
    /// A trace without steps, of gradients that are made in `format`.
    pub fn new(format: FormatSpec) -> Self {
        // Products are f32: "from here on" and "above" differ by one of them.
        let threshold = format.overflow_threshold();
        let limit = if format.overflow_includes_tie() { threshold } else { threshold.next_up() };
        Self {
            steps: Vec::new(),
            tensors: Vec::new(),
            histograms: Vec::new(),
            by_tensor: Vec::new(),
            format,
            limit,
        }
    }

    /// The format that scaled gradients are made in.
    pub fn format(&self) -> &FormatSpec {
        &self.format
    }

    /// What the gradients of `step` are at `scale`. Products are formed in f32, as the frameworks do.
    #[inline]
    pub fn at_scale(&self, step: &Step, scale: f64) -> Found {
        if let Some(tensor) = step.nonfinite {
            return Found::NonFinite(tensor);
        }
        if let Some(recorded) = step.recorded {
            if !recorded.found_inf && scale <= recorded.scale {
                return Found::Finite;
            }
            if recorded.found_inf && scale >= recorded.scale {
                let at_fault = self.too_high(step.low.amax, scale).then_some(step.low.tensor);
                return Found::Recorded(recorded.tensor.or(at_fault.flatten()));
            }
        }
        let (low, single) = (step.low, step.single);
        if low.amax.is_nan() && single.amax.is_nan() {
            return match step.recorded {
                Some(Recorded { found_inf: true, tensor, .. }) => Found::RecordedPresumably(tensor),
                _ => Found::FinitePresumably,
            };
        }
        let factor = scale as f32;
        if self.too_high(low.amax, scale) {
            return Found::TooHigh(low.tensor);
        }
        // A scale of Inf turns zeros into NaN.
        if (single.amax as f32 * factor).is_infinite() || factor.is_infinite() {
            return Found::TooHigh(single.tensor.or(low.tensor));
        }
        Found::Finite
    }

    /// Whether a magnitude, multiplied in f32, rounds beyond the format's largest number. NaN does not.
    #[inline]
    fn too_high(&self, amax: f64, scale: f64) -> bool {
        f64::from(amax as f32 * scale as f32) >= self.limit
    }

    /// log2 of the largest power of two at which `step` does not overflow; `None` if every scale does, or that is
    /// not known.
    pub fn largest_without_overflow(&self, step: &Step) -> Option<i32> {
        let found = |k: i32| self.at_scale(step, pow2(k));
        if found(127).presumed() {
            return None;
        }
        // What overflows at a scale overflows at every larger one.
        let (mut fits, mut too_large) = (-127, 128);
        while too_large - fits > 1 {
            let middle = i32::midpoint(fits, too_large);
            *(if found(middle).found_inf() { &mut too_large } else { &mut fits }) = middle;
        }
        (fits >= -126).then_some(fits)
    }

    /// The name of a tensor.
    pub fn name(&self, tensor: TensorIndex) -> Option<&str> {
        self.tensors.get(tensor? as usize).map(String::as_str)
    }

    /// log2 of the format's largest number over the largest scaled gradient, in bits; NaN if unknown.
    pub fn headroom_log2(&self, step: &Step, scale: f64) -> f64 {
        let amax = if step.low.amax.is_nan() { step.single.amax } else { step.low.amax };
        libm::log2(self.format.max_finite() / (amax * scale))
    }

    /// Steps whose true gradients hold NaN or Inf.
    pub fn nonfinite(&self) -> u64 {
        self.steps.iter().filter(|step| step.nonfinite.is_some()).count() as u64
    }
}
