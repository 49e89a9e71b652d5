//! From the files that were named to the same tensor of every rank.

use std::collections::{BTreeMap, BTreeSet};

use super::super::inputs::{Inputs, Selected};
use crate::error::{Error, Result};
use crate::pipeline::Task;

/// Tensors, each of all ranks.
pub(super) struct Ranks<'a> {
    /// Numbers of the ranks, ascending.
    pub(super) numbers: Vec<u64>,
    /// Names, and the tasks in the order of the ranks.
    pub(super) tensors: Vec<(String, Vec<Task<'a>>)>,
    /// Tensors that not all ranks have.
    pub(super) problems: Vec<Error>,
}

impl<'a> Ranks<'a> {
    /// Puts the tensors of all ranks side by side.
    ///
    /// # Errors
    /// There are fewer than two ranks, one is missing, one is given twice, or the files are of several steps.
    pub(super) fn new(inputs: &Inputs, selected: Vec<Selected<'a>>) -> Result<Self> {
        let dumps = inputs.dumps();
        let unplaced = dumps.iter().find(|dump| dump.place.rank.is_none());
        if let Some(dump) = unplaced {
            let what = "does not say of what rank it is; --layout tells where paths have it";
            return Err(Error::new(what).in_file(&dump.path));
        }
        let steps: BTreeSet<Option<u64>> = dumps.iter().map(|dump| dump.place.step).collect();
        if steps.len() > 1 {
            return Err(Error::new("the files are of several steps: choose one with --steps"));
        }
        let mut file_of: BTreeMap<(u64, &str), usize> = BTreeMap::new();
        for (number, dump) in dumps.iter().enumerate() {
            let rank = dump.place.rank.unwrap_or(0);
            if let Some(first) = file_of.insert((rank, &dump.place.group), number) {
                let what = format!("is of rank {rank}, as {} is", dumps[first].path.display());
                return Err(Error::new(what).in_file(&dump.path));
            }
        }
        let numbers: Vec<u64> =
            file_of.keys().map(|(rank, _)| *rank).collect::<BTreeSet<_>>().into_iter().collect();
        if let [only] = numbers.as_slice() {
            let what =
                format!("rank {only} is the only one: a reduction needs the dumps of two ranks or more");
            return Err(Error::new(what));
        }
        let last = numbers.last().copied().unwrap_or(0);
        // Ranks that were chosen need not be all.
        if inputs.filters().ranks.is_none() && last + 1 != numbers.len() as u64 {
            let have: BTreeSet<u64> = numbers.iter().copied().collect();
            let missing = (0..last).find(|rank| !have.contains(rank)).unwrap_or(0);
            let what = format!(
                "rank {missing} is missing among {} ranks up to {last}: name its file, or choose ranks with --ranks",
                numbers.len()
            );
            return Err(Error::new(what));
        }

        let mut order: Vec<String> = Vec::new();
        let mut by_name: BTreeMap<String, BTreeMap<u64, Task<'a>>> = BTreeMap::new();
        for Selected { dump, task, same, .. } in selected {
            let (Some(same), Some(rank)) = (same, dumps[dump].place.rank) else { continue };
            let tasks = by_name.entry(same.name.clone()).or_default();
            if tasks.is_empty() {
                order.push(same.name);
            }
            tasks.entry(rank).or_insert(task);
        }
        let (mut tensors, mut problems) = (Vec::new(), Vec::new());
        for name in order {
            let Some(tasks) = by_name.remove(&name) else { continue };
            if let Some(lacks) = numbers.iter().find(|number| !tasks.contains_key(number)) {
                let what = format!("rank {lacks} does not have it");
                if let Some(task) = tasks.into_values().next() {
                    problems.push(Error::new(what).in_tensor(&task.info.name).in_file(task.path));
                }
                continue;
            }
            tensors.push((name, tasks.into_values().collect()));
        }
        Ok(Self { numbers, tensors, problems })
    }
}
