//! What the figures mean, in sentences.

use super::model::{Fp8Report, RecipeRow, TensorRow};
use crate::error::escape;
use crate::report::number::{count, percent, plural, short};

/// The sentences of a report.
pub(super) fn findings(report: &Fp8Report) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(best(report));
    sentences.extend(lost(report));
    sentences.extend(clipping(report));
    sentences.extend(zero_scales(report));
    sentences.extend(infinite(report));
    for recipe in report.recipes.iter().map(|row| row.recipe).filter(|name| name.starts_with("delayed")) {
        sentences.extend(delayed(report, recipe));
    }
    sentences
}

/// Which recipe keeps the signal best, of each width.
fn best(report: &Fp8Report) -> Option<String> {
    let known: Vec<&RecipeRow> = report.recipes.iter().filter(|row| row.sqnr_db.is_some()).collect();
    if known.len() < 2 {
        return None;
    }
    let best = |narrow: bool| {
        let of_width = known.iter().filter(|row| (row.bits_per_element.0 < 6.0) == narrow);
        of_width.copied().max_by(|a, b| sqnr(a).total_cmp(&sqnr(b)))
    };
    let text = |row: &RecipeRow| {
        format!(
            "{} ({} dB, {} % of the nonzero values underflow)",
            row.recipe,
            short(sqnr(row), 3),
            percent(row.underflow, row.nonzero_finite)
        )
    };
    Some(match (best(false), best(true)) {
        (Some(eight), Some(four)) => {
            format!("The highest SQNR over all: {}; of four bits {}.", text(eight), text(four))
        }
        (Some(only), None) | (None, Some(only)) => format!("The highest SQNR over all: {}.", text(only)),
        (None, None) => return None,
    })
}

fn sqnr(row: &RecipeRow) -> f64 {
    row.sqnr_db.map_or(f64::NEG_INFINITY, |sqnr| sqnr.0)
}

/// Values that an Inf or NaN beside them takes along.
fn lost(report: &Fp8Report) -> Option<String> {
    let lost: Vec<String> = report
        .recipes
        .iter()
        .filter(|row| row.spoiled > 0)
        .map(|row| format!("{} {} of {}", row.recipe, count(row.spoiled), count(row.nonzero_finite)))
        .collect();
    (!lost.is_empty()).then(|| {
        format!(
            "Finite nonzero values come back as NaN, since their block holds an Inf or NaN: {}. They neither underflow nor \
             saturate, and are in no SQNR.",
            lost.join(", ")
        )
    })
}

/// Recipes that look at the values and clip them all the same.
fn clipping(report: &Fp8Report) -> Option<String> {
    let clips: Vec<String> = report
        .recipes
        .iter()
        .filter(|row| row.saturated > 0 && !row.recipe.starts_with("delayed"))
        .map(|row| format!("{} {}", row.recipe, count(row.saturated)))
        .collect();
    (!clips.is_empty()).then(|| {
        format!(
            "Values saturate although the scale was made for them: {}. A scale rounded down clips what lies between; \
             mxfp8:rceil never does.",
            clips.join(", ")
        )
    })
}

/// Blocks that are lost as a whole.
fn zero_scales(report: &Fp8Report) -> Option<String> {
    let lost: Vec<String> = (0..report.recipes.len())
        .filter_map(|number| {
            let cells = || report.tensors.iter().filter_map(|tensor| tensor.recipes.get(number));
            let zero: u64 = cells().map(|cell| cell.blocks_scale_zero).sum();
            let all: u64 = cells().map(|cell| cell.blocks).sum();
            (zero > 0).then(|| {
                format!("{} {} of {}", report.recipes[number].recipe, count(zero), plural(all, "block"))
            })
        })
        .collect();
    (!lost.is_empty()).then(|| {
        format!("Blocks whose scale rounds to 0, so that all their values are lost: {}.", lost.join(", "))
    })
}

