//! What a number format is: eleven scalars, from which every limit follows; and what a block format is.
//!
//! A format is a row of [`table::FORMATS`] or a name such as `e5m3fn` typed by a user; nothing that decodes,
//! rounds or counts asks for a particular format. Field names follow IEEE 754-2019: precision counts the
//! implicit bit, exponents are those of 1.x·2^e.

pub mod block;
pub mod decode;
pub mod literal;
mod name;
pub mod table;

pub use block::{BlockSpec, find_block};
pub use name::{Named, find, find_any};

/// A binary floating-point format of at most 32 bits.
///
/// Its non-negative finite numbers, in order, have the codes 0, 1, 2, … up to
/// [`max_finite_code`](Self::max_finite_code); Inf (if any) and the NaN codes follow. Rounding and
/// decoding rest on that order alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatSpec {
    /// Canonical name, such as `e4m3fn`.
    pub name: &'static str,
    /// Other spellings that [`find`] accepts, in lower case.
    pub aliases: &'static [&'static str],
    /// Width of a code in bits, 1 to 32.
    pub bits: u32,
    /// Significand bits including the implicit one, 1 to 24.
    pub precision: u32,
    /// Exponent bias: the exponent field of 1.0.
    pub bias: i32,
    /// Whether the top bit of a code is a sign.
    pub signed: bool,
    /// Whether the code after the largest finite number is infinity.
    pub infinities: bool,
    /// Number of NaN codes at the top of each sign's range.
    pub high_nans: u32,
    /// Whether 1 followed by zeros is −0. In a signed format without it that code is the one NaN.
    pub negative_zero: bool,
    /// Whether exponent field 0 means subnormal numbers and zero; if not, it is an ordinary binade.
    pub subnormals: bool,
    /// Whether a negative number has the two's complement of its magnitude as its code, as integers have.
    /// The code of the most negative integer lies outside the symmetric range: it decodes, but no cast
    /// gives it.
    pub twos_complement: bool,
    /// Where the encoding is defined.
    pub source: &'static str,
}

impl FormatSpec {
    /// Stored significand bits (without the implicit one).
    pub fn trailing_bits(&self) -> u32 {
        self.precision - 1
    }

    /// Width of the exponent field in bits.
    pub fn exponent_bits(&self) -> u32 {
        self.bits - u32::from(self.signed) - self.trailing_bits()
    }

    /// Exponent of the smallest normal number.
    pub fn emin(&self) -> i32 {
        i32::from(self.subnormals) - self.bias
    }

    /// Exponent of the largest finite number.
    pub fn emax(&self) -> i32 {
        let field = (self.max_finite_code() >> self.trailing_bits()) as i32;
        field.max(i32::from(self.subnormals)) - self.bias
    }

    /// Code bits below the sign.
    pub fn magnitude_mask(&self) -> u32 {
        ((1_u64 << (self.bits - u32::from(self.signed))) - 1) as u32
    }

    /// The sign bit of a code, 0 in an unsigned format.
    pub fn sign_bit(&self) -> u32 {
        if self.signed { 1 << (self.bits - 1) } else { 0 }
    }

    /// Code of the largest finite number.
    pub fn max_finite_code(&self) -> u32 {
        self.magnitude_mask() - self.high_nans - u32::from(self.infinities)
    }

    /// Code of +Inf.
    pub fn infinity_code(&self) -> Option<u32> {
        self.infinities.then(|| self.max_finite_code() + 1)
    }

    /// Code of the canonical quiet NaN: the sign is kept where the format has NaNs of both signs.
    /// `None` if the format has no NaN.
    pub fn nan_code(&self, negative: bool) -> Option<u32> {
        let sign = if negative { self.sign_bit() } else { 0 };
        if self.infinities && self.high_nans > 0 {
            let quiet = 1 << (self.trailing_bits() - 1);
            Some(sign | (self.max_finite_code() + 1) | quiet)
        } else if self.high_nans > 0 {
            Some(sign | self.magnitude_mask())
        } else if self.nan_is_negative_zero() {
            Some(self.sign_bit())
        } else {
            None
        }
    }

