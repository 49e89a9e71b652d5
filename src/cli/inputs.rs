//! From the paths and filters that were typed to opened dumps and the tensors to read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZero;
use std::path::PathBuf;

use super::input_args::{InputArgs, Ranges};
use super::output::complain;
use crate::error::{Error, Result, escape};
use crate::pipeline::{self, Task};
use crate::source::{Place, RawLayout, TensorSource, Unscaled, discover, open_or_raw};
use crate::tensor::{ByteOrder, TensorInfo};

/// The dumps that could be opened, and what is to be said about the others.
pub(super) struct Inputs {
    dumps: Vec<Dump>,
    filters: InputArgs,
    /// Whether files of one step and rank hold different things, so that a tensor's name is not enough.
    several_groups: bool,
    /// What was skipped or is odd.
    pub(super) notices: Vec<String>,
    /// What could not be read.
    pub(super) problems: Vec<Error>,
}

/// An opened file.
pub(super) struct Dump {
    pub(super) path: PathBuf,
    pub(super) place: Place,
    pub(super) source: Box<dyn TensorSource>,
}

/// A tensor to read, and the dump it is in.
pub(super) struct Selected<'a> {
    /// Number of the dump in [`Inputs::dumps`].
    pub(super) dump: usize,
    pub(super) task: Task<'a>,
}

impl Inputs {
    /// Opens every dump that the paths stand for and that the steps and ranks asked for leave.
    pub(super) fn open(filters: InputArgs) -> Self {
        let raw = filters.dtype.clone().map(|dtype| RawLayout {
            dtype,
            byte_order: filters.endian.unwrap_or(ByteOrder::Little),
            shape: filters.shape.clone().map(|shape| shape.0),
        });
        let found = discover(&filters.paths, raw.is_some());
        let mut inputs = Self {
            dumps: Vec::new(),
            filters,
            several_groups: false,
            notices: Vec::new(),
            problems: found.problems,
        };
        if found.skipped > 0 {
            let (files, are) =
                if found.skipped == 1 { ("file", "is no dump") } else { ("files", "are no dumps") };
            inputs.notices.push(format!("skipped {} {files} that {are}", found.skipped));
        }
        if found.repeated > 0 {
            inputs.notices.push(format!("{} paths name a file that is read already", found.repeated));
        }
        let (mut unplaced, mut unlike) = (0, 0);
        for path in found.files {
            let place = match &inputs.filters.layout {
                Some(layout) => layout.place(&path),
                None => Some(Place::of(&path)),
            };
            let Some(place) = place else {
                unlike += 1;
                continue;
            };
            // Before it is opened: there may be very many.
            if !inputs.wants(&place).unwrap_or(true) {
                continue;
            }
            match open_or_raw(&path, raw.as_ref()) {
                Ok(source) => unplaced += u64::from(!inputs.take(path, place, source)),
                Err(error) => inputs.problems.push(error.in_file(&path)),
            }
        }
        for (count, why) in [
            (unplaced, "do not say of what step or rank they are"),
            (unlike, "are not named as --layout has it"),
        ] {
            if count > 0 {
                inputs.notices.push(format!("left out {count} files that {why}"));
            }
        }
        let mut groups: HashMap<_, BTreeSet<&str>> = HashMap::new();
        for Dump { place, .. } in &inputs.dumps {
            groups.entry((place.step, place.rank)).or_default().insert(&place.group);
        }
        inputs.several_groups = groups.values().any(|groups| groups.len() > 1);
        inputs
    }

