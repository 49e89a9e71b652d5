//! Megatron-core's DynamicGradScaler.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// f32 all through; the hysteresis is refilled by growth only, and nothing guards against Inf.
pub(in crate::scaler) struct Megatron {
    scale: f32,
    min: f32,
    growth_factor: f32,
    backoff_factor: f32,
    growth_interval: f64,
    hysteresis: f64,
    growth_tracker: f64,
    hysteresis_tracker: f64,
}

impl Megatron {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [initial, min, growth, backoff, growth_interval, hysteresis] = settings.take();
        Box::new(Self {
            scale: initial as f32,
            min: min as f32,
            growth_factor: growth as f32,
            backoff_factor: backoff as f32,
            growth_interval,
            hysteresis,
            growth_tracker: 0.0,
            hysteresis_tracker: hysteresis,
        })
    }
}

impl LossScaler for Megatron {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.growth_tracker = 0.0;
            self.hysteresis_tracker -= 1.0;
            if self.hysteresis_tracker > 0.0 {
                return Event::Hysteresis;
            }
            self.scale = (self.scale * self.backoff_factor).max(self.min);
            return Event::overflow(before, self.scale);
        }
        self.growth_tracker += 1.0;
        if self.growth_tracker != self.growth_interval {
            return Event::Clean;
        }
        self.growth_tracker = 0.0;
        self.hysteresis_tracker = self.hysteresis;
        self.scale *= self.growth_factor;
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("growth_tracker", self.growth_tracker), ("hysteresis_tracker", self.hysteresis_tracker)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.growth_tracker, self.growth_interval))
    }
}
