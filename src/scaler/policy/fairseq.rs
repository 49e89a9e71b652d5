//! fairseq's DynamicLossScaler (`--fp16`) and the descendant that metaseq trained OPT with.

use crate::scaler::{Event, LossScaler, Seen, Settings};

const MINIMUM_REACHED: &str = "FloatingPointError: Minimum loss scale reached";

/// Shrinks when too large a share of the steps since the last change overflowed; aborts below a minimum.
pub(in crate::scaler) struct Fairseq {
    scale: f64,
    factor: f64,
    window: f64,
    tolerance: f64,
    threshold: f64,
    min: f64,
    /// The window grows and shrinks with the scale, and the minimum clamps instead of aborting.
    metaseq: bool,
    iter: f64,
    last_overflow: f64,
    last_rescale: f64,
    overflows: f64,
}

impl Fairseq {
    fn base(settings: &Settings, metaseq: bool) -> Box<dyn LossScaler> {
        let [scale, factor, window, tolerance, threshold, min] = settings.take();
        Box::new(Self {
            scale,
            factor,
            window,
            tolerance,
            threshold,
            min,
            metaseq,
            iter: 0.0,
            last_overflow: -1.0,
            last_rescale: -1.0,
            overflows: 0.0,
        })
    }

    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        Self::base(settings, false)
    }

    pub(in crate::scaler) fn metaseq(settings: &Settings) -> Box<dyn LossScaler> {
        Self::base(settings, true)
    }

    fn overflow(&mut self) -> Event {
        let before = self.scale;
        let since = self.iter - self.last_rescale;
        self.last_overflow = self.iter;
        self.overflows += 1.0;
        let enough = self.overflows / since >= self.tolerance;
        if enough {
            self.scale = (self.scale / self.factor).max(self.threshold);
            if self.metaseq {
                self.window = (self.window / self.factor).trunc().max(1.0);
            }
            self.last_rescale = self.iter;
            self.overflows = 0.0;
        }
        if self.metaseq {
            if self.scale < self.min {
                self.scale = before;
            }
        } else if self.scale <= self.min {
            self.scale = before;
            return Event::Abort(MINIMUM_REACHED);
        }
        self.iter += 1.0;
        if enough { Event::overflow(before, self.scale) } else { Event::Hysteresis }
    }

    fn clean(&mut self) -> Event {
        let before = self.scale;
        let grows = (self.iter - self.last_overflow) % self.window == 0.0;
        if grows {
            self.scale *= self.factor;
            self.last_rescale = self.iter;
            if self.metaseq {
                self.window *= self.factor;
            }
        }
        self.iter += 1.0;
        if grows { Event::growth(before, self.scale) } else { Event::Clean }
    }
}

impl LossScaler for Fairseq {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        if seen.found_inf { self.overflow() } else { self.clean() }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("iter", self.iter),
            ("last_overflow_iter", self.last_overflow),
            ("last_rescale_iter", self.last_rescale),
            ("overflows_since_rescale", self.overflows),
            ("scale_window", self.window),
        ]
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some(((self.iter - 1.0 - self.last_overflow).max(0.0) % self.window, self.window))
    }
}
