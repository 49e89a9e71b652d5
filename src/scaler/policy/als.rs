//! Graphcore's automatic loss scaling (PopART), driven by a histogram and not by overflows.

use crate::scaler::{Event, LossScaler, Seen, Settings};

/// Doubles or halves the scale at every update, by the share of gradients above an eighth of float16's range.
/// The hardware saturates, so no step is skipped.
pub(in crate::scaler) struct Als {
    scale: f32,
    proportion: f32,
    period: f64,
    steps: f64,
    /// Elements below and above the edge since the last update.
    lower: f32,
    upper: f32,
}

impl Als {
    pub(in crate::scaler) fn start(settings: &Settings) -> Box<dyn LossScaler> {
        let [scale, proportion, period] = settings.take();
        let (scale, proportion) = (scale as f32, proportion as f32);
        Box::new(Self { scale, proportion, period, steps: 0.0, lower: 0.0, upper: 0.0 })
    }
}

impl LossScaler for Als {
    fn scale(&self) -> f64 {
        self.scale.into()
    }

    fn update(&mut self, seen: Seen) -> Event {
        let [lower, upper] = seen.edge.unwrap_or([0, 0]);
        self.lower += lower as f32;
        self.upper += upper as f32;
        self.steps += 1.0;
        if self.steps % self.period != 0.0 {
            return Event::Clean;
        }
        let too_many = self.upper > self.proportion / (1.0 - self.proportion) * self.lower;
        (self.lower, self.upper) = (0.0, 0.0);
        self.scale *= if too_many { 0.5 } else { 2.0 };
        if too_many { Event::Shrink } else { Event::Grow }
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn until_growth(&self) -> Option<(f64, f64)> {
        Some((self.steps % self.period, self.period))
    }
}

#[cfg(test)]
mod tests {
    use crate::scaler::{Event, Seen, Settings, find};

    #[test]
    fn the_scale_follows_the_share_above_the_edge() {
        let spec = find("als").unwrap_or_else(|error| unreachable!("{error}"));
        let mut scaler = spec.start(&Settings::defaults(spec));
        assert_eq!(scaler.scale(), 1.0);
        // 1e-7 of 10^8 elements is 10: up to 10 above the edge are few enough.
        for (upper, event, scale) in [(10, Event::Grow, 2.0), (11, Event::Shrink, 1.0), (0, Event::Grow, 2.0)]
        {
            let edge = Some([100_000_000 - upper, upper]);
            assert_eq!(scaler.update(Seen { found_inf: upper == 0, amax: 1.0, edge }), event, "{upper}");
            assert_eq!(scaler.scale(), scale);
        }
    }
}
