//! NumPy's `.npy`, versions 1 to 3, with one array or several written one after another.
//!
//! Layout: `\x93NUMPY`, version, header length, a Python dict literal, the elements, in the order that
//! `fortran_order` says.

pub(super) mod descr;
mod header;

use super::TensorSource;
use super::bytes::Bytes;
use super::file::DumpFile;
use super::limits::{self, element_count, show_shape, stored_bytes};
use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// The first bytes of every array.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Whether a file that begins with `first` is an npy file.
pub(super) fn matches(first: &[u8], _file_len: u64) -> bool {
    first.starts_with(MAGIC)
}

/// Reads and checks the header of every array in the file.
///
/// # Errors
/// The first array cannot be read. Those behind it that cannot be read are [`TensorSource::problems`].
pub(super) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let stem = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut arrays = arrays(&file, &stem)?;
    let path = file.path().to_owned();
    arrays.problems = arrays.problems.into_iter().map(|problem| problem.in_file(&path)).collect();
    arrays.notices = arrays.notices.into_iter().map(|notice| notice.in_file(&path)).collect();
    let places = arrays.found.iter().map(|array| (array.start, array.column_major)).collect();
    let tensors = arrays.found.into_iter().map(|array| array.tensor).collect();
    Ok(Box::new(Npy { file, tensors, places, problems: arrays.problems, notices: arrays.notices }))
}

struct Npy {
    file: DumpFile,
    tensors: Vec<TensorInfo>,
    /// Where the data of each tensor begin in the file, and whether they are in Fortran order.
    places: Vec<(u64, bool)>,
    problems: Vec<Error>,
    notices: Vec<Error>,
}

impl TensorSource for Npy {
    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn notices(&self) -> &[Error] {
        &self.notices
    }

    fn column_major(&self, index: usize) -> bool {
        self.places.get(index).is_some_and(|&(_, column_major)| column_major)
    }

    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        match (self.tensors.get(index), self.places.get(index)) {
            (Some(tensor), Some(&(start, _))) => self.file.read_tensor(tensor, start, offset, bytes),
            _ => Err(super::no_such_tensor(index)),
        }
        .map_err(|error| error.in_file(self.file.path()))
    }
}

/// What a file, or a member of an archive, holds.
pub(super) struct Arrays {
    pub(super) found: Vec<Array>,
    /// Arrays behind the first that cannot be read.
    pub(super) problems: Vec<Error>,
    pub(super) notices: Vec<Error>,
}

/// The arrays that `bytes` hold, one behind the other; those after the first are called `stem[1]`, ….
///
/// # Errors
/// The first array cannot be read.
pub(super) fn arrays(bytes: &dyn Bytes, stem: &str) -> Result<Arrays> {
    let first = array(bytes, 0, stem.to_owned())?;
    let mut end = first.end();
    let mut arrays = Arrays { found: vec![first], problems: Vec::new(), notices: Vec::new() };
    while end < bytes.len() {
        let left = bytes.len() - end;
        let mark = left.min(MAGIC.len() as u64);
        let next = bytes.header("the next array", end, mark, limits::NPY_HEADER_BYTES)?;
        if next != MAGIC || arrays.found.len() == limits::APPENDED_ARRAYS {
            let what = format!("ignored {} after the last array that is read", limits::bytes(left));
            arrays.notices.push(Error::new(what).at_byte(end));
            break;
        }
        let name = format!("{stem}[{}]", arrays.found.len());
        match array(bytes, end, name.clone()) {
            Ok(array) => {
                end = array.end();
                arrays.found.push(array);
            }
            Err(error) => {
                arrays.problems.push(error.in_tensor(&name));
                break;
            }
        }
    }
    Ok(arrays)
}

/// One array.
pub(super) struct Array {
    pub(super) tensor: TensorInfo,
    /// Where its data begin.
    pub(super) start: u64,
    /// Whether they are in Fortran order.
    pub(super) column_major: bool,
}

impl Array {
    fn end(&self) -> u64 {
        self.start + self.tensor.bytes()
    }
}

/// The array that begins at byte `at`.
fn array(file: &dyn Bytes, at: u64, name: String) -> Result<Array> {
    let cap = limits::NPY_HEADER_BYTES;
    let start = file.header("the npy magic and version", at, 8, cap)?;
    if !start.starts_with(MAGIC) {
        return Err(Error::new("an npy file begins with \\x93NUMPY, this one does not").at_byte(at));
    }
    let length_bytes = match (start[6], start[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => {
            let what = format!("npy version {major}.{minor} is unknown; there are 1.0, 2.0 and 3.0");
            return Err(Error::new(what).at_byte(at + 6));
        }
    };
    let length = file.header("the npy header length", at + 8, length_bytes, cap)?;
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | u64::from(byte));
    let header_at = at + 8 + length_bytes;
    let text = file.header("the npy header", header_at, length, cap)?;
    let header = header::parse(&text, header_at)?;

    let at_header = |error: Error| error.at_byte(header_at);
    let elements = element_count(&header.shape).map_err(at_header)?;
    let bytes = stored_bytes(elements, header.dtype.bits()).map_err(at_header)?;
    let start = header_at + length;
    let left = file.len() - start;
    if bytes > left {
        let (shape, bytes) = (show_shape(&header.shape), limits::bytes(bytes));
        let what = format!("the data are cut off: shape {shape} takes {bytes}, {left} are there");
        return Err(Error::new(what).at_byte(file.len()));
    }
    let header::Header { dtype, byte_order, shape, column_major } = header;
    Ok(Array { tensor: TensorInfo { name, shape, dtype, byte_order, elements }, start, column_major })
}
