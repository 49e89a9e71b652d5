//! DeepMind jmp's DynamicLossScale, and MindSpore's amp.DynamicLossScaler, which follows the same rule.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Counts modulo the period.
pub(in crate::scaler) struct Jmp {
    scale: f32,
    factor: f32,
    /// What the compiler makes of the division by a constant factor.
    inverse: Option<f32>,
    period: f64,
    min: f32,
    counter: f64,
}

impl Jmp {
    fn base(settings: &Settings) -> Self {
        let [scale, factor, period, min] = settings.take();
        let (scale, factor, min) = (scale as f32, factor as f32, min as f32);
        Self { scale, factor, inverse: None, period, min, counter: 0.0 }
    }

    pub(in crate::scaler) fn eager(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings))
    }

    /// The floor is left out where the scaler is taken apart for the compiler, and 1 put back.
    pub(in crate::scaler) fn jit(settings: &Settings) -> Box<dyn LossScaler> {
        let base = Self::base(settings);
        Box::new(Self { min: 1.0, inverse: Some(1.0 / base.factor), ..base })
    }

    pub(in crate::scaler) fn mindspore(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self { min: 1.0, ..Self::base(settings) })
    }
}

impl LossScaler for Jmp {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.counter = 0.0;
            let smaller = self.inverse.map_or(self.scale / self.factor, |inverse| self.scale * inverse);
            self.scale = smaller.max(self.min);
            return Event::overflow(before, self.scale);
        }
        let grows = self.counter == self.period - 1.0;
        self.counter = (self.counter + 1.0) % self.period;
        if !grows {
            return Event::Clean;
        }
        let grown = self.scale * self.factor;
        if grown.is_finite() {
            self.scale = grown;
        }
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("counter", self.counter), ("min_loss_scale", self.min.into())]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.counter, self.period))
    }
}
