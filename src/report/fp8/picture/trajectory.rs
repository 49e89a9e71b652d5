//! The scale of one tensor over the steps: what delayed scaling used, what the step itself would have given, and
//! what was lost by it.

use super::super::cell::Cell;
use super::super::model::{Fp8Report, TensorRow};
use super::{ALARM, AXIS, BLUE, FAINT, GREEN, HEIGHT, MARGIN, NOTE, TOP, WIDTH, head};
use crate::error::escape;
use crate::report::number::{count, short};
use crate::report::picture::{Anchor, Colour, Picture};

const LEFT: f64 = 96.0;
const RIGHT: f64 = 980.0;
/// Foot of the panel of scales, and where there is nothing below it.
const BOTTOM: f64 = 470.0;
const ALONE: f64 = 740.0;
/// The two below it, from top to foot.
const PANELS: [(f64, f64); 2] = [(530.0, 610.0), (664.0, 744.0)];

/// A series of steps under one recipe.
pub(super) struct Found<'a> {
    /// The recipe.
    recipe: &'static str,
    /// Its steps.
    steps: Vec<(&'a TensorRow, &'a Cell)>,
}

/// The series that most happens to, under the first recipe of delayed scaling.
pub(super) fn worst(report: &Fp8Report) -> Option<Found<'_>> {
    let number = report.recipes.iter().position(|row| row.recipe.starts_with("delayed"))?;
    let mut series: Vec<Vec<(&TensorRow, &Cell)>> = Vec::new();
    for tensor in &report.tensors {
        let Some(cell) = tensor.recipes.get(number) else { continue };
        match series.last_mut() {
            Some(steps) if steps[0].0.series == tensor.series => steps.push((tensor, cell)),
            _ => series.push(vec![(tensor, cell)]),
        }
    }
    let off = |steps: &Vec<(&TensorRow, &Cell)>| {
        // The first step says nothing about the recipe.
        let bits = steps.iter().skip(1).filter_map(|(_, cell)| cell.bits_off);
        bits.map(|bits| if bits.0 < 0.0 { -4.0 * bits.0 } else { bits.0 }).sum::<f64>()
    };
    let several = series.into_iter().filter(|steps| steps.len() > 1);
    let steps = several.max_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some(Found { recipe: report.recipes[number].recipe, steps })
}

pub(super) fn picture(report: &Fp8Report, found: &Found<'_>) -> Picture {
    let Found { recipe, steps } = found;
    let mut picture = Picture::new(WIDTH, HEIGHT);
    let name = escape(&steps[0].0.name);
    head(&mut picture, report, &format!("{recipe} of {name}, which it serves worst"));
    let x = |position: f64| LEFT + (RIGHT - LEFT) * position / steps.len() as f64;

    let used = |cell: &Cell| cell.scale.map(|scale| libm::log2(scale.0)).filter(|log| log.is_finite());
    let wanted = |cell: &Cell| Some(used(cell)? + cell.bits_off?.0);
    let logs: Vec<f64> = steps.iter().flat_map(|(_, cell)| [used(cell), wanted(cell)]).flatten().collect();
    let low = logs.iter().fold(f64::INFINITY, |low, &log| low.min(log)).floor().min(0.0) - 1.0;
    let high = logs.iter().fold(f64::NEG_INFINITY, |high, &log| high.max(log)).ceil().max(low + 4.0) + 1.0;
    let bottom = if report.has_magnitudes_only() { ALONE } else { BOTTOM };
    let y = |log: f64| bottom - (bottom - TOP) * (log - low) / (high - low);
    let pitch =
        [1, 2, 4, 8, 16, 32].into_iter().find(|&pitch| (high - low) / f64::from(pitch) <= 12.0).unwrap_or(64);
    let first = (low as i32).div_euclid(pitch) + 1;
    for k in (first..).map(|multiple| multiple * pitch).take_while(|&k| f64::from(k) <= high) {
        picture.line(&[(LEFT, y(k.into())), (RIGHT, y(k.into()))], 0.5, FAINT);
        picture.text((LEFT - 8.0, y(k.into()) + 4.0), &format!("2^{k}"), NOTE.anchored(Anchor::End));
    }
    picture.text((LEFT - 8.0, TOP - 12.0), "scale", NOTE.anchored(Anchor::End).coloured(AXIS));

    // Where the line is above what the step needs, values saturate; below, range lies idle.
    let mut line = Vec::new();
    for (position, (_, cell)) in steps.iter().enumerate() {
        let (from, to) = (x(position as f64), x((position + 1) as f64));
        let (Some(used), Some(wanted)) = (used(cell), wanted(cell)) else {
            picture.rect((from, TOP), (to - from, bottom - TOP), Colour(238, 238, 238));
            continue;
        };
        let saturates = cell.events.iter().any(|event| event.event == "saturates");
        let between = if saturates { Colour(248, 222, 212) } else { Colour(224, 236, 246) };
        let (top, foot) = (y(used.max(wanted)), y(used.min(wanted)));
        picture.rect((from, top), (to - from, foot - top), between);
        picture.line(&[(from, y(wanted)), (to, y(wanted))], 2.5, GREEN);
        line.extend([(from, y(used)), (to, y(used))]);
    }
    picture.line(&line, 2.5, BLUE);
    steps_axis(&mut picture, steps, bottom, &x);
    legend(&mut picture, recipe);
    if !report.has_magnitudes_only() {
        panels(&mut picture, steps, &x);
    }
    let options = &report.options;
    let note = format!(
        "amax_history_len {}, margin {}, amax_compute_algo {}; the first step has scale 1",
        options.history, options.margin, options.amax_algo
    );
    picture.text((MARGIN, f64::from(HEIGHT) - 18.0), &note, NOTE.coloured(AXIS));
    picture
}