/// Tensors with an Inf, of which Transformer Engine makes no scale.
fn infinite(report: &Fp8Report) -> Option<String> {
    let takes_one = |recipe: &str| matches!(recipe, "current" | "current:pow2" | "nvfp4:te");
    let recipes: Vec<&str> =
        report.recipes.iter().map(|row| row.recipe).filter(|recipe| takes_one(recipe)).collect();
    let with_inf: Vec<&TensorRow> = report.tensors.iter().filter(|tensor| tensor.inf > 0).collect();
    let first = with_inf.first().filter(|_| !recipes.is_empty())?;
    Some(format!(
        "An Inf gives no scale: in {} ({}{}) the tensor's scale of {} is 1, whatever the other values are.",
        plural(with_inf.len() as u64, report.what()),
        if with_inf.len() > 1 { "first " } else { "" },
        report.name(first),
        recipes.join(" and ")
    ))
}

/// What happened to delayed scales.
fn delayed(report: &Fp8Report, recipe: &str) -> Vec<String> {
    if !report.has_series() {
        return vec![format!(
            "{recipe}: one step has no history; shown is the scale that this step hands to the next."
        )];
    }
    let cells: Vec<_> = report
        .tensors
        .iter()
        .flat_map(|tensor| tensor.recipes.iter().map(move |cell| (tensor, cell)))
        .filter(|(_, cell)| cell.recipe == recipe)
        .collect();
    let with = |name: &str| {
        let has = |cell: &super::Cell| cell.events.iter().any(|event| event.event == name);
        cells.iter().filter(|(_, cell)| has(cell)).copied().collect::<Vec<(&TensorRow, &super::Cell)>>()
    };
    let all = cells.len() as u64;
    let place = |(tensor, _): &(&TensorRow, &super::Cell)| {
        format!("{} at step {}", escape(&tensor.name), tensor.step.map_or("–".into(), count))
    };
    let mut sentences = Vec::new();
    let saturates: Vec<_> = with("saturates");
    let worst = saturates.iter().min_by(|a, b| bits(a.1).total_cmp(&bits(b.1)));
    if let Some(worst) = worst {
        // Of traces it is not known how many.
        let values: Option<u64> = saturates.iter().map(|(_, cell)| cell.saturated).sum();
        sentences.push(format!(
            "{recipe} saturates {} in {} of {} steps of tensors: the scale is that of smaller steps before. Worst is {}, \
             {} bits beyond.",
            values.map_or("values".to_owned(), |values| plural(values, "value")),
            count(saturates.len() as u64),
            count(all),
            place(worst),
            short(-bits(worst.1), 3)
        ));
    }
    let stale = with("stale");
    let worst = stale.iter().max_by(|a, b| bits(a.1).total_cmp(&bits(b.1)));
    if let Some(worst) = worst {
        sentences.push(format!(
            "{recipe} is stale in {} of {}: an older, larger magnitude holds the scale down. Worst is {}, {} bits too \
             small.",
            count(stale.len() as u64),
            count(all),
            place(worst),
            short(bits(worst.1), 3)
        ));
    }
    let longest = with("recovered")
        .into_iter()
        .filter_map(|found| Some((found.1.events.iter().find_map(|event| event.after)?, found)))
        .max_by_key(|(after, _)| *after);
    if let Some((after, found)) = longest {
        sentences.push(format!(
            "The longest way back: {} of {}.",
            plural(after as u64, "step"),
            place(&found)
        ));
    }
    let frozen = with("frozen");
    if let Some(first) = frozen.first() {
        sentences.push(format!(
            "{recipe} is frozen in {} of {}, first {}: an Inf or NaN stays in the history of {} and the scale follows \
             nothing until it has left.",
            count(frozen.len() as u64),
            count(all),
            place(first),
            plural(report.options.history as u64, "step")
        ));
    }
    if sentences.is_empty() {
        sentences.push(format!("{recipe}: no step saturates, and no scale is a bit too small."));
    }
    let steps: std::collections::BTreeSet<u64> =
        report.tensors.iter().filter_map(|tensor| tensor.step).collect();
    if let (Some(first), Some(last)) = (steps.first(), steps.last())
        && last - first >= steps.len() as u64
    {
        sentences.push(format!(
            "{recipe} takes the {} recorded steps from {} to {} for consecutive ones: what lay between is not known.",
            count(steps.len() as u64),
            count(*first),
            count(*last)
        ));
    }
    sentences
}

fn bits(cell: &super::Cell) -> f64 {
    cell.bits_off.map_or(0.0, |bits| bits.0)
}
