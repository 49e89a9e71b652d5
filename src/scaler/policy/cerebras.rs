//! Cerebras' amp.GradScaler.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Shrinks when the share of overflows since the last change exceeds a tolerance.
pub(in crate::scaler) struct Cerebras {
    scale: f32,
    steps_per_increase: f64,
    min: f32,
    max: f32,
    tolerance: f32,
    steps: f64,
    overflows: f64,
}

impl Cerebras {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, steps_per_increase, min, max, tolerance] = settings.take();
        Box::new(Self {
            scale: scale as f32,
            steps_per_increase,
            min: min as f32,
            max: max as f32,
            tolerance: tolerance as f32,
            steps: 0.0,
            overflows: 0.0,
        })
    }

    fn rescale(&mut self, factor: f32) {
        self.scale *= factor;
        (self.steps, self.overflows) = (0.0, 0.0);
    }
}

impl LossScaler for Cerebras {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        self.steps += 1.0;
        self.overflows += f64::from(u8::from(seen.found_inf));
        let shrinks = self.overflows as f32 / self.steps as f32 > self.tolerance;
        if shrinks {
            self.rescale(0.5);
        }
        let grows = self.steps_per_increase < self.steps;
        if grows {
            self.rescale(2.0);
        }
        self.scale = self.scale.min(self.max).max(self.min);
        match (seen.found_inf, shrinks, grows) {
            (true, true, _) => Event::overflow(before, self.scale),
            (true, false, _) => Event::Hysteresis,
            (false, _, true) => Event::growth(before, self.scale),
            (false, _, false) => Event::Clean,
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("steps_since_rescale", self.steps), ("overflows_since_rescale", self.overflows)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.steps, self.steps_per_increase + 1.0))
    }
}