/// What it costs at each step.
fn panels(picture: &mut Picture, steps: &[(&TensorRow, &Cell)], x: &impl Fn(f64) -> f64) {
    let saturated = |cell: &Cell| cell.saturated.unwrap_or(0) as f64;
    let underflow = |cell: &Cell| cell.underflow_pct.map_or(0.0, |share| share.0);
    let sqnr = |cell: &Cell| cell.sqnr_db.map_or(0.0, |sqnr| sqnr.0.clamp(0.0, 100.0));
    let cells = || steps.iter().map(|(_, cell)| *cell);
    let panels: [(&str, Colour, Vec<f64>); 2] = [
        ("values saturate", ALARM, cells().map(saturated).collect()),
        if cells().any(|cell| underflow(cell) > 0.0) {
            ("underflow, % of nonzero", BLUE, cells().map(underflow).collect())
        } else {
            ("SQNR in dB", BLUE, cells().map(sqnr).collect())
        },
    ];
    for ((top, foot), (title, colour, values)) in PANELS.into_iter().zip(panels) {
        let largest = values.iter().fold(0.0, |largest: f64, &value| largest.max(value));
        picture.line(&[(LEFT, foot), (RIGHT, foot)], 1.0, AXIS);
        for part in [0.5, 1.0] {
            let y = foot - (foot - top) * part;
            picture.line(&[(LEFT, y), (RIGHT, y)], 0.5, FAINT);
        }
        let label = if largest >= 100.0 { count(largest as u64) } else { short(largest, 2) };
        picture.text((LEFT - 8.0, top + 4.0), &label, NOTE.anchored(Anchor::End));
        picture.text((LEFT - 8.0, foot + 4.0), "0", NOTE.anchored(Anchor::End));
        picture.text((RIGHT + 20.0, top + 10.0), title, NOTE.coloured(colour));
        for (position, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let height = ((foot - top) * value / largest).max(1.0);
            let (from, to) = (x(position as f64), x((position + 1) as f64));
            picture.rect((from + 0.1 * (to - from), foot - height), (0.8 * (to - from), height), colour);
        }
    }
}

fn steps_axis(picture: &mut Picture, steps: &[(&TensorRow, &Cell)], foot: f64, x: &impl Fn(f64) -> f64) {
    picture.line(&[(LEFT, foot), (RIGHT, foot)], 1.0, AXIS);
    let pitch = steps.len().div_ceil(12).max(1);
    for (position, (tensor, _)) in steps.iter().enumerate().step_by(pitch) {
        let at = x(position as f64 + 0.5);
        picture.line(&[(at, foot), (at, foot + 4.0)], 1.0, AXIS);
        let number = tensor.step.map_or_else(|| position.to_string(), count);
        picture.text((at, foot + 18.0), &number, NOTE.anchored(Anchor::Middle));
    }
    picture.text((RIGHT + 20.0, foot + 18.0), "step", NOTE.coloured(AXIS));
}

fn legend(picture: &mut Picture, recipe: &str) {
    let x = RIGHT + 20.0;
    let rows = [
        (BLUE, 3.0, format!("{recipe}: used")),
        (GREEN, 3.0, "what the step needs".to_owned()),
        (Colour(248, 222, 212), 12.0, "too large: saturates".to_owned()),
        (Colour(224, 236, 246), 12.0, "too small: range idle".to_owned()),
        (Colour(238, 238, 238), 12.0, "amax 0, Inf or NaN".to_owned()),
    ];
    for (index, (colour, thick, text)) in rows.into_iter().enumerate() {
        let y = TOP + 20.0 * index as f64 + 8.0;
        picture.rect((x, y - 4.0 - thick / 2.0), (22.0, thick), colour);
        picture.text((x + 30.0, y), &NOTE.fit(&text, 165.0), NOTE);
    }
}
