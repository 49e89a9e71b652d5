//! Bytes in: what every reader offers, the table of readers, and how a file finds its reader.

mod limits;
mod npy;
mod safetensors;

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::tensor::{Dtype, TensorInfo};

/// A dump that has been opened and whose directory of tensors has been read and checked.
pub trait TensorSource: Send + Sync {
    /// The tensors, in the order of the file.
    fn tensors(&self) -> &[TensorInfo];

    /// Facts that the container records about the dump as a whole, such as the step.
    fn metadata(&self) -> &[(String, String)] {
        &[]
    }

    /// Fills `bytes` with the stored bytes of tensor `index`, from byte `offset` of its data on.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter than its directory says.
    fn read_at(&self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()>;
}
