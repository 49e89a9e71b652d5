//! NumPy arrays in a pickle.
//!
//! `numpy/_core/multiarray` and `numeric` of NumPy 2.4: `_reconstruct(ndarray, (0,), b'b')` with the state
//! `(version, shape, dtype, is_fortran, data)`, or from protocol 5 on `_frombuffer(data, dtype, shape, order)`;
//! a dtype is `dtype(typestr, False, True)` with the state `(version, byte order, …)`.

use crate::error::{Error, Result};
use crate::source::npy::descr;
use crate::source::pickle::{Id, Node, Pickle};
use crate::tensor::{ByteOrder, Dtype};

/// What a pickle says of an array.
pub(super) struct Array {
    pub(super) dtype: Dtype,
    pub(super) byte_order: ByteOrder,
    pub(super) shape: Vec<u64>,
    pub(super) column_major: bool,
    pub(super) data: Data,
}

/// Where its elements are.
pub(super) enum Data {
    /// In the pickle, from a byte on.
    At { at: u64, len: u64 },
    /// Written as text by pickle protocols before 3.
    Here(Vec<u8>),
}

/// Reads the array `id`.
pub(super) fn array(pickle: &Pickle, id: Id) -> Result<Array> {
    let invalid = || Error::new("the array is not pickled as numpy does");
    let Node::Object(object) = pickle.node(id) else { return Err(invalid()) };
    let (shape, dtype, column_major, data) = match object.state.map(|state| pickle.items(state)) {
        Some(Some(&[_, shape, dtype, fortran, data])) => {
            (shape, dtype, matches!(pickle.node(fortran), Node::Bool(true)), data)
        }
        None => match pickle.items(object.arguments) {
            Some(&[data, dtype, shape, order]) => (shape, dtype, pickle.text(order) == Some("F"), data),
            _ => return Err(invalid()),
        },
        _ => return Err(invalid()),
    };
    let shape: Option<Vec<u64>> =
        pickle.ints(shape).and_then(|shape| shape.into_iter().map(|extent| extent.try_into().ok()).collect());
    let (dtype, byte_order) = element(pickle, dtype)?;
    Ok(Array {
        dtype,
        byte_order,
        shape: shape.ok_or_else(invalid)?,
        column_major,
        data: bytes(pickle, data)?,
    })
}

fn element(pickle: &Pickle, id: Id) -> Result<(Dtype, ByteOrder)> {
    let invalid = || Error::new("the array's element type is not pickled as numpy does");
    let Node::Object(object) = pickle.node(id) else { return Err(invalid()) };
    if pickle.global(object.callable) != Some(("numpy", "dtype")) {
        return Err(invalid());
    }
    let typestr = pickle.items(object.arguments).and_then(|items| pickle.text(*items.first()?));
    let typestr = typestr.ok_or_else(invalid)?;
    // A dtype of the types of ml_dtypes has their name; it is found without a byte order.
    let order = object.state.and_then(|state| pickle.text(*pickle.items(state)?.get(1)?)).unwrap_or("|");
    let sized = typestr.len() <= 3 && typestr.bytes().any(|byte| byte.is_ascii_digit());
    descr::element(&if sized { format!("{order}{typestr}") } else { typestr.to_owned() })
}

fn bytes(pickle: &Pickle, id: Id) -> Result<Data> {
    match pickle.node(id) {
        &Node::Bytes { at, len } => Ok(Data::At { at, len }),
        Node::Text(text) => latin1(text),
        Node::Object(object) if pickle.global(object.callable) == Some(("_codecs", "encode")) => match pickle
            .items(object.arguments)
        {
            Some(&[text, encoding]) if pickle.text(encoding) == Some("latin1") => match pickle.node(text) {
                Node::Text(text) => latin1(text),
                Node::Bytes { .. } => Err(Error::new(
                    "the array is written as text, as pickle protocols before 3 do; save it with protocol 4",
                )),
                _ => Err(Error::new("the array's data are not pickled as numpy does")),
            },
            _ => Err(Error::new("the array's data are not pickled as numpy does")),
        },
        _ => Err(Error::new("the array's data are not pickled as numpy does")),
    }
}

/// Text whose characters are the bytes.
fn latin1(text: &str) -> Result<Data> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    bytes.map(Data::Here).ok_or_else(|| Error::new("the array's data are text that is no bytes"))
}
