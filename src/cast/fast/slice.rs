//! Casts of whole slices of float32, a few instructions a vector.
//!
//! Where the definition compares a rest with a half, this adds just so much to the bits of the float32
//! that the carry out of the dropped ones is the rounding. What every exception stores (NaN, Inf, beyond
//! the range) is asked of the definition once, so that no policy is written down twice.

use super::{Kernel, Level, run};
use crate::cast::round::Class;
use crate::cast::{CastPlan, Place, Rounding};
use crate::format::pow2;

/// Bits of float32 Inf.
const INFINITY: i32 = 0x7f80_0000;
/// Bits of the smallest normal float32.
const MIN_NORMAL: i32 = 0x0080_0000;

/// An unsigned integer that codes are stored in.
pub trait Code: Copy + Default + Send + Sync {
    /// Its width.
    const BITS: u32;
    /// The low bits of a code.
    fn from_u32(code: u32) -> Self;
    /// The code.
    fn to_u32(self) -> u32;
}

macro_rules! code {
    ($($integer:ty),*) => {$(
        impl Code for $integer {
            const BITS: u32 = <$integer>::BITS;
            #[inline(always)]
            fn from_u32(code: u32) -> Self {
                code as Self
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                self.into()
            }
        }
    )*};
}
code!(u8, u16, u32);

// How the exponents of the target lie to those of float32. Constants, for the kernels are compiled for each.
/// The target's subnormal numbers begin where those of float32 do: the same integers round both.
const ALIGNED: u8 = 0;
/// They begin above, where float32 is normal.
const ABOVE: u8 = 1;
/// It has none, or they lie below all of float32.
const WIDE: u8 = 2;

const NEAREST_EVEN: u8 = 0;
const NEAREST_AWAY: u8 = 1;
const TOWARD_ZERO: u8 = 2;

/// A code for positive values, and what changes in it for negative ones.
#[derive(Clone, Copy, Debug)]
struct Stored {
    positive: i32,
    change: i32,
}

impl Stored {
    fn new(code: impl Fn(f64) -> u32) -> Self {
        let (positive, negative) = (code(1.0) as i32, code(-1.0) as i32);
        Self { positive, change: positive ^ negative }
    }

    /// `negative` is all ones or zero.
    #[inline(always)]
    fn code(self, negative: i32) -> i32 {
        self.positive ^ (negative & self.change)
    }
}

/// A cast of float32 slices that equals [`CastPlan::cast_f32`] for every element.
#[derive(Clone, Copy, Debug)]
pub struct SliceCast {
    kind: u8,
    rounding: u8,
    /// Significand bits dropped, half of their weight, and that less one.
    dropped: u32,
    half: i32,
    half_less_one: i32,
    /// 1 where ties are possible, and whether the code is even where the float32 bit is odd.
    odd: i32,
    flip: i32,
    /// Added to a magnitude's exponent and significand fields to make a code.
    rebias: i32,
    max_finite: i32,
    sign_bit: i32,
    zero_sign: i32,
    overflow: Stored,
    infinite: Stored,
    nan: Stored,
    /// Bits, as a signed integer, below which the value has no number: 1 means zero and negative values.
    lowest: i32,
    /// Of subnormal results: bits of the smallest normal number, the number whose last place weighs as
    /// much as the smallest subnormal, and half of that weight.
    min_normal: i32,
    magic: f32,
    half_unit: f32,
}

