//! Keras 3's and Keras 2's LossScaleOptimizer, TensorFlow 1's DynamicLossScale, ONNX Runtime's scaler.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Keras 3: no floor and no ceiling; on XLA, where it usually runs, a subnormal scale is zero.
pub(in crate::scaler) struct Keras3 {
    scale: f32,
    growth_steps: f64,
    counter: f64,
}

impl Keras3 {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, growth_steps] = settings.take();
        Box::new(Self { scale: scale as f32, growth_steps, counter: 0.0 })
    }
}

impl LossScaler for Keras3 {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.counter = 0.0;
            let halved = self.scale * 0.5;
            self.scale = if halved.is_subnormal() { 0.0 } else { halved };
            return Event::overflow(before, self.scale);
        }
        if self.counter != self.growth_steps - 1.0 {
            self.counter += 1.0;
            return Event::Clean;
        }
        self.counter = 0.0;
        self.scale *= 2.0;
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("step_counter", self.counter)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.counter, self.growth_steps))
    }
}

/// Keras 2 and TensorFlow 1: not below 1, not to Inf.
pub(in crate::scaler) struct TensorFlow {
    scale: f32,
    multiplier: f32,
    /// What the scale is multiplied by, or else divided.
    inverse: Option<f32>,
    growth_steps: f64,
    counter: f64,
}

impl TensorFlow {
    fn base(settings: &Settings) -> Self {
        let [scale, growth_steps, multiplier] = settings.take();
        let (scale, multiplier) = (scale as f32, multiplier as f32);
        Self { scale, multiplier, inverse: None, growth_steps, counter: 0.0 }
    }

    pub(in crate::scaler) fn keras2(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings))
    }

    pub(in crate::scaler) fn v1(settings: &Settings) -> Box<dyn LossScaler> {
        let base = Self::base(settings);
        // In a graph the division by a constant becomes a product.
        Box::new(Self { inverse: Some(1.0 / base.multiplier), ..base })
    }
}

impl LossScaler for TensorFlow {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.counter = 0.0;
            let smaller = self.inverse.map_or(self.scale / self.multiplier, |inverse| self.scale * inverse);
            self.scale = smaller.max(1.0);
            return Event::overflow(before, self.scale);
        }
        self.counter += 1.0;
        if self.counter < self.growth_steps {
            return Event::Clean;
        }
        self.counter = 0.0;
        let grown = self.scale * self.multiplier;
        if grown.is_finite() {
            self.scale = grown;
        }
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("counter", self.counter)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.counter, self.growth_steps))
    }
}

/// ONNX Runtime training: f64 with a floor and a ceiling.
pub(in crate::scaler) struct OnnxRuntime {
    scale: f64,
    window: f64,
    min: f64,
    max: f64,
    stable: f64,
}

impl OnnxRuntime {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, window, min, max] = settings.take();
        Box::new(Self { scale, window, min, max, stable: 0.0 })
    }
}

impl LossScaler for OnnxRuntime {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.stable = 0.0;
            self.scale = (self.scale / 2.0).max(self.min);
            return Event::overflow(before, self.scale);
        }
        self.stable += 1.0;
        if self.stable < self.window {
            return Event::Clean;
        }
        self.stable = 0.0;
        self.scale = (self.scale * 2.0).min(self.max);
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("stable_steps", self.stable)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.stable, self.window))
    }
}