    /// Whether the code of −0 is the format's only NaN (the `uz` formats).
    pub fn nan_is_negative_zero(&self) -> bool {
        self.signed && !self.negative_zero && !self.twos_complement
    }

    /// The code of a number with this sign whose magnitude has the code `magnitude`.
    pub fn with_sign(&self, negative: bool, magnitude: u32) -> u32 {
        match (negative, self.twos_complement) {
            (false, _) => magnitude,
            (true, true) => magnitude.wrapping_neg() & (self.sign_bit() | self.magnitude_mask()),
            (true, false) => self.sign_bit() | magnitude,
        }
    }

    /// Sign and magnitude of `code`: the inverse of [`with_sign`](Self::with_sign).
    pub fn split(&self, code: u32) -> (bool, u32) {
        let negative = code & self.sign_bit() != 0;
        let whole = self.sign_bit() | self.magnitude_mask();
        let magnitude = match self.twos_complement && negative {
            true => code.wrapping_neg() & whole,
            false => code & self.magnitude_mask(),
        };
        (negative, magnitude)
    }

    /// The value that the non-negative code `code` has, also beyond the largest finite number: as if
    /// the exponent field went on without bound. Exact.
    pub fn magnitude(&self, code: u64) -> f64 {
        let trailing = self.trailing_bits();
        let field = (code >> trailing) as i32;
        let fraction = code & ((1 << trailing) - 1);
        let (significand, exponent) = if self.subnormals && field == 0 {
            (fraction, self.emin())
        } else {
            (fraction | 1 << trailing, field - self.bias)
        };
        significand as f64 * pow2(exponent - trailing as i32)
    }

    /// Largest finite number.
    pub fn max_finite(&self) -> f64 {
        self.magnitude(self.max_finite_code().into())
    }

    /// Smallest positive normal number.
    pub fn min_normal(&self) -> f64 {
        pow2(self.emin())
    }

    /// Smallest positive subnormal number; `None` if the format has none.
    pub fn min_subnormal(&self) -> Option<f64> {
        (self.subnormals && self.trailing_bits() > 0).then(|| self.magnitude(1))
    }

    /// Distance from 1 to the next larger number, 2^(1 − precision).
    pub fn epsilon(&self) -> f64 {
        pow2(1 - self.precision as i32)
    }

    /// Rounding to nearest, magnitudes up to and including this one become zero (the tie goes to the
    /// even code, which is zero). `None` if the format has no zero.
    pub fn flush_threshold(&self) -> Option<f64> {
        self.subnormals.then(|| self.magnitude(1) / 2.0)
    }

    /// Rounding to nearest, magnitudes beyond this midpoint overflow;
    /// [`overflow_includes_tie`](Self::overflow_includes_tie) says what the midpoint itself does.
    pub fn overflow_threshold(&self) -> f64 {
        let max = self.max_finite_code().into();
        f64::midpoint(self.magnitude(max), self.magnitude(max + 1))
    }

    /// Whether the midpoint above the largest finite number overflows (that number's code is odd).
    pub fn overflow_includes_tie(&self) -> bool {
        self.max_finite_code() & 1 == 1
    }
}

/// 2^`exponent`, exact over the whole f64 range, subnormals included; 0 and Inf outside.
pub fn pow2(exponent: i32) -> f64 {
    match exponent {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        1024.. => f64::INFINITY,
    }
}

/// floor(log2 |x|) of a finite nonzero `x`, read from its bits.
pub fn exponent_of(x: f64) -> i32 {
    let bits = x.to_bits() & (u64::MAX >> 1);
    let field = (bits >> 52) as i32;
    if field > 0 { field - 1023 } else { 63 - bits.leading_zeros() as i32 - 1074 }
}
