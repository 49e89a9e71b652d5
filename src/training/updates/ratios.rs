//! How large updates are beside the spacing of the numbers that weights are kept in.

use crate::cast::fast::{Kernel, Level, run};
use crate::training::Stored;

/// Bins an octave.
const PER_OCTAVE: u32 = 32;
/// Ratios below 2^LOWEST and from 2^HIGHEST on are counted in the first and last bin.
const LOWEST: i32 = -64;
const HIGHEST: i32 = 32;
const BINS: usize = (HIGHEST - LOWEST) as usize * PER_OCTAVE as usize;
/// Bins of elements that count for nothing, behind the others.
const NONE: u16 = BINS as u16;
/// A power of two, so that a mask makes every place valid.
const PLACES: usize = 1 << 12;

/// Counts of |update| / ulp(weight) in bins of a 32nd of an octave.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// Number of the first bin in `counts`.
    first: usize,
    counts: Vec<u64>,
}

impl Default for Ratios {
    fn default() -> Self {
        Self { first: 0, counts: vec![0; PLACES] }
    }
}

impl Ratios {
    /// Counts the updates of one piece of weights; those of zero are left out.
    pub(super) fn observe(
        &mut self,
        level: Level,
        stored: &Stored,
        wanted: &[f64],
        weights: &[f32],
        bins: &mut Vec<u16>,
    ) {
        bins.resize(wanted.len(), NONE);
        run(level, Bin { stored, wanted, weights, bins });
        if let Some(counts) = self.counts.first_chunk_mut::<PLACES>() {
            bins.iter().for_each(|bin| counts[usize::from(*bin) % PLACES] += 1);
        }
    }

    /// Keeps only the bins from the first to the last with a count: there may be very many tensors.
    pub(super) fn trim(&mut self) {
        self.counts.truncate(BINS);
        let used = self.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.counts.truncate(used);
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(0);
        self.counts = self.counts[first..].to_vec();
        self.first = first;
    }

    /// Adds the counts of `next`; these have all bins.
    pub fn merge(&mut self, next: &Self) {
        if self.first > 0 || self.counts.len() <= BINS {
            let trimmed = std::mem::take(self);
            self.merge(&trimmed);
        }
        self.counts.iter_mut().skip(next.first).zip(&next.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The bins, and the count of each.
    fn bins_used(&self) -> impl Iterator<Item = (usize, u64)> {
        (self.first..BINS).zip(self.counts.iter().copied())
    }

    /// Number of updates that are not zero.
    pub fn total(&self) -> u64 {
        self.bins_used().map(|(_, count)| count).sum()
    }

    /// log2 of the ratio that half of the updates are below, as if they lay evenly in its bin; `None` if there are
    /// none.
    pub fn median_log2(&self) -> Option<f64> {
        let half = self.total() as f64 / 2.0;
        let mut below = 0.0;
        for (bin, count) in self.bins_used().filter(|(_, count)| *count > 0) {
            let count = count as f64;
            if below + count >= half {
                // The significand runs from 1 to 2 in equal steps.
                let (octave, place) = (bin as u32 / PER_OCTAVE, bin as u32 % PER_OCTAVE);
                let significand = 1.0 + (f64::from(place) + (half - below) / count) / f64::from(PER_OCTAVE);
                return Some(f64::from(octave) + f64::from(LOWEST) + libm::log2(significand));
            }
            below += count;
        }
        None
    }

    /// The counts from 2^`low` to 2^`high` in `per_octave` bins an octave, a divisor of 32; what lies outside is
    /// in the first and the last.
    pub fn bins(&self, per_octave: usize, low: i32, high: i32) -> Vec<u64> {
        let (low, high) = (low.max(LOWEST), high.min(HIGHEST));
        let mut bins = vec![0; (high - low).max(1) as usize * per_octave];
        let last = bins.len() - 1;
        let wide = PER_OCTAVE as usize / per_octave;
        let before = (low - LOWEST) as usize * per_octave;
        for (bin, count) in self.bins_used() {
            bins[(bin / wide).saturating_sub(before).min(last)] += count;
        }
        bins
    }

    /// The octaves with any updates, from the first to the last: the exponent e of [2^e, 2^(e+1)) and the count.
    pub fn octaves(&self) -> Vec<(i32, u64)> {
        let mut octaves: Vec<(i32, u64)> = (LOWEST..HIGHEST).map(|exponent| (exponent, 0)).collect();
        self.bins_used().for_each(|(bin, count)| octaves[bin / PER_OCTAVE as usize].1 += count);
        let first = octaves.iter().position(|(_, count)| *count > 0);
        let last = octaves.iter().rposition(|(_, count)| *count > 0);
        match (first, last) {
            (Some(first), Some(last)) => octaves[first..=last].to_vec(),
            _ => Vec::new(),
        }
    }
}

struct Bin<'a> {
    stored: &'a Stored,
    wanted: &'a [f64],
    weights: &'a [f32],
    bins: &'a mut [u16],
}

impl Kernel for Bin<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let stored = *self.stored;
        for ((wanted, w), bin) in self.wanted.iter().zip(self.weights).zip(self.bins) {
            // Exponent and the first five bits of the significand, as one integer: an ulp is a power of two.
            let place = (wanted.abs().to_bits() >> 47) as i32;
            let lowest = (1023 + LOWEST + stored.ulp_log2(*w)) * PER_OCTAVE as i32;
            let place = (place - lowest).clamp(0, BINS as i32 - 1);
            *bin = if *wanted == 0.0 { NONE } else { place as u16 };
        }
    }
}
