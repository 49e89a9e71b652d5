//! What the rows of a report are of, and which tensors each adds up.

use std::collections::HashMap;

use super::by::By;
use super::inputs::{Inputs, Selected};
use crate::report::histogram::Place;

/// A row of the report.
pub(super) struct Row {
    /// What it is of.
    pub(super) place: Place,
    /// Positions of its tensors among those selected.
    pub(super) members: Vec<usize>,
}

/// Puts the selected tensors into rows: a row a tensor, with all its ranks, in the order of the files; or a row
/// a step or a rank, in the order of their numbers.
pub(super) fn rows(inputs: &Inputs, selected: &[Selected<'_>], by: By) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut known = HashMap::new();
    for (number, tensor) in selected.iter().enumerate() {
        let Selected { dump, task, same, ranks } = tensor;
        let place = &inputs.dumps()[*dump].place;
        let here = |name: String| Place { name, step: place.step, ranks: ranks.clone() };
        let (key, place) = match (by, same) {
            (By::Step, _) => (place.step.map(|step| (Some(step), None)), here("step".into())),
            (By::Rank, _) => (place.rank.map(|rank| (Some(rank), None)), here("rank".into())),
            (By::Tensor, Some(same)) => (Some((None, Some(same))), here(same.name.clone())),
            (By::Tensor, None) => (None, here(task.info.name.clone())),
        };
        let row = key.map_or(rows.len(), |key| *known.entry(key).or_insert(rows.len()));
        match rows.get_mut(row) {
            Some(row) => {
                row.members.push(number);
                row.place.ranks.extend(place.ranks);
            }
            None => rows.push(Row { place, members: vec![number] }),
        }
    }
    for Row { place, .. } in &mut rows {
        place.ranks.sort_unstable();
        place.ranks.dedup();
    }
    match by {
        By::Tensor => {}
        By::Step => rows.sort_by_key(|row| row.place.step),
        By::Rank => rows.sort_by_key(|row| row.place.ranks.first().copied()),
    }
    rows
}
