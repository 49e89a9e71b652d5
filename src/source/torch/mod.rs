//! PyTorch's `torch.save` files (`.pt`, `.pth`, `.bin`), and other pickles with tensors or NumPy arrays in them.
//!
//! Since 1.6 such a file is a zip archive: `data.pkl`, a pickle that describes the tensors, and a member
//! `data/KEY` for each storage; before, the pickle and the storages followed one another in one file. Nothing
//! in a pickle is executed (see [`super::pickle`]).

mod legacy;
mod numpy;
mod objects;
mod settings;
mod tensor;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use objects::Leaf;

use super::archive::{Entry, Member};
use super::bytes::{Bytes, Memory, check_range};
use super::file::DumpFile;
use super::limits::{self, element_count, quote, show_shape, stored_bytes};
use super::strided::Strided;
use super::{TensorSource, pickle};
use crate::error::{Error, Result};
use crate::tensor::{ByteOrder, Dtype, TensorInfo};

pub(super) use legacy::{matches, open};
pub(super) use tensor::element;

/// Name of the pickle in an archive, below the archive's folder.
const PICKLE: &str = "data.pkl";

/// How much larger than its storage an expanded tensor may be, or than [`SMALL`] bytes.
const EXPANSION: u64 = 1000;
const SMALL: u64 = 1 << 28;

/// The folder that the archive of a `torch.save` file has its members in; `None` if it is none.
pub(super) fn folder(members: &[Entry]) -> Option<String> {
    let depth = |name: &str| name.matches('/').count();
    let names = members.iter().map(|(name, _)| name).filter(|name| depth(name) <= 1);
    let mut folders = names.filter_map(|name| name.strip_suffix(PICKLE));
    folders.find(|folder| folder.is_empty() || folder.ends_with('/')).map(str::to_owned)
}

/// Reads the pickle of an archive whose members are in `folder`.
///
/// # Errors
/// The pickle cannot be read, or the byte order is unknown. Tensors that cannot are
/// [`TensorSource::problems`].
pub(super) fn from_archive(
    file: &DumpFile,
    members: Vec<Entry>,
    folder: &str,
) -> Result<Box<dyn TensorSource>> {
    let mut torch = Torch::new(file);
    let mut storages = HashMap::new();
    let (mut data, mut byte_order) = (None, ByteOrder::Little);
    for (name, member) in members {
        let Some(inside) = name.strip_prefix(folder) else { continue };
        match inside {
            PICKLE => data = Some(member?),
            "byteorder" => byte_order = read_byte_order(&member?)?,
            "constants.pkl" => {
                torch.notice("is a TorchScript archive; only the tensors of its data are read");
            }
            _ => {
                if let Some(key) = inside.strip_prefix("data/").or_else(|| inside.strip_prefix("tensors/")) {
                    storages.insert(key.to_owned(), member);
                }
            }
        }
    }
    let data: Arc<dyn Bytes> = Arc::new(data.ok_or_else(|| Error::new("the archive has no data.pkl"))?);
    let name = format!("{folder}{PICKLE}");
    let limit = pickle::node_limit(file.len());
    let pickle = pickle::read(&*data, 0, limit).map_err(|error| error.in_member(&name))?;
    let storages = storages.into_iter().map(|(key, member)| (key, Storage::member(member))).collect();
    torch.collect(&pickle, &data, &Storages { byte_order, by_key: storages })?;
    Ok(Box::new(torch))
}

fn read_byte_order(member: &Member) -> Result<ByteOrder> {
    match &*member.first_bytes(16)? {
        b"little" => Ok(ByteOrder::Little),
        b"big" => Ok(ByteOrder::Big),
        other => {
            let text = quote(&String::from_utf8_lossy(other));
            Err(Error::new(format!("the byte order {text} is neither little nor big"))
                .in_member(member.name()))
        }
    }
}

/// Where the data of a storage are.
struct Storage {
    bytes: Arc<dyn Bytes>,
    start: u64,
    len: u64,
    in_order: bool,
}

impl Storage {
    fn member(member: Result<Member>) -> Result<Self> {
        let member = member?;
        let (len, in_order) = (member.len(), member.is_deflated());
        Ok(Self { bytes: Arc::new(member), start: 0, len, in_order })
    }
}

/// The storages that a pickle's tensors are in.
struct Storages {
    byte_order: ByteOrder,
    by_key: HashMap<String, Result<Storage>>,
}

