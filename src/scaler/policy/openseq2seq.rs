//! OpenSeq2Seq's AutomaticLossScaler: Backoff and LogMax.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Backoff: the iteration-counting rule between a floor and a ceiling.
pub(in crate::scaler) struct Backoff {
    scale: f32,
    factor: f32,
    window: f64,
    min: f32,
    max: f32,
    iter: f64,
    last_overflow: f64,
}

impl Backoff {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [factor, window, min, max] = settings.take();
        let (factor, min, max) = (factor as f32, min as f32, max as f32);
        Box::new(Self { scale: max, factor, window, min, max, iter: 0.0, last_overflow: -1.0 })
    }
}

impl LossScaler for Backoff {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        let mut event = Event::Clean;
        if seen.found_inf {
            // In a graph the division by a constant becomes a product.
            self.scale = (self.scale * (1.0 / self.factor)).min(self.max).max(self.min);
            self.last_overflow = self.iter;
            event = Event::overflow(before, self.scale);
        } else if (self.iter - self.last_overflow) % self.window == 0.0 {
            self.scale = (self.scale * self.factor).min(self.max).max(self.min);
            event = Event::growth(before, self.scale);
        }
        self.iter += 1.0;
        event
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some(((self.iter - 1.0 - self.last_overflow).max(0.0) % self.window, self.window))
    }
}

/// LogMax: keeps the logarithm of the largest gradient, taken for normally distributed, below 2^16 with a
/// given number of standard deviations to spare. In f32, so the last bits are those of the platform's
/// logarithm.
pub(in crate::scaler) struct LogMax {
    scale: f32,
    log_max: f32,
    /// Decays, and 1 minus the decay: both rounded from f64.
    beta1: [f32; 2],
    beta2: [f32; 2],
    deviations: f32,
    min: f32,
    max: f32,
    /// Averages of x, x and x², with the weights β₁, β₂ and β₂, and what corrects their bias.
    slow: f32,
    mean: f32,
    square: f32,
    correction1: f32,
    correction2: f32,
}

impl LogMax {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [log_max, beta1, beta2, deviations, min, max] = settings.take();
        let [beta1, beta2] = [beta1, beta2].map(|beta: f64| [beta as f32, (1.0 - beta) as f32]);
        let [log_max, deviations, min, max] = [log_max, deviations, min, max].map(|x: f64| x as f32);
        Box::new(Self {
            scale: 1.0,
            log_max,
            beta1,
            beta2,
            deviations,
            min,
            max,
            slow: 0.0,
            mean: 0.0,
            square: 0.0,
            correction1: 1.0,
            correction2: 1.0,
        })
    }
}

impl LossScaler for LogMax {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        // A step without finite gradients enters with 2^log_max itself, not with its logarithm.
        let x = if seen.found_inf {
            libm::exp2f(self.log_max)
        } else {
            libm::logf(seen.amax as f32) / std::f32::consts::LN_2
        };
        let average = |old: f32, x: f32, [beta, rest]: [f32; 2]| beta * old + rest * x;
        self.slow = average(self.slow, x, self.beta1);
        self.mean = average(self.mean, x, self.beta2);
        self.square = average(self.square, x * x, self.beta2);
        self.correction1 *= self.beta1[0];
        self.correction2 *= self.beta2[0];
        let mu = self.slow / (1.0 - self.correction1);
        let (mean, square) = (self.mean / (1.0 - self.correction2), self.square / (1.0 - self.correction2));
        let sigma = (square - mean * mean).max(0.0).sqrt();
        let exponent = 16.0 - (sigma * self.deviations + mu);
        let wanted = libm::exp2f(exponent);
        // NaN stays NaN, as in the graph.
        self.scale = if wanted > self.max {
            self.max
        } else if wanted < self.min {
            self.min
        } else {
            wanted
        };
        match (seen.found_inf, self.scale > before, self.scale < before) {
            (true, _, true) => Event::Backoff,
            (true, _, false) => Event::Skip,
            (false, true, _) => Event::Grow,
            (false, false, true) => Event::Shrink,
            (false, false, false) => Event::Clean,
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
