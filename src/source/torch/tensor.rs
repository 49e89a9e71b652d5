//! A tensor's description in a pickle: storage, offset, shape and strides.
//!
//! `torch/_utils.py` of PyTorch 2.15: `_rebuild_tensor(storage, offset, size, stride)`; version 2 adds
//! `requires_grad, hooks, metadata`; version 3 has the element type before the metadata. A storage is the
//! persistent id `('storage', type, key, location, elements)`.

use crate::error::{Error, Result};
use crate::source::limits::{RANK, element_count, quote, show_shape};
use crate::source::pickle::{Id, Node, Pickle};
use crate::tensor::Dtype;

/// Element types that are numbers: torch's name and ours.
const FLOATS: &[(&str, &str)] = &[
    ("float64", "float64"),
    ("float32", "float32"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"),
    ("float8_e4m3fn", "e4m3fn"),
    ("float8_e5m2", "e5m2"),
    ("float8_e4m3fnuz", "e4m3fnuz"),
    ("float8_e5m2fnuz", "e5m2fnuz"),
    ("float8_e8m0fnu", "e8m0fnu"),
    ("float4_e2m1fn_x2", "e2m1fn_x2"),
];

/// The others, with their width in bits.
const OTHERS: &[(&str, u32)] = &[
    ("int64", 64),
    ("int32", 32),
    ("int16", 16),
    ("int8", 8),
    ("uint64", 64),
    ("uint32", 32),
    ("uint16", 16),
    ("uint8", 8),
    ("bool", 8),
    ("complex32", 32),
    ("complex64", 64),
    ("complex128", 128),
];

/// Classes of typed storages, and the type of their elements.
const STORAGES: &[(&str, &str)] = &[
    ("DoubleStorage", "float64"),
    ("FloatStorage", "float32"),
    ("HalfStorage", "float16"),
    ("BFloat16Storage", "bfloat16"),
    ("LongStorage", "int64"),
    ("IntStorage", "int32"),
    ("ShortStorage", "int16"),
    ("CharStorage", "int8"),
    ("ByteStorage", "uint8"),
    ("BoolStorage", "bool"),
    ("ComplexFloatStorage", "complex64"),
    ("ComplexDoubleStorage", "complex128"),
    ("UntypedStorage", "uint8"),
];

/// What a pickle says of a tensor.
pub(super) struct Description {
    /// Name of the storage.
    pub(super) key: String,
    pub(super) dtype: Dtype,
    /// Position in the storage, in elements.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<u64>,
    /// Whether the values are the negatives of what is stored.
    pub(super) negated: bool,
    /// Whether they are the complex conjugates.
    pub(super) conjugated: bool,
}

/// The element type that torch calls `name`.
pub(in crate::source) fn element(name: &str) -> Result<Dtype> {
    if let Some((_, format)) = FLOATS.iter().find(|(known, _)| *known == name) {
        return Dtype::parse(format);
    }
    match OTHERS.iter().find(|(known, _)| *known == name) {
        Some(&(_, bits)) => Ok(Dtype::Other { name: name.to_owned(), bits }),
        None => Err(Error::new(format!("elements of type torch.{name} are not read"))),
    }
}

/// A storage as a pickle refers to it.
pub(super) struct StorageRef {
    pub(super) key: String,
    /// The elements of its class; they are those of the tensors in it, unless these say otherwise.
    pub(super) dtype: Dtype,
}

/// The storage that the persistent id `id` stands for.
pub(super) fn storage(pickle: &Pickle, id: Id) -> Result<StorageRef> {
    let invalid = || Error::new("its storage is not described as torch does");
    let Node::Persistent(id) = pickle.node(id) else { return Err(invalid()) };
    let items = pickle.items(*id).unwrap_or_default();
    let &[kind, class, key, _, _, ref view @ ..] = items else { return Err(invalid()) };
    let (Some("storage"), Some((_, class))) = (pickle.text(kind), pickle.global(class)) else {
        return Err(invalid());
    };
    if view.first().is_some_and(|&view| !matches!(pickle.node(view), Node::None)) {
        return Err(Error::new("its storage is a part of another, as torch before 0.4 wrote them"));
    }
    let key = match pickle.node(key) {
        Node::Text(key) => key.to_string(),
        Node::Int(key) => key.to_string(),
        _ => return Err(invalid()),
    };
    let dtype = match STORAGES.iter().find(|(known, _)| *known == class) {
        Some((_, dtype)) => element(dtype)?,
        None => return Err(Error::new(format!("storages of class {} are not read", quote(class)))),
    };
    Ok(StorageRef { key, dtype })
}

/// Reads the arguments of a `_rebuild_tensor` function.
pub(super) fn describe(pickle: &Pickle, version: u8, arguments: Id) -> Result<Description> {
    let arguments = pickle.items(arguments).unwrap_or_default();
    let &[storage_id, offset, size, stride, ref rest @ ..] = arguments else {
        return Err(Error::new("it is not described as torch does"));
    };
    let storage = storage(pickle, storage_id)?;
    // After requires_grad and hooks.
    let (dtype, metadata) = match (version, rest) {
        (3, &[_, _, dtype, ref metadata @ ..]) => {
            let name = pickle.global(dtype).filter(|(module, _)| *module == "torch");
            let (_, name) =
                name.ok_or_else(|| Error::new("its element type is not described as torch does"))?;
            (element(name)?, metadata.first())
        }
        (_, [_, _, metadata, ..]) => (storage.dtype, Some(metadata)),
        _ => (storage.dtype, None),
    };
    let flag = |name| {
        let value = metadata.and_then(|&metadata| pickle.get(metadata, name));
        value.is_some_and(|value| matches!(pickle.node(value), Node::Bool(true)))
    };
    let natural = |what: &str, id| {
        let values =
            pickle.ints(id).ok_or_else(|| Error::new(format!("its {what} is not a list of integers")))?;
        let list: Option<Vec<u64>> = values.iter().map(|&value| value.try_into().ok()).collect();
        list.ok_or_else(|| Error::new(format!("its {what} {values:?} has a negative number")))
    };
    let (shape, strides) = (natural("shape", size)?, natural("stride", stride)?);
    if shape.len() != strides.len() || shape.len() > RANK {
        let (shape, strides) = (show_shape(&shape), show_shape(&strides));
        return Err(Error::new(format!("its shape {shape} and its stride {strides} do not fit together")));
    }
    let offset = pickle.int(offset).and_then(|offset| offset.try_into().ok());
    let offset = offset.ok_or_else(|| Error::new("its place in the storage is no natural number"))?;
    let (negated, conjugated) = (flag("neg"), flag("conj"));
    Ok(Description { key: storage.key, dtype, offset, shape, strides, negated, conjugated })
}

impl Description {
    /// Bytes of an element as torch counts them: two 4-bit numbers are one.
    pub(super) fn width(&self) -> u64 {
        u64::from(self.dtype.bits().div_ceil(8))
    }

    /// The number of elements, and the number of bytes that the storage must have for them.
    ///
    /// # Errors
    /// A shape or a position beyond 64 bits.
    pub(super) fn extent(&self) -> Result<(u64, u64)> {
        let elements = element_count(&self.shape)?;
        if elements == 0 {
            return Ok((0, 0));
        }
        let reach =
            self.shape.iter().zip(&self.strides).try_fold(self.offset, |reach, (&extent, &stride)| {
                reach.checked_add((extent - 1).checked_mul(stride)?)
            });
        let bytes = reach.and_then(|reach| reach.checked_add(1)?.checked_mul(self.width()));
        match bytes {
            Some(bytes) => Ok((elements, bytes)),
            None => Err(Error::new("its last element lies beyond 2^64 bytes")),
        }
    }
}
