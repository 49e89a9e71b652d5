//! What the figures mean, in sentences.

use super::model::{CaseRow, FsdpRow, ReduceReport};
use crate::report::number::{Num, brief, bytes, count, percent, plural, short};

/// The sentences of a report.
pub(super) fn findings(report: &ReduceReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let formats = report.formats();
    let base = |format: &str| ReduceReport::base(&report.total, format);
    let widest = formats.first().and_then(|format| base(format));
    for row in formats.iter().filter_map(|format| base(format)) {
        sentences.extend(costs(row, widest));
    }
    sentences.extend(report.total.iter().filter(|row| row.overflow > 0).take(3).map(|row| {
        format!(
            "{} overflow on the way in {} ({}, sums {}, divided {}).",
            plural(row.overflow, "mean"),
            row.format,
            row.algorithm,
            row.accumulate,
            divided(row)
        )
    }));
    let most_lost = formats.iter().filter_map(|format| base(format)).max_by_key(|row| row.lost);
    if let Some(row) = most_lost.filter(|row| row.lost > 0) {
        let gradients = report.elements * report.ranks.len() as u64;
        sentences.push(format!(
            "In {}, {} % of the ranks' gradients are zero before they are added, rounded and divided {}.",
            row.format,
            percent(row.lost, gradients),
            divided(row)
        ));
    }
    sentences.extend(growth(report));
    sentences.extend(report.fsdp.iter().flat_map(fsdp));
    sentences
}

/// When a case divides; a factor with four digits.
pub(super) fn divided(row: &CaseRow) -> String {
    let factor = row.divide.strip_prefix("by ").and_then(|text| text.strip_suffix(" before"));
    let factor = factor.and_then(|text| text.parse().ok());
    factor.map_or_else(|| row.divide.clone(), |factor| format!("by {} before", brief(factor, 6)))
}

/// An error in percent.
pub(super) fn error_pct(error: Option<Num>) -> String {
    error.map_or("–".to_owned(), |error| short(100.0 * error.0, 3))
}

/// A size in bytes.
pub(super) fn size(sent: Num) -> String {
    bytes(sent.0.round() as u64)
}

fn costs(row: &CaseRow, widest: Option<&CaseRow>) -> Option<String> {
    let widest = widest.filter(|widest| widest.format != row.format)?;
    let share = 100.0 * row.sent_bytes.0 / widest.sent_bytes.0;
    let (error, wide) = (row.error?.0, widest.error?.0);
    Some(format!(
        "{} takes {} % of the bytes of {} ({} instead of {} a rank) and is off by {} % of the mean's norm instead of {} %.",
        row.format,
        short(share, 3),
        widest.format,
        size(row.sent_bytes),
        size(widest.sent_bytes),
        short(100.0 * error, 3),
        short(100.0 * wide, 3)
    ))
}

/// How the error grows with the ranks.
fn growth(report: &ReduceReport) -> Option<String> {
    let (first, last) = (report.worlds.first()?, report.worlds.last()?);
    let format = *report.formats().get(1).or(report.formats().first())?;
    let of = |rows: &[CaseRow]| -> Option<Vec<(String, f64)>> {
        let rows = rows.iter().filter(|row| row.format == format);
        rows.map(|row| Some((format!("{}, sums {}", row.algorithm, row.accumulate), row.error?.0))).collect()
    };
    let (small, large) = (of(&first.cases)?, of(&last.cases)?);
    let base = |list: &[(String, f64)]| list.first().map(|(_, error)| *error);
    let (small, from) = (base(&small)?, &large);
    let best = from.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let worst = from.first()?;
    (last.ranks > first.ranks).then(|| {
        format!(
            "Estimated from {} ranks: in {format} the error grows from {} % among {} ranks to {} % among {} ({}); {} has \
             {} % there. Ranks drawn again are copies, so their mean does not shrink as that of more independent ranks \
             would.",
            report.ranks.len(),
            short(100.0 * small, 3),
            count(first.ranks),
            short(100.0 * worst.1, 3),
            count(last.ranks),
            worst.0,
            best.0,
            short(100.0 * best.1, 3)
        )
    })
}

/// What each of FSDP's dtypes does.
fn fsdp(row: &FsdpRow) -> Vec<String> {
    let (before, after) = (row.divided_by.0.0, row.divided_by.1.0);
    let mut sentences = vec![
        format!(
            "param_dtype {}: forward and backward compute in it, so gradients come rounded to it; reduced in float32 \
             their mean is off by {} %. Parameters are gathered in it twice a step, {} sent by each rank.",
            row.param_dtype,
            error_pct(row.param_error),
            size(row.parameter_bytes)
        ),
        format!(
            "reduce_dtype {}: gradients are cast to it, divided by {}, reduce-scattered ({} sent by each rank) and divided \
             by {}: then the mean is off by {} %.",
            row.reduce_dtype,
            short(before, 3),
            size(row.gradient_bytes),
            short(after, 3),
            error_pct(row.error)
        ),
        format!(
            "buffer_dtype {}: is about buffers such as running statistics in the forward pass; it does nothing to \
             gradients.",
            row.buffer_dtype
        ),
    ];
    if row.overflow > 0 {
        sentences.push(format!("With it {} overflow.", plural(row.overflow, "mean")));
    }
    sentences
}
