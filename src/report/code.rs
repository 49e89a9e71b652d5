//! Codes as people read them: in hex, and cut into sign, exponent and significand fields.

use serde::Serialize;

use crate::format::FormatSpec;

/// The fields of a code, as bits. A field that the format lacks is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fields {
    /// The sign bit.
    pub sign: String,
    /// The biased exponent.
    pub exponent: String,
    /// The significand without its implicit bit.
    pub significand: String,
}

impl Fields {
    /// Of a `format` code.
    pub fn of(format: &FormatSpec, code: u32) -> Self {
        Self::cut(code.into(), format.signed, format.exponent_bits(), format.trailing_bits())
    }

    /// Of a float64.
    pub fn of_float64(code: u64) -> Self {
        Self::cut(code, true, 11, 52)
    }

    fn cut(code: u64, signed: bool, exponent_bits: u32, trailing_bits: u32) -> Self {
        let bits = |shift: u32, width: u32| -> String {
            (0..width).rev().map(|bit| if code >> (shift + bit) & 1 == 1 { '1' } else { '0' }).collect()
        };
        Self {
            sign: bits(exponent_bits + trailing_bits, signed.into()),
            exponent: bits(trailing_bits, exponent_bits),
            significand: bits(0, trailing_bits),
        }
    }

    /// The fields with bars between them: `0|1111|110`.
    pub fn drawn(&self) -> String {
        let fields = [&self.sign, &self.exponent, &self.significand];
        fields.into_iter().filter(|field| !field.is_empty()).cloned().collect::<Vec<_>>().join("|")
    }
}

/// `code` in as many hex digits as `bits` bits take.
pub(super) fn hex(code: u64, bits: u32) -> String {
    format!("0x{code:0digits$x}", digits = bits.div_ceil(4) as usize)
}
