//! Scalers that count iterations and grow when the distance to the last overflow is a multiple of the window:
//! apex.fp16_utils, Megatron's first one, DeepSpeed's.

use crate::scaler::{Event, LossScaler, Seen, Settings};

const AT_MINIMUM: &str =
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.";

/// The rule of the dynamic scaler that apex.fp16_utils brought into the world.
pub(in crate::scaler) struct Iteration {
    scale: f64,
    factor: f64,
    window: f64,
    min: f64,
    /// Overflows until the scale shrinks, refilled by growth.
    hysteresis: Option<Hysteresis>,
    /// DeepSpeed 0.17.1 and later: growth comes one step later.
    late: bool,
    /// Raises when an overflow meets the smallest scale.
    raises: bool,
    iter: f64,
    last_overflow: f64,
}

struct Hysteresis {
    delayed_shift: f64,
    left: f64,
    /// Refilled by every clean step, not only by growth.
    consecutive: bool,
}

impl Hysteresis {
    fn new(delayed_shift: f64, consecutive: f64) -> Option<Self> {
        Some(Self { delayed_shift, left: delayed_shift, consecutive: consecutive == 1.0 })
    }
}

impl Iteration {
    fn base([scale, factor, window, min]: [f64; 4]) -> Self {
        Self {
            scale,
            factor,
            window,
            min,
            hysteresis: None,
            late: false,
            raises: false,
            iter: 0.0,
            last_overflow: -1.0,
        }
    }

    pub(in crate::scaler) fn apex_fp16_utils(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::base(settings.take()))
    }

    pub(in crate::scaler) fn megatron_legacy(settings: &Settings) -> Box<dyn LossScaler> {
        let [.., shift, consecutive] = settings.take::<6>();
        let hysteresis = Hysteresis::new(shift, consecutive);
        Box::new(Self { hysteresis, ..Self::base(settings.take()) })
    }

    pub(in crate::scaler) fn deepspeed_stage0(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self { late: true, ..Self::base(settings.take()) })
    }

    pub(in crate::scaler) fn deepspeed(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self { late: true, ..Self::zero(settings) })
    }

    pub(in crate::scaler) fn deepspeed_before_0_17_1(settings: &Settings) -> Box<dyn LossScaler> {
        Box::new(Self::zero(settings))
    }

    fn zero(settings: &Settings) -> Self {
        let [.., shift, consecutive, raises] = settings.take::<7>();
        let hysteresis = Hysteresis::new(shift, consecutive);
        Self { hysteresis, raises: raises == 1.0, ..Self::base(settings.take()) }
    }

    fn overflow(&mut self) -> Event {
        if let Some(hysteresis) = &mut self.hysteresis
            && hysteresis.delayed_shift != 1.0
            && hysteresis.left != 1.0
        {
            // From 0 it runs away from 1, so the scale never shrinks.
            hysteresis.left -= 1.0;
            return Event::Hysteresis;
        }
        if self.raises && self.scale == self.min {
            return Event::Abort(AT_MINIMUM);
        }
        let before = self.scale;
        self.scale = (self.scale / self.factor).max(self.min);
        Event::overflow(before, self.scale)
    }

    fn clean(&mut self) -> Event {
        let since = self.iter - self.last_overflow - f64::from(u8::from(self.late));
        let grows = since > 0.0 && since % self.window == 0.0;
        if let Some(hysteresis) = &mut self.hysteresis
            && (grows || hysteresis.consecutive)
        {
            hysteresis.left = hysteresis.delayed_shift;
        }
        if !grows {
            return Event::Clean;
        }
        let before = self.scale;
        self.scale *= self.factor;
        Event::growth(before, self.scale)
    }
}

impl LossScaler for Iteration {
    fn scale(&self) -> f64 {
        self.scale
    }

    fn update(&mut self, seen: Seen) -> Event {
        let event = if seen.found_inf { self.overflow() } else { self.clean() };
        if let Event::Abort(_) = event {
            return event;
        }
        if seen.found_inf {
            self.last_overflow = self.iter;
        }
        self.iter += 1.0;
        event
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        let hysteresis = self.hysteresis.as_ref().map(|hysteresis| ("cur_hysteresis", hysteresis.left));
        let counters = [("cur_iter", self.iter), ("last_overflow_iter", self.last_overflow)];
        counters.into_iter().chain(hysteresis).collect()
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        let clean = (self.iter - 1.0 - self.last_overflow).max(0.0);
        // The first growth after an overflow takes one step more if it comes late.
        let extra = f64::from(u8::from(self.late));
        let first = clean < self.window + extra;
        Some(if first { (clean, self.window + extra) } else { ((clean - extra) % self.window, self.window) })
    }
}
