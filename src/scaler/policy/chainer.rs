//! Chainer's Optimizer.loss_scaling with a dynamic scale.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Doubles each step until the first overflow, then creeps up by the interval-th root of 2 a step.
pub(in crate::scaler) struct Chainer {
    scale: f64,
    interval: f64,
    min: f64,
    max: f64,
    overflowed: bool,
}

impl Chainer {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, interval, min, max] = settings.take();
        Box::new(Self { scale, interval, min, max, overflowed: false })
    }
}

impl LossScaler for Chainer {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        self.overflowed |= seen.found_inf;
        let factor = match (seen.found_inf, self.overflowed) {
            (true, _) => 0.5,
            (false, false) => 2.0,
            (false, true) => libm::pow(2.0, 1.0 / self.interval),
        };
        self.scale = (self.scale * factor).min(self.max).max(self.min);
        if seen.found_inf { Event::overflow(before, self.scale) } else { Event::growth(before, self.scale) }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
