//! `torch.save` files of before version 1.6, and plain pickles.
//!
//! Five pickles follow one another: a magic number, the version 1001, a dict about the machine, the object
//! itself, and the list of the storages' keys; then the storages in that order, each a 64-bit number of
//! elements and the elements (`torch/serialization.py`, `_legacy_save`).

use std::collections::HashMap;
use std::sync::Arc;

use super::{Storage, Storages, Torch, tensor};
use crate::error::{Error, Result};
use crate::source::TensorSource;
use crate::source::bytes::Bytes;
use crate::source::file::DumpFile;
use crate::source::limits::{self, quote};
use crate::source::pickle::{self, Node, Pickle};
use crate::tensor::ByteOrder;

/// The pickle of the magic number.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Whether a file that begins with `first` is a pickle of protocol 2 or later.
pub(in crate::source) fn matches(first: &[u8], _file_len: u64) -> bool {
    matches!(first, [0x80, 2..=5, ..])
}

/// Opens a file that is a pickle, or several.
///
/// # Errors
/// A pickle cannot be read. Tensors that cannot are [`TensorSource::problems`].
pub(in crate::source) fn open(file: DumpFile) -> Result<Box<dyn TensorSource>> {
    let mut torch = Torch::new(&file);
    let first = file.first_bytes(MAGIC.len() as u64)?;
    if !matches(&first, file.len()) {
        return Err(Error::new("is no torch.save file: neither a zip archive nor a pickle begins it"));
    }
    let limit = pickle::node_limit(file.len());
    let file: Arc<dyn Bytes> = Arc::new(file);
    if first != MAGIC {
        let pickle = pickle::read(&*file, 0, limit)?;
        if pickle.end < file.len() {
            torch.notice(&format!("ignored {} after the pickle", limits::bytes(file.len() - pickle.end)));
        }
        torch.collect(&pickle, &file, &Storages { byte_order: ByteOrder::Little, by_key: HashMap::new() })?;
        return Ok(Box::new(torch));
    }
    let version = pickle::read(&*file, MAGIC.len() as u64, limit)?;
    if version.int(version.root) != Some(1001) {
        return Err(Error::new("the version of the torch.save file is not 1001").at_byte(MAGIC.len() as u64));
    }
    let machine = pickle::read(&*file, version.end, limit)?;
    let little = machine.get(machine.root, "little_endian").map(|value| machine.node(value));
    let byte_order =
        if matches!(little, Some(Node::Bool(false))) { ByteOrder::Big } else { ByteOrder::Little };
    let object = pickle::read(&*file, machine.end, limit)?;
    let keys = pickle::read(&*file, object.end, limit)?;
    let (by_key, end) = storages(&file, &object, &keys, byte_order)?;
    if end < file.len() {
        let left = limits::bytes(file.len() - end);
        torch.notice(&format!("ignored {left} after the last storage (is it two files in one?)"));
    }
    torch.collect(&object, &file, &Storages { byte_order, by_key })?;
    Ok(Box::new(torch))
}

type ByKey = HashMap<String, Result<Storage>>;

/// Finds the storages, which follow the list of their keys, and the end of the last.
fn storages(file: &Arc<dyn Bytes>, object: &Pickle, keys: &Pickle, order: ByteOrder) -> Result<(ByKey, u64)> {
    let mut widths = HashMap::new();
    for (id, node) in (0..).zip(object.nodes()) {
        if let Node::Persistent(_) = node
            && let Ok(storage) = tensor::storage(object, id)
        {
            widths.insert(storage.key, u64::from(storage.dtype.bits()) / 8);
        }
    }
    let mut by_key = HashMap::new();
    let mut at = keys.end;
    let list = keys.items(keys.root).ok_or_else(|| Error::new("the keys of the storages are no list"));
    for &key in list.map_err(|error| error.at_byte(object.end))? {
        let key = match keys.node(key) {
            Node::Text(key) => key.to_string(),
            Node::Int(key) => key.to_string(),
            _ => return Err(Error::new("the key of a storage is no text").at_byte(object.end)),
        };
        let Some(&width) = widths.get(&key) else {
            // Its length is not known, so neither is where the next begins.
            let what = format!("the storage {} is of a type that is not read", quote(&key));
            return Err(Error::new(what).at_byte(at));
        };
        let count = file.header("the length of a storage", at, 8, 8)?;
        let count = if order == ByteOrder::Big { count } else { count.into_iter().rev().collect() };
        let count = count.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let start = at + 8;
        let len = count.checked_mul(width);
        match len.and_then(|len| start.checked_add(len)).filter(|&end| end <= file.len()) {
            Some(end) => {
                let bytes = Arc::clone(file);
                by_key.insert(key, Ok(Storage { bytes, start, len: end - start, in_order: false }));
                at = end;
            }
            None => {
                let left = limits::bytes(file.len() - start);
                let what = format!(
                    "the data are cut off: its storage has {count} elements, but the file only {left} for it"
                );
                by_key.insert(key, Err(Error::new(what).at_byte(start)));
                at = file.len();
                break;
            }
        }
    }
    Ok((by_key, at))
}
