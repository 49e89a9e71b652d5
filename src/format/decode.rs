//! Code → value and class, for any format.

use super::FormatSpec;

/// What a stored code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeClass {
    /// ±0.
    Zero,
    /// Nonzero, below the smallest normal number.
    Subnormal,
    /// An ordinary number.
    Normal,
    /// ±Inf.
    Infinite,
    /// Not a number.
    Nan,
}

/// The class of `code`; bits above the format's width are ignored.
pub fn classify(format: &FormatSpec, code: u32) -> CodeClass {
    let (negative, magnitude) = format.split(code);
    if negative && magnitude == 0 && format.nan_is_negative_zero() {
        CodeClass::Nan
    } else if Some(magnitude) == format.infinity_code() {
        CodeClass::Infinite
    } else if magnitude > format.max_finite_code() && !format.twos_complement {
        CodeClass::Nan
    } else if format.subnormals && magnitude >> format.trailing_bits() == 0 {
        if magnitude == 0 { CodeClass::Zero } else { CodeClass::Subnormal }
    } else {
        CodeClass::Normal
    }
}

/// The exact value of `code`. A NaN code gives a quiet NaN with the code's sign.
///
/// ```
/// use amp_inspect::format::{decode::decode, find};
/// let e4m3fn = find("fp8_e4m3").unwrap();
/// assert_eq!(decode(&e4m3fn, 0x7e), 448.0);
/// assert_eq!(decode(&e4m3fn, 0x81), -(2.0_f64.powi(-9)));
/// assert!(decode(&e4m3fn, 0x7f).is_nan());
/// ```
pub fn decode(format: &FormatSpec, code: u32) -> f64 {
    let (negative, magnitude) = format.split(code);
    let magnitude = match classify(format, code) {
        CodeClass::Nan => f64::NAN.abs(),
        CodeClass::Infinite => f64::INFINITY,
        _ => format.magnitude(magnitude.into()),
    };
    if negative { -magnitude } else { magnitude }
}
