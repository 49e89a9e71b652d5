//! What the figures mean, in sentences.

use super::model::{FormatRow, Mark, UpdatesReport};
use crate::report::number::{Num, brief, plural, short};
use crate::training::updates::Way;

/// The sentences of a report.
pub(super) fn findings(report: &UpdatesReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let total = &report.total;
    let low = total.formats.get(1..).unwrap_or_default();
    sentences.extend(low.iter().filter_map(|format| nearest(report, format)));
    sentences.extend(total.formats.iter().filter_map(nonfinite));
    if let Some(first) = low.first() {
        sentences.extend(stochastic(first));
        sentences.extend(kahan(first));
        sentences.extend(stagnation(report, first));
    }
    if low.iter().any(|format| format.format == "bfloat16") {
        sentences.push(
            "A bfloat16 weight and 16 more bits kept apart are the float32 master in two halves: its updates, in 4 \
             bytes a weight instead of the 6 of a master with a bfloat16 copy. The half that the model computes with \
             is then truncated, not rounded."
                .to_owned(),
        );
    }
    for format in low.iter().filter(|format| format.overflow > 0) {
        sentences.push(format!(
            "{} lie beyond the largest {} and are left out there.",
            plural(format.overflow, "weight"),
            format.format
        ));
    }
    sentences
}

/// A figure of a mark in percent, for a sentence.
pub(super) fn percent(figure: Option<Num>) -> String {
    figure.map_or("–".to_owned(), |share| pct(100.0 * share.0))
}

/// A percentage: three digits, but never 0 or 100 for what is not quite that.
pub(super) fn pct(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        100.0 => "100".to_owned(),
        x if x.abs() < 0.001 => "<0.001".to_owned(),
        x if x.abs() < 9.995 => short(x, 3),
        x if (99.95..100.0).contains(&x) => {
            if x < 99.995 {
                format!("{x:.2}")
            } else {
                ">99.99".to_owned()
            }
        }
        x if x.abs() < 99.95 => format!("{x:.1}"),
        x => short(x, 3),
    }
}

fn nearest(report: &UpdatesReport, format: &FormatRow) -> Option<String> {
    let mark = format.nearest()?;
    let lr = match report.total.lr {
        Some(lr) => format!("At lr {}, ", brief(lr, 8)),
        None => "At the recorded learning rates, ".to_owned(),
    };
    let from = match format.lr_for_half {
        Some(Num(half)) => format!("; half of the updates reach half an ulp from lr ≈ {} on", short(half, 2)),
        None => String::new(),
    };
    let makes = match mark.along {
        Some(_) => format!("; what is applied makes {} % of the step", percent(mark.along)),
        None => String::new(),
    };
    Some(format!(
        "{lr}{} % of the updates leave a weight in {} as it is{makes}{from}.",
        pct(mark.unmoved_pct?.0),
        format.format,
    ))
}

/// Weights that one step takes beyond a format.
fn nonfinite(format: &FormatRow) -> Option<String> {
    let weights = format.nearest()?.nonfinite.filter(|&weights| weights > 0)?;
    let verb = if weights == 1 { "becomes" } else { "become" };
    Some(format!("{} {verb} Inf or NaN in {}.", plural(weights, "weight"), format.format))
}

fn first(format: &FormatRow, way: Way) -> Option<&Mark> {
    format.way(way)?.after.first()
}

fn stochastic(format: &FormatRow) -> Option<String> {
    let mark = first(format, Way::Expected)?;
    Some(format!(
        "Stochastic rounding to {} makes {} % of the step on average, with a random error of {} times its size each \
         time; the error of rounding to nearest, {} times its size, is the same each time.",
        format.format,
        percent(mark.along),
        short(mark.error?.0, 3),
        short(format.nearest()?.error?.0, 3)
    ))
}

fn kahan(format: &FormatRow) -> Option<String> {
    let mark = first(format, Way::Kahan).filter(|mark| mark.along.is_some())?;
    Some(format!(
        "Kahan summation in {} keeps {} % of the step, with an error of {} %, in {} more bits a weight.",
        format.format,
        percent(mark.along),
        percent(mark.error),
        format.format_bits
    ))
}

/// What many steps do.
fn stagnation(report: &UpdatesReport, format: &FormatRow) -> Option<String> {
    let last = |way| format.way(way)?.after.last();
    let (nearest, stochastic) = (last(Way::Nearest)?, last(Way::Stochastic)?);
    (report.options.steps > 1 && nearest.along.is_some()).then(|| {
        format!(
            "After {} times the same update, {} weights rounded to nearest even have made {} % of the way and {} % of \
             them have not moved; rounded stochastically {} %, {} % not moved.",
            report.options.steps,
            format.format,
            percent(nearest.along),
            nearest.unmoved_pct.map_or("–".to_owned(), |share| pct(share.0)),
            percent(stochastic.along),
            stochastic.unmoved_pct.map_or("–".to_owned(), |share| pct(share.0)),
        )
    })
}
