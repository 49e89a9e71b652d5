//! A named array in a dump: what it is called, how its elements are stored, and exact values in chunks.

pub mod chunk;
pub mod dtype;
pub mod grid;

pub use chunk::{Chunk, Decoder};
pub use dtype::{ByteOrder, Dtype};
pub use grid::Grid;

use crate::error::{Error, Result};

/// What a dump says about one tensor. The elements themselves stay in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name in the dump: untrusted text.
    pub name: String,
    /// Extent of each dimension; empty for a scalar.
    pub shape: Vec<u64>,
    /// How an element is stored.
    pub dtype: Dtype,
    /// Byte order of elements wider than a byte.
    pub byte_order: ByteOrder,
    /// Number of elements: the product of `shape`.
    pub elements: u64,
}

impl TensorInfo {
    /// Number of bytes that the elements take in the file.
    pub fn bytes(&self) -> u64 {
        (self.elements * u64::from(self.dtype.bits())).div_ceil(8)
    }

    /// The same bytes taken for elements of type `target`, as `--dtype` asks. Widths must agree, but
    /// that a byte may hold two packed elements: the last dimension then counts twice as many.
    ///
    /// # Errors
    /// Elements of another width.
    pub fn reinterpret(&self, target: &Dtype) -> Result<Self> {
        let (stored, wanted) = (self.dtype.bits(), target.bits());
        let mut tensor = self.clone();
        match target {
            // A 4-bit format stays packed where the container packs, whichever way it was asked for.
            Dtype::InByte(format) if format.bits == 4 && stored == 4 => tensor.dtype = Dtype::Float(*format),
            Dtype::Float(_) if wanted == 4 && stored == 8 => {
                tensor.dtype = target.clone();
                tensor.elements = tensor.elements.saturating_mul(2);
                match tensor.shape.last_mut() {
                    Some(last) => *last = last.saturating_mul(2),
                    None => tensor.shape.push(2),
                }
            }
            _ if stored == wanted => tensor.dtype = target.clone(),
            _ => {
                return Err(Error::new(format!(
                    "elements of type {} are {stored} bits wide, so they cannot be read as {} of {wanted} bits",
                    self.dtype.name(),
                    target.name(),
                ))
                .in_tensor(&self.name));
            }
        }
        Ok(tensor)
    }
}
