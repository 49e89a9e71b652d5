//! `descr`, the element type of an npy array: numpy's typestr (`<f4`) or the name of a type.

use crate::error::{Error, Result};
use crate::source::limits::quote;
use crate::tensor::{ByteOrder, Dtype};

pub(super) const OBJECTS: &str = "the array holds pickled Python objects, which would have to be executed to be \
                                  read; save arrays of numbers with numpy.savez or safetensors";

pub(super) const STRUCTURED: &str =
    "the array is structured (several fields an element); save each field as an array of its own";

/// The element type that `descr` names, and its byte order. What is no floating-point type that numpy
/// knows (integers, `<V2`, complex numbers) becomes [`Dtype::Other`]; it is for the user to say that
/// `<V2` is bfloat16.
pub(in crate::source) fn element(descr: &str) -> Result<(Dtype, ByteOrder)> {
    let (order, typestr) = match descr.as_bytes().first() {
        Some(b'<' | b'|') => (ByteOrder::Little, &descr[1..]),
        Some(b'>') => (ByteOrder::Big, &descr[1..]),
        Some(b'=') => (NATIVE, &descr[1..]),
        _ => (NATIVE, descr),
    };
    if let Some((kind, bytes)) = kind_and_bytes(typestr) {
        return Ok((typed(descr, kind, bytes, order)?, order));
    }
    if typestr.len() == descr.len() {
        return Ok((named(descr)?, order));
    }
    Err(unknown(descr))
}

/// What numpy means by a missing or `=` byte order: that of the machine. Files that cross machines
/// never have it.
const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

/// Splits `f4` into its kind and its size in bytes.
fn kind_and_bytes(typestr: &str) -> Option<(char, u32)> {
    let kind = typestr.chars().next()?;
    let digits = &typestr[kind.len_utf8()..];
    if matches!(typestr, "?" | "O") {
        return Some((kind, 1));
    }
    let is_size = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_size { Some((kind, digits.parse().ok()?)) } else { None }
}

fn typed(descr: &str, kind: char, bytes: u32, order: ByteOrder) -> Result<Dtype> {
    let refuse = |why: &str| Err(Error::new(format!("elements of type {} {why}", quote(descr))));
    match (kind, bytes) {
        ('f', 2) => Dtype::parse("float16"),
        ('f', 4) => Dtype::parse("float32"),
        ('f', 8) => Ok(Dtype::Float64),
        ('f', 10..=16) | ('c', 20..=32) => {
            refuse("are C's long double, whose layout differs between machines")
        }
        ('O', _) => Err(Error::new(OBJECTS)),
        ('S' | 'a' | 'U' | 'T', _) => refuse("are text, not numbers"),
        ('m' | 'M', _) => refuse("are times, not numbers"),
        // numpy turns '>V2' into '|V2', so whether such bytes were swapped cannot be known.
        ('V', 2..) if order == ByteOrder::Big => refuse("are raw bytes, which have no byte order"),
        ('f' | 'g' | 'i' | 'u' | 'b' | '?' | 'V' | 'W', 1 | 2 | 4 | 8) | ('c', 8 | 16) => {
            Ok(other(descr, bytes))
        }
        ('V', _) => refuse(&format!("are {bytes} bytes wide, as no number format is")),
        _ => Err(unknown(descr)),
    }
}

/// Types by name: numpy's own, which take precedence where `format::find` knows another meaning, and
/// those of `ml_dtypes`, which users write into headers to keep the name.
fn named(name: &str) -> Result<Dtype> {
    match name {
        // Python's float is 64 bits wide.
        "float" => Ok(Dtype::Float64),
        "bool" | "int8" | "uint8" | "int4" | "uint4" | "int2" | "uint2" | "int1" | "uint1" => {
            Ok(other(name, 1))
        }
        "int16" | "uint16" => Ok(other(name, 2)),
        "int32" | "uint32" => Ok(other(name, 4)),
        "int64" | "uint64" | "complex64" => Ok(other(name, 8)),
        "complex128" => Ok(other(name, 16)),
        "object" => Err(Error::new(OBJECTS)),
        // A name only torch uses: whether the shape counts bytes or elements cannot be known.
        _ if name.ends_with("_x2") => Err(unknown(name)),
        // Formats are found with more tolerance than numpy has: 'F4' is float32 there and FP4 here.
        _ if !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) => Err(unknown(name)),
        _ => Dtype::parse(name).map_err(|_| unknown(name)),
    }
}

fn other(name: &str, bytes: u32) -> Dtype {
    Dtype::Other { name: name.to_owned(), bits: 8 * bytes }
}

fn unknown(descr: &str) -> Error {
    Error::new(format!("descr {} names no type of numpy or ml_dtypes", quote(descr)))
}