/// The tensors of a pickle.
struct Torch {
    path: PathBuf,
    stem: String,
    tensors: Vec<TensorInfo>,
    views: Vec<View>,
    /// Settings of the optimizers in it.
    metadata: Vec<(String, String)>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

/// Where the elements of a tensor are.
struct View {
    bytes: Arc<dyn Bytes>,
    start: u64,
    layout: Strided,
    column_major: bool,
    in_order: bool,
    /// Whether the sign of each element is to be changed.
    negated: bool,
}

impl Torch {
    fn new(file: &DumpFile) -> Self {
        let stem = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = file.path().to_owned();
        Self {
            path,
            stem,
            tensors: Vec::new(),
            views: Vec::new(),
            metadata: Vec::new(),
            problems: Vec::new(),
            notices: Vec::new(),
        }
    }

    fn notice(&mut self, what: &str) {
        self.notices.push(Error::new(what).in_file(&self.path));
    }

    /// Takes every tensor and array of the pickle, whose bytes are `data`.
    fn collect(&mut self, pickle: &pickle::Pickle, data: &Arc<dyn Bytes>, storages: &Storages) -> Result<()> {
        let mut names_of: HashMap<String, Vec<String>> = HashMap::new();
        let problems = pickle::walk(
            pickle,
            |id| objects::look(pickle, id),
            |name, id| {
                let name = if name.is_empty() { self.stem.clone() } else { name.to_owned() };
                let found = match objects::leaf(pickle, id) {
                    Some(Leaf::Tensor { version, arguments }) => tensor::describe(pickle, version, arguments)
                        .and_then(|tensor| {
                            names_of.entry(tensor.key.clone()).or_default().push(name.clone());
                            self.view(&name, &tensor, storages)
                        }),
                    Some(Leaf::Array) => {
                        numpy::array(pickle, id).and_then(|array| self.array(&name, array, data))
                    }
                    Some(Leaf::Refused(why)) => Err(Error::new(why)),
                    None => return,
                };
                if let Err(error) = found {
                    self.problems.push(error.in_tensor(&name).in_file(&self.path));
                }
            },
        )?;
        self.problems.extend(problems.into_iter().map(|problem| problem.in_file(&self.path)));
        self.remark(pickle, names_of);
        self.metadata = settings::settings(pickle);
        Ok(())
    }

    /// Says what was passed over, and which tensors share their data.
    fn remark(&mut self, pickle: &pickle::Pickle, names_of: HashMap<String, Vec<String>>) {
        let classes = objects::unknown_classes(pickle);
        if !classes.is_empty() {
            let list = listed(&classes);
            self.notice(&format!(
                "objects of classes that are not known were not made, only searched: {list}"
            ));
        }
        for name in super::archive::repeated(self.tensors.iter().map(|tensor| tensor.name.as_str())) {
            let what = format!("several tensors are called {}; all are read", quote(name));
            self.notices.push(Error::new(what).in_file(&self.path));
        }
        let mut shared: Vec<Vec<String>> = names_of.into_values().filter(|names| names.len() > 1).collect();
        shared.sort();
        if let Some(first) = shared.first() {
            let more = match shared.len() {
                1 => String::new(),
                2 => " (and 1 more storage)".to_owned(),
                count => format!(" (and {} more storages)", count - 1),
            };
            let what =
                format!("{} tensors share one storage and are all read: {}", first.len(), listed(first));
            self.notice(&format!("{what}{more}"));
        }
    }

