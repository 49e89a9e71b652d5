//! Which instructions convert, on which chips, and how their PTX is written.
//!
//! Sources: NVIDIA, PTX ISA 9.0, "Data Movement and Conversion Instructions: cvt", for instructions, their
//! targets and versions; what each target takes, and the machine code it becomes, was tried with ptxas 13.0
//! and 13.5 and is tried again by `tests/gpu`.

use super::Conversion;
use crate::cast::Rounding::{self, Down, NearestAway, NearestEven, TowardZero, Up};

/// What PTX is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name after `.target`.
    pub name: &'static str,
    /// The same as NVRTC has it, where PTX is wanted and not machine code.
    pub compute: &'static str,
    /// Compute capability, ten times the major number plus the minor one.
    pub capability: u32,
    /// Whether instructions that are tied to a family of chips may be used.
    pub family: bool,
    /// The lowest PTX version that knows it.
    pub version: Version,
    /// Cards that it is chosen for.
    pub chips: &'static str,
}

/// A PTX ISA version, major and minor.
pub type Version = (u32, u32);

/// Every target, oldest first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sm_75",
        compute: "compute_75",
        capability: 75,
        family: false,
        version: (7, 0),
        chips: "Turing",
    },
    Target {
        name: "sm_80",
        compute: "compute_80",
        capability: 80,
        family: false,
        version: (7, 0),
        chips: "Ampere: A100, RTX 30",
    },
    Target {
        name: "sm_89",
        compute: "compute_89",
        capability: 89,
        family: false,
        version: (8, 1),
        chips: "Ada: L4, L40S, RTX 40",
    },
    Target {
        name: "sm_90",
        compute: "compute_90",
        capability: 90,
        family: false,
        version: (7, 8),
        chips: "Hopper: H100, H200",
    },
    Target {
        name: "sm_100f",
        compute: "compute_100f",
        capability: 100,
        family: true,
        version: (8, 8),
        chips: "Blackwell: B200, B300",
    },
    Target {
        name: "sm_120f",
        compute: "compute_120f",
        capability: 120,
        family: true,
        version: (8, 8),
        chips: "Blackwell: RTX 50, RTX PRO",
    },
];

impl Target {
    /// The target for a card; `None` for cards older than all of them. A chip of a family that has no row
    /// gets the newest plain target.
    pub fn of_capability(major: u32, minor: u32) -> Option<&'static Self> {
        let capability = 10 * major + minor;
        TARGETS.iter().rev().find(|target| {
            let same_family = target.capability / 10 == capability / 10;
            target.capability <= capability && (same_family || !target.family)
        })
    }
}

/// The CUDA version of the first driver that takes PTX of this version (PTX ISA, "Release Notes").
pub fn least_driver((major, minor): Version) -> i32 {
    let minor = if major == 8 && minor > 5 { minor + 1 } else { minor };
    (1000 * (major + 4) + 10 * minor) as i32
}

/// Since when an instruction exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The least compute capability, ten times the major number plus the minor one.
    pub capability: u32,
    /// Whether the target must be one of a family.
    pub family: bool,
    /// The least PTX version, where the target alone does not give it.
    pub version: Version,
}

const fn plain(capability: u32) -> Since {
    Since { capability, family: false, version: (7, 0) }
}

const fn family(version: Version) -> Since {
    Since { capability: 100, family: true, version }
}

/// A conversion of two values at once.
const fn pair(
    from: &'static str,
    to: &'static str,
    rounding: Rounding,
    instruction: &'static str,
    since: Since,
    machine: &'static [&'static str],
) -> Conversion {
    Conversion { from, to, rounding, instruction, lanes: 2, since, machine, nan_codes_known: true }
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
    nearest("float32", "e3m2fn", "cvt.rn.satfinite.e3m2x2.f32", family((8, 8)), &["F2FP.SATFINITE.E3M2.F32"]),
    nearest("float32", "e2m3fn", "cvt.rn.satfinite.e2m3x2.f32", family((8, 8)), &["F2FP.SATFINITE.E2M3.F32"]),
    nearest("float32", "e2m1fn", "cvt.rn.satfinite.e2m1x2.f32", family((8, 8)), &["F2FP.SATFINITE.E2M1.F32"]),
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
        family((8, 8)),
        &["F2FP.SATFINITE.E8.F32", "F2FP.E8.F32"],
    ),
    pair(
        "float32",
        "e8m0fnu",
        Up,
        "cvt.rp.satfinite.ue8m0x2.f32",
        family((8, 8)),
        &["F2FP.SATFINITE.E8.F32", "F2FP.E8.F32"],
    ),
    pair(
        "bfloat16",
        "e8m0fnu",
        TowardZero,
        "cvt.rz.satfinite.ue8m0x2.bf16x2",
        family((8, 8)),
        &["F2FP.SATFINITE.E8.BF16"],
    ),
    pair(
        "bfloat16",
        "e8m0fnu",
        Up,
        "cvt.rp.satfinite.ue8m0x2.bf16x2",
        family((8, 8)),
        &["F2FP.SATFINITE.E8.BF16"],
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
    nearest("e3m2fn", "float16", "cvt.rn.f16x2.e3m2x2", family((8, 8)), &["F2FP.F16.E3M2.UNPACK_B"]),
    nearest("e2m3fn", "float16", "cvt.rn.f16x2.e2m3x2", family((8, 8)), &["F2FP.F16.E2M3.UNPACK_B"]),
    nearest("e2m1fn", "float16", "cvt.rn.f16x2.e2m1x2", family((8, 8)), &["F2FP.F16.E2M1.UNPACK_B"]),
    nearest("e4m3fn", "bfloat16", "cvt.rn.bf16x2.e4m3x2", family((9, 2)), &["F2FP.BF16.E4M3.UNPACK_B"]),
    nearest("e5m2", "bfloat16", "cvt.rn.bf16x2.e5m2x2", family((9, 2)), &["F2FP.BF16.E5M2.UNPACK_B"]),
    nearest("e3m2fn", "bfloat16", "cvt.rn.bf16x2.e3m2x2", family((9, 2)), &["F2FP.BF16.E3M2.UNPACK_B"]),
    nearest("e2m3fn", "bfloat16", "cvt.rn.bf16x2.e2m3x2", family((9, 2)), &["F2FP.BF16.E2M3.UNPACK_B"]),
    nearest("e2m1fn", "bfloat16", "cvt.rn.bf16x2.e2m1x2", family((9, 2)), &["F2FP.BF16.E2M1.UNPACK_B"]),
    nearest("e8m0fnu", "bfloat16", "cvt.rn.bf16x2.ue8m0x2", family((8, 8)), &["F2FP.BF16.E8.UNPACK_B"]),
];
