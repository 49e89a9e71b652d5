//! What the figures mean, in sentences.

use super::model::{By, RecommendReport, Row};
use crate::error::escape;
use crate::report::number::{bytes, count, full, plural, short};

/// Most tensors that are named in a sentence.
const NAMED: usize = 5;

/// The sentences of a report.
pub(super) fn findings(report: &RecommendReport) -> Vec<String> {
    let mut sentences = vec![mix(report), whole(report)];
    sentences.extend(none(report));
    sentences.extend(nonfinite(report));
    sentences.extend(bfloat16(report));
    sentences.extend(report.loss_scale_log2.map(|log2| {
        format!("float16@loss-scale is 2^{log2} for all gradients together; simulate-scaler --suggest has the reasons.")
    }));
    sentences
}

fn mix(report: &RecommendReport) -> String {
    let what = if report.options.by == By::Layer { "layer" } else { "tensor" };
    let mut formats: Vec<(&str, u64)> = Vec::new();
    for row in &report.rows {
        let format = row.recommended.as_ref().map_or("as stored", |chosen| chosen.format);
        match formats.iter_mut().find(|(known, _)| *known == format) {
            Some((_, n)) => *n += 1,
            None => formats.push((format, 1)),
        }
    }
    formats.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let formats: Vec<String> = formats.iter().map(|(format, n)| format!("{} {format}", count(*n))).collect();
    let (stored, recommended) = report.memory();
    let saved = if stored > 0 { 100.0 * (stored - recommended) as f64 / stored as f64 } else { 0.0 };
    format!(
        "Of {}: {}. That takes {} of {}, {} % less.",
        plural(report.rows.len() as u64, what),
        formats.join(", "),
        bytes(recommended),
        bytes(stored),
        short(saved, 3)
    )
}

fn whole(report: &RecommendReport) -> String {
    match &report.whole.recommended {
        Some(chosen) => format!(
            "One format for all: {} ({}), at worst {} % underflow and {} dB.",
            chosen.format,
            chosen.needs,
            short(chosen.underflow_pct.0, 3),
            chosen.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3))
        ),
        None => "No one candidate will do for all.".to_owned(),
    }
}

/// Those that nothing fits.
fn none(report: &RecommendReport) -> Option<String> {
    let none: Vec<&Row> = report.rows.iter().filter(|row| row.recommended.is_none()).collect();
    let names: Vec<String> =
        none.iter().take(NAMED).map(|row| format!("{} ({})", escape(&row.name), row.reason)).collect();
    let more = none.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
    (!none.is_empty())
        .then(|| format!("No candidate will do for {}{more}: keep what is stored.", names.join(", ")))
}

/// What no figure counts.
fn nonfinite(report: &RecommendReport) -> Option<String> {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.nonfinite > 0).collect();
    let text = |row: &&Row| format!("{} has {} NaN/Inf", escape(&row.name), count(row.nonfinite));
    let names: Vec<String> = rows.iter().take(NAMED).map(text).collect();
    let more = match rows.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {} more have some", count(more as u64)),
    };
    (!rows.is_empty()).then(|| {
        format!(
            "{}{more}, which are left out of the figures: only a format that keeps them is taken.",
            names.join(", ")
        )
    })
}

/// Of the whole.
fn bfloat16(report: &RecommendReport) -> Option<String> {
    let chosen = report.whole.bfloat16.as_ref().filter(|_| report.whole.nonzero_finite > 0)?;
    let options = &report.options;
    let in_range = chosen.underflow_pct.0 <= options.max_underflow_pct.0
        && chosen.overflow_pct.0 <= options.max_overflow_pct.0;
    let range = if in_range {
        "has the range of float32, so that it needs no loss scale"
    } else {
        "lacks the smallest subnormal and the very largest numbers of float32"
    };
    let bits = chosen.significand_bits.map_or("all".into(), |bits| full((10.0 * bits.0).round() / 10.0));
    Some(format!(
        "bfloat16 {range}: {} % underflow, {} % overflow. It keeps {bits} of \
         24 significand bits, an SQNR of at least {} dB.",
        short(chosen.underflow_pct.0, 3),
        short(chosen.overflow_pct.0, 3),
        chosen.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3))
    ))
}
