//! Delayed scaling: the scale of a step follows from the largest magnitudes of the steps before it.
//!
//! Sources: Transformer Engine at d0067d0d: `common/recipe/delayed_scaling.cu` (the fused kernels),
//! `pytorch/quantization.py` (the Python path), `jax/quantize/quantizer.py`. Each variant computes in f32 in its
//! own order of operations, and agrees with recordings of the original bit for bit.

use std::collections::VecDeque;

use crate::format::pow2;

/// Whose arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The kernel that updates all tensors of a module at once: what PyTorch uses.
    Fused,
    /// The kernel of the single-tensor interface.
    Single,
    /// The update in Python: a callable `amax_compute_algo`, or `NVTE_UNFUSED_FP8_UPDATE=1`.
    Python,
    /// `DelayedScaleQuantizer` of JAX, as XLA computes it on a CPU.
    Jax,
}

/// Every variant with its name and what sets it apart.
pub const VARIANTS: &[(&str, Variant, &str)] = &[
    ("te", Variant::Fused, "fused kernel of PyTorch: an amax of 0 leaves history and scale alone"),
    ("te-single", Variant::Single, "single-tensor kernel: an amax of 0 enters the history"),
    ("te-python", Variant::Python, "NVTE_UNFUSED_FP8_UPDATE=1: reciprocal times max, two roundings"),
    ("jax", Variant::Jax, "a NaN stays in the history; the scale of a tiny amax is Inf"),
];

/// How one magnitude is taken from the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmaxAlgo {
    /// The largest.
    Max,
    /// The newest.
    MostRecent,
}

/// Every way, by Transformer Engine's name.
pub const AMAX_ALGOS: &[(&str, AmaxAlgo, &str)] = &[
    ("max", AmaxAlgo::Max, "the largest of the history"),
    ("most_recent", AmaxAlgo::MostRecent, "that of the step before"),
];

/// Transformer Engine's recipe, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Steps in the history, at least 1 (`amax_history_len`).
    pub history: usize,
    /// The scale is divided by 2^margin.
    pub margin: i32,
    /// What is taken from the history (`amax_compute_algo`).
    pub algo: AmaxAlgo,
}

impl Default for Settings {
    fn default() -> Self {
        Self { history: 1024, margin: 0, algo: AmaxAlgo::Max }
    }
}

/// Why an update has left the scale alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The magnitude taken from the history is 0.
    Zero,
    /// It is Inf or NaN.
    NonFinite,
}

/// The scale of one tensor and the magnitudes it will be formed from.
#[derive(Clone, Debug)]
pub struct Delayed {
    variant: Variant,
    settings: Settings,
    /// Largest number of the format.
    max: f32,
    /// Magnitudes of the steps before, oldest first, at most `settings.history` − 1.
    before: VecDeque<f32>,
    scale: f32,
}

impl Delayed {
    /// The state before the first step: scale 1, no history. `max` is the largest number of the format.
    pub fn new(variant: Variant, settings: Settings, max: f32) -> Self {
        Self { variant, settings, max, before: VecDeque::new(), scale: 1.0 }
    }

    /// The scale that the next step uses.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// The scale of a history whose magnitude is `amax`, finite and positive.
    pub fn scale_of(&self, amax: f32) -> f32 {
        let margin = pow2(self.settings.margin);
        let scaled = |divisor: f64| (f64::from(self.max) / divisor) as f32;
        let scale = match self.variant {
            Variant::Fused | Variant::Single => scaled(margin) / amax,
            // torch takes a number over a tensor for the number times the tensor's reciprocal.
            Variant::Python => (1.0 / amax * self.max) / margin as f32,
            Variant::Jax => return (self.max / amax) / margin as f32,
        };
        if scale.is_infinite() { f32::MAX } else { scale }
    }

    /// Ends a step whose largest magnitude was `amax`. Gives the magnitude that the history stands for, and why the
    /// scale has not followed it, if it has not.
    pub fn update(&mut self, amax: f32) -> (f32, Option<Kept>) {
        let taken = match self.settings.algo {
            AmaxAlgo::MostRecent => amax,
            AmaxAlgo::Max => self.before.iter().fold(amax, |largest, &x| self.larger(largest, x)),
        };
        // The fused kernel takes a newest amax of 0 for a module that did not run.
        if self.variant == Variant::Fused && amax == 0.0 {
            return (0.0, Some(Kept::Zero));
        }
        self.before.push_back(amax);
        if self.before.len() >= self.settings.history {
            self.before.pop_front();
        }
        if taken == 0.0 {
            return (taken, Some(Kept::Zero));
        }
        if !taken.is_finite() {
            return (taken, Some(Kept::NonFinite));
        }
        self.scale = self.scale_of(taken);
        (taken, None)
    }

    /// The larger of two: the kernels' `fmaxf` passes over NaN, torch and JAX keep it.
    fn larger(&self, a: f32, b: f32) -> f32 {
        let keeps_nan = matches!(self.variant, Variant::Python | Variant::Jax);
        if keeps_nan && (a.is_nan() || b.is_nan()) { f32::NAN } else { a.max(b) }
    }
}

impl Variant {
    /// The name in recipes.
    pub fn name(self) -> &'static str {
        VARIANTS.iter().find(|(_, variant, _)| *variant == self).map_or("", |(name, ..)| name)
    }

    /// Whether the largest magnitude of a tensor is taken so that a NaN in it is passed over: Transformer Engine's
    /// cast kernels do, `jnp.max` does not.
    pub fn passes_over_nan(self) -> bool {
        self != Self::Jax
    }
}
