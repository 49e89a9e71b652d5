//! From the paths and filters that were typed to opened dumps and the tensors to read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::args::InputArgs;
use super::output::complain;
use crate::error::{Error, Result, escape};
use crate::pipeline::Task;
use crate::source::{RawLayout, TensorSource, discover, open_or_raw};
use crate::tensor::ByteOrder;

/// The dumps that could be opened, and what is to be said about the others.
pub(super) struct Inputs {
    dumps: Vec<(PathBuf, Box<dyn TensorSource>)>,
    filters: InputArgs,
    /// What was skipped or is odd.
    pub(super) notices: Vec<String>,
    /// What could not be read.
    pub(super) problems: Vec<Error>,
}

/// A tensor to read, and the dump it is in.
pub(super) struct Selected<'a> {
    /// Number of the dump in [`Inputs::dumps`].
    pub(super) dump: usize,
    pub(super) task: Task<'a>,
}

impl Inputs {
    /// Opens every dump that the paths stand for.
    pub(super) fn open(filters: InputArgs) -> Self {
        let raw = filters.dtype.clone().map(|dtype| RawLayout {
            dtype,
            byte_order: filters.endian.unwrap_or(ByteOrder::Little),
            shape: filters.shape.clone().map(|shape| shape.0),
        });
        let found = discover(&filters.paths, raw.is_some());
        let mut inputs = Self { dumps: Vec::new(), filters, notices: Vec::new(), problems: found.problems };
        if found.skipped > 0 {
            let (files, are) =
                if found.skipped == 1 { ("file", "is no dump") } else { ("files", "are no dumps") };
            inputs.notices.push(format!("skipped {} {files} that {are}", found.skipped));
        }
        if found.repeated > 0 {
            inputs.notices.push(format!("{} paths name a file that is read already", found.repeated));
        }
        for path in found.files {
            match open_or_raw(&path, raw.as_ref()) {
                Ok(dump) => {
                    inputs.problems.extend(dump.problems().iter().map(|error| error.clone().in_file(&path)));
                    inputs.notices.extend(
                        dump.notices().iter().map(|notice| notice.clone().in_file(&path).to_string()),
                    );
                    inputs.dumps.push((path, dump));
                }
                Err(error) => inputs.problems.push(error.in_file(&path)),
            }
        }
        inputs
    }

    /// The opened dumps.
    pub(super) fn dumps(&self) -> impl Iterator<Item = (String, &[(String, String)])> {
        self.dumps.iter().map(|(path, dump)| (path.display().to_string(), dump.metadata()))
    }

    /// The filters as typed.
    pub(super) fn filters(&self) -> &InputArgs {
        &self.filters
    }

    /// The tensors that the filters leave. What is no float is skipped with a notice.
    pub(super) fn select(&self) -> (Vec<Selected<'_>>, Vec<String>, Vec<Error>) {
        let (mut selected, mut problems) = (Vec::new(), Vec::new());
        let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, (path, dump)) in self.dumps.iter().enumerate() {
            for (index, info) in dump.tensors().iter().enumerate() {
                let wanted = self.filters.tensor.as_ref().is_none_or(|regex| regex.is_match(&info.name));
                let unwanted = self.filters.exclude.as_ref().is_some_and(|regex| regex.is_match(&info.name));
                if !wanted || unwanted {
                    continue;
                }
                let info = match &self.filters.dtype {
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
                selected.push(Selected { dump: number, task: Task { source: &**dump, index, info } });
            }
        }
        (selected, skipped_types(&skipped).into_iter().collect(), problems)
    }

    /// The path of dump `number`.
    pub(super) fn path(&self, number: usize) -> &PathBuf {
        &self.dumps[number].0
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
    let filtered = filters.tensor.is_some() || filters.exclude.is_some();
    Err(match problems {
        [others @ .., last] => {
            others.iter().for_each(|problem| complain(&problem.to_string()));
            last.clone()
        }
        [] if inputs.dumps.is_empty() => Error::new("found no dump to read"),
        [] if filtered => Error::new("no tensor is left to read: check --tensor and --exclude"),
        [] => Error::new("found no tensor of floating-point numbers"),
    })
}