    /// Takes an opened file, if its step and rank are wanted; `false` if it does not say them.
    fn take(&mut self, path: PathBuf, mut place: Place, source: Box<dyn TensorSource>) -> bool {
        if place.step.is_none() {
            let step = source.metadata().iter().find(|(key, _)| key == "step");
            place.step = step.and_then(|(_, value)| value.parse().ok());
        }
        match self.wants(&place) {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
        self.problems.extend(source.problems().iter().map(|error| error.clone().in_file(&path)));
        let notices = source.notices().iter().map(|notice| notice.clone().in_file(&path).to_string());
        self.notices.extend(notices);
        let source = match self.filters.unscale {
            Some(scale) => match Unscaled::new(source, scale, self.filters.dtype.as_ref()) {
                Ok(unscaled) => Box::new(unscaled) as Box<dyn TensorSource>,
                Err(error) => {
                    self.problems.push(error.in_file(&path));
                    return true;
                }
            },
            None => source,
        };
        self.dumps.push(Dump { path, place, source });
        true
    }

    /// Whether the step and rank are wanted; `None` if one is asked for that is not known.
    fn wants(&self, place: &Place) -> Option<bool> {
        let wants = |ranges: &Option<Ranges>, number: Option<u64>| match (ranges, number) {
            (None, _) => Some(true),
            (Some(ranges), Some(number)) => Some(ranges.contain(number)),
            (Some(_), None) => None,
        };
        let (step, rank) = (wants(&self.filters.steps, place.step), wants(&self.filters.ranks, place.rank));
        if step == Some(false) || rank == Some(false) { Some(false) } else { step.and(rank) }
    }

    /// The opened dumps.
    pub(super) fn dumps(&self) -> &[Dump] {
        &self.dumps
    }

    /// The filters as typed.
    pub(super) fn filters(&self) -> &InputArgs {
        &self.filters
    }

    /// What a tensor of dump number `dump` is called in all steps and ranks.
    pub(super) fn key(&self, dump: usize, info: &TensorInfo) -> String {
        let Place { group, .. } = &self.dumps[dump].place;
        let name = self.name(dump, info);
        if self.several_groups && !group.is_empty() && name != *group {
            format!("{group}.{name}")
        } else {
            name
        }
    }

    /// The tensor's name without step and rank, which are part of it where it is the name of the file.
    pub(super) fn name(&self, dump: usize, info: &TensorInfo) -> String {
        let Dump { path, place, .. } = &self.dumps[dump];
        let of_file = path.file_stem().is_some_and(|stem| stem.to_string_lossy() == info.name);
        if of_file { place.group.clone() } else { info.name.clone() }
    }

    /// Whether the filters leave the tensor called `name`.
    pub(super) fn wants_tensor(&self, name: &str) -> bool {
        let InputArgs { tensor, exclude, .. } = &self.filters;
        tensor.as_ref().is_none_or(|regex| regex.is_match(name))
            && !exclude.as_ref().is_some_and(|regex| regex.is_match(name))
    }

    /// The tensors that the filters leave. What is no float is skipped with a notice.
    pub(super) fn select(&self) -> (Vec<Selected<'_>>, Vec<String>, Vec<Error>) {
        let (mut selected, mut problems) = (Vec::new(), Vec::new());
        let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, Dump { path, source, .. }) in self.dumps.iter().enumerate() {
            for (index, info) in source.tensors().iter().enumerate() {
                if !self.wants_tensor(&info.name) {
                    continue;
                }
                let info = match &self.filters.dtype {
                    // Taken so before they were divided.
                    Some(_) if self.filters.unscale.is_some() && info.dtype.is_float() => info.clone(),
                    Some(dtype) => match info.reinterpret(dtype) {
                        Ok(info) => info,
                        Err(error) => {
                            problems.push(error.in_file(path));
                            continue;
                        }
                    },
                    None if !info.dtype.is_float() => {
                        *skipped.entry(info.dtype.name()).or_default() += 1;
                        continue;
                    }
                    None => info.clone(),
                };
                selected.push(Selected { dump: number, task: Task { source: &**source, index, info } });
            }
        }
        (selected, skipped_types(&skipped).into_iter().collect(), problems)
    }

