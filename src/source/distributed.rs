//! Checkpoints of `torch.distributed.checkpoint` (FSDP, Megatron-LM's `torch_dist`): a folder with `.metadata`, a
//! pickle that says where the chunks of each tensor are, and `*.distcp` files of many small torch.save archives.
//!
//! `torch/distributed/checkpoint/metadata.py` and `filesystem.py` of PyTorch 2.15: `Metadata` has
//! `state_dict_metadata` (name → type, size and chunks of a tensor) and `storage_data` (name and offset of a
//! chunk → file, position and length).

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::bytes::{Bytes as _, check_range};
use super::file::DumpFile;
use super::limits::{element_count, quote, show_shape};
use super::pickle::{self, Id, Node, Pickle};
use super::{TensorSource, archive, torch};
use crate::error::{Error, Result};
use crate::tensor::grid::coordinates;
use crate::tensor::{ByteOrder, TensorInfo};

/// The module that a `.metadata` pickle names first.
const MODULE: &[u8] = b"torch.distributed.checkpoint.metadata";

/// Whether a file that begins with `first` is a `.metadata`.
pub(super) fn matches(first: &[u8], _file_len: u64) -> bool {
    first.starts_with(b"\x80") && first.windows(MODULE.len()).any(|text| text == MODULE)
}

/// The files with the data of the checkpoint `path`, as far as it can be read.
pub(super) fn data_files(path: &Path) -> Vec<PathBuf> {
    let chunks = DumpFile::open(path).and_then(|file| {
        let pickle = pickle::read(&file, 0, pickle::node_limit(file.len()))?;
        Metadata::new(&pickle)?.places()
    });
    let names: HashSet<String> = chunks.unwrap_or_default().into_values().map(|place| place.file).collect();
    names.iter().filter_map(|name| beside(path, name)).collect()
}

/// The path of a file in the checkpoint's folder; `None` if it would be elsewhere.
fn beside(path: &Path, name: &str) -> Option<PathBuf> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    (inside && !name.is_empty()).then(|| path.with_file_name(name))
}

/// Where a chunk is: its place in `.metadata`.
struct Place {
    file: String,
    start: u64,
    len: u64,
    /// Whether it is stored compressed or otherwise changed.
    transformed: bool,
}

/// The places of chunks by their tensor's name and first index.
type Places = HashMap<(String, Vec<u64>), Place>;

/// The pickle of a checkpoint.
struct Metadata<'a> {
    pickle: &'a Pickle,
    tensors: Id,
    storage: Id,
}

impl<'a> Metadata<'a> {
    fn new(pickle: &'a Pickle) -> Result<Self> {
        let invalid = || Error::new("the pickle is no Metadata of torch.distributed.checkpoint");
        let get = |key| field(pickle, pickle.root, key).ok_or_else(invalid);
        Ok(Self { pickle, tensors: get("state_dict_metadata")?, storage: get("storage_data")? })
    }

    fn pairs(&self, id: Id) -> Result<&'a [(Id, Id)]> {
        match self.pickle.node(id) {
            Node::Dict(pairs) => Ok(pairs),
            _ => Err(Error::new("the checkpoint's metadata are not as torch writes them")),
        }
    }

    /// Natural numbers in a field of an object.
    fn naturals(&self, object: Id, key: &str) -> Option<Vec<u64>> {
        let values = self.pickle.ints(field(self.pickle, object, key)?)?;
        values.into_iter().map(|value| value.try_into().ok()).collect()
    }

    fn natural(&self, object: Id, key: &str) -> Option<u64> {
        self.pickle.int(field(self.pickle, object, key)?)?.try_into().ok()
    }

    fn places(&self) -> Result<Places> {
        let mut places = Places::new();
        for &(index, info) in self.pairs(self.storage)? {
            let name = field(self.pickle, index, "fqn").and_then(|name| self.pickle.text(name));
            let file = field(self.pickle, info, "relative_path").and_then(|file| self.pickle.text(file));
            let (start, len) = (self.natural(info, "offset"), self.natural(info, "length"));
            let (Some(name), Some(file), Some(start), Some(len)) = (name, file, start, len) else {
                return Err(Error::new("the place of a chunk is not as torch writes it"));
            };
            let transforms = field(self.pickle, info, "transform_descriptors");
            let transformed = transforms.is_some_and(|id| !matches!(self.pickle.node(id), Node::None));
            let first = self.naturals(index, "offset").unwrap_or_default();
            places.insert((name.to_owned(), first), Place { file: file.to_owned(), start, len, transformed });
        }
        Ok(places)
    }
}

