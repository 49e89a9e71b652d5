//! What the figures mean, in sentences, each derived from the counts.

use super::HistogramReport;

/// Sentences for the whole report, most important first.
pub(super) fn findings(_report: &HistogramReport) -> Vec<String> {
    Vec::new()
}
