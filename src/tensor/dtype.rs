//! Stored element types: which can be read as numbers, and as which format.

use crate::error::{Error, Result};
use crate::format::{self, FormatSpec};

/// Order of the bytes of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// How an element is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// A code of a binary format of 4, 8, 16 or 32 bits; codes of 4 bits are packed two to a byte, the
    /// first in the low half.
    Float(FormatSpec),
    /// A code of fewer than 8 bits, alone in the low bits of a byte: numpy with `ml_dtypes` stores its
    /// 4- and 6-bit types so.
    InByte(FormatSpec),
    /// IEEE 754 binary64.
    Float64,
    /// Not a floating-point number: integers, booleans, complex numbers, raw bytes.
    Other {
        /// The container's own name for it, such as `I64` or `<V2`.
        name: String,
        /// Width of an element in bits.
        bits: u32,
    },
}

impl Dtype {
    /// Reads what a user gives to `--dtype`: any format name, or `float64`. Formats of fewer than 8 bits
    /// are one to a byte; the suffix `_x2` (PyTorch's `float4_e2m1fn_x2`) means two to a byte.
    ///
    /// # Errors
    /// An unknown name, or a format that has no stored form (only up to 8, 16 and 32 bits have one).
    pub fn parse(name: &str) -> Result<Self> {
        if matches!(name.to_ascii_lowercase().as_str(), "float64" | "fp64" | "f64" | "double") {
            return Ok(Self::Float64);
        }
        if let Some(single) = name.strip_suffix("_x2").or_else(|| name.strip_suffix("_X2")) {
            let format = format::find(single)?;
            return if format.bits == 4 {
                Ok(Self::Float(format))
            } else {
                Err(Error::new(format!(
                    "{} has {} bits: only 4 fit in a byte twice",
                    format.name, format.bits
                )))
            };
        }
        let format = format::find(name)?;
        match format.bits {
            ..8 => Ok(Self::InByte(format)),
            8 | 16 | 32 => Ok(Self::Float(format)),
            _ => Err(Error::new(format!("{} has {} bits: no dump stores it", format.name, format.bits))),
        }
    }

    /// The format of an element; `None` for [`Dtype::Float64`] and [`Dtype::Other`].
    pub fn format(&self) -> Option<&FormatSpec> {
        match self {
            Self::Float(format) | Self::InByte(format) => Some(format),
            Self::Float64 | Self::Other { .. } => None,
        }
    }

    /// Width in bits of one stored element.
    pub fn bits(&self) -> u32 {
        match self {
            Self::Float(format) => format.bits,
            Self::InByte(_) => 8,
            Self::Float64 => 64,
            Self::Other { bits, .. } => *bits,
        }
    }

    /// Name for people: the format's own, or the container's.
    pub fn name(&self) -> &str {
        match self {
            Self::Float(format) | Self::InByte(format) => format.name,
            Self::Float64 => "float64",
            Self::Other { name, .. } => name,
        }
    }

    /// Whether elements can be read as numbers as they are.
    pub fn is_float(&self) -> bool {
        !matches!(self, Self::Other { .. })
    }
}
