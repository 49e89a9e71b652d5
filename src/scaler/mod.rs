//! Loss scalers of the frameworks as pure state machines, and what each would have done to recorded steps.
//!
//! * [`SCALERS`]: every scaler that can be replayed, with the upstream source of its rule;
//! * `policy`: the rules, in the framework's own float type, one family a file;
//! * [`trace`]: what was recorded of each step, in traces or in [`dumps`];
//! * [`schedule`]: which recorded step each simulated one takes its gradients from;
//! * [`simulate`](mod@simulate): the step loop; [`run`]: what came of it;
//! * [`suggest`](mod@suggest): which constant scale would have served, and which start.
//!
//! A scaler sees of a step only whether its gradients were non-finite. Whether they would be at another scale
//! than the one recorded is for [`trace`] to say.

pub mod dumps;
pub mod fp8;
mod policy;
pub mod run;
pub mod schedule;
pub mod settings;
pub mod simulate;
pub mod suggest;
mod table;
pub mod trace;

pub use settings::{Parameter, Settings};
pub use table::{SCALERS, find};

/// What a scaler is shown of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Whether the scaled gradients have an Inf or NaN.
    pub found_inf: bool,
    /// Largest magnitude of the true gradients; NaN if it is not known. Few scalers look at it.
    pub amax: f64,
    /// Number of scaled gradients below and from [`EDGE`] on, if they are counted. One scaler looks at it.
    pub edge: Option<[u64; 2]>,
}

/// The magnitude that scaled gradients are counted below and above. Upstream's edge is 65504/8 = 8188; binades, which
/// are what is counted, have theirs at 2^13.
pub const EDGE: f64 = 8192.0;

/// What a scaler did at the end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The step was applied and the scale stays.
    Clean,
    /// The step was applied and the scale grows.
    Grow,
    /// The step was applied and the scale shrinks.
    Shrink,
    /// The step was applied; the scale would grow but is at its ceiling.
    Ceiling,
    /// The step was skipped and the scale shrinks.
    Backoff,
    /// The step was skipped; the scale stays until more overflows follow.
    Hysteresis,
    /// The step was skipped; the scale would shrink but is at its floor.
    Floor,
    /// The step was skipped; the scale never changes.
    Skip,
    /// Non-finite gradients were applied to the weights.
    Applied,
    /// The framework raised an error with this text: the run is over.
    Abort(&'static str),
}

impl Event {
    /// One word, as CSV and JSON have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "",
            Self::Grow => "grow",
            Self::Shrink => "shrink",
            Self::Ceiling => "ceiling",
            Self::Backoff => "backoff",
            Self::Hysteresis => "hysteresis",
            Self::Floor => "floor",
            Self::Skip => "skip",
            Self::Applied => "applied",
            Self::Abort(_) => "abort",
        }
    }

    /// Whether the optimizer did not step.
    pub fn skips(self) -> bool {
        !matches!(self, Self::Clean | Self::Grow | Self::Shrink | Self::Ceiling | Self::Applied)
    }

    /// A skipped step that may have shrunk the scale.
    fn overflow(before: impl Into<f64>, after: impl Into<f64>) -> Self {
        if after.into() < before.into() { Self::Backoff } else { Self::Floor }
    }

    /// A clean step that may have made the scale grow.
    fn growth(before: impl Into<f64>, after: impl Into<f64>) -> Self {
        if after.into() > before.into() { Self::Grow } else { Self::Ceiling }
    }
}

/// A framework's rule: which scale the next step's loss is multiplied by.
pub trait LossScaler: Send {
    /// The scale in force, exact: those that the framework holds as f32 are f32 values.
    fn scale(&self) -> f64;

    /// Ends a step. A scaler that has aborted is not to be updated again.
    fn update(&mut self, seen: Seen) -> Event;

    /// The scaler's own counters after the last update, under the names that upstream gives them.
    fn counters(&self) -> Vec<(&'static str, f64)>;

    /// Clean steps counted towards the next growth, and how many it takes; `None` if that is no count.
    fn until_growth(&self) -> Option<(f64, f64)> {
        None
    }
}

/// The float type that a framework holds the scale in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// A 32-bit tensor.
    F32,
    /// A Python float.
    F64,
}

impl Float {
    /// `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksAt {
    /// Whether there is an Inf or NaN.
    Flags,
    /// The largest gradient of each step, too.
    Largest,
    /// How many gradients exceed an edge; Inf and NaN do not matter.
    Counts,
}

/// A loss scaler that can be replayed.
#[derive(Debug)]
pub struct ScalerSpec {
    /// What the command line calls it; `@` introduces the versions that had this rule.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub about: &'static str,
    /// Where the rule and the defaults come from: file at version or commit.
    pub source: &'static str,
    /// The type of the scale.
    pub float: Float,
    /// Whether the gradients are divided by the scale after the update, which on a growth step makes them
    /// too small by the growth factor.
    pub divides_by_new_scale: bool,
    /// Whether the gradients are multiplied by 1/scale as f32, which is Inf up to a scale of 2^-128, and not
    /// divided.
    pub multiplies_by_inverse: bool,
    /// What the rule looks at.
    pub looks_at: LooksAt,
    /// What can be set, with the defaults.
    pub parameters: &'static [Parameter],
    new: fn(&Settings) -> Box<dyn LossScaler>,
}

impl ScalerSpec {
    /// A scaler in its first state.
    pub fn start(&self, settings: &Settings) -> Box<dyn LossScaler> {
        (self.new)(settings)
    }
}
