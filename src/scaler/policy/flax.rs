//! flax.training.dynamic_scale.DynamicScale, compiled by XLA.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Tests for growth before it counts, so a period is one step longer than the interval.
pub(in crate::scaler) struct Flax {
    scale: f32,
    growth_factor: f32,
    backoff_factor: f32,
    growth_interval: f64,
    min: f32,
    fin_steps: f64,
}

impl Flax {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, growth, backoff, growth_interval, min] = settings.take();
        Box::new(Self {
            scale: scale as f32,
            growth_factor: growth as f32,
            backoff_factor: backoff as f32,
            growth_interval,
            min: min as f32,
            fin_steps: 0.0,
        })
    }
}

/// XLA on the CPU takes subnormals for zero.
fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0 } else { x }
}

impl LossScaler for Flax {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        // At a scale of 0 every unscaled gradient is 0/0.
        if seen.found_inf || self.scale == 0.0 {
            self.fin_steps = 0.0;
            self.scale = flush(self.scale * self.backoff_factor).max(self.min);
            return Event::overflow(before, self.scale);
        }
        if self.fin_steps != self.growth_interval {
            self.fin_steps += 1.0;
            return Event::Clean;
        }
        self.fin_steps = 0.0;
        self.scale = (self.scale * self.growth_factor).min(f32::MAX);
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("fin_steps", self.fin_steps)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.fin_steps, self.growth_interval + 1.0))
    }
}
