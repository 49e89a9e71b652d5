//! The definition of a cast against every other implementation on this machine.
//!
//! A [`Check`] is one cast, the inputs to try and the implementations that claim it. The definition is
//! evaluated once an input for all of them; what differs is counted by the kind of the input and by what was
//! stored instead.

mod difference;
mod inputs;
mod known;
mod peers;
mod sweep;

use std::sync::Arc;

pub use difference::{Difference, Example, Kind, Outcome, Tally};
pub use known::{Known, known};
pub use peers::checks;
pub use sweep::run;

use crate::cast::{CastPlan, Place};
use crate::format::decode::decode;

/// Who made an implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// This tool: a difference is a fault of it.
    Ours,
    /// The crate `half`.
    Half,
    /// The crate `float8`.
    Float8,
    /// An instruction of this processor.
    Processor,
}

impl Maker {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "amp-inspect",
            Self::Half => "half",
            Self::Float8 => "float8",
            Self::Processor => "CPU",
        }
    }
}

/// What is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Bits of float32, to codes.
    Float32,
    /// Bits of float64, to codes.
    Float64,
    /// Codes, to bits of the float64 that they mean.
    Codes,
}

impl Source {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Codes => "codes",
        }
    }
}

/// Work on a slice: as many results as inputs.
type OnSlices<T> = Box<dyn Fn(&[T], &mut [u64]) + Send + Sync>;

/// How an implementation is called.
pub enum Convert {
    /// Values to codes.
    Float32(OnSlices<f32>),
    /// Values to codes.
    Float64(OnSlices<f64>),
    /// Codes to the bits of float64 values.
    Codes(OnSlices<u32>),
}

/// One implementation of a cast.
pub struct Implementation {
    /// Who made it.
    pub maker: Maker,
    /// Which of the maker's functions, levels or instructions it is.
    pub name: String,
    convert: Convert,
}

impl Implementation {
    /// An implementation to be compared.
    pub fn new(maker: Maker, name: impl Into<String>, convert: Convert) -> Self {
        Self { maker, name: name.into(), convert }
    }
}

/// The inputs of a check.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// Every float32.
    AllFloat32,
    /// These, as bits.
    List(Arc<[u64]>),
}

impl Inputs {
    /// How many they are.
    pub fn count(&self) -> u64 {
        match self {
            Self::AllFloat32 => 1 << 32,
            Self::List(list) => list.len() as u64,
        }
    }
}

/// Implementations that claim the same cast of the same inputs.
pub struct Check {
    /// The cast, of scale 1.
    pub plan: CastPlan,
    /// What the inputs are.
    pub source: Source,
    /// Which they are.
    pub inputs: Inputs,
    /// Whom to compare. Those that convert from something other than `source` are not called.
    pub implementations: Vec<Implementation>,
}

impl Check {
    /// A check on every float32 or on the telling ones of [`quick_float32`](Self::quick_float32).
    pub fn of_float32(plan: CastPlan, inputs: Inputs, implementations: Vec<Implementation>) -> Self {
        Self { plan, source: Source::Float32, inputs, implementations }
    }

    /// The float32 on and beside every number and tie of the target, its limits, NaNs and subnormals.
    pub fn quick_float32(plan: &CastPlan) -> Inputs {
        Inputs::List(inputs::float32(&plan.target))
    }

    /// What the definition makes of the input with these bits: a code, or the bits of a value.
    pub fn defined(&self, input: u64) -> u64 {
        match self.source {
            Source::Float32 => self.plan.cast_f32(f32::from_bits(input as u32), Place::default()).code.into(),
            Source::Float64 => self.plan.cast_f64(f64::from_bits(input), Place::default()).code.into(),
            Source::Codes => decode(&self.plan.target, input as u32).to_bits(),
        }
    }
}
