//! ColossalAI's DynamicGradScaler.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Counts overflows up to the hysteresis; the count is cleared by growth only.
pub(in crate::scaler) struct ColossalAi {
    scale: f32,
    growth_factor: f32,
    backoff_factor: f32,
    growth_interval: f64,
    hysteresis: f64,
    min: f32,
    max: f32,
    growth_step: f64,
    hysteresis_step: f64,
}

impl ColossalAi {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [initial, growth, backoff, growth_interval, hysteresis, min, max] = settings.take();
        Box::new(Self {
            scale: initial as f32,
            growth_factor: growth as f32,
            backoff_factor: backoff as f32,
            growth_interval,
            hysteresis,
            min: min as f32,
            max: max as f32,
            growth_step: 0.0,
            hysteresis_step: 0.0,
        })
    }
}

impl LossScaler for ColossalAi {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.hysteresis_step += 1.0;
            self.growth_step = 0.0;
            if self.hysteresis_step < self.hysteresis {
                return Event::Hysteresis;
            }
            self.scale = (self.scale * self.backoff_factor).max(self.min);
            return Event::overflow(before, self.scale);
        }
        self.growth_step += 1.0;
        if self.growth_step != self.growth_interval {
            return Event::Clean;
        }
        self.growth_step = 0.0;
        self.hysteresis_step = 0.0;
        self.scale = (self.scale * self.growth_factor).min(self.max);
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("growth_step", self.growth_step), ("hysteresis_step", self.hysteresis_step)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.growth_step, self.growth_interval))
    }
}
