//! A named array in a dump: what it is called, how its elements are stored, and exact values in chunks.

pub mod chunk;
pub mod dtype;

pub use chunk::{Chunk, Decoder};
pub use dtype::{ByteOrder, Dtype};

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
}