impl SliceCast {
    /// `None` where these loops do not reproduce the cast: a scale, flushing, other roundings than to nearest
    /// and toward zero, unsigned formats with subnormal numbers, and subnormal numbers that begin below those
    /// of float32 but still within it.
    ///
    /// ```
    /// use amp_inspect::cast::{CastPlan, fast::{Level, slice::SliceCast}};
    /// let plan = CastPlan::new(amp_inspect::format::find("e4m3fn").unwrap());
    /// let mut codes = [0_u8; 3];
    /// SliceCast::new(&plan).unwrap().encode(Level::best(), &[1.0, -448.0, 1e9], &mut codes);
    /// assert_eq!(codes, [0x38, 0xfe, 0x7e]);
    /// ```
    pub fn new(plan: &CastPlan) -> Option<Self> {
        let format = &plan.target;
        let rounding = match plan.rounding {
            Rounding::NearestEven => NEAREST_EVEN,
            Rounding::NearestAway => NEAREST_AWAY,
            Rounding::TowardZero => TOWARD_ZERO,
            _ => return None,
        };
        let kind = match format.emin() {
            _ if !format.subnormals => WIDE,
            ..-149 => WIDE,
            -126 => ALIGNED,
            -125..=100 => ABOVE,
            _ => return None,
        };
        let simple_sign = format.signed == format.subnormals && (format.signed || !format.infinities);
        let flushes = plan.flush_subnormal_inputs || plan.flush_subnormal_results;
        if plan.scale != 1.0 || flushes || !simple_sign {
            return None;
        }
        let dropped = 24 - format.precision;
        let half = (1 << dropped) >> 1;
        let code = |x: f64| plan.cast_f64(x, Place::default()).code;
        // Unsigned formats: the definition calls a negative value an overflow only where it has no number.
        let no_number = !format.signed && plan.cast_f64(-1.0, Place::default()).class == Class::Overflow;
        let unit = format.emin() - format.trailing_bits() as i32;
        Some(Self {
            kind,
            rounding,
            dropped,
            half,
            half_less_one: half.max(1) - 1,
            odd: i32::from(dropped > 0),
            flip: i32::from(format.precision == 1 && (format.bias - 127) % 2 != 0),
            rebias: (format.bias - 127) << format.trailing_bits(),
            max_finite: format.max_finite_code() as i32,
            sign_bit: format.sign_bit() as i32,
            zero_sign: if format.negative_zero { format.sign_bit() as i32 } else { 0 },
            overflow: Stored::new(|sign| code(f64::MAX * sign)),
            infinite: Stored::new(|sign| code(f64::INFINITY * sign)),
            nan: Stored::new(|sign| code(f64::NAN.copysign(sign))),
            lowest: if no_number { 1 } else { i32::MIN },
            min_normal: (format.min_normal() as f32).to_bits() as i32,
            magic: pow2(unit + 23) as f32,
            half_unit: pow2(unit - 1) as f32,
        })
    }

    /// Casts `values` to `codes`, as many as the shorter of the two has. An integer narrower than the format
    /// keeps the low bits of the code.
    pub fn encode<C: Code>(&self, level: Level, values: &[f32], codes: &mut [C]) {
        match self.kind {
            ALIGNED => self.encode_kind::<C, ALIGNED>(level, values, codes),
            ABOVE => self.encode_kind::<C, ABOVE>(level, values, codes),
            _ => self.encode_kind::<C, WIDE>(level, values, codes),
        }
    }

    fn encode_kind<C: Code, const KIND: u8>(&self, level: Level, values: &[f32], codes: &mut [C]) {
        let cast = *self;
        match self.rounding {
            NEAREST_EVEN => run(level, Encode::<C, KIND, NEAREST_EVEN> { cast, values, codes }),
            NEAREST_AWAY => run(level, Encode::<C, KIND, NEAREST_AWAY> { cast, values, codes }),
            _ => run(level, Encode::<C, KIND, TOWARD_ZERO> { cast, values, codes }),
        }
    }

    /// The magnitude of the code of a value in range, and the code.
    #[inline(always)]
    fn in_range<const KIND: u8, const ROUNDING: u8>(&self, bits: i32) -> (i32, i32) {
        let magnitude = bits & i32::MAX;
        let rounded = match KIND {
            WIDE => {
                // Below every number lies the code 0, where the format has one for zero or not.
                let code = self.round::<ROUNDING>(normalised(magnitude)).max(0);
                if magnitude == 0 { 0 } else { code }
            }
            ABOVE if magnitude < self.min_normal => self.round_subnormal::<ROUNDING>(magnitude),
            _ => self.round::<ROUNDING>(magnitude),
        };
        let sign = (bits >> 31) & if rounded == 0 { self.zero_sign } else { self.sign_bit };
        (rounded, rounded | sign)
    }

