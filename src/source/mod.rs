//! Bytes in: what every reader offers, the table of readers, and how a file finds its reader.
//!
//! A file is what its first bytes say, whatever it is called: archives named `.npy`, git-lfs pointers
//! named `.safetensors` and halves of files are everyday dumps.

mod archive;
mod bytes;
mod discover;
mod distributed;
mod file;
mod handles;
mod known;
mod layout;
mod limits;
pub mod metadata;
mod msprobe;
mod npy;
mod npz;
mod pickle;
mod raw;
mod row_major;
mod safetensors;
mod sharded;
mod strided;
mod table;
mod torch;
mod unscaled;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes as _;
pub use discover::{Discovery, discover};
use file::DumpFile;
pub use layout::{Layout, Place};
pub use msprobe::DumpRecords;
pub use raw::RawLayout;
pub use row_major::RowMajor;
pub use unscaled::Unscaled;

use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// A dump that has been opened and whose directory of tensors has been read and checked.
pub trait TensorSource: Send + Sync {
    /// The tensors, in the order of the file.
    fn tensors(&self) -> &[TensorInfo];

    /// Facts that the container records about the dump as a whole, such as the step.
    fn metadata(&self) -> &[(String, String)] {
        &[]
    }

    /// Tensors that the dump names but that cannot be read, one error each; the others can. A dump may
    /// have no tensors and only problems.
    fn problems(&self) -> &[Error] {
        &[]
    }

    /// Oddities that keep nothing from being read, such as bytes after the last array: a place and a
    /// sentence each.
    fn notices(&self) -> &[Error] {
        &[]
    }

    /// Whether the elements of tensor `index` are stored with the first index running fastest (Fortran
    /// order), not the last.
    fn column_major(&self, _index: usize) -> bool {
        false
    }

    /// Whether tensor `index` is compressed, so that reading it is only fast from its start to its end, by
    /// one thread; any other order gives the same bytes, but may unpack it anew for each.
    fn in_order(&self, _index: usize) -> bool {
        false
    }

    /// Fills `bytes` with the stored bytes of tensor `index`, from byte `offset` of its data on.
    ///
    /// # Errors
    /// There are no such bytes, the file cannot be read, or it has become shorter than it was.
    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()>;
}

/// A container that can be read.
pub struct Reader {
    /// What people call the container.
    pub name: &'static str,
    /// The usual file extensions, without the dot. They never decide what a file is.
    pub extensions: &'static [&'static str],
    /// What of it is read, in a line.
    pub about: &'static str,
    /// Whether a file is meant for this reader, from its first bytes (up to 520) and its length.
    pub matches: fn(&[u8], u64) -> bool,
    open: fn(DumpFile) -> Result<Box<dyn TensorSource>>,
}

/// Every container that can be read.
pub const READERS: &[Reader] = &[
    Reader {
        name: "npy",
        extensions: &["npy"],
        about: "NumPy, versions 1 to 3, either byte order, C or Fortran order, several arrays in one file",
        matches: npy::matches,
        open: npy::open,
    },
    Reader {
        name: "npz",
        extensions: &["npz"],
        about: "zip archives of npy members, stored or deflated, zip64, CRC-32 checked",
        matches: archive::matches,
        open: open_archive,
    },
    Reader {
        name: "safetensors",
        extensions: &["safetensors"],
        about: "all types but packed 6-bit ones; the tensors that are whole of damaged files",
        matches: safetensors::matches,
        open: safetensors::open,
    },
    Reader {
        name: "sharded model",
        extensions: &["index.json"],
        about: "models in several files, by the index of Hugging Face",
        matches: sharded::matches,
        open: sharded::open,
    },
    Reader {
        name: "PyTorch distributed",
        extensions: &["metadata"],
        about: "checkpoints of torch.distributed.checkpoint (`.metadata` with `*.distcp`), chunks put together",
        matches: distributed::matches,
        open: distributed::open,
    },
    Reader {
        name: "PyTorch",
        extensions: &["pt", "pth"],
        about: "torch.save files (`.bin` too), zip and older: nested dicts and lists, parameters, views of any stride, \
                objects of unknown classes; plain pickles of NumPy arrays (`.pkl`, `.pdparams`)",
        matches: torch::matches,
        open: torch::open,
    },
];

