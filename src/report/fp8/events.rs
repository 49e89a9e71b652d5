//! What happens to delayed scales, steps with the same events taken together.

use super::cell::{Cell, EventRow};
use super::model::{Fp8Report, TensorRow};
use crate::report::number::{Num, count, short};

/// Heads of a span's figures.
pub(super) const FIGURES: [&str; 5] = ["amax", "used", "scale", "bits off", "saturated"];

/// Position among them of the magnitude that the scale was formed from.
pub(super) const USED: usize = 1;

/// Consecutive steps of one tensor and recipe at which the same happens.
pub(super) struct Span<'a> {
    moments: Vec<(&'a TensorRow, &'a Cell)>,
}

/// The spans of a report, tensor by tensor.
pub(super) fn spans(report: &Fp8Report) -> Vec<Span<'_>> {
    let mut cells: Vec<(&TensorRow, &Cell, usize)> = Vec::new();
    for recipe in 0..report.recipes.len() {
        cells.extend(
            report.tensors.iter().filter_map(|tensor| Some((tensor, tensor.recipes.get(recipe)?, recipe))),
        );
    }
    // The tensors of a series are in the order of their steps.
    cells.sort_by_key(|(tensor, _, recipe)| (tensor.series, *recipe));
    let names = |cell: &Cell| cell.events.iter().map(|event| event.event).collect::<Vec<_>>();
    let mut spans: Vec<Span<'_>> = Vec::new();
    let mut before: Option<(usize, usize, Vec<&str>)> = None;
    for (tensor, cell, recipe) in cells {
        let now = (tensor.series, recipe, names(cell));
        match spans.last_mut() {
            Some(span) if !now.2.is_empty() && before.as_ref() == Some(&now) => {
                span.moments.push((tensor, cell));
            }
            _ if !now.2.is_empty() => spans.push(Span { moments: vec![(tensor, cell)] }),
            _ => {}
        }
        before = Some(now);
    }
    spans
}

impl<'a> Span<'a> {
    /// Its tensor, at its first step.
    pub(super) fn tensor(&self) -> &'a TensorRow {
        self.moments[0].0
    }

    /// Its recipe.
    pub(super) fn recipe(&self) -> &'static str {
        self.moments[0].1.recipe
    }

    /// `8` or `9–16`.
    pub(super) fn steps(&self) -> String {
        let step = |moment: Option<&(&TensorRow, &Cell)>| moment.and_then(|(tensor, _)| tensor.step);
        match (step(self.moments.first()), step(self.moments.last())) {
            (Some(first), Some(last)) if first < last => format!("{}–{}", count(first), count(last)),
            (Some(only), _) => count(only),
            _ => "–".into(),
        }
    }

    /// The figures of its worst step, the one whose scale is farthest off, and all values that saturate.
    pub(super) fn figures(&self) -> [String; 5] {
        let off = |cell: &Cell| cell.bits_off.map_or(0.0, |bits| bits.0.abs());
        let worst = self.moments.iter().copied().reduce(|a, b| if off(b.1) > off(a.1) { b } else { a });
        let (tensor, cell) = worst.unwrap_or(self.moments[0]);
        let num = |num: Option<Num>| num.map_or("–".to_owned(), |num| short(num.0, 3));
        let saturated: Option<u64> = self.moments.iter().map(|(_, cell)| cell.saturated).sum();
        let saturated = saturated.map_or("–".to_owned(), count);
        [num(tensor.amax), num(cell.amax_used), num(cell.scale), num(cell.bits_off), saturated]
    }

    /// What happens, in words.
    pub(super) fn events(&self) -> String {
        let event = |event: &EventRow| match event.after {
            Some(1) => "back after 1 step".to_owned(),
            Some(after) => format!("back after {after} steps"),
            None => event.event.to_owned(),
        };
        self.moments[0].1.events.iter().map(event).collect::<Vec<_>>().join(", ")
    }
}
