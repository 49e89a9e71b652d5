//! What the record says about scales, under the names that the report's JSON uses.

use serde::Serialize;

use crate::report::number::Num;
use crate::scaler::suggest::Suggestion;

/// What the record says about scales.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestionRow {
    /// log2 of the smallest constant scale that flushes at most 0.01 %; `null` if none does, or it is not known.
    pub smallest_log2: Option<i32>,
    /// log2 of the largest constant scale without overflow.
    pub largest_log2: Option<i32>,
    /// log2 of the constant scale to take.
    pub best_log2: Option<i32>,
    /// log2 of the scale to start a dynamic scaler from.
    pub init_log2: Option<i32>,
    /// Growth interval for it.
    pub growth_interval: Option<u32>,
    /// What that interval costs in skipped steps, percent.
    pub growth_skip_pct: Option<Num>,
    /// Tensors in the way of a scale that is safe at both ends.
    pub limits: Vec<LimitRow>,
    /// The sweep over constant scales.
    pub sweep: Vec<SweepRow>,
}

/// A tensor in the way.
#[derive(Clone, Debug, Serialize)]
pub struct LimitRow {
    /// Its name.
    pub tensor: String,
    /// Its largest magnitude.
    pub amax: Num,
    /// What it loses to zero at the largest scale without overflow, percent.
    pub underflow_pct: Option<Num>,
}

/// One constant scale.
#[derive(Clone, Debug, Serialize)]
pub struct SweepRow {
    /// log2 of the scale.
    pub log2: i32,
    /// Recorded steps that overflow.
    pub overflow_steps: u64,
    /// Values lost to zero, percent of the nonzero ones.
    pub underflow_pct: Option<Num>,
}

impl SuggestionRow {
    /// The part of the sweep that a table shows: around the safe scales.
    pub(super) fn shown(&self) -> impl Iterator<Item = &SweepRow> {
        const AROUND: i32 = 3;
        let largest = self.largest_log2.unwrap_or(0);
        let lost = self.sweep.iter().any(|row| row.underflow_pct.is_some());
        let first = match self.smallest_log2 {
            Some(smallest) => smallest - AROUND,
            None if lost => largest - 4 * AROUND,
            None => largest - AROUND,
        };
        let shown = first.max(largest - 8 * AROUND)..=largest + AROUND;
        self.sweep.iter().filter(move |row| shown.contains(&row.log2))
    }
}

impl From<Suggestion> for SuggestionRow {
    fn from(found: Suggestion) -> Self {
        let percent = |share: Option<f64>| share.map(|share| Num(100.0 * share));
        Self {
            smallest_log2: found.smallest,
            largest_log2: found.largest,
            best_log2: found.best,
            init_log2: found.init,
            growth_interval: found.interval.map(|(interval, _)| interval),
            growth_skip_pct: percent(found.interval.map(|(_, share)| share)),
            limits: found
                .limits
                .into_iter()
                .map(|limit| LimitRow {
                    tensor: limit.tensor,
                    amax: Num(limit.amax),
                    underflow_pct: percent(limit.flushed),
                })
                .collect(),
            sweep: found
                .sweep
                .iter()
                .map(|row| SweepRow {
                    log2: row.exponent,
                    overflow_steps: row.overflows,
                    underflow_pct: percent(row.flushed),
                })
                .collect(),
        }
    }
}