    /// Negative if the value needs [`code`](Self::code), `rounded` being what [`in_range`](Self::in_range)
    /// makes of it.
    #[inline(always)]
    fn exception<const KIND: u8>(&self, bits: i32, rounded: i32) -> i32 {
        let special = (INFINITY - 1).wrapping_sub(bits & i32::MAX);
        let no_number = if KIND == WIDE && bits < self.lowest { -1 } else { 0 };
        self.max_finite.wrapping_sub(rounded) | special | no_number
    }

    #[inline(always)]
    fn code<const KIND: u8, const ROUNDING: u8>(&self, bits: i32) -> i32 {
        let magnitude = bits & i32::MAX;
        let negative = bits >> 31;
        let (rounded, mut code) = self.in_range::<KIND, ROUNDING>(bits);
        if rounded > self.max_finite {
            code = self.overflow.code(negative);
        }
        if magnitude == INFINITY {
            code = self.infinite.code(negative);
        }
        if KIND == WIDE && bits < self.lowest {
            code = self.nan.code(0);
        }
        if magnitude > INFINITY {
            code = self.nan.code(negative);
        }
        code
    }

    /// Exponent and significand fields → code, of normal results. Those of a NaN may wrap.
    #[inline(always)]
    fn round<const ROUNDING: u8>(&self, fields: i32) -> i32 {
        let added = match ROUNDING {
            NEAREST_EVEN => self.half_less_one + (((fields >> self.dropped) ^ self.flip) & self.odd),
            NEAREST_AWAY => self.half,
            _ => 0,
        };
        (fields.wrapping_add(added) >> self.dropped).wrapping_add(self.rebias)
    }

    /// The sum with a number whose last place is the target's is rounded by the processor to nearest even;
    /// the difference from what was added tells the other modes what happened.
    #[inline(always)]
    fn round_subnormal<const ROUNDING: u8>(&self, magnitude: i32) -> i32 {
        let x = f32::from_bits(magnitude as u32);
        let sum = x + self.magic;
        let code = (sum.to_bits() as i32).wrapping_sub(self.magic.to_bits() as i32);
        let kept = sum - self.magic;
        match ROUNDING {
            NEAREST_EVEN => code,
            NEAREST_AWAY => code.wrapping_add(i32::from(x - kept == self.half_unit)),
            _ => code.wrapping_sub(i32::from(kept > x)),
        }
    }
}

/// The fields that a float32 would have if its exponent had no lower bound.
#[inline(always)]
fn normalised(magnitude: i32) -> i32 {
    let fields = (magnitude as f32).to_bits() as i32;
    if magnitude < MIN_NORMAL { fields.wrapping_sub(149 << 23) } else { magnitude }
}

struct Encode<'a, C, const KIND: u8, const ROUNDING: u8> {
    cast: SliceCast,
    values: &'a [f32],
    codes: &'a mut [C],
}

impl<C: Code, const KIND: u8, const ROUNDING: u8> Kernel for Encode<'_, C, KIND, ROUNDING> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { cast, values, codes } = self;
        let length = values.len().min(codes.len());
        let (values, values_rest) = values[..length].as_chunks::<BLOCK>();
        let (codes, codes_rest) = codes[..length].as_chunks_mut::<BLOCK>();
        for (values, codes) in values.iter().zip(codes) {
            let mut exceptions = 0;
            for (x, code) in values.iter().zip(codes.iter_mut()) {
                let bits = x.to_bits() as i32;
                let (rounded, in_range) = cast.in_range::<KIND, ROUNDING>(bits);
                exceptions |= cast.exception::<KIND>(bits, rounded);
                *code = C::from_u32(in_range as u32);
            }
            if exceptions < 0 {
                each::<C, KIND, ROUNDING>(&cast, values, codes);
            }
        }
        each::<C, KIND, ROUNDING>(&cast, values_rest, codes_rest);
    }
}

/// Values that are first taken to be in range, all or none.
const BLOCK: usize = 64;

#[inline(always)]
fn each<C: Code, const KIND: u8, const ROUNDING: u8>(cast: &SliceCast, values: &[f32], codes: &mut [C]) {
    for (x, code) in values.iter().zip(codes) {
        *code = C::from_u32(cast.code::<KIND, ROUNDING>(x.to_bits() as i32) as u32);
    }
}
