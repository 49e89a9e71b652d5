//! What one recipe does to one step of one tensor.

use serde::Serialize;

use super::model::Metric;
use crate::cast::block::{BlockScale, Factor};
use crate::format::BlockSpec;
use crate::report::number::Num;
use crate::scaler::fp8::{Event, Moment};
use crate::stats::{BlockStats, FormatStats};

/// What a recipe does to one step of one tensor. Undefined figures are `null`: all of them where the tensor cannot be
/// cut so.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Recipe.
    pub recipe: &'static str,
    /// The block format that it came to.
    pub format: &'static str,
    /// The factor of all elements; `null` where blocks have their own.
    pub scale: Option<Num>,
    /// The same as the bits of a float32.
    pub scale_bits: Option<String>,
    /// Its reciprocal as it is stored.
    pub scale_inv: Option<Num>,
    /// Smallest stored scale of a block with nonzero values.
    pub scale_inv_min: Option<Num>,
    /// Largest one.
    pub scale_inv_max: Option<Num>,
    /// Number of blocks.
    pub blocks: u64,
    /// Blocks with nonzero values whose scale is 0.
    pub blocks_scale_zero: u64,
    /// Blocks whose scale is a subnormal number of its format.
    pub blocks_scale_subnormal: u64,
    /// Blocks whose scale was set to the smallest, or the largest, that there is.
    pub blocks_scale_limited: u64,
    /// The magnitude that a delayed scale was formed from.
    pub amax_used: Option<Num>,
    /// How many bits the scale is too small, negative where it is too large.
    pub bits_off: Option<Num>,
    /// Elements stored as zero.
    pub underflow: Option<u64>,
    /// As a share.
    pub underflow_pct: Option<Num>,
    /// Elements stored as subnormal numbers.
    pub subnormal: Option<u64>,
    /// Elements that round beyond the largest number and are stored as it.
    pub saturated: Option<u64>,
    /// Finite elements without a number, since their block holds an Inf or NaN.
    pub spoiled: Option<u64>,
    /// Elements beyond the largest number before rounding (Transformer Engine's overflow).
    pub exceeds_max: Option<u64>,
    /// Signal to quantisation noise ratio.
    pub sqnr_db: Option<Num>,
    /// Mean squared error.
    pub mse: Option<Num>,
    /// Largest relative error.
    pub max_rel: Option<Num>,
    /// What happened to a delayed scale.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRow>,
}

/// Something that happened to a delayed scale.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    /// What.
    pub event: &'static str,
    /// Steps before a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<usize>,
}

impl Cell {
    /// The figures of one recipe.
    pub fn new(
        recipe: &'static str,
        spec: &BlockSpec,
        scale: Option<BlockScale>,
        moment: Option<&Moment>,
        stats: Option<&BlockStats>,
    ) -> Self {
        let factor = scale.and_then(|scale| match scale.factor {
            Factor::Times(factor) => Some(factor),
            Factor::Over(_) => None,
        });
        let range = stats.and_then(BlockStats::scale_range);
        let scales = stats.map(|stats| stats.scales).unwrap_or_default();
        let format = stats.map(|stats| &stats.format);
        let classes = format.map(|format| format.classes);
        let errors = format.map(|format| format.errors);
        Self {
            recipe,
            format: spec.name,
            scale: factor.map(|factor| Num(factor.into())),
            scale_bits: factor.map(|factor| format!("{:#010x}", factor.to_bits())),
            scale_inv: scale.map(|scale| Num(scale.value)),
            scale_inv_min: range.map(|(low, _)| Num(low)),
            scale_inv_max: range.map(|(_, high)| Num(high)),
            blocks: scales.total(),
            blocks_scale_zero: scales.zero,
            blocks_scale_subnormal: scales.subnormal,
            blocks_scale_limited: scales.raised + scales.saturated,
            amax_used: moment.and_then(|moment| moment.amax_used).map(|amax| Num(amax.into())),
            bits_off: moment.and_then(Moment::bits_off).map(Num),
            underflow: classes.map(|classes| classes.underflow),
            underflow_pct: classes.and_then(|classes| share(classes.underflow, classes.nonzero_finite())),
            subnormal: classes.map(|classes| classes.subnormal),
            saturated: format.map(saturated),
            spoiled: format.map(spoiled),
            exceeds_max: format.map(|format| format.exceeds_max),
            sqnr_db: errors.and_then(|errors| errors.sqnr_db()).map(Num),
            mse: errors.and_then(|errors| errors.mse()).map(Num),
            max_rel: errors.and_then(|errors| errors.max_rel()).map(Num),
            events: moment.map_or(Vec::new(), |moment| moment.events.iter().map(EventRow::from).collect()),
        }
    }

    /// Whether all of these finite nonzero values come back as no number.
    pub(super) fn is_spoiled(&self, nonzero_finite: u64) -> bool {
        nonzero_finite > 0 && self.spoiled == Some(nonzero_finite)
    }

    /// The figure that `metric` means, larger being worse.
    pub(super) fn badness(&self, metric: Metric) -> f64 {
        let worst = f64::NEG_INFINITY;
        match metric {
            Metric::Sqnr => self.sqnr_db.map_or(worst, |sqnr| -sqnr.0),
            Metric::Underflow => self.underflow_pct.map_or(worst, |share| share.0),
            Metric::Saturated => self.saturated.map_or(worst, |n| n as f64),
        }
    }
}

impl From<&Event> for EventRow {
    fn from(event: &Event) -> Self {
        let after = if let Event::Recovered { after } = event { Some(*after) } else { None };
        Self { event: event.name(), after }
    }
}

/// Finite values that round beyond the largest number; those of a block spoiled by an Inf or NaN are none.
pub(super) fn saturated(format: &FormatStats) -> u64 {
    format.classes.overflow.saturating_sub(spoiled(format))
}

/// Finite nonzero values that come back as no number.
pub(super) fn spoiled(format: &FormatStats) -> u64 {
    format.classes.nonzero_finite() - format.errors.nonzero
}

pub(super) fn share(part: u64, whole: u64) -> Option<Num> {
    (whole > 0).then(|| Num(100.0 * part as f64 / whole as f64))
}
