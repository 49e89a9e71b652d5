//! Tensors over the steps of a run: which of those selected are the same one.

use std::collections::HashMap;

use super::inputs::{Inputs, Selected};
use super::rows::Row;
use crate::pipeline;
use crate::report::histogram::Place;
use crate::scaler::fp8::{Role, Roles};

/// A tensor in all the steps that it was dumped at, in order.
pub(super) struct Series {
    /// What it is called in every step.
    pub(super) name: String,
    /// What it is in training.
    pub(super) role: Role,
    /// Where each step is from, and the positions of its tensors, one a rank, among those selected.
    pub(super) steps: Vec<(Place, Vec<usize>)>,
}

/// Joins rows, each a tensor of a step with all its ranks, that are steps of the same tensor.
pub(super) fn series(
    inputs: &Inputs,
    selected: &[Selected<'_>],
    rows: Vec<Row>,
    roles: &Roles,
) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut known: HashMap<(String, usize), usize> = HashMap::new();
    let mut seen: HashMap<(String, u64), usize> = HashMap::new();
    for Row { place, members } in rows {
        let Some(tensor) = members.first().map(|&first| &selected[first]) else { continue };
        let (dump, info) = (tensor.dump, &tensor.task.info);
        let name = inputs.key(dump, info);
        let file = tensor.task.path.file_name().map(|file| file.to_string_lossy()).unwrap_or_default();
        // Two of one name in one step are two tensors, the first of them with the first of every other step.
        let of_step = place.step.map(|step| {
            let count = seen.entry((name.clone(), step)).or_default();
            *count += 1;
            (name.clone(), *count)
        });
        let number = match of_step {
            Some(key) => *known.entry(key).or_insert(series.len()),
            None => series.len(),
        };
        match series.get_mut(number) {
            Some(series) => series.steps.push((place, members)),
            None => {
                let role = roles.of(&file, &name);
                series.push(Series { name, role, steps: vec![(place, members)] });
            }
        }
    }
    series.iter_mut().for_each(|series| series.steps.sort_by_key(|(place, _)| place.step));
    series
}

impl Series {
    /// What the pipeline needs to know of it.
    pub(super) fn tasks(&self) -> pipeline::Series {
        let steps = self.steps.iter().map(|(_, members)| members.clone()).collect();
        pipeline::Series { role: self.role, steps }
    }
}
