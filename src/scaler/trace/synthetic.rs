//! Made-up records, to show what a scaler does without a training at hand.

use super::{Largest, Step, Trace};
use crate::format::FormatSpec;

/// How a made-up record behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synthetic {
    /// Gradients shrink smoothly as training goes on.
    Decay,
    /// The same with rare large batches.
    Bursts,
    /// Gradients grow by 2^8 half-way through.
    LevelShift,
    /// NaN for a stretch, from which no scale saves.
    NanBurst,
}

/// Every made-up record: name, kind, what it is.
pub const SYNTHETICS: &[(&str, Synthetic, &str)] = &[
    ("decay", Synthetic::Decay, "gradients shrink from about 2^4 to 2^-8"),
    ("bursts", Synthetic::Bursts, "as decay, with one step in 150 up to 2^10 times larger"),
    ("level-shift", Synthetic::LevelShift, "gradients grow by 2^8 half-way through"),
    ("nan-burst", Synthetic::NanBurst, "as decay, with 20 steps of NaN in the middle"),
];

impl Synthetic {
    /// The record: `steps` steps, the same for the same `seed`.
    pub fn trace(self, steps: u32, seed: u64, format: FormatSpec) -> Trace {
        let mut trace = Trace::new(format);
        trace.tensors = vec!["synthetic".to_owned()];
        let mut random = Random(seed);
        for number in 0..steps {
            let progress = f64::from(number) / f64::from(steps.max(2) - 1);
            let mut log2 = 3.0 + 1.5 * (random.unit() + random.unit() - 1.0);
            match self {
                Self::Decay | Self::NanBurst => log2 -= 12.0 * progress,
                Self::Bursts => {
                    log2 -= 12.0 * progress;
                    if random.unit() < 1.0 / 150.0 {
                        log2 += 4.0 + 6.0 * random.unit();
                    }
                }
                Self::LevelShift => log2 += if progress < 0.5 { -8.0 } else { 0.0 },
            }
            let mut step = Step::new(number.into());
            step.low = Largest { amax: f64::from(libm::exp2(log2) as f32), tensor: Some(0) };
            let stretch = steps / 2..(steps / 2).saturating_add(20);
            if self == Self::NanBurst && stretch.contains(&number) {
                step.nonfinite = Some(Some(0));
            }
            trace.steps.push(step);
        }
        trace
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    /// Evenly spread over 0 to 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 * 2_f64.powi(-53)
    }
}
