//! MXNet 1.x contrib.amp.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// The decision of one step reaches the loss of the next but one: that of the next was scaled already.
pub(in crate::scaler) struct Mxnet {
    scale: f64,
    next: f64,
    window: f64,
    max: f64,
    unskipped: f64,
}

impl Mxnet {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, window, max] = settings.take();
        Box::new(Self { scale, next: scale, window, max, unskipped: 0.0 })
    }
}

impl LossScaler for Mxnet {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        self.scale = self.next;
        if seen.found_inf {
            self.unskipped = 0.0;
            self.next = self.scale / 2.0;
            return Event::overflow(self.scale, self.next);
        }
        self.unskipped += 1.0;
        if self.unskipped != self.window {
            return Event::Clean;
        }
        self.unskipped = 0.0;
        self.next = (self.scale * 2.0).min(self.max);
        Event::growth(self.scale, self.next)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("next_loss_scale", self.next), ("unskipped", self.unskipped)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.unskipped, self.window))
    }
}