/// A field of an object, as its state has it.
fn field(pickle: &Pickle, object: Id, key: &str) -> Option<Id> {
    match pickle.node(object) {
        Node::Object(object) => pickle.get(object.state?, key),
        _ => None,
    }
}

/// Reads the metadata and looks for the files with the data.
///
/// # Errors
/// The metadata cannot be read. Tensors that lack chunks are [`TensorSource::problems`].
pub(super) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let pickle = pickle::read(&file, 0, pickle::node_limit(file.len()))?;
    let metadata = Metadata::new(&pickle)?;
    let places = metadata.places()?;
    let mut checkpoint = Checkpoint { path: file.path().to_owned(), ..Checkpoint::default() };
    let mut files = HashMap::new();
    for &(name, info) in metadata.pairs(metadata.tensors)? {
        // What is no tensor (BytesStorageMetadata) has no size.
        let (Some(name), Some(shape)) = (pickle.text(name), metadata.naturals(info, "size")) else {
            continue;
        };
        if let Err(error) = checkpoint.take(&metadata, &places, &mut files, (name, info, shape)) {
            checkpoint.problems.push(error.in_tensor(name).in_file(&checkpoint.path));
        }
    }
    Ok(Box::new(checkpoint))
}

type Files = HashMap<String, Result<Arc<DumpFile>>>;

#[derive(Default)]
struct Checkpoint {
    path: PathBuf,
    tensors: Vec<TensorInfo>,
    /// The chunks of each tensor.
    chunks: Vec<Vec<Chunk>>,
    problems: Vec<Error>,
}

/// A part of a tensor: a box of elements, and the archive that they are in.
struct Chunk {
    first: Vec<u64>,
    sizes: Vec<u64>,
    file: Arc<DumpFile>,
    start: u64,
    len: u64,
    /// The archive, once it has been read from.
    opened: OnceLock<Result<Box<dyn TensorSource>>>,
}

impl Checkpoint {
    fn take(
        &mut self,
        metadata: &Metadata<'_>,
        places: &Places,
        files: &mut Files,
        (name, info, shape): (&str, Id, Vec<u64>),
    ) -> Result<()> {
        let pickle = metadata.pickle;
        let properties =
            field(pickle, info, "properties").and_then(|properties| match pickle.node(properties) {
                Node::Object(object) => object.state,
                _ => None,
            });
        let dtype = properties.and_then(|state| match pickle.items(state) {
            Some(items) => items.first().copied(),
            None => pickle.get(state, "dtype"),
        });
        let dtype = dtype.and_then(|dtype| pickle.global(dtype)).filter(|(module, _)| *module == "torch");
        let dtype = torch::element(dtype.ok_or_else(|| Error::new("its element type is not given"))?.1)?;
        if dtype.bits() < 8 {
            return Err(Error::new(format!("elements of type {} are not read in checkpoints", dtype.name())));
        }
        let elements = element_count(&shape)?;
        let list = field(pickle, info, "chunks").and_then(|chunks| pickle.items(chunks)).unwrap_or_default();
        let mut chunks = Vec::new();
        let mut covered = 0_u64;
        for &chunk in list {
            let (first, sizes) = (metadata.naturals(chunk, "offsets"), metadata.naturals(chunk, "sizes"));
            let (Some(first), Some(sizes)) = (first, sizes) else {
                return Err(Error::new("a chunk of it is not described as torch does"));
            };
            let ends = first.iter().zip(&sizes).zip(&shape);
            let inside = first.len() == shape.len()
                && sizes.len() == shape.len()
                && ends.clone().all(|((&first, &size), &extent)| {
                    first.checked_add(size).is_some_and(|end| end <= extent)
                });
            if !inside {
                return Err(Error::new(format!("its chunk at {} lies outside of it", show_shape(&first))));
            }
            covered = covered.saturating_add(element_count(&sizes)?);
            let lacks = |why: String| Error::new(format!("its chunk at {} {why}", show_shape(&first)));
            let place = places.get(&(name.to_owned(), first.clone()));
            let place = place.ok_or_else(|| lacks("is in no file".to_owned()))?;
            if place.transformed {
                return Err(lacks("is stored compressed or otherwise changed".to_owned()));
            }
            let file =
                self.file(files, &place.file).map_err(|error| lacks(format!("is missing: {error}")))?;
            if place.start.checked_add(place.len).is_none_or(|end| end > file.len()) {
                return Err(lacks(format!("lies beyond the end of {}", quote(&place.file))));
            }
            let (start, len) = (place.start, place.len);
            chunks.push(Chunk { first, sizes, file, start, len, opened: OnceLock::new() });
        }
        if covered != elements {
            return Err(Error::new(format!("its chunks have {covered} of its {elements} elements")));
        }
        let (name, byte_order) = (name.to_owned(), ByteOrder::Little);
        self.tensors.push(TensorInfo { name, shape, dtype, byte_order, elements });
        self.chunks.push(chunks);
        Ok(())
    }

