//! A model in several files, with an index that says which tensor is in which:
//! `model.safetensors.index.json` and `pytorch_model.bin.index.json` of Hugging Face.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::limits::{self, quote};
use super::safetensors::{Directory, json_error};
use super::{TensorSource, known};
use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// Whether a file that begins with `first` is an index.
pub(super) fn matches(first: &[u8], _file_len: u64) -> bool {
    first.trim_ascii_start().starts_with(b"{") && first.windows(12).any(|text| text == b"\"weight_map\"")
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a weight_map")]
struct Index<'a> {
    #[serde(borrow)]
    weight_map: Directory<'a>,
}

/// The names of the tensors, and of the file of each, as the index has them.
fn entries(file: &DumpFile) -> Result<Vec<(String, String)>> {
    let text = file.header("the index", 0, file.len(), limits::INDEX_BYTES)?;
    let text = std::str::from_utf8(&text)
        .map_err(|error| Error::new("the index is not UTF-8 text").at_byte(error.valid_up_to() as u64))?;
    let index: Index<'_> =
        serde_json::from_str(text).map_err(|error| json_error("the index", text, 0, &error))?;
    let entry = |(name, shard): (String, &serde_json::value::RawValue)| {
        let at = (shard.get().as_ptr().addr() - text.as_ptr().addr()) as u64;
        match serde_json::from_str(shard.get()) {
            Ok(shard) => Ok((name, shard)),
            Err(error) => Err(json_error("the name of a file", shard.get(), at, &error)),
        }
    };
    index.weight_map.0.into_iter().map(entry).collect()
}

/// The files that the index `path` names, each once, as far as it can be read.
pub(super) fn shards(path: &Path) -> Vec<PathBuf> {
    let entries = DumpFile::open(path).and_then(|file| entries(&file)).unwrap_or_default();
    let names: HashSet<String> = entries.into_iter().map(|(_, shard)| shard).collect();
    names.iter().filter_map(|name| beside(path, name)).collect()
}

/// The path of a file in the index's folder or below; `None` if it would be elsewhere.
fn beside(index: &Path, name: &str) -> Option<PathBuf> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    (inside && !name.is_empty()).then(|| index.with_file_name(name))
}

/// Opens every file of the index.
///
/// # Errors
/// The index cannot be read. Files that cannot, and tensors that are not where it says, are
/// [`TensorSource::problems`].
pub(super) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let entries = entries(&file)?;
    let mut sharded = Sharded { path: file.path().to_owned(), ..Sharded::default() };
    let mut by_shard: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for (name, shard) in &entries {
        let number = *place.entry(shard).or_insert_with(|| {
            by_shard.push((shard, Vec::new()));
            by_shard.len() - 1
        });
        by_shard[number].1.push(name);
    }
    for (shard, names) in by_shard {
        if let Err(error) = sharded.take(shard, &names) {
            sharded.problems.push(error);
        }
    }
    Ok(Box::new(sharded))
}

/// Opens a file of a model: anything but another index.
fn open_shard(path: &Path) -> Result<Box<dyn TensorSource>> {
    let first = DumpFile::open(path)?.first_bytes(known::FIRST_BYTES)?;
    match matches(&first, 0) {
        true => Err(Error::new("is an index itself")),
        false => super::open(path),
    }
}

#[derive(Default)]
struct Sharded {
    path: PathBuf,
    shards: Vec<Box<dyn TensorSource>>,
    tensors: Vec<TensorInfo>,
    /// The shard of each tensor, and its number there.
    places: Vec<(usize, usize)>,
    metadata: Vec<(String, String)>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

impl Sharded {
    /// Opens a file and takes its tensors `names`.
    fn take(&mut self, shard: &str, names: &[&str]) -> Result<()> {
        let path = beside(&self.path, shard).ok_or_else(|| {
            let what = format!("the index names the file {}, which is not in its folder", quote(shard));
            Error::new(what).in_file(&self.path)
        })?;
        let source = open_shard(&path).map_err(|error| {
            let first = names.first().map_or(String::new(), |name| quote(name));
            let missing = match names.len() {
                1 => format!("the tensor {first} is missing"),
                more => format!("{more} tensors are missing, {first} first"),
            };
            Error::new(format!("{} (of the index; {missing})", error.what())).in_file(&path)
        })?;
        let numbers: HashMap<&str, usize> =
            source.tensors().iter().enumerate().map(|(number, info)| (info.name.as_str(), number)).collect();
        let refused: HashSet<&str> = source.problems().iter().filter_map(Error::tensor).collect();
        let mut found: Vec<usize> = Vec::new();
        for &name in names {
            match numbers.get(name) {
                Some(&number) => found.push(number),
                None if refused.contains(name) => {}
                None => {
                    let what = format!("is not in the file {} that the index names", quote(shard));
                    self.problems.push(Error::new(what).in_tensor(name).in_file(&self.path));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        let others = source.tensors().len() - found.len();
        if others > 0 {
            let what = format!("the index leaves out {others} of the file's tensors; they are not read");
            self.notices.push(Error::new(what).in_file(&path));
        }
        for number in found {
            self.tensors.push(source.tensors()[number].clone());
            self.places.push((self.shards.len(), number));
        }
        for pair in source.metadata() {
            if !self.metadata.contains(pair) {
                self.metadata.push(pair.clone());
            }
        }
        self.problems.extend(source.problems().iter().map(|error| error.clone().in_file(&path)));
        self.notices.extend(source.notices().iter().map(|notice| notice.clone().in_file(&path)));
        self.shards.push(source);
        Ok(())
    }
}

impl TensorSource for Sharded {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn notices(&self) -> &[Error] {
        &self.notices
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match self.places.get(index) {
            Some(&(shard, number)) => self.shards[shard].read_at(number, offset, bytes),
            None => Err(super::no_such_tensor(index).in_file(&self.path)),
        }
    }
}