    /// Leaves out tensors that several ranks have written with the same bytes, but for the first; says how
    /// many.
    pub(super) fn drop_replicas(
        &self,
        selected: &mut Vec<Selected<'_>>,
        threads: NonZero<usize>,
    ) -> Option<String> {
        let mut by_key: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, Selected { dump, task }) in selected.iter().enumerate() {
            let place = &self.dumps[*dump].place;
            if place.rank.is_some() {
                by_key.entry((place.step, self.key(*dump, &task.info))).or_default().push(number);
            }
        }
        let groups: Vec<Vec<usize>> = by_key.into_values().filter(|group| group.len() > 1).collect();
        let tasks: Vec<Vec<&Task<'_>>> =
            groups.iter().map(|group| group.iter().map(|&number| &selected[number].task).collect()).collect();
        let repeated = pipeline::replicas(&tasks, threads);
        let drop: BTreeSet<usize> = groups
            .iter()
            .zip(repeated)
            .flat_map(|(group, repeated)| repeated.into_iter().map(|position| group[position]))
            .collect();
        let mut numbers = 0..;
        selected.retain(|_| numbers.next().is_some_and(|number| !drop.contains(&number)));
        (!drop.is_empty()).then(|| {
            let (tensors, are) = if drop.len() == 1 { ("tensor is", "is") } else { ("tensors are", "are") };
            format!("{} {tensors} the same in another rank and {are} not counted again", drop.len())
        })
    }

    /// Leaves out tensors of files that do not say their step; says how many, and what else is odd.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn drop_unplaced(&self, selected: &mut Vec<Selected<'_>>) -> Result<Vec<String>> {
        let before = selected.len();
        selected.retain(|tensor| self.dumps[tensor.dump].place.step.is_some());
        let dropped = before - selected.len();
        if dropped > 0 && selected.is_empty() {
            return Err(Error::new("no file says of what step it is; --layout tells where paths have it"));
        }
        let mut notices = Vec::new();
        if dropped > 0 {
            notices.push(format!("left out {dropped} tensors of files that do not say their step"));
        }
        if self.several_groups {
            let groups: BTreeSet<&str> = self.dumps.iter().map(|dump| dump.place.group.as_str()).collect();
            let groups = groups.into_iter().take(5).map(escape).collect::<Vec<_>>().join(", ");
            notices.push(format!("files of one step hold different things, which are added up: {groups}"));
        }
        Ok(notices)
    }

    /// The path of dump `number`.
    pub(super) fn path(&self, number: usize) -> &PathBuf {
        &self.dumps[number].path
    }
}

/// `skipped 5 tensors whose type names no floating-point format: 3 I64, 2 BOOL`
fn skipped_types(skipped: &BTreeMap<&str, u64>) -> Option<String> {
    let total: u64 = skipped.values().sum();
    let types: Vec<String> =
        skipped.iter().map(|(dtype, count)| format!("{count} {}", escape(dtype))).collect();
    let tensors = if total == 1 { "tensor" } else { "tensors" };
    (total > 0).then(|| {
        format!(
            "skipped {total} {tensors} whose type names no floating-point format: {} (--dtype reads such codes)",
            types.join(", ")
        )
    })
}

/// Refuses to go on with nothing to do.
pub(super) fn require(selected: &[Selected<'_>], inputs: &Inputs, problems: &[Error]) -> Result<()> {
    if !selected.is_empty() {
        return Ok(());
    }
    let filters = &inputs.filters;
    let by_place = filters.steps.is_some() || filters.ranks.is_some() || filters.layout.is_some();
    let filtered = filters.tensor.is_some() || filters.exclude.is_some();
    Err(match problems {
        [others @ .., last] => {
            others.iter().for_each(|problem| complain(&problem.to_string()));
            last.clone()
        }
        [] if inputs.dumps.is_empty() && by_place => {
            Error::new("no dump is left to read: check --steps, --ranks and --layout")
        }
        [] if inputs.dumps.is_empty() => Error::new("found no dump to read"),
        [] if filtered => Error::new("no tensor is left to read: check --tensor and --exclude"),
        [] => Error::new("found no tensor of floating-point numbers"),
    })
}
