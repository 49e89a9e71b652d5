//! The values of whole slices of codes.

use super::slice::Code;
use super::{Kernel, Level, run};
use crate::format::decode::decode;
use crate::format::{FormatSpec, pow2};

/// The values of codes, as [`decode`] gives them, in float32.
#[derive(Clone, Debug)]
pub struct SliceDecode {
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    /// The value of every code.
    Table(Vec<f32>),
    /// The codes are too many for a table.
    Fields(Fields),
}

#[derive(Clone, Copy, Debug)]
struct Fields {
    magnitude_mask: u32,
    sign_shift: u32,
    sign_bit: u32,
    dropped: u32,
    rebias: u32,
    min_normal: u32,
    unit: f32,
    max_finite: u32,
    infinity: u32,
}

impl SliceDecode {
    /// `None` where float32 does not have every number of the format, and for unusual formats of more
    /// than 16 bits.
    pub fn new(format: &FormatSpec) -> Option<Self> {
        let unit = format.emin() - format.trailing_bits() as i32;
        if unit < -149 || format.max_finite() > f64::from(f32::MAX) {
            return None;
        }
        if format.bits <= 16 {
            let table = (0..1_u32 << format.bits).map(|code| narrow(decode(format, code))).collect();
            return Some(Self { way: Way::Table(table) });
        }
        if !format.signed || !format.negative_zero || !format.subnormals {
            return None;
        }
        Some(Self {
            way: Way::Fields(Fields {
                magnitude_mask: format.magnitude_mask(),
                sign_shift: 32 - format.bits,
                sign_bit: format.sign_bit(),
                dropped: 24 - format.precision,
                rebias: ((127 - format.bias) << 23) as u32,
                min_normal: 1 << format.trailing_bits(),
                unit: pow2(unit) as f32,
                max_finite: format.max_finite_code(),
                infinity: format.infinity_code().unwrap_or(format.max_finite_code()),
            }),
        })
    }

    /// Writes the values of `codes`, as many as the shorter of the two has. Bits above the format's width
    /// are ignored.
    pub fn decode<C: Code>(&self, level: Level, codes: &[C], values: &mut [f32]) {
        match &self.way {
            Way::Table(table) => {
                let mask = table.len() - 1;
                for (code, value) in codes.iter().zip(values) {
                    *value = table[code.to_u32() as usize & mask];
                }
            }
            Way::Fields(fields) => run(level, Decode { fields: *fields, codes, values }),
        }
    }
}

struct Decode<'a, C> {
    fields: Fields,
    codes: &'a [C],
    values: &'a mut [f32],
}

impl<C: Code> Kernel for Decode<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let fields = self.fields;
        for (code, value) in self.codes.iter().zip(self.values) {
            let code = code.to_u32();
            let magnitude = code & fields.magnitude_mask;
            let subnormal = (magnitude as i32 as f32 * fields.unit).to_bits();
            let normal = (magnitude << fields.dropped).wrapping_add(fields.rebias);
            let mut bits = if magnitude < fields.min_normal { subnormal } else { normal };
            if magnitude > fields.max_finite {
                bits = f32::INFINITY.to_bits();
            }
            if magnitude > fields.infinity {
                bits = QUIET_NAN;
            }
            *value = f32::from_bits(bits | (code & fields.sign_bit) << fields.sign_shift);
        }
    }
}

/// Bits of the quiet NaN without payload.
const QUIET_NAN: u32 = 0x7fc0_0000;

/// A value that float32 has. A NaN's bits are made by hand, as casts of NaNs are not fixed by the language.
fn narrow(value: f64) -> f32 {
    if value.is_nan() {
        f32::from_bits(QUIET_NAN | u32::from(value.is_sign_negative()) << 31)
    } else {
        value as f32
    }
}
