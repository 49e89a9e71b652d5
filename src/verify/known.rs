//! Differences that are known: faults of others with their reports, and choices that are theirs to make.

use super::{Kind, Maker, Outcome, Source};

/// A known difference.
#[derive(Debug)]
pub struct Known {
    maker: Maker,
    /// The formats, all if empty.
    formats: &'static [&'static str],
    source: Source,
    /// The start of the implementation's name.
    name: &'static str,
    kinds: &'static [Kind],
    outcomes: &'static [Outcome],
    /// What happens.
    pub why: &'static str,
    /// Where it is told.
    pub reference: &'static str,
}

const BESIDE_TIES: &[Kind] = &[Kind::AboveTie, Kind::BelowTie];
/// Beside the last tie the wrong neighbour is Inf; beside the first it is zero.
const WRONG_WAY: &[Outcome] =
    &[Outcome::Neighbour, Outcome::BecomesInf, Outcome::BecomesZero, Outcome::Other];
const OTHER_NAN: &[Outcome] = &[Outcome::NanPayload, Outcome::NanSign];

const PAYLOAD_KEPT: &str =
    "a NaN keeps its upper payload bits and gets the quiet bit; the definition has no payload";
const PAYLOAD_BIT: &str = "one payload bit of a NaN shows in the code; the definition has no payload";
const PAYLOAD_ONES: &str =
    "a NaN code becomes a NaN with its ten upper significand bits set, e4m3's 0xff without its sign";

/// IEEE 754 leaves the payloads of NaNs open.
const fn nan_of(maker: Maker, source: Source, why: &'static str) -> Known {
    Known {
        maker,
        formats: &[],
        source,
        name: "",
        kinds: &[Kind::Nan],
        outcomes: OTHER_NAN,
        why,
        reference: "no fault: IEEE 754-2019, 6.2.3",
    }
}

const KNOWN: &[Known] = &[
    nan_of(Maker::Half, Source::Float32, PAYLOAD_KEPT),
    nan_of(Maker::Half, Source::Float64, PAYLOAD_KEPT),
    nan_of(Maker::Half, Source::Codes, PAYLOAD_KEPT),
    nan_of(Maker::Processor, Source::Float32, PAYLOAD_KEPT),
    nan_of(Maker::Float8, Source::Float32, PAYLOAD_BIT),
    nan_of(Maker::Float8, Source::Float64, PAYLOAD_BIT),
    nan_of(Maker::Float8, Source::Codes, PAYLOAD_ONES),
    Known {
        maker: Maker::Half,
        formats: &["float16"],
        source: Source::Float64,
        name: "f16::from_f64_const",
        kinds: BESIDE_TIES,
        outcomes: WRONG_WAY,
        why: "drops the lower 32 bits unseen, so what lies above a tie becomes one",
        reference: "github.com/VoidStarKat/half-rs/issues/151",
    },
    Known {
        maker: Maker::Half,
        formats: &["float16"],
        source: Source::Float64,
        name: "f16::from_f64",
        kinds: BESIDE_TIES,
        outcomes: WRONG_WAY,
        why: "rounds twice, by way of float32 (with F16C), or drops the lower 32 bits (without)",
        reference: "github.com/VoidStarKat/half-rs/issues/116 and 151",
    },
    Known {
        maker: Maker::Half,
        formats: &["bfloat16"],
        source: Source::Float64,
        name: "bf16::from_f64",
        kinds: BESIDE_TIES,
        outcomes: WRONG_WAY,
        why: "drops the lower 32 bits unseen, so what lies above a tie becomes one",
        reference: "github.com/VoidStarKat/half-rs/issues/151",
    },
    Known {
        maker: Maker::Processor,
        formats: &["bfloat16"],
        source: Source::Float32,
        name: "vcvtneps2bf16",
        kinds: &[Kind::SubnormalInput],
        outcomes: &[Outcome::BecomesZero],
        why: "takes subnormal inputs for zero (DAZ), whatever the mode in force",
        reference: "Intel Software Developer's Manual, volume 2, VCVTNEPS2BF16",
    },
    Known {
        maker: Maker::Float8,
        formats: &["e5m2"],
        source: Source::Float32,
        name: "",
        kinds: &[Kind::Overflow, Kind::Inf],
        outcomes: &[Outcome::Saturates],
        why: "always saturates at 57344, though its documentation says Inf",
        reference: "float8 0.7 follows cvt.satfinite of NVIDIA's cuda_fp8.hpp",
    },
    Known {
        maker: Maker::Float8,
        formats: &["e5m2"],
        source: Source::Float64,
        name: "",
        kinds: &[Kind::Overflow, Kind::Inf, Kind::AboveTie],
        outcomes: &[Outcome::Saturates],
        why: "always saturates at 57344, though its documentation says Inf",
        reference: "float8 0.7 follows cvt.satfinite of NVIDIA's cuda_fp8.hpp",
    },
];

/// What is known of a difference.
pub fn known(
    maker: Maker,
    name: &str,
    format: &str,
    source: Source,
    kind: Kind,
    outcome: Outcome,
) -> Option<&'static Known> {
    KNOWN.iter().find(|known| {
        known.maker == maker
            && known.source == source
            && name.starts_with(known.name)
            && (known.formats.is_empty() || known.formats.contains(&format))
            && known.kinds.contains(&kind)
            && known.outcomes.contains(&outcome)
    })
}
