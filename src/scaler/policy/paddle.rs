//! Paddle's GradScaler (dygraph) and the operator update_loss_scaling (static graphs, PIR).

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Counts overflows in a row; a clean step clears the count.
pub(in crate::scaler) struct Paddle {
    scale: f32,
    increase: f32,
    decrease: f32,
    increase_every: f64,
    decrease_every: f64,
    /// The operator: never below 1, never to Inf.
    bounded: bool,
    good: f64,
    bad: f64,
}

impl Paddle {
    fn base(settings: &Settings, bounded: bool) -> Box<dyn LossScaler> {
        let [scale, increase, decrease, increase_every, decrease_every] = settings.take();
        Box::new(Self {
            scale: scale as f32,
            increase: increase as f32,
            decrease: decrease as f32,
            increase_every,
            decrease_every,
            bounded,
            good: 0.0,
            bad: 0.0,
        })
    }

    pub(in crate::scaler) fn dygraph(settings: &Settings) -> Box<dyn LossScaler> {
        Self::base(settings, false)
    }

    pub(in crate::scaler) fn operator(settings: &Settings) -> Box<dyn LossScaler> {
        Self::base(settings, true)
    }
}

impl LossScaler for Paddle {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        if seen.found_inf {
            self.good = 0.0;
            self.bad += 1.0;
            if self.bad != self.decrease_every {
                return Event::Hysteresis;
            }
            self.bad = 0.0;
            self.scale *= self.decrease;
            if self.bounded {
                self.scale = self.scale.max(1.0);
            }
            return Event::overflow(before, self.scale);
        }
        self.bad = 0.0;
        self.good += 1.0;
        if self.good != self.increase_every {
            return Event::Clean;
        }
        self.good = 0.0;
        let grown = self.scale * self.increase;
        if !self.bounded || grown.is_finite() {
            self.scale = grown;
        }
        Event::growth(before, self.scale)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let (good, bad) =
            if self.bounded { ("good_steps", "bad_steps") } else { ("incr_count", "decr_count") };
        vec![(good, self.good), (bad, self.bad)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.good, self.increase_every))
    }
}
