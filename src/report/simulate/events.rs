//! How scales and events are written in tables.

use super::model::{EventRow, SimulateReport};
use crate::error::escape;
use crate::report::number::{full, short};
use crate::scaler::suggest::exact_log2;

/// A scale: powers of two as such, anything else in four digits.
pub(super) fn scale_text(scale: f64) -> String {
    match exact_log2(scale) {
        Some(exponent) => format!("2^{exponent}"),
        None if scale.is_finite() => short(scale, 4),
        None => full(scale),
    }
}

/// What happened to the scale, as a table has it: `2^15 backoff`.
pub(super) fn cell(row: &EventRow) -> String {
    let mut words = vec![scale_text(row.scale_after.0)];
    words.extend((!row.event.is_empty()).then(|| row.event.to_owned()));
    words.extend(row.corrupt.then(|| "corrupt".to_owned()));
    words.extend((row.gradient_factor != 1.0).then(|| format!("(g×{})", full(row.gradient_factor.into()))));
    words.join(" ")
}

/// Why a step overflowed: the tensor, or what is known.
pub(super) fn cause(row: &EventRow) -> String {
    match (row.found_inf, &row.tensor, row.cause) {
        (false, ..) => String::new(),
        (true, Some(tensor), "no scale helps") => format!("{}: NaN or Inf", escape(tensor)),
        (true, Some(tensor), _) => escape(tensor),
        (true, None, "no scale helps") => "NaN or Inf".into(),
        (true, None, "recorded") => "as recorded".into(),
        (true, None, _) => "largest gradient".into(),
    }
}

/// What happened at one step, by scaler; `None` where a scaler had stopped.
pub(super) struct Moment {
    /// Position of the step.
    pub(super) position: u64,
    /// A row for each scaler.
    pub(super) rows: Vec<Option<EventRow>>,
}

impl SimulateReport {
    /// The steps at which something happened to any scaler, or every step, up to `most`; and how many there are.
    pub(super) fn moments(&self, most: usize) -> (Vec<Moment>, u64) {
        let most = most as u64;
        let mut positions: Vec<u64> = if self.all_steps {
            (0..self.runs.iter().map(|run| run.totals.steps).max().unwrap_or(0)).collect()
        } else {
            self.runs.iter().flat_map(|run| run.events.iter().map(|event| event.position)).collect()
        };
        positions.sort_unstable();
        positions.dedup();
        let total = positions.len() as u64;
        positions.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let moments = positions.into_iter().map(|position| {
            let rows = self.runs.iter().map(|run| run.at(position).map(|step| self.event_row(&step)));
            Moment { position, rows: rows.collect() }
        });
        (moments.collect(), total)
    }
}
