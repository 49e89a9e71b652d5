//! Bytes at known positions: a whole file, or a member of an archive that is unpacked as it is read.

use super::limits;
use crate::error::{Error, Result};
use crate::tensor::TensorInfo;

/// Something of known length that can be read at any position, from any thread.
pub(super) trait Bytes: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// What to call it in a sentence.
    fn kind(&self) -> &'static str;

    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// There are no such bytes, or they cannot be read.
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// The `len` bytes from `offset` on, which `what` is said to take.
    ///
    /// # Errors
    /// More bytes than `cap` or than there are; nothing is allocated then.
    fn header(&self, what: &str, offset: u64, len: u64, cap: u64) -> Result<Vec<u8>> {
        let left = self.len().saturating_sub(offset);
        if len > cap {
            let what = format!("{what} claims a length of {len} bytes, more than the {cap} that are read");
            return Err(Error::new(what).at_byte(offset));
        }
        if len > left {
            let (kind, left, len) = (self.kind(), limits::bytes(left), limits::bytes(len));
            let what = format!("the {kind} ends {left} into {what}, which takes {len}");
            return Err(Error::new(what).at_byte(self.len()));
        }
        let size = usize::try_from(len)
            .map_err(|_| Error::new(format!("{len} bytes do not fit in memory")).at_byte(offset))?;
        let mut bytes = vec![0; size];
        self.read_exact_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Up to `limit` bytes from the start.
    fn first_bytes(&self, limit: u64) -> Result<Vec<u8>> {
        self.header("the start", 0, self.len().min(limit), limit)
    }

    /// Fills `bytes` from byte `offset` of a tensor whose data begin at byte `start`.
    fn read_tensor(&self, tensor: &TensorInfo, start: u64, offset: u64, bytes: &mut [u8]) -> Result<()> {
        check_range(tensor, offset, bytes.len() as u64)
            .and_then(|()| self.read_exact_at(start + offset, bytes))
            .map_err(|error| error.in_tensor(&tensor.name))
    }
}

/// Refuses to read outside the tensor.
pub(super) fn check_range(tensor: &TensorInfo, offset: u64, len: u64) -> Result<()> {
    if offset.checked_add(len).is_none_or(|end| end > tensor.bytes()) {
        let (len, total) = (limits::bytes(len), limits::bytes(tensor.bytes()));
        let what = format!("{len} from byte {offset} on go beyond the tensor's {total}");
        return Err(Error::new(what));
    }
    Ok(())
}

/// Bytes in memory.
pub(super) struct Memory(pub(super) Vec<u8>);

impl Bytes for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn kind(&self) -> &'static str {
        "text"
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).ok();
        let found = start.and_then(|start| self.0.get(start..)?.get(..bytes.len()));
        let found = found.ok_or_else(|| Error::new("there are no such bytes").at_byte(offset))?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}
