//! Which instructions convert, on which chips, and how their PTX is written.
//!
//! Sources: NVIDIA, PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt", for instructions, their
//! targets and versions; what each target takes, and the machine code it becomes, was tried with ptxas 13.0
//! and 13.5 and is tried again by `tests/gpu`.

use super::Conversion;
use super::target::{Reach, Version};
use crate::cast::Rounding::{self, Down, NearestAway, NearestEven, TowardZero, Up};

/// Since when an instruction exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The least compute capability, ten times the major number plus the minor one.
    pub capability: u32,
    /// What the target must reach at least.
    pub reach: Reach,
    /// The least PTX version, where the target alone does not give it.
    pub version: Version,
}

const fn plain(capability: u32) -> Since {
    Since { capability, reach: Reach::Onward, version: (7, 0) }
}

const fn family(version: Version) -> Since {
    Since { capability: 100, reach: Reach::Family, version }
}

/// As old as the oldest target of a family.
const OLDEST_FAMILY: Since = family((8, 6));
const CHIP: Since = Since { capability: 100, reach: Reach::Chip, version: (8, 7) };

/// A conversion of two values at once.
const fn pair(
    from: &'static str,
    to: &'static str,
    rounding: Rounding,
    instruction: &'static str,
    since: Since,
    machine: &'static [&'static str],
) -> Conversion {
    Conversion {
        from,
        to,
        rounding,
        instruction,
        lanes: 2,
        since,
        machine,
        nan_codes_known: true,
        random: None,
    }
}

/// A conversion of two values at once to the nearest number, or exact.
const fn nearest(
    from: &'static str,
    to: &'static str,
    instruction: &'static str,
    since: Since,
    machine: &'static [&'static str],
) -> Conversion {
    pair(from, to, NearestEven, instruction, since, machine)
}

/// A conversion of one value.
const fn one(
    from: &'static str,
    to: &'static str,
    rounding: Rounding,
    instruction: &'static str,
    since: Since,
    machine: &'static [&'static str],
) -> Conversion {
    Conversion { lanes: 1, ..pair(from, to, rounding, instruction, since, machine) }
}

/// PTX leaves the payload of a tf32 NaN open.
const fn to_tf32(
    rounding: Rounding,
    instruction: &'static str,
    since: Since,
    machine: &'static [&'static str],
) -> Conversion {
    Conversion { nan_codes_known: false, ..one("float32", "tf32", rounding, instruction, since, machine) }
}

/// Which bits of the operand `rbits` the lanes of a stochastic rounding take.
///
/// PTX ISA 9.1, "cvt": the result is rounded away from zero where adding random bits to the discarded bits of the
/// significand, as integers, carries. To float16 and bfloat16 each lane takes 13 or all 16 bits of its own half.
/// To FP8 and FP6 the lanes a and b share the upper half and e and f the lower one; to FP4 a and b share the upper
/// bytes of both halves, e and f the lower ones. How two lanes divide what they share, in which order they take it,
/// and where fewer random bits than discarded ones are added, the text leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// For each lane, the lowest first, the bits that it may take.
    pub lanes: &'static [u32],
    /// Whether it takes all of them, in their order.
    pub is_whole: bool,
}

/// A conversion with stochastic rounding, of as many values as there are lanes in `random`; `bits` are the random
/// bits of one, at most.
const fn random(
    to: &'static str,
    bits: u32,
    instruction: &'static str,
    random: Random,
    machine: &'static [&'static str],
) -> Conversion {
    Conversion {
        lanes: random.lanes.len() as u32,
        random: Some(random),
        ..pair("float32", to, Rounding::Stochastic { bits, random: 0 }, instruction, CHIP, machine)
    }
}

const HALVES: Random = Random { lanes: &[0xffff, 0xffff, 0xffff_0000, 0xffff_0000], is_whole: false };
const BYTES: Random =
    Random { lanes: &[0x00ff_00ff, 0x00ff_00ff, 0xff00_ff00, 0xff00_ff00], is_whole: false };

const F16: &[&str] = &["F2FP.F16.F32", "F2FP.PACK_AB", "F2F.F16.F32"];
const BF16: &[&str] = &["F2FP.BF16", "F2F.BF16.F32"];

