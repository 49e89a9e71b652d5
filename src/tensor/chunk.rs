//! Stored bytes → exact values. Every format of up to 32 bits widens to f32 without rounding; f64 stays.

use super::TensorInfo;
use super::dtype::{ByteOrder, Dtype};
use crate::error::{Error, Result};
use crate::format::decode::decode;
use crate::format::{FormatSpec, pow2};

/// A run of consecutive elements, as exact values.
#[derive(Clone, Copy, Debug)]
pub enum Chunk<'a> {
    /// From a source of up to 32 bits.
    F32(&'a [f32]),
    /// From a 64-bit source.
    F64(&'a [f64]),
}

impl Chunk<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Turns the stored bytes of one tensor into [`Chunk`]s. Holds one chunk's worth of buffers.
pub struct Decoder {
    kind: Kind,
    dtype: Dtype,
    byte_order: ByteOrder,
    singles: Vec<f32>,
    doubles: Vec<f64>,
    raw: Vec<u8>,
}

enum Kind {
    /// Stored as the values themselves.
    Single,
    Double,
    /// Stored as codes of `bits` bits; the value of each is looked up.
    Codes {
        bits: u32,
        values: Vec<f32>,
    },
}

impl Decoder {
    /// A decoder for the elements of `info`.
    ///
    /// # Errors
    /// Its type is not a floating-point type.
    pub fn new(info: &TensorInfo) -> Result<Self> {
        let TensorInfo { dtype, byte_order, .. } = info;
        let kind = match dtype {
            Dtype::Float64 => Kind::Double,
            Dtype::Float(format) if is_binary32(format) => Kind::Single,
            Dtype::Float(format) | Dtype::InByte(format)
                if matches!(dtype.bits(), 4 | 8 | 16) && fits_f32(format) =>
            {
                let codes = 0..1_u32 << dtype.bits();
                Kind::Codes { bits: dtype.bits(), values: codes.map(|c| decode(format, c) as f32).collect() }
            }
            _ => {
                return Err(Error::new(format!(
                    "elements of type {} cannot be read as numbers",
                    dtype.name()
                )));
            }
        };
        let (dtype, byte_order) = (dtype.clone(), *byte_order);
        Ok(Self { kind, dtype, byte_order, singles: Vec::new(), doubles: Vec::new(), raw: Vec::new() })
    }

    /// Whether this decoder also reads `info`.
    pub fn reads(&self, info: &TensorInfo) -> bool {
        self.dtype == info.dtype && self.byte_order == info.byte_order
    }

    /// Reads `elements` elements through `read`, which fills a buffer with their stored bytes.
    ///
    /// # Errors
    /// Whatever `read` fails with.
    pub fn chunk(
        &mut self,
        elements: usize,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Chunk<'_>> {
        let big = self.byte_order == ByteOrder::Big;
        match &self.kind {
            Kind::Single => {
                self.singles.resize(elements, 0.0);
                read(bytemuck::cast_slice_mut(&mut self.singles))?;
                for x in &mut self.singles {
                    let bits = x.to_bits();
                    *x = f32::from_bits(if big { u32::from_be(bits) } else { u32::from_le(bits) });
                }
                Ok(Chunk::F32(&self.singles))
            }
            Kind::Double => {
                self.doubles.resize(elements, 0.0);
                read(bytemuck::cast_slice_mut(&mut self.doubles))?;
                for x in &mut self.doubles {
                    let bits = x.to_bits();
                    *x = f64::from_bits(if big { u64::from_be(bits) } else { u64::from_le(bits) });
                }
                Ok(Chunk::F64(&self.doubles))
            }
            Kind::Codes { bits, values } => {
                self.raw.resize((elements * *bits as usize).div_ceil(8), 0);
                read(&mut self.raw)?;
                self.singles.clear();
                match bits {
                    16 => self.singles.extend(self.raw.as_chunks().0.iter().map(|&pair| {
                        let code = if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) };
                        values[usize::from(code)]
                    })),
                    8 => self.singles.extend(self.raw.iter().map(|&code| values[usize::from(code)])),
                    _ => {
                        let codes = self.raw.iter().flat_map(|&byte| [byte & 15, byte >> 4]).take(elements);
                        self.singles.extend(codes.map(|code| values[usize::from(code)]));
                    }
                }
                Ok(Chunk::F32(&self.singles))
            }
        }
    }
}

/// Whether every number of the format is an f32: true of all rows, not of every described format.
fn fits_f32(format: &FormatSpec) -> bool {
    format.magnitude(1) >= pow2(-149) && format.max_finite() <= f64::from(f32::MAX)
}

/// Whether the stored 32-bit code is the f32 itself.
fn is_binary32(format: &FormatSpec) -> bool {
    format.bits == 32 && format.precision == 24 && format.bias == 127 && format.infinities
}
