//! Conversions that the processor itself has. They are here to be compared with the definition, and where
//! they differ from it nothing else in the crate uses them.
//!
//! Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `VCVTPS2PH` and
//! `VCVTNEPS2BF16`.

use crate::cast::Rounding;

/// One instruction with its rounding mode.
pub struct Instruction {
    /// The mnemonic, with the mode where the instruction has several.
    pub name: &'static str,
    /// The format that it converts float32 to.
    pub format: &'static str,
    /// How it rounds.
    pub rounding: Rounding,
    is_available: fn() -> bool,
    convert: fn(&[f32], &mut [u16]),
}

impl Instruction {
    /// Whether this processor has it.
    pub fn is_available(&self) -> bool {
        (self.is_available)()
    }

    /// Converts `values` to `codes`, as many as the shorter of the two has; does nothing where the
    /// processor lacks the instruction.
    pub fn convert(&self, values: &[f32], codes: &mut [u16]) {
        if self.is_available() {
            (self.convert)(values, codes);
        }
    }
}

#[cfg(target_arch = "x86_64")]
const fn ps2ph(name: &'static str, rounding: Rounding, convert: fn(&[f32], &mut [u16])) -> Instruction {
    let is_available = x86::has_f16c;
    Instruction { name, format: "float16", rounding, is_available, convert }
}

/// Every conversion from float32 that is compared. `vcvtps2ph` keeps the upper payload bits of a NaN and sets
/// its quiet bit, and handles subnormal numbers. `vcvtneps2bf16` rounds to nearest even whatever the mode in
/// force, takes subnormal inputs for zero, and treats a NaN likewise.
#[cfg(target_arch = "x86_64")]
pub const INSTRUCTIONS: &[Instruction] = &[
    ps2ph("vcvtps2ph rn", Rounding::NearestEven, x86::ps2ph::<0>),
    ps2ph("vcvtps2ph rd", Rounding::Down, x86::ps2ph::<1>),
    ps2ph("vcvtps2ph ru", Rounding::Up, x86::ps2ph::<2>),
    ps2ph("vcvtps2ph rz", Rounding::TowardZero, x86::ps2ph::<3>),
    Instruction {
        name: "vcvtneps2bf16",
        format: "bfloat16",
        rounding: Rounding::NearestEven,
        is_available: x86::has_bf16,
        convert: x86::neps2bf16,
    },
];

/// No conversion is compared on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub const INSTRUCTIONS: &[Instruction] = &[];

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256bh, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps, _mm512_cvtneps_pbh,
        _mm512_loadu_ps,
    };

    pub(super) fn has_f16c() -> bool {
        std::is_x86_feature_detected!("f16c") && std::is_x86_feature_detected!("avx")
    }

    pub(super) fn has_bf16() -> bool {
        std::is_x86_feature_detected!("avx512bf16") && std::is_x86_feature_detected!("avx512f")
    }

    /// Hands full vectors of `N` to `convert`, the rest filled up with zeros.
    fn in_vectors<const N: usize>(
        values: &[f32],
        codes: &mut [u16],
        convert: impl Fn(&[f32; N], &mut [u16; N]),
    ) {
        let length = values.len().min(codes.len());
        let (values, values_rest) = values[..length].as_chunks::<N>();
        let (codes, codes_rest) = codes[..length].as_chunks_mut::<N>();
        values.iter().zip(codes).for_each(|(values, codes)| convert(values, codes));
        let (mut last, mut last_codes) = ([0.0; N], [0; N]);
        last[..values_rest.len()].copy_from_slice(values_rest);
        convert(&last, &mut last_codes);
        codes_rest.copy_from_slice(&last_codes[..codes_rest.len()]);
    }

    pub(super) fn ps2ph<const MODE: i32>(values: &[f32], codes: &mut [u16]) {
        #[target_feature(enable = "avx,f16c")]
        fn eight<const MODE: i32>(values: &[f32; 8], codes: &mut [u16; 8]) {
            // SAFETY: the array has the eight numbers that are read.
            let vector = unsafe { _mm256_loadu_ps(values.as_ptr()) };
            let converted = _mm256_cvtps_ph::<MODE>(vector);
            // SAFETY: the array has room for the eight codes, and the store asks for no alignment.
            unsafe { _mm_storeu_si128(codes.as_mut_ptr().cast::<__m128i>(), converted) };
        }
        // SAFETY: `Instruction::convert` has asked for both features.
        in_vectors(values, codes, |values, codes| unsafe { eight::<MODE>(values, codes) });
    }

    pub(super) fn neps2bf16(values: &[f32], codes: &mut [u16]) {
        #[target_feature(enable = "avx512f,avx512bf16")]
        fn sixteen(values: &[f32; 16], codes: &mut [u16; 16]) {
            // SAFETY: the array has the sixteen numbers that are read.
            let vector = unsafe { _mm512_loadu_ps(values.as_ptr()) };
            let converted = _mm512_cvtneps_pbh(vector);
            // SAFETY: the array has room for the sixteen codes, and the write asks for no alignment.
            unsafe { codes.as_mut_ptr().cast::<__m256bh>().write_unaligned(converted) };
        }
        // SAFETY: `Instruction::convert` has asked for both features.
        in_vectors(values, codes, |values, codes| unsafe { sixteen(values, codes) });
    }
}