/// Every conversion that some chip has.
pub const CONVERSIONS: &[Conversion] = &[
    one("float32", "float16", NearestEven, "cvt.rn.f16.f32", plain(75), F16),
    one("float32", "float16", TowardZero, "cvt.rz.f16.f32", plain(75), F16),
    one("float32", "float16", Down, "cvt.rm.f16.f32", plain(75), F16),
    one("float32", "float16", Up, "cvt.rp.f16.f32", plain(75), F16),
    nearest("float32", "float16", "cvt.rn.f16x2.f32", plain(80), F16),
    pair("float32", "float16", TowardZero, "cvt.rz.f16x2.f32", plain(80), F16),
    one("float32", "bfloat16", NearestEven, "cvt.rn.bf16.f32", plain(80), BF16),
    one("float32", "bfloat16", TowardZero, "cvt.rz.bf16.f32", plain(80), BF16),
    one("float32", "bfloat16", Down, "cvt.rm.bf16.f32", plain(80), BF16),
    one("float32", "bfloat16", Up, "cvt.rp.bf16.f32", plain(80), BF16),
    nearest("float32", "bfloat16", "cvt.rn.bf16x2.f32", plain(80), BF16),
    pair("float32", "bfloat16", TowardZero, "cvt.rz.bf16x2.f32", plain(80), BF16),
    // No instruction of its own on any chip: compared, added and masked.
    to_tf32(NearestAway, "cvt.rna.tf32.f32", plain(80), &["0xffffe000"]),
    to_tf32(NearestEven, "cvt.rn.tf32.f32", plain(90), &["F2FP.TF32.F32"]),
    to_tf32(TowardZero, "cvt.rz.tf32.f32", plain(90), &["F2FP.TF32.F32"]),
    nearest("float32", "e4m3fn", "cvt.rn.satfinite.e4m3x2.f32", plain(89), &["F2FP.SATFINITE.E4M3.F32"]),
    nearest("float32", "e5m2", "cvt.rn.satfinite.e5m2x2.f32", plain(89), &["F2FP.SATFINITE.E5M2.F32"]),
    nearest("float16", "e4m3fn", "cvt.rn.satfinite.e4m3x2.f16x2", plain(89), &["F2FP.SATFINITE.E4M3.F16"]),
    nearest("float16", "e5m2", "cvt.rn.satfinite.e5m2x2.f16x2", plain(89), &["F2FP.SATFINITE.E5M2.F16"]),
    nearest(
        "bfloat16",
        "e4m3fn",
        "cvt.rn.satfinite.e4m3x2.bf16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E4M3.BF16"],
    ),
    nearest(
        "bfloat16",
        "e5m2",
        "cvt.rn.satfinite.e5m2x2.bf16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E5M2.BF16"],
    ),
    nearest("float32", "e3m2fn", "cvt.rn.satfinite.e3m2x2.f32", OLDEST_FAMILY, &["F2FP.SATFINITE.E3M2.F32"]),
    nearest("float32", "e2m3fn", "cvt.rn.satfinite.e2m3x2.f32", OLDEST_FAMILY, &["F2FP.SATFINITE.E2M3.F32"]),
    nearest("float32", "e2m1fn", "cvt.rn.satfinite.e2m1x2.f32", OLDEST_FAMILY, &["F2FP.SATFINITE.E2M1.F32"]),
    nearest(
        "float16",
        "e3m2fn",
        "cvt.rn.satfinite.e3m2x2.f16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E3M2.F16"],
    ),
    nearest(
        "float16",
        "e2m3fn",
        "cvt.rn.satfinite.e2m3x2.f16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E2M3.F16"],
    ),
    nearest(
        "float16",
        "e2m1fn",
        "cvt.rn.satfinite.e2m1x2.f16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E2M1.F16"],
    ),
    nearest(
        "bfloat16",
        "e3m2fn",
        "cvt.rn.satfinite.e3m2x2.bf16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E3M2.BF16"],
    ),
    nearest(
        "bfloat16",
        "e2m3fn",
        "cvt.rn.satfinite.e2m3x2.bf16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E2M3.BF16"],
    ),
    nearest(
        "bfloat16",
        "e2m1fn",
        "cvt.rn.satfinite.e2m1x2.bf16x2",
        family((9, 1)),
        &["F2FP.SATFINITE.E2M1.BF16"],
    ),
    pair(
        "float32",
        "e8m0fnu",
        TowardZero,
        "cvt.rz.satfinite.ue8m0x2.f32",
        OLDEST_FAMILY,
        &["F2FP.SATFINITE.E8.F32", "F2FP.E8.F32"],
    ),
    pair(
        "float32",
        "e8m0fnu",
        Up,
        "cvt.rp.satfinite.ue8m0x2.f32",
        OLDEST_FAMILY,
        &["F2FP.SATFINITE.E8.F32", "F2FP.E8.F32"],
    ),
    pair(
        "bfloat16",
        "e8m0fnu",
        TowardZero,
        "cvt.rz.satfinite.ue8m0x2.bf16x2",
        OLDEST_FAMILY,
        &["F2FP.SATFINITE.E8.BF16"],
    ),
    pair(
        "bfloat16",
        "e8m0fnu",
        Up,
        "cvt.rp.satfinite.ue8m0x2.bf16x2",
        OLDEST_FAMILY,
        &["F2FP.SATFINITE.E8.BF16"],
    ),
    random(
        "float16",
        13,
        "cvt.rs.f16x2.f32",
        Random { lanes: &[0x1fff, 0x1fff_0000], is_whole: true },
        &["F2FP.F16.F32.PACK_AB.RS"],
    ),
    random(
        "bfloat16",
        16,
        "cvt.rs.bf16x2.f32",
        Random { lanes: &[0xffff, 0xffff_0000], is_whole: true },
        &["F2FP.BF16.F32.PACK_AB.RS"],
    ),
    random(
        "e4m3fn",
        16,
        "cvt.rs.satfinite.e4m3x4.f32",
        HALVES,
        &["F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C.RS"],
    ),
    random(
        "e5m2",
        16,
        "cvt.rs.satfinite.e5m2x4.f32",
        HALVES,
        &["F2FP.SATFINITE.E5M2.F32.PACK_AB_MERGE_C.RS"],
    ),
    random(
        "e3m2fn",
        16,
        "cvt.rs.satfinite.e3m2x4.f32",
        HALVES,
        &["F2FP.SATFINITE.E3M2.F32.PACK_AB_MERGE_C.RS"],
    ),
    random(
        "e2m3fn",
        16,
        "cvt.rs.satfinite.e2m3x4.f32",
        HALVES,
        &["F2FP.SATFINITE.E2M3.F32.PACK_AB_MERGE_C.RS"],
    ),
    random(
        "e2m1fn",
        16,
        "cvt.rs.satfinite.e2m1x4.f32",
        BYTES,
        &["F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C.RS"],
    ),
    one("float16", "float32", NearestEven, "cvt.f32.f16", plain(75), &["HADD2.F32"]),
    // A shift by 16 bits, which is exact.
    one(
        "bfloat16",
        "float32",
        NearestEven,
        "cvt.f32.bf16",
        Since { version: (7, 1), ..plain(80) },
        &["SHF.L", "IMAD.U32", "IMAD.SHL", "PRMT", "SHL"],
    ),
    nearest("e4m3fn", "float16", "cvt.rn.f16x2.e4m3x2", plain(89), &["F2FP.F16.E4M3.UNPACK_B"]),
    nearest("e5m2", "float16", "cvt.rn.f16x2.e5m2x2", plain(89), &["F2FP.F16.E5M2.UNPACK_B"]),
    nearest("e3m2fn", "float16", "cvt.rn.f16x2.e3m2x2", OLDEST_FAMILY, &["F2FP.F16.E3M2.UNPACK_B"]),
    nearest("e2m3fn", "float16", "cvt.rn.f16x2.e2m3x2", OLDEST_FAMILY, &["F2FP.F16.E2M3.UNPACK_B"]),
    nearest("e2m1fn", "float16", "cvt.rn.f16x2.e2m1x2", OLDEST_FAMILY, &["F2FP.F16.E2M1.UNPACK_B"]),
    nearest("e4m3fn", "bfloat16", "cvt.rn.bf16x2.e4m3x2", family((9, 2)), &["F2FP.BF16.E4M3.UNPACK_B"]),
    nearest("e5m2", "bfloat16", "cvt.rn.bf16x2.e5m2x2", family((9, 2)), &["F2FP.BF16.E5M2.UNPACK_B"]),
    nearest("e3m2fn", "bfloat16", "cvt.rn.bf16x2.e3m2x2", family((9, 2)), &["F2FP.BF16.E3M2.UNPACK_B"]),
    nearest("e2m3fn", "bfloat16", "cvt.rn.bf16x2.e2m3x2", family((9, 2)), &["F2FP.BF16.E2M3.UNPACK_B"]),
    nearest("e2m1fn", "bfloat16", "cvt.rn.bf16x2.e2m1x2", family((9, 2)), &["F2FP.BF16.E2M1.UNPACK_B"]),
    nearest("e8m0fnu", "bfloat16", "cvt.rn.bf16x2.ue8m0x2", OLDEST_FAMILY, &["F2FP.BF16.E8.UNPACK_B"]),
];
