//! MindSpore's DynamicLossScaleManager (on the host) and the DynamicLossScaleUpdateCell used in training.

use crate::scaler::{Event, LossScaler, Seen, Settings};

const TOO_MANY: &str = "RuntimeError: more than 1000 overflows in a row";

/// The manager: f64, gives up after 1000 overflows in a row.
pub(in crate::scaler) struct Manager {
    scale: f64,
    factor: f64,
    window: f64,
    iter: f64,
    last_overflow: f64,
    bad: f64,
}

impl Manager {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, factor, window] = settings.take();
        Box::new(Self { scale, factor, window, iter: 1.0, last_overflow: 0.0, bad: 0.0 })
    }
}

impl LossScaler for Manager {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        let mut event = Event::Clean;
        if seen.found_inf {
            self.scale = (self.scale * (1.0 / self.factor)).max(1.0);
            self.last_overflow = self.iter;
            self.bad += 1.0;
            event = Event::overflow(before, self.scale);
        } else {
            if (self.iter - self.last_overflow) % self.window == 0.0 {
                self.scale *= self.factor;
                event = Event::growth(before, self.scale);
            }
            self.bad = 0.0;
        }
        if self.bad > 1000.0 {
            return Event::Abort(TOO_MANY);
        }
        self.iter += 1.0;
        event
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("cur_iter", self.iter), ("last_overflow_iter", self.last_overflow), ("bad_step", self.bad)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some(((self.iter - 1.0 - self.last_overflow) % self.window, self.window))
    }
}

/// The cell: f32, never gives up.
pub(in crate::scaler) struct UpdateCell {
    scale: f32,
    factor: f32,
    window: f64,
    iter: f64,
    last_overflow: f64,
}

impl UpdateCell {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, factor, window] = settings.take();
        let (scale, factor) = (scale as f32, factor as f32);
        Box::new(Self { scale, factor, window, iter: 1.0, last_overflow: 0.0 })
    }
}

impl LossScaler for UpdateCell {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        let grows = self.window <= self.iter - self.last_overflow;
        if seen.found_inf {
            self.scale = (self.scale * (1.0 / self.factor)).max(1.0);
        } else if grows {
            self.scale *= self.factor;
        }
        if seen.found_inf || grows {
            self.last_overflow = self.iter;
        }
        self.iter += 1.0;
        match (seen.found_inf, grows) {
            (true, _) => Event::overflow(before, self.scale),
            (false, true) => Event::growth(before, self.scale),
            (false, false) => Event::Clean,
        }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("cur_iter", self.iter), ("last_overflow_iter", self.last_overflow)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.iter - 1.0 - self.last_overflow, self.window))
    }
}
