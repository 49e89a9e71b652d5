//! The formats that have a name of their own: one cited row each, and nothing else.

use super::FormatSpec;
use super::block::{BlockShape, BlockSpec, Nvfp4, PowerRule, Quotient, Recipe};

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
        twos_complement: false,
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

/// MX's eight-bit integers times 2^-6. With a two's complement code a number has the magnitude of a
/// format with one exponent and six fraction bits: below 1 the step stays the same, so those numbers have
/// fewer significant bits and count as subnormal.
pub const INT8: FormatSpec = FormatSpec {
    name: "int8",
    aliases: &[],
    precision: 7,
    bias: 1,
    negative_zero: false,
    twos_complement: true,
    source: "OCP Microscaling Formats (MX) 1.0, section 5.3.4: -128 is optional, and left out",
    ..FINITE
};

/// The row of `FORMATS` called `name`; a name that no row has does not compile.
const fn row(name: &str) -> FormatSpec {
    let mut index = 0;
    while !same(FORMATS[index].name, name) {
        index += 1;
    }
    FORMATS[index]
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Blocks of 32 along the last axis under a power of two, rounded down as OCP MX 1.0 section 6.3 says.
const fn mx(name: &'static str, aliases: &'static [&'static str], element: FormatSpec) -> BlockSpec {
    BlockSpec {
        name,
        aliases,
        element,
        scale: row("e8m0fnu"),
        shape: BlockShape::Run { length: 32, axis: -1 },
        recipe: Recipe::Power(PowerRule::Floor),
        source: "OCP Microscaling Formats (MX) 1.0, sections 5 and 6.3",
    }
}

/// FP8 blocks under a scale of their own in f32.
const fn tile(name: &'static str, rows: u32, columns: u32) -> BlockSpec {
    BlockSpec {
        name,
        aliases: &[],
        element: row("e4m3fn"),
        scale: row("float32"),
        shape: BlockShape::Tile { rows, columns },
        recipe: Recipe::Quotient(Quotient::F32),
        source: "DeepSeek-V3 (arXiv 2412.19437) section 3.3; Transformer Engine Float8BlockScaling (pow2)",
    }
}

/// Every named block format. What is not here is made from a row by the suffixes of
/// [`find_block`](super::find_block).
pub const BLOCK_FORMATS: &[BlockSpec] = &[
    mx("mxfp8_e4m3", &["mxfp8", "mxfp8_e4m3fn"], row("e4m3fn")),
    mx("mxfp8_e5m2", &[], row("e5m2")),
    mx("mxfp6_e3m2", &["mxfp6", "mxfp6_e3m2fn"], row("e3m2fn")),
    mx("mxfp6_e2m3", &["mxfp6_e2m3fn"], row("e2m3fn")),
    mx("mxfp4", &["mxfp4_e2m1", "mxfp4_e2m1fn"], row("e2m1fn")),
    mx("mxint8", &[], INT8),
    BlockSpec {
        name: "nvfp4",
        aliases: &["nvfp4_e2m1"],
        element: row("e2m1fn"),
        scale: row("e4m3fn"),
        shape: BlockShape::Run { length: 16, axis: -1 },
        recipe: Recipe::Nvfp4(Nvfp4::Te),
        source: "NVIDIA, Pretraining LLMs with NVFP4 (arXiv 2509.25149); Transformer Engine core_nvfp4.cuh; \
                 torchao nvfp4_quantize",
    },
    tile("e4m3fn:1x128", 1, 128),
    tile("e4m3fn:128x128", 128, 128),
];