    /// Takes a tensor.
    fn view(&mut self, name: &str, tensor: &tensor::Description, storages: &Storages) -> Result<()> {
        let (elements, needed) = tensor.extent()?;
        let storage = match storages.by_key.get(&tensor.key) {
            Some(Ok(storage)) => storage,
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(Error::new(format!("its storage {} is not in the file", quote(&tensor.key)))),
        };
        if needed > storage.len {
            let (key, len) = (quote(&tensor.key), limits::bytes(storage.len));
            let what = format!("its storage {key} has {len}, but it takes {needed}");
            return Err(Error::new(what));
        }
        let total = elements
            .checked_mul(tensor.width())
            .filter(|&total| total <= SMALL || total / EXPANSION <= storage.len);
        if total.is_none() {
            let (shape, len) = (show_shape(&tensor.shape), limits::bytes(storage.len));
            let what =
                format!("it expands {len} to the shape {shape}; save what is stored, without expand()");
            return Err(Error::new(what));
        }
        let column_major = is_column_major(&tensor.shape, &tensor.strides);
        let strides = if column_major { &row_major(&tensor.shape) } else { &tensor.strides };
        let layout = Strided::new(&tensor.shape, strides, tensor.width());
        let mut info = TensorInfo {
            name: name.to_owned(),
            shape: tensor.shape.clone(),
            dtype: tensor.dtype.clone(),
            byte_order: storages.byte_order,
            elements,
        };
        if info.dtype.bits() == 4 {
            info.dtype = Dtype::Other { name: String::new(), bits: 8 };
            info = info.reinterpret(&tensor.dtype)?;
        }
        if (tensor.negated || tensor.conjugated) && !info.dtype.is_float() {
            let what = "is a conjugated or negated view; its stored bytes are those of the original";
            self.notices.push(Error::new(what).in_tensor(name).in_file(&self.path));
        }
        self.tensors.push(info);
        self.views.push(View {
            bytes: Arc::clone(&storage.bytes),
            start: storage.start + tensor.offset * tensor.width(),
            layout,
            column_major,
            in_order: storage.in_order,
            negated: tensor.negated && tensor.dtype.is_float(),
        });
        Ok(())
    }

    /// Takes an array, whose data are in the pickle.
    fn array(&mut self, name: &str, array: numpy::Array, data: &Arc<dyn Bytes>) -> Result<()> {
        let elements = element_count(&array.shape)?;
        let needed = stored_bytes(elements, array.dtype.bits())?;
        let (bytes, start, len): (Arc<dyn Bytes>, _, _) = match array.data {
            numpy::Data::At { at, len } => (Arc::clone(data), at, len),
            numpy::Data::Here(bytes) => {
                let len = bytes.len() as u64;
                (Arc::new(Memory(bytes)), 0, len)
            }
        };
        if needed != len {
            let (shape, needed) = (show_shape(&array.shape), limits::bytes(needed));
            return Err(Error::new(format!("its shape {shape} takes {needed}, but it has {len}")));
        }
        let numpy::Array { dtype, byte_order, shape, column_major, .. } = array;
        let layout = Strided::new(&[elements], &[1], u64::from(dtype.bits() / 8));
        self.tensors.push(TensorInfo { name: name.to_owned(), shape, dtype, byte_order, elements });
        self.views.push(View { bytes, start, layout, column_major, in_order: false, negated: false });
        Ok(())
    }
}

/// Up to five names, quoted.
fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|name| quote(name)).collect();
    let more = names.len().saturating_sub(5);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// The strides of a tensor whose elements are in order.
fn row_major(shape: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Whether the elements are in order but for the first index running fastest, as a transposed matrix is.
fn is_column_major(shape: &[u64], strides: &[u64]) -> bool {
    let reversed: Vec<u64> = shape.iter().rev().copied().collect();
    let wide = shape.iter().filter(|&&extent| extent > 1).count();
    !shape.contains(&0)
        && wide > 1
        && row_major(&reversed).iter().rev().zip(strides).zip(shape).all(|((a, b), &n)| n == 1 || a == b)
}

impl TensorSource for Torch {
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

    fn column_major(&self, index: usize) -> bool {
        self.views.get(index).is_some_and(|view| view.column_major)
    }

    fn in_order(&self, index: usize) -> bool {
        self.views.get(index).is_some_and(|view| view.in_order)
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (Some(info), Some(view)) = (self.tensors.get(index), self.views.get(index)) else {
            return Err(super::no_such_tensor(index).in_file(&self.path));
        };
        check_range(info, offset, bytes.len() as u64)
            .and_then(|()| view.layout.read(&*view.bytes, view.start, offset, bytes))
            .map_err(|error| error.in_tensor(&info.name).in_file(&self.path))?;
        if view.negated {
            negate(bytes, offset, info);
        }
        Ok(())
    }
}

/// Changes the sign of each element of a piece of a tensor, which begins at byte `offset` of it.
fn negate(bytes: &mut [u8], offset: u64, info: &TensorInfo) {
    if info.dtype.bits() == 4 {
        bytes.iter_mut().for_each(|byte| *byte ^= 0x88);
        return;
    }
    let width = u64::from(info.dtype.bits() / 8);
    let sign = if info.byte_order == ByteOrder::Big { 0 } else { width - 1 };
    for (byte, at) in bytes.iter_mut().zip(offset..) {
        if at % width == sign {
            *byte ^= 0x80;
        }
    }
}