    /// A file of the checkpoint, opened once.
    fn file(&self, files: &mut Files, name: &str) -> Result<Arc<DumpFile>> {
        let open = || match beside(&self.path, name) {
            Some(path) => {
                DumpFile::open(&path).map(Arc::new).map_err(|error| Error::new(error.what()).in_file(&path))
            }
            None => Err(Error::new(format!("{} is not in the checkpoint's folder", quote(name)))),
        };
        files.entry(name.to_owned()).or_insert_with(open).clone()
    }
}

impl Chunk {
    /// Fills `bytes` from byte `offset` of the chunk's own elements on.
    fn read(&self, info: &TensorInfo, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let opened = self.opened.get_or_init(|| {
            let members = archive::members(&self.file, self.start, self.len)?;
            let folder = torch::folder(&members).ok_or_else(|| Error::new("a chunk is no torch.save archive"))?;
            let source = torch::from_archive(&self.file, members, &folder)?;
            let same = matches!(source.tensors(), [tensor] if tensor.shape == self.sizes
                && tensor.dtype == info.dtype && tensor.byte_order == info.byte_order && !source.column_major(0));
            match (source.problems(), same) {
                ([problem, ..], _) => Err(Error::new(problem.what())),
                ([], true) => Ok(source),
                ([], false) => Err(Error::new("a chunk is not what the checkpoint's metadata say")),
            }
        });
        match opened {
            Ok(source) => source.read_at(0, offset, bytes).map_err(|error| Error::new(error.what())),
            Err(error) => Err(error.clone()),
        }
        .map_err(|error| error.in_file(self.file.path()))
    }

    /// Where an element is in this chunk, and how many follow it there as they do in the tensor; `None` if it is
    /// in another chunk.
    fn run(&self, shape: &[u64], index: &[u64]) -> Option<(u64, u64)> {
        let mut at = 0;
        // Elements that follow, as long as the chunk has all of the inner dimensions.
        let (mut run, mut whole, mut inner) = (1, true, 1);
        for axis in (0..shape.len()).rev() {
            let inside =
                index[axis].checked_sub(self.first[axis]).filter(|&inside| inside < self.sizes[axis])?;
            at += inside * inner;
            if whole {
                run += (self.sizes[axis] - inside - 1) * inner;
                whole = self.sizes[axis] == shape[axis];
            }
            inner *= self.sizes[axis];
        }
        Some((at, run))
    }
}

impl TensorSource for Checkpoint {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (Some(info), Some(chunks)) = (self.tensors.get(index), self.chunks.get(index)) else {
            return Err(super::no_such_tensor(index).in_file(&self.path));
        };
        let located = |error: Error| error.in_tensor(&info.name).in_file(&self.path);
        check_range(info, offset, bytes.len() as u64).map_err(located)?;
        let width = u64::from(info.dtype.bits() / 8);
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let coordinates = coordinates(&info.shape, offset / width);
            let found = chunks.iter().find_map(|chunk| Some((chunk, chunk.run(&info.shape, &coordinates)?)));
            let (chunk, (at, run)) = found
                .ok_or_else(|| located(Error::new(format!("no chunk has its element {}", offset / width))))?;
            let within = offset % width;
            let count = (run * width - within).min(rest.len() as u64) as usize;
            let (now, later) = rest.split_at_mut(count);
            chunk.read(info, at * width + within, now).map_err(located)?;
            offset += count as u64;
            rest = later;
        }
        Ok(())
    }
}
