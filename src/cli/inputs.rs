//! From the paths and filters that were typed to opened dumps and the tensors to read.

mod notices;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZero;
use std::path::PathBuf;

use notices::{other_types, skipped_files, skipped_types};

use super::by::By;
use super::input_args::{InputArgs, Ranges};
use super::output::complain_of_all;
use crate::error::{Error, Result, escape};
use crate::pipeline::{self, Task};
use crate::source::metadata::{recorded_scale, recorded_step};
use crate::source::{Place, RawLayout, TensorSource, Unscaled, discover, open_or_raw};
use crate::tensor::{ByteOrder, TensorInfo};

/// The dumps that could be opened, and what is to be said about the others.
pub(super) struct Inputs {
    dumps: Vec<Dump>,
    filters: InputArgs,
    /// Whether files of one step and rank hold different things, so that a tensor's name is not enough.
    several_groups: bool,
    /// Loss scales that files record, and under which key.
    recorded_scales: Vec<(String, f64)>,
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
    /// What it shares with the same tensor of other ranks; `None` if its rank is not known.
    pub(super) same: Option<Same>,
    /// The ranks that have written these bytes.
    pub(super) ranks: Vec<u64>,
}

/// A tensor of a step, whatever its rank.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Same {
    pub(super) name: String,
    pub(super) step: Option<u64>,
    /// How many tensors of this name its rank has before it.
    before: usize,
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
            recorded_scales: Vec::new(),
            notices: Vec::new(),
            problems: found.problems,
        };
        inputs.notices.extend(skipped_files(&found.skipped));
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
        inputs.notices.extend(other_types(&inputs.dumps));
        inputs
    }

    /// Takes an opened file, if its step and rank are wanted; `false` if it does not say them.
    fn take(&mut self, path: PathBuf, mut place: Place, source: Box<dyn TensorSource>) -> bool {
        if place.step.is_none() {
            place.step = recorded_step(source.metadata());
        }
        match self.wants(&place) {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
        if let Some((key, scale)) = recorded_scale(source.metadata()) {
            self.recorded_scales.push((key.to_owned(), scale));
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

    /// Says that files record another loss scale than `unscale`, which their values are divided by. It is not
    /// divided out unasked: whether the gradients beside it still have it, no file says.
    pub(super) fn other_scales(&self, unscale: f32) -> Option<String> {
        let is_other = |scale: f64| scale != 1.0 && scale != f64::from(unscale);
        let scales: Vec<_> = self.recorded_scales.iter().filter(|(_, scale)| is_other(*scale)).collect();
        let (key, scale) = scales.first()?;
        let more = if scales.iter().any(|(_, other)| other != scale) { ", …" } else { "" };
        let (files, record) = match scales.len() {
            1 => ("a file".to_owned(), "records"),
            many => (format!("{many} files"), "record"),
        };
        let scale = format!("{} {scale}{more}", escape(key));
        Some(if unscale == 1.0 {
            format!(
                "{files} {record} a loss scale: {scale}; if the values still have it, divide by it with --unscale"
            )
        } else {
            format!("{files} {record} another loss scale than --unscale: {scale}")
        })
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

    /// Whether names of tensors are asked for.
    pub(super) fn filters_tensors(&self) -> bool {
        self.filters.tensor.is_some() || self.filters.exclude.is_some()
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
        let mut before: HashMap<_, usize> = HashMap::new();
        for (number, Dump { path, source, place }) in self.dumps.iter().enumerate() {
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
                let same = place.rank.map(|rank| {
                    let (name, step) = (self.key(number, &info), place.step);
                    let count = before.entry((name.clone(), step, rank)).or_default();
                    *count += 1;
                    Same { name, step, before: *count - 1 }
                });
                let ranks = place.rank.into_iter().collect();
                let task = Task { source: &**source, index, info, path };
                selected.push(Selected { dump: number, task, same, ranks });
            }
        }
        (selected, skipped_types(&skipped).into_iter().collect(), problems)
    }

    /// The same, but of what several ranks have written with the same bytes only the first; with all that is to be
    /// said of the inputs, and all that could not be read.
    pub(super) fn select_once(
        &self,
        threads: NonZero<usize>,
    ) -> (Vec<Selected<'_>>, Vec<String>, Vec<Error>) {
        let (mut selected, skipped, failed) = self.select();
        let mut notices: Vec<String> = self.notices.iter().cloned().chain(skipped).collect();
        notices.extend(self.other_scales(self.filters.unscale.unwrap_or(1.0)));
        notices.extend(Self::drop_replicas(&mut selected, threads));
        (selected, notices, self.problems.iter().cloned().chain(failed).collect())
    }

    /// Leaves out tensors that several ranks have written with the same bytes, but for the first; says how
    /// many.
    pub(super) fn drop_replicas(selected: &mut Vec<Selected<'_>>, threads: NonZero<usize>) -> Option<String> {
        let mut by_key: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, tensor) in selected.iter().enumerate() {
            if let Some(same) = &tensor.same {
                by_key.entry(same.clone()).or_default().push(number);
            }
        }
        let groups: Vec<Vec<usize>> = by_key.into_values().filter(|group| group.len() > 1).collect();
        let tasks: Vec<Vec<&Task<'_>>> =
            groups.iter().map(|group| group.iter().map(|&number| &selected[number].task).collect()).collect();
        let repeated = pipeline::replicas(&tasks, threads);
        let mut drop = BTreeSet::new();
        for (group, repeated) in groups.iter().zip(repeated) {
            for position in repeated {
                drop.insert(group[position]);
                // The first is kept, and stands for the group in every table.
                let ranks = std::mem::take(&mut selected[group[position]].ranks);
                selected[group[0]].ranks.extend(ranks);
            }
        }
        let mut numbers = 0..;
        selected.retain(|_| numbers.next().is_some_and(|number| !drop.contains(&number)));
        (!drop.is_empty()).then(|| {
            let (tensors, are) = if drop.len() == 1 { ("tensor is", "is") } else { ("tensors are", "are") };
            format!("{} {tensors} the same in another rank and {are} not counted again", drop.len())
        })
    }

    /// Leaves out tensors of files that do not say their step, or rank; says how many, and what else is odd.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn drop_unplaced(&self, selected: &mut Vec<Selected<'_>>, by: By) -> Result<Vec<String>> {
        let before = selected.len();
        selected.retain(|tensor| {
            let place = &self.dumps[tensor.dump].place;
            if by == By::Rank { place.rank.is_some() } else { place.step.is_some() }
        });
        let by = by.name();
        let dropped = before - selected.len();
        if dropped > 0 && selected.is_empty() {
            return Err(Error::new(format!(
                "no file says of what {by} it is; --layout tells where paths have it"
            )));
        }
        let mut notices = Vec::new();
        if dropped > 0 {
            notices.push(format!("left out {dropped} tensors of files that do not say their {by}"));
        }
        if self.several_groups {
            let groups: BTreeSet<&str> = self.dumps.iter().map(|dump| dump.place.group.as_str()).collect();
            let groups = groups.into_iter().take(5).map(escape).collect::<Vec<_>>().join(", ");
            notices.push(format!("files of one {by} hold different things, which are added up: {groups}"));
        }
        Ok(notices)
    }
}

/// Refuses to go on with nothing to do.
pub(super) fn require(selected: &[Selected<'_>], inputs: &Inputs, problems: &[Error]) -> Result<()> {
    if !selected.is_empty() {
        return Ok(());
    }
    let filters = &inputs.filters;
    let by_place = filters.steps.is_some() || filters.ranks.is_some() || filters.layout.is_some();
    Err(match problems {
        [others @ .., last] => {
            complain_of_all(others.iter());
            last.clone()
        }
        [] if inputs.dumps.is_empty() && by_place => {
            Error::new("no dump is left to read: check --steps, --ranks and --layout")
        }
        [] if inputs.dumps.is_empty() => Error::new("found no dump to read"),
        [] if inputs.filters_tensors() => {
            Error::new("no tensor is left to read: check --tensor and --exclude")
        }
        [] => Error::new("found no tensor of floating-point numbers"),
    })
}
