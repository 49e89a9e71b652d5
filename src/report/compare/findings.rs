//! What the figures mean, in sentences.

use super::{Alone, CompareReport, Element, Row};
use crate::error::escape;
use crate::report::number::{count, full, plural, short};

/// Most tensors that a sentence names.
const NAMED: usize = 3;

/// The sentences of a report.
pub(super) fn findings(report: &CompareReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let rows = &report.tensors;
    if rows.iter().all(|row| row.bitwise_equal) && report.agrees() {
        let tensors = if rows.len() == 1 { "The tensor is" } else { "All tensors are" };
        sentences.push(format!("{tensors} bitwise equal."));
    } else if let Some(first) = report.first_different.and_then(|first| rows.get(first)) {
        let name = report.full_name(first);
        let position = report.first_different.unwrap_or(0) + 1;
        let of = format!("tensor {} of {}", count(position as u64), count(rows.len() as u64));
        sentences.push(match report.first_outside.and_then(|first| rows.get(first)) {
            Some(outside) if outside.tensor == first.tensor && outside.step == first.step => {
                format!("In the order of the files, {name} ({of}) is the first to differ, beyond its tolerance.")
            }
            Some(outside) => format!(
                "In the order of the files, {name} ({of}) is the first to differ, and {} the first to differ beyond its \
                 tolerance.",
                report.full_name(outside)
            ),
            None => format!(
                "In the order of the files, {name} ({of}) is the first to differ; every difference is within the \
                 tolerance."
            ),
        });
    }
    sentences.extend(roundings(rows));
    let mismatches = rows.iter().filter(|row| row.nan_mismatch + row.inf_mismatch > 0).collect::<Vec<_>>();
    if let Some(first) = mismatches.first() {
        let total: u64 = mismatches.iter().map(|row| row.nan_mismatch + row.inf_mismatch).sum();
        sentences.push(format!(
            "NaN or Inf stand on one side only in {} of {}: {}.",
            plural(total, "element"),
            plural(mismatches.len() as u64, "tensor"),
            element(first)
        ));
    }
    let scaled: Vec<&Row> = rows.iter().filter(|row| is_scaled(row)).collect();
    if let Some(first) = scaled.first() {
        sentences.push(format!(
            "{} of the right direction but not of the right size (cosine above 0.9999), as a scale that was not divided \
             out leaves it: {}.",
            if scaled.len() == 1 { "One tensor is".to_owned() } else { format!("{} tensors are", scaled.len()) },
            report.full_name(first)
        ));
    }
    for (tensors, what) in
        [(&report.missing, "only in the reference"), (&report.extra, "only in the other dump")]
    {
        if !tensors.is_empty() {
            let are = if tensors.len() == 1 { "is" } else { "are" };
            let tensors_text = plural(tensors.len() as u64, "tensor");
            sentences.push(format!("{tensors_text} {are} {what}: {}.", names(tensors)));
        }
    }
    for reshaped in report.reshaped.iter().take(NAMED) {
        let name = escape(&reshaped.tensor);
        let shapes = [&reshaped.shape, &reshaped.other_shape].map(|shape| shape_text(shape));
        sentences
            .push(format!("{name} has shape {} in the reference and {} in the other.", shapes[0], shapes[1]));
    }
    if report.reshaped.len() > NAMED {
        sentences.push(format!("{} more differ in shape.", report.reshaped.len() - NAMED));
    }
    sentences
}

/// Tensors of one side that are those of the other rounded to the coarser type, and nothing else.
fn roundings(rows: &[Row]) -> Option<String> {
    let rounded = |row: &&Row| {
        row.dtype != row.other_dtype
            && row.max_ulp == Some(0)
            && row.nan_mismatch + row.inf_mismatch == 0
            && row.different > 0
    };
    let rounded: Vec<&Row> = rows.iter().filter(rounded).collect();
    let first = rounded.first()?;
    let all = match (rounded.len(), rows.len()) {
        (n, all) if n == all => "Every difference is".to_owned(),
        (n, _) => format!("In {} every difference is", plural(n as u64, "tensor")),
    };
    Some(format!(
        "{all} one rounding to {}, to nearest even: no value is another one after it.",
        first.ulp_of
    ))
}

/// Whether the other is the reference times a number: the norms differ far more than the directions.
fn is_scaled(row: &Row) -> bool {
    let beyond = row.rel_l2.is_some_and(|error| error.0 > 0.1);
    row.elements > 1 && beyond && row.cosine.is_some_and(|cosine| cosine.0 > 0.9999)
}

/// `h.0.fc.weight [3, 12] is 0.25 in the reference, nan in the other`
fn element(row: &Row) -> String {
    let name = escape(&row.tensor);
    row.telling().map_or(name.clone(), |element| format!("{name} {}", element_text(element)))
}

/// `[3, 12] is 0.25 in the reference, nan in the other`
pub(super) fn element_text(element: &Element) -> String {
    let (x, y) = (full(element.reference.0), full(element.other.0));
    format!("{} is {x} in the reference, {y} in the other", index_text(&element.index))
}

fn names(tensors: &[Alone]) -> String {
    let named: Vec<String> = tensors.iter().take(NAMED).map(|tensor| escape(&tensor.tensor)).collect();
    let more = tensors.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
    named.join(", ") + &more
}

/// `[3, 12]`
pub(super) fn index_text(index: &[u64]) -> String {
    format!("[{}]", index.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
}

/// `256×64`
pub(super) fn shape_text(shape: &[u64]) -> String {
    match shape {
        [] => "scalar".into(),
        extents => extents.iter().map(u64::to_string).collect::<Vec<_>>().join("×"),
    }
}

/// A distance in units in the last place: large ones as 1.2e9.
pub(super) fn ulps(distance: Option<u64>) -> String {
    distance.map_or("–".into(), |ulps| if ulps < 100_000 { count(ulps) } else { short(ulps as f64, 3) })
}
