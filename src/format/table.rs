//! The formats that have a name of their own: one cited row each, and nothing else.

use super::FormatSpec;

/// IEEE 754-2019 clause 3: Inf, NaNs in the whole top binade, signed zeros, subnormals.
const fn ieee(
    name: &'static str,
    bits: u32,
    precision: u32,
    aliases: &'static [&'static str],
    source: &'static str,
) -> FormatSpec {
    let exponent_bits = bits - precision;
    FormatSpec {
        name,
        aliases,
        bits,
        precision,
        bias: (1 << (exponent_bits - 1)) - 1,
        signed: true,
        infinities: true,
        high_nans: (1 << (precision - 1)) - 1,
        negative_zero: true,
        subnormals: true,
        source,
    }
}

/// The shape that the finite (`fn`) and unsigned-zero (`fnuz`) rows start from.
const FINITE: FormatSpec = FormatSpec { infinities: false, high_nans: 0, ..ieee("", 8, 4, &[], "") };

/// Every named format, widest first.
pub const FORMATS: &[FormatSpec] = &[
    ieee("float32", 32, 24, &["fp32", "f32", "single", "float"], "IEEE 754-2019 binary32"),
    ieee("tf32", 19, 11, &["tensorfloat32", "fp19"], "NVIDIA PTX ISA, .tf32: 8 exponent, 10 fraction bits"),
    ieee(
        "bfloat16",
        16,
        8,
        &["bf16"],
        "Intel, BFLOAT16 hardware numerics definition (2018): binary32 cut to 16 bits",
    ),
    ieee("float16", 16, 11, &["fp16", "f16", "half"], "IEEE 754-2019 binary16"),
    ieee(
        "e5m2",
        8,
        3,
        &["float8_e5m2", "fp8_e5m2", "f8_e5m2", "f8e5m2", "fp8e5m2", "bf8"],
        "OCP 8-bit Floating Point Specification (OFP8) 1.0, table 1",
    ),
    FormatSpec {
        name: "e4m3fn",
        aliases: &[
            "float8_e4m3fn",
            "e4m3",
            "fp8",
            "fp8_e4m3",
            "fp8_e4m3fn",
            "f8_e4m3",
            "f8_e4m3fn",
            "f8e4m3fn",
            "f8e4m3",
            "fp8e4m3",
        ],
        high_nans: 1,
        source: "OCP 8-bit Floating Point Specification (OFP8) 1.0, table 1",
        ..FINITE
    },
    ieee(
        "e4m3ieee",
        8,
        4,
        &["float8_e4m3", "e4m3_ieee", "ieee_e4m3", "f8e4m3ieee"],
        "ml_dtypes float8_e4m3: IEEE 754-2019 rules applied to 4 exponent and 3 fraction bits",
    ),
    ieee(
        "e3m4",
        8,
        5,
        &["float8_e3m4", "fp8_e3m4", "f8_e3m4", "f8e3m4"],
        "ml_dtypes float8_e3m4: IEEE 754-2019 rules applied to 3 exponent and 4 fraction bits",
    ),
    FormatSpec {
        name: "e5m2fnuz",
        aliases: &["float8_e5m2fnuz", "fp8_e5m2fnuz", "f8_e5m2fnuz", "f8e5m2fnuz"],
        precision: 3,
        bias: 16,
        negative_zero: false,
        source: "Noune et al., 8-bit Numerical Formats for DNNs (arXiv 2206.02915); AMD CDNA 3",
        ..FINITE
    },
    FormatSpec {
        name: "e4m3fnuz",
        aliases: &["float8_e4m3fnuz", "fp8_e4m3fnuz", "f8_e4m3fnuz", "f8e4m3fnuz"],
        bias: 8,
        negative_zero: false,
        source: "Noune et al., 8-bit Numerical Formats for DNNs (arXiv 2206.02915); AMD CDNA 3",
        ..FINITE
    },
    FormatSpec {
        name: "e4m3b11fnuz",
        aliases: &["float8_e4m3b11fnuz", "float8_e4m3b11", "e4m3b11", "f8e4m3b11fnuz"],
        bias: 11,
        negative_zero: false,
        source: "ml_dtypes float8_e4m3b11fnuz: hybrid FP8 (Sun et al., NeurIPS 2019) with one NaN",
        ..FINITE
    },
    FormatSpec {
        name: "e3m2fn",
        aliases: &["float6_e3m2fn", "fp6_e3m2", "fp6_e3m2fn", "e3m2", "f6_e3m2", "f6e3m2fn"],
        bits: 6,
        precision: 3,
        bias: 3,
        source: "OCP Microscaling Formats (MX) 1.0, section 5.3.2",
        ..FINITE
    },
    FormatSpec {
        name: "e2m3fn",
        aliases: &["float6_e2m3fn", "fp6_e2m3", "fp6_e2m3fn", "e2m3", "f6_e2m3", "f6e2m3fn"],
        bits: 6,
        precision: 4,
        bias: 1,
        source: "OCP Microscaling Formats (MX) 1.0, section 5.3.2",
        ..FINITE
    },
    FormatSpec {
        name: "e2m1fn",
        aliases: &["float4_e2m1fn", "fp4", "fp4_e2m1", "fp4_e2m1fn", "e2m1", "f4", "f4e2m1fn"],
        bits: 4,
        precision: 2,
        bias: 1,
        source: "OCP Microscaling Formats (MX) 1.0, section 5.3.3",
        ..FINITE
    },
    FormatSpec {
        name: "e8m0fnu",
        aliases: &["float8_e8m0fnu", "e8m0", "ue8m0", "f8_e8m0", "f8e8m0fnu"],
        precision: 1,
        bias: 127,
        signed: false,
        high_nans: 1,
        negative_zero: false,
        subnormals: false,
        source: "OCP Microscaling Formats (MX) 1.0, section 5.4.1 (a scale: powers of two, no zero, no sign)",
        ..FINITE
    },
];
