//! torch.amp.GradScaler and its relatives: FSDP's, and the kernel with hysteresis that NeMo uses.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// How a new scale is formed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Product {
    /// In f64, rounded to f32; a growth to Inf is not done.
    Guarded,
    /// In f64, rounded to f32; the scale may become Inf.
    Unguarded,
    /// In f32; the scale may become Inf.
    Single,
}

/// The rule of torch's `_amp_update_scale_`.
pub(in crate::scaler) struct Torch {
    scale: f32,
    growth_factor: f64,
    backoff_factor: f64,
    growth_interval: f64,
    tracker: f64,
    product: Product,
    /// Overflows in a row that it takes to back off; `None` for rules without.
    hysteresis: Option<f64>,
    hysteresis_left: f64,
    /// Calls of `update` a step: one for each optimizer in accelerate.
    updates: u32,
}

impl Torch {
    fn base(settings: &Settings, product: Product) -> Self {
        let [scale, growth_factor, backoff_factor, growth_interval, tracker] = settings.take();
        Self {
            scale: scale as f32,
            growth_factor,
            backoff_factor,
            growth_interval,
            tracker,
            product,
            hysteresis: None,
            hysteresis_left: 0.0,
            updates: 1,
        }
    }

    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings, Product::Guarded))
    }

    pub(in crate::scaler) fn before_2_1(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings, Product::Unguarded))
    }

    pub(in crate::scaler) fn fsdp_on_cpu(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings, Product::Single))
    }

    pub(in crate::scaler) fn with_hysteresis(settings: &Settings) -> Box<dyn LossScaler> {
        let [.., hysteresis] = settings.take::<6>();
        let hysteresis_left = hysteresis;
        let base = Self::base(settings, Product::Guarded);
        Box::new(Self { hysteresis: Some(hysteresis), hysteresis_left, ..base })
    }

    pub(in crate::scaler) fn accelerate(settings: &Settings) -> Box<dyn LossScaler> {
        let [.., optimizers] = settings.take::<6>();
        Box::new(Self { updates: optimizers as u32, ..Self::base(settings, Product::Guarded) })
    }

    fn times(&self, factor: f64) -> f32 {
        match self.product {
            Product::Single => self.scale * factor as f32,
            Product::Guarded | Product::Unguarded => (f64::from(self.scale) * factor) as f32,
        }
    }

    fn update_once(&mut self, found_inf: bool) -> Event {
        let before = self.scale;
        if found_inf {
            self.tracker = 0.0;
            if self.hysteresis.is_some() {
                self.hysteresis_left -= 1.0;
                if self.hysteresis_left > 0.0 {
                    return Event::Hysteresis;
                }
            }
            self.scale = self.times(self.backoff_factor);
            return Event::overflow(before, self.scale);
        }
        self.hysteresis_left = self.hysteresis.unwrap_or(0.0);
        self.tracker += 1.0;
        // Equality: a tracker beyond the interval counts on until an overflow.
        if self.tracker != self.growth_interval {
            return Event::Clean;
        }
        self.tracker = 0.0;
        let grown = self.times(self.growth_factor);
        if self.product != Product::Guarded || grown.is_finite() {
            self.scale = grown;
        }
        Event::growth(before, self.scale)
    }
}

impl LossScaler for Torch {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let first = self.update_once(seen.found_inf);
        // The other optimizers are taken to be clean; an overflow of the first is what the step is known by.
        (1..self.updates)
            .map(|_| self.update_once(false))
            .fold(first, |event, next| if event == Event::Clean { next } else { event })
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let hysteresis = self.hysteresis.map(|_| ("hysteresis_tracker", self.hysteresis_left));
        std::iter::once(("growth_tracker", self.tracker)).chain(hysteresis).collect()
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.tracker, self.growth_interval))
    }
}