impl Reader {
    /// Opens `path` with this reader, whatever its first bytes are.
    ///
    /// # Errors
    /// The file cannot be opened, or its directory of tensors cannot be used.
    pub fn open(&self, path: &Path) -> Result<Box<dyn TensorSource>> {
        DumpFile::open(path).and_then(self.open).map_err(|error| error.in_file(path))
    }

    /// The reader of a file that begins with `first`.
    fn by_content(first: &[u8], file_len: u64) -> Option<&'static Self> {
        READERS.iter().find(|reader| (reader.matches)(first, file_len))
    }

    /// The reader that the extension of `path` promises.
    fn by_extension(path: &Path) -> Option<&'static Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let is_called = |known: &&str| name.strip_suffix(known).is_some_and(|stem| stem.ends_with('.'));
        READERS.iter().find(|reader| reader.extensions.iter().any(is_called))
    }
}

/// Opens the dump `path` with the reader that its first bytes call for.
///
/// # Errors
/// The file cannot be opened, is none of the [`READERS`]' (the error says what it is, if that can be
/// told), or its directory of tensors cannot be used.
pub fn open(path: &Path) -> Result<Box<dyn TensorSource>> {
    open_or_raw(path, None)
}

/// The same, but what no reader knows is raw data of the layout `raw`, if given. A JSON file beside raw data
/// that describes them does without.
///
/// # Errors
/// Those of [`open`], or raw data are not of the size that the layout gives them.
pub fn open_or_raw(path: &Path, raw: Option<&RawLayout>) -> Result<Box<dyn TensorSource>> {
    DumpFile::open(path).and_then(|file| open_file(file, raw)).map_err(|error| error.in_file(path))
}

fn open_file(file: DumpFile, layout: Option<&RawLayout>) -> Result<Box<dyn TensorSource>> {
    if file.len() == 0 {
        return Err(Error::new("is empty, as a job that ends while it opens its dump leaves it"));
    }
    let first = file.first_bytes(known::FIRST_BYTES)?;
    if let Some(reader) = Reader::by_content(&first, file.len()) {
        return (reader.open)(file);
    }
    let by_extension = Reader::by_extension(file.path());
    let mark = known::by_magic(&first);
    if let (None, None, Some(layout)) = (mark, by_extension, layout) {
        return raw::open(file, layout);
    }
    if let (true, Some(sidecar)) = (raw::is_named(file.path()), raw::sidecar(file.path())) {
        let layout = raw::read_sidecar(&sidecar).map_err(|error| error.in_file(&sidecar))?;
        return raw::open(file, &layout);
    }
    if let Some(what) = mark {
        return Err(Error::new(what));
    }
    if table::is_named(file.path()) && first.iter().any(|&byte| byte != 0) {
        return table::open(file);
    }
    if let Some(what) = known::by_content(&first) {
        return Err(Error::new(what));
    }
    // Not the reader's file, but its author thought so: the reader knows best what is wrong with it.
    match by_extension {
        Some(reader) => (reader.open)(file),
        None if raw::is_named(file.path()) => Err(Error::new(
            "has no mark of a container; if it is raw data, say of what with --dtype, or in a JSON file beside it",
        )),
        None => {
            if let Some(what) = known::by_extension(file.path()) {
                return Err(Error::new(what));
            }
            let names: Vec<_> = READERS.iter().map(|reader| reader.name).collect();
            Err(Error::new(format!("is no dump of a kind that can be read ({})", names.join(", "))))
        }
    }
}

/// Opens a zip archive: its members say what it is.
fn open_archive(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let file = Arc::new(file);
    let members = archive::members(&file, 0, file.len())?;
    match torch::folder(&members) {
        Some(folder) => torch::from_archive(&file, members, &folder),
        None => npz::from_archive(&file, members),
    }
}

fn no_such_tensor(index: usize) -> Error {
    Error::new(format!("there is no tensor number {index}"))
}
