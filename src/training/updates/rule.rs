//! An optimizer's step, as torch computes it in float32.
//!
//! Source: PyTorch 2.15 `torch/optim/{sgd,adam}.py`, the single-tensor functions, with the fused operations of its
//! CPU kernels (`add_` with alpha, `lerp_` and `addcmul_` round once).

use crate::cast::fast::{Kernel, Level, run};

/// Which optimizer, and what its inputs are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// d = −lr·g. The only input is the gradient, or the momentum buffer that takes its place.
    Sgd,
    /// Adam with bias correction. Inputs are `exp_avg` and `exp_avg_sq`, and before them the gradient if they are
    /// to be advanced by it first.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the denominator.
        eps: f64,
        /// Number of the step, from 1, after the moments are advanced.
        step: f64,
        /// Whether weight decay multiplies the weights (AdamW) or is added to the gradient (Adam).
        decoupled: bool,
        /// Whether the gradient advances the moments first.
        advances: bool,
    },
}

/// A rule with the settings of one tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The optimizer.
    pub rule: Rule,
    /// Learning rate, positive.
    pub lr: f64,
    /// Weight decay, 0 for none.
    pub weight_decay: f64,
}

impl Step {
    /// The factor c that the weights are multiplied by first.
    pub fn decay(&self) -> f32 {
        match self.rule {
            Rule::Adam { decoupled: true, .. } => (1.0 - self.lr * self.weight_decay) as f32,
            _ => 1.0,
        }
    }

    /// What a tensor beside the weights is called in messages: that at `position` of the inputs.
    pub fn input_name(&self, position: usize) -> &'static str {
        let moments = ["exp_avg", "exp_avg_sq"];
        match (self.rule, position) {
            (Rule::Sgd, _) | (Rule::Adam { advances: true, .. }, 0) => "gradient",
            (Rule::Adam { advances: true, .. }, _) => moments[(position - 1).min(1)],
            (Rule::Adam { .. }, _) => moments[position.min(1)],
        }
    }

    /// The increments d of `weights`, from the inputs that the rule names; exact products where torch fuses them
    /// with the addition that follows.
    pub fn increments(&self, level: Level, weights: &[f32], inputs: &[&[f32]], increments: &mut [f64]) {
        let decay = self.weight_decay as f32;
        match (self.rule, inputs) {
            (Rule::Sgd, &[gradient, ..]) => {
                run(level, Sgd { lr: -(self.lr as f32), decay, weights, gradient, increments });
            }
            (
                Rule::Adam { beta1, beta2, eps, step, decoupled, advances },
                &[ref gradient @ .., first, second],
            ) => {
                let correction = (1.0 - beta2.powf(step)).sqrt();
                let constants = Constants {
                    lr: -(self.lr / (1.0 - beta1.powf(step))) as f32,
                    correction: correction as f32,
                    eps: eps as f32,
                    beta1_rest: (1.0 - beta1) as f32,
                    beta2: beta2 as f32,
                    beta2_rest: (1.0 - beta2) as f32,
                    decay: if decoupled { 0.0 } else { decay },
                };
                match gradient {
                    [gradient] if advances => {
                        run(level, Advance { constants, weights, gradient, first, second, increments });
                    }
                    _ => run(level, Adam { constants, first, second, increments }),
                }
            }
            _ => increments.fill(0.0),
        }
    }
}

struct Sgd<'a> {
    lr: f32,
    decay: f32,
    weights: &'a [f32],
    gradient: &'a [f32],
    increments: &'a mut [f64],
}

impl Kernel for Sgd<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let inputs = self.weights.iter().zip(self.gradient);
        if self.decay == 0.0 {
            for ((_, g), d) in inputs.zip(self.increments) {
                *d = f64::from(self.lr) * f64::from(*g);
            }
        } else {
            for ((w, g), d) in inputs.zip(self.increments) {
                *d = f64::from(self.lr) * f64::from(self.decay.mul_add(*w, *g));
            }
        }
    }
}

/// What a step of Adam takes from its settings, as float32.
#[derive(Clone, Copy)]
struct Constants {
    lr: f32,
    correction: f32,
    eps: f32,
    beta1_rest: f32,
    beta2: f32,
    beta2_rest: f32,
    decay: f32,
}

impl Constants {
    #[inline(always)]
    fn increment(&self, first: f32, second: f32) -> f64 {
        let denominator = second.sqrt() / self.correction + self.eps;
        f64::from(self.lr * first / denominator)
    }

    /// Both moments after the gradient.
    #[inline(always)]
    fn advance(&self, w: f32, g: f32, first: f32, second: f32) -> (f32, f32) {
        let g = if self.decay == 0.0 { g } else { self.decay.mul_add(w, g) };
        // `lerp_` counts from the nearer end.
        let first = if self.beta1_rest < 0.5 {
            self.beta1_rest.mul_add(g - first, first)
        } else {
            (first - g).mul_add(1.0 - self.beta1_rest, g)
        };
        (first, (self.beta2_rest * g).mul_add(g, second * self.beta2))
    }
}

struct Adam<'a> {
    constants: Constants,
    first: &'a [f32],
    second: &'a [f32],
    increments: &'a mut [f64],
}

impl Kernel for Adam<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for ((m, v), d) in self.first.iter().zip(self.second).zip(self.increments) {
            *d = self.constants.increment(*m, *v);
        }
    }
}

struct Advance<'a> {
    constants: Constants,
    weights: &'a [f32],
    gradient: &'a [f32],
    first: &'a [f32],
    second: &'a [f32],
    increments: &'a mut [f64],
}

impl Kernel for Advance<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let inputs = self.weights.iter().zip(self.gradient).zip(self.first).zip(self.second);
        for ((((w, g), m), v), d) in inputs.zip(self.increments) {
            let (m, v) = self.constants.advance(*w, *g, *m, *v);
            *d = self.constants.increment(m, v);
        }
    }
}
