//! How whole software stacks cast: a name that sets overflow policy, rounding and NaN codes at once.
//!
//! On finite values in range they all agree; what differs is listed here. Measured over all 2^32 float32
//! inputs with the versions named, except where the source says otherwise. PyTorch's change of mind is in its
//! issue 104242 and pull request 178817.

use super::{CastPlan, NanCode, Overflow, Rounding};
use crate::format::FormatSpec;

/// A stack and how it casts.
pub struct Profile {
    /// Name on the command line.
    pub name: &'static str,
    /// What it stands for, and where it is from.
    pub about: &'static str,
    /// Overflow policy and NaN codes for a target.
    policy: fn(&FormatSpec) -> (Overflow, NanCode),
}

/// Every stack known.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "ml_dtypes",
        about: "ml_dtypes 0.6 and JAX: Inf or NaN, no saturation",
        policy: |_| (Overflow::Ieee, NanCode::Canonical),
    },
    Profile {
        name: "torch",
        about: "PyTorch since 2.13: of the formats only e4m3fn saturates",
        policy: |format| {
            let saturates = format.name == "e4m3fn";
            let nan = if format.bits == 16 { NanCode::AllOnesNegative } else { NanCode::AllOnes };
            (if saturates { Overflow::Saturate } else { Overflow::Ieee }, nan)
        },
    },
    Profile {
        name: "torch<2.13",
        about: "PyTorch before 2.13, eager mode: no saturation",
        policy: |format| {
            let nan = if format.bits == 16 { NanCode::AllOnesNegative } else { NanCode::AllOnes };
            (Overflow::Ieee, nan)
        },
    },
    Profile {
        name: "nvidia",
        about: "NVIDIA hardware: satfinite up to 8 bits, else Inf",
        policy: |format| (saturate_up_to_eight_bits(format), NanCode::AllOnesPositive),
    },
    Profile {
        name: "te",
        about: "Transformer Engine: as NVIDIA's hardware",
        policy: |format| (saturate_up_to_eight_bits(format), NanCode::AllOnesPositive),
    },
    Profile {
        name: "onnx",
        about: "ONNX Cast with its default saturate=1: FP8 saturates",
        policy: |format| (saturate_up_to_eight_bits(format), NanCode::Canonical),
    },
];

fn saturate_up_to_eight_bits(format: &FormatSpec) -> Overflow {
    if format.bits <= 8 { Overflow::Saturate } else { Overflow::Ieee }
}

impl Profile {
    /// The stack of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The cast of this stack to `target`, at scale 1. All of them round to nearest even.
    pub fn plan(&self, target: FormatSpec) -> CastPlan {
        let (overflow, nan) = (self.policy)(&target);
        CastPlan { overflow, nan, rounding: Rounding::NearestEven, ..CastPlan::new(target) }
    }
}
