//! Files of nothing but elements: `.bin`, `.raw`. What they are is said by the user, or by a JSON file beside
//! them (`x.json`, `x.bin.json` or Transformer Engine's `x_meta.json` for `x.bin`) with the keys `dtype` and
//! `shape`, and optionally `byteorder`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::TensorSource;
use super::bytes::Bytes as _;
use super::file::DumpFile;
use super::limits::{self, element_count, quote, show_shape, stored_bytes};
use super::npy::descr;
use super::safetensors::json_error;
use crate::error::{Error, Result};
use crate::tensor::{ByteOrder, Dtype, TensorInfo};

/// How the elements of a raw file are stored.
#[derive(Clone, Debug)]
pub struct RawLayout {
    /// Their type.
    pub dtype: Dtype,
    /// Their order of bytes.
    pub byte_order: ByteOrder,
    /// The tensor's shape; one dimension of all elements if not given.
    pub shape: Option<Vec<u64>>,
}

/// File extensions that raw files usually have.
pub(super) const EXTENSIONS: &[&str] = &["bin", "raw"];

/// Whether `path` is called like a raw file.
pub(super) fn is_named(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// The JSON file that describes the raw file `path`, if there is one.
pub(super) fn sidecar(path: &Path) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_string_lossy();
    let name = path.file_name()?.to_string_lossy();
    let names = [format!("{name}.json"), format!("{stem}.json"), format!("{stem}_meta.json")];
    names.into_iter().map(|name| path.with_file_name(name)).find(|path| path.is_file())
}

/// Opens a file as elements of `layout`.
///
/// # Errors
/// The size of the file is not that of the elements.
pub(super) fn open(file: DumpFile, layout: &RawLayout) -> Result<Box<dyn TensorSource>> {
    let RawLayout { dtype, byte_order, shape } = layout.clone();
    let len = file.len();
    let shape = match shape {
        Some(shape) => {
            let needed = stored_bytes(element_count(&shape)?, dtype.bits())?;
            if needed != len {
                let (shape, dtype, needed) = (show_shape(&shape), dtype.name(), limits::bytes(needed));
                let what = format!("shape {shape} of {dtype} takes {needed}, but the file has {len}");
                return Err(Error::new(what));
            }
            shape
        }
        None => {
            let bits = u64::from(dtype.bits());
            let elements = len.checked_mul(8).filter(|total| total.is_multiple_of(bits));
            let elements = elements.ok_or_else(|| {
                let (len, dtype) = (limits::bytes(len), dtype.name());
                Error::new(format!("its size, {len}, is no whole number of {dtype} of {bits} bits"))
            })?;
            vec![elements / bits]
        }
    };
    let name = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let elements = element_count(&shape)?;
    let tensors = vec![TensorInfo { name, shape, dtype, byte_order, elements }];
    Ok(Box::new(Raw { file, tensors }))
}

#[derive(Deserialize)]
#[serde(expecting = "an object with dtype and shape")]
struct Sidecar {
    dtype: String,
    shape: Option<Vec<u64>>,
    #[serde(alias = "endian", alias = "byte_order")]
    byteorder: Option<String>,
}

/// What the JSON file `path` says.
pub(super) fn read_sidecar(path: &Path) -> Result<RawLayout> {
    let file = DumpFile::open(path)?;
    let text = file.header("the description", 0, file.len(), limits::SIDECAR_BYTES)?;
    let text = String::from_utf8_lossy(&text);
    let sidecar: Sidecar =
        serde_json::from_str(&text).map_err(|error| json_error("the description", &text, 0, &error))?;
    let name = sidecar.dtype.strip_prefix("torch.").unwrap_or(&sidecar.dtype);
    let (dtype, order) = match Dtype::parse(name) {
        Ok(dtype) => (dtype, ByteOrder::Little),
        Err(_) => descr::element(name)?,
    };
    let byte_order = match sidecar.byteorder.as_deref() {
        None => order,
        Some("little") => ByteOrder::Little,
        Some("big") => ByteOrder::Big,
        Some(other) => {
            return Err(Error::new(format!("the byte order {} is neither little nor big", quote(other))));
        }
    };
    Ok(RawLayout { dtype, byte_order, shape: sidecar.shape })
}

struct Raw {
    file: DumpFile,
    /// The only one.
    tensors: Vec<TensorInfo>,
}

impl TensorSource for Raw {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match self.tensors.get(index) {
            Some(tensor) => self.file.read_tensor(tensor, 0, offset, bytes),
            None => Err(super::no_such_tensor(index)),
        }
        .map_err(|error| error.in_file(self.file.path()))
    }
}
