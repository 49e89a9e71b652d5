//! What became of each op: verdicts, and the rows that calls of a kind are added up in.

use super::policy::Policy;
use super::trace::Types;

/// What is to be said of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Ran in the type that its list asks for.
    AsListed,
    /// Multiplies matrices, and ran in float32.
    Missed(Cause),
    /// Its list asks for float32, and it ran in a narrower type.
    RanLow,
    /// In no list: runs in the types that it is given.
    Unlisted,
    /// A backward op: runs in the types that the forward pass made.
    Backward,
    /// Autocast casting the inputs and calling the op again.
    Dispatch,
    /// Calls the ops that do the work, which are judged in its place.
    Outer,
    /// A conversion between floating-point types.
    Cast,
    /// Computes nothing with floating-point values.
    Moves,
    /// Types that autocast leaves alone: float64, or no floating-point input.
    NotEligible,
    /// Not PyTorch's: autocast knows nothing of it.
    Custom,
    /// PyTorch's own bookkeeping.
    Bookkeeping,
}

impl Verdict {
    /// A word for JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsListed => "as_listed",
            Self::Missed(_) => "missed_matmul",
            Self::RanLow => "ran_low",
            Self::Unlisted => "unlisted",
            Self::Backward => "backward",
            Self::Dispatch => "dispatch",
            Self::Outer => "outer",
            Self::Cast => "cast",
            Self::Moves => "moves_data",
            Self::NotEligible => "not_eligible",
            Self::Custom => "custom",
            Self::Bookkeeping => "bookkeeping",
        }
    }
}

/// Why a matrix multiplication ran in float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Nothing in the trace went through autocast.
    NoAutocast,
    /// Inside this custom op or function (an index into the trace's names), where autocast was off.
    Custom(u32),
    /// Autocast was off here: a disabled region, or outside of any.
    Off,
    /// It is of no list.
    NotListed,
    /// It went through autocast and got float32 all the same.
    Through,
    /// A backward op: its forward ran in float32.
    Backward,
    /// In the optimizer's step, where autocast is not meant to be.
    Optimizer,
}

impl Cause {
    /// A word for JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAutocast => "no_autocast",
            Self::Custom(_) => "custom",
            Self::Off => "autocast_off",
            Self::NotListed => "not_listed",
            Self::Through => "through_autocast",
            Self::Backward => "backward",
            Self::Optimizer => "optimizer",
        }
    }
}

/// What calls have in common that are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index into the names of the trace.
    pub name: u32,
    /// Floating-point types of the inputs.
    pub types: Types,
    /// The op's own list.
    pub policy: Option<Policy>,
    /// What became of it.
    pub verdict: Verdict,
}

/// Calls of an op with inputs of the same types that became the same.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// What they have in common.
    pub key: Key,
    /// How many there are.
    pub calls: u64,
    /// Time on the CPU in ns, without that of the calls within.
    pub self_ns: u64,
    /// Time on the CPU in ns.
    pub total_ns: u64,
    /// Time on the device in ns, of what they and the calls within launched.
    pub device_ns: u64,
    /// Time on the device in ns, of what they launched themselves.
    pub device_self_ns: u64,
}

impl OpRow {
    pub(super) fn new(key: Key) -> Self {
        Self { key, calls: 0, self_ns: 0, total_ns: 0, device_ns: 0, device_self_ns: 0 }
    }
}
