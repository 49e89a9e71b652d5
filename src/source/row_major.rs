//! Tensors stored with the first index running fastest, read as if the last one did.

use super::TensorSource;
use super::bytes::Bytes;
use super::strided::Strided;
use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// One tensor of a dump, its elements in row-major order (C order) whatever order they are stored in.
pub struct RowMajor<'a> {
    stored: Stored<'a>,
    layout: Strided,
    info: TensorInfo,
}

/// The elements as they are stored.
struct Stored<'a> {
    source: &'a dyn TensorSource,
    index: usize,
    len: u64,
}

impl<'a> RowMajor<'a> {
    /// Tensor `index` of `source`, which is read as `info`, is stored in column-major order.
    ///
    /// # Errors
    /// Its elements are not whole bytes.
    pub fn new(source: &'a dyn TensorSource, index: usize, info: &TensorInfo) -> Result<Self> {
        let width = u64::from(info.dtype.bits()) / 8;
        if width == 0 {
            let what = "packed elements in column-major order cannot be put in row-major order";
            return Err(Error::new(what).in_tensor(&info.name));
        }
        let strides: Vec<u64> = info
            .shape
            .iter()
            .scan(1_u64, |next, &extent| {
                let stride = *next;
                *next = stride.saturating_mul(extent);
                Some(stride)
            })
            .collect();
        let layout = Strided::new(&info.shape, &strides, width);
        Ok(Self { stored: Stored { source, index, len: info.bytes() }, layout, info: info.clone() })
    }
}

impl TensorSource for RowMajor<'_> {
    fn tensors(&self) -> &[TensorInfo] {
        std::slice::from_ref(&self.info)
    }

    fn in_order(&self, _index: usize) -> bool {
        self.stored.source.in_order(self.stored.index)
    }

    fn read_at(&self, _index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.layout.read(&self.stored, 0, offset, bytes)
    }
}

impl Bytes for Stored<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn kind(&self) -> &'static str {
        "tensor"
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.source.read_at(self.index, offset, bytes)
    }
}
