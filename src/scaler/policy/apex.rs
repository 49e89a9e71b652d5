//! apex.amp's LossScaler, static and dynamic, and scalers that never change.

use crate::scaler::{Event, LossScaler, Seen, Settings};

const DIVISION_BY_ZERO: &str = "ZeroDivisionError: float division by zero";

/// apex.amp with `loss_scale="dynamic"`: f64, down to 0, up to a ceiling.
pub(in crate::scaler) struct Apex {
    scale: f64,
    window: f64,
    min: f64,
    max: f64,
    unskipped: f64,
}

impl Apex {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [init, window, min, max] = settings.take();
        Box::new(Self { scale: init.min(max), window, min, max, unskipped: 0.0 })
    }
}

impl LossScaler for Apex {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        let before = self.scale;
        // The step begins by dividing by the scale.
        if self.scale == 0.0 {
            return Event::Abort(DIVISION_BY_ZERO);
        }
        let mut event = Event::Clean;
        if seen.found_inf {
            self.scale = (self.scale / 2.0).max(self.min);
            self.unskipped = 0.0;
            event = Event::overflow(before, self.scale);
        } else {
            self.unskipped += 1.0;
        }
        if self.unskipped == self.window {
            self.unskipped = 0.0;
            self.scale = (self.scale * 2.0).min(self.max);
            if !seen.found_inf {
                event = Event::growth(before, self.scale);
            }
        }
        event
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("unskipped", self.unskipped)]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.unskipped, self.window))
    }
}

/// A scale that never changes.
pub(in crate::scaler) struct Static {
    scale: f64,
    /// What happens on an overflow.
    on_overflow: Event,
    /// Steps without an overflow in a row, if that is counted.
    unskipped: Option<f64>,
}

impl Static {
    /// Overflows are found and their steps skipped.
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale] = settings.take();
        Box::new(Self { scale, on_overflow: Event::Skip, unskipped: None })
    }

    /// apex.amp with a number for `loss_scale`: the overflow buffer is never read.
    pub(in crate::scaler) fn apex(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale] = settings.take();
        Box::new(Self { scale, on_overflow: Event::Applied, unskipped: Some(0.0) })
    }
}

impl LossScaler for Static {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        self.unskipped = self.unskipped.map(|count| count + 1.0);
        if seen.found_inf { self.on_overflow } else { Event::Clean }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.unskipped.map(|count| ("unskipped", count)).into_iter().collect()
    }
}
