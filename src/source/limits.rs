//! Caps and checked arithmetic that the readers share: sizes in a header are claims, not facts.

use crate::error::{Error, Result};

/// Longest npy header that is read, in bytes: a hundred times numpy's own limit of 10,000 characters,
/// so that only damage and attacks meet it.
pub(super) const NPY_HEADER_BYTES: u64 = 1 << 20;

/// Longest safetensors header that is read, in bytes: the limit of the reference implementation.
pub(super) const SAFETENSORS_HEADER_BYTES: u64 = 100_000_000;

/// Longest index of a model in several files, in bytes.
pub(super) const INDEX_BYTES: u64 = 1 << 28;

/// Longest description of a raw file, in bytes.
pub(super) const SIDECAR_BYTES: u64 = 1 << 20;

/// Most dimensions a tensor may have: numpy's and PyTorch's limit.
pub(super) const RANK: usize = 64;

/// Most arrays that are read from one npy file to which arrays were appended.
pub(super) const APPENDED_ARRAYS: usize = 100_000;

/// Most tensors that are read from one pickle.
pub(super) const TENSORS: usize = 4_000_000;

/// Most members that are read from one archive.
pub(super) const MEMBERS: usize = 4_000_000;

/// Longest record of an archive's directory: a name, extra fields and a comment of 64 KiB each.
pub(super) const ZIP_RECORD_BYTES: usize = 3 * 0xffff + 46;

/// The number of elements of a tensor of shape `shape`.
///
/// # Errors
/// More than [`RANK`] dimensions, or a product beyond 64 bits. A dimension of 0 makes the tensor empty
/// whatever the others are.
pub(super) fn element_count(shape: &[u64]) -> Result<u64> {
    if shape.len() > RANK {
        return Err(Error::new(format!("shape has {} dimensions, more than {RANK}", shape.len())));
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1_u64, |product, &extent| product.checked_mul(extent))
        .ok_or_else(|| Error::new(format!("shape {} has 2^64 elements or more", show_shape(shape))))
}

/// The number of bytes that `elements` elements of `bits` bits take.
///
/// # Errors
/// A number of bits beyond 64 bits or that is not a whole number of bytes.
pub(super) fn stored_bytes(elements: u64, bits: u32) -> Result<u64> {
    let total = elements
        .checked_mul(u64::from(bits))
        .ok_or_else(|| Error::new(format!("{elements} elements of {bits} bits are 2^64 bits or more")))?;
    if total % 8 == 0 {
        Ok(total / 8)
    } else {
        Err(Error::new(format!("{elements} elements of {bits} bits are not a whole number of bytes")))
    }
}

/// `1 byte`, `2 bytes`.
pub(super) fn bytes(count: u64) -> String {
    format!("{count} {}", if count == 1 { "byte" } else { "bytes" })
}

/// A shape as people write it: `(2, 3)`, `()`.
pub(super) fn show_shape(shape: &[u64]) -> String {
    let extents: Vec<_> = shape.iter().map(u64::to_string).collect();
    format!("({})", extents.join(", "))
}

/// Untrusted text cut to what fits in a sentence, in quotes, with control characters escaped.
pub(super) fn quote(text: &str) -> String {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    format!("'{}{dots}'", crate::error::escape(&shown))
}
