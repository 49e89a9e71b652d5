//! The lists that autocast has, and how to find an op in them.

use super::table::{MATMULS, MOVES, OPS};

/// Whose lists apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `torch.autocast("cuda")`.
    Cuda,
    /// `torch.autocast("cpu")`.
    Cpu,
}

/// Every device with its name.
pub const DEVICES: &[(&str, Device)] = &[("cuda", Device::Cuda), ("cpu", Device::Cpu)];

impl Device {
    /// The name in [`DEVICES`].
    pub fn name(self) -> &'static str {
        DEVICES.iter().find(|(_, device)| *device == self).map_or("", |(name, _)| name)
    }
}

/// What autocast does with a listed op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Casts its floating-point inputs to the lower precision.
    Lower,
    /// Casts them to float32.
    Fp32,
    /// Leaves them, and asks the op for a float32 result.
    Fp32Result,
    /// Casts them to the widest type among them.
    Promote,
    /// Raises an error.
    Refused,
}

impl Policy {
    /// The list in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower precision",
            Self::Fp32 | Self::Fp32Result => "float32",
            Self::Promote => "widest input",
            Self::Refused => "refused",
        }
    }

    /// The list where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Fp32 | Self::Fp32Result => "fp32",
            Self::Promote => "widest",
            Self::Refused => "refused",
        }
    }

    /// What autocast does.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Lower => "inputs are cast to the lower precision",
            Self::Fp32 => "inputs are cast to float32",
            Self::Fp32Result => "inputs stay as they are and the result is float32",
            Self::Promote => "inputs are cast to the widest type among them",
            Self::Refused => "raises an error",
        }
    }
}

/// An op of a list.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name without `aten::`.
    pub op: &'static str,
    /// Its list on CUDA.
    pub cuda: Option<Policy>,
    /// Its list on the CPU.
    pub cpu: Option<Policy>,
}

impl Row {
    /// Its list on `device`.
    pub fn on(&self, device: Device) -> Option<Policy> {
        match device {
            Device::Cuda => self.cuda,
            Device::Cpu => self.cpu,
        }
    }
}

/// Where `aten::NAME` or `NAME` stands in the lists. In-place variants (`addmm_`) are listed nowhere.
pub fn find(op: &str) -> Option<&'static Row> {
    let op = op.strip_prefix("aten::").unwrap_or(op);
    OPS.iter().find(|row| row.op == op)
}

/// What the audit has to know of an op's name, whatever its inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An op of PyTorch that computes.
    Op {
        /// Its list.
        policy: Option<Policy>,
        /// Whether it multiplies matrices.
        matmul: bool,
    },
    /// `aten::to` and `aten::_to_copy`, that convert by a copy within them.
    Convert,
    /// The copy itself, `aten::copy_`.
    Copy,
    /// An op of PyTorch that computes nothing.
    Moves,
    /// The engine running a backward node.
    Backward,
    /// A backward node that PyTorch made, or other bookkeeping of its own.
    Bookkeeping,
    /// The optimizer's step.
    Optimizer,
    /// An op or autograd function that is not PyTorch's: autocast knows nothing of it.
    Custom,
}

/// How the optimizer's step is labelled: `Optimizer.step#AdamW.step`.
pub(super) const OPTIMIZER: &str = "Optimizer.step";

/// Names that PyTorch records beside its ops, by their beginning.
const BOOKKEEPING: &[&str] = &[
    "autograd::",
    "torch::autograd::",
    "prim::",
    "profiler::",
    "c10d::",
    "nccl:",
    "gloo:",
    "record_param_comms",
    "DistributedDataParallel",
    "ProfilerStep",
    "enumerate(DataLoader)",
    "Torch-Compiled Region",
    "TorchDynamo Cache Lookup",
    "CompiledFunction",
    "## Call CompiledFxGraph",
    "AOTDispatcher",
    "Pregraph bytecode",
    "detach",
    "torch.distributed",
    "FullyShardedDataParallel",
    "FSDP::",
];

impl Kind {
    /// Of an op's name, by the lists of `device`.
    pub fn of(name: &str, device: Device) -> Self {
        if let Some(op) = name.strip_prefix("aten::") {
            return match op {
                "to" | "_to_copy" | "_autocast_to_reduced_precision" | "_autocast_to_full_precision" => {
                    Self::Convert
                }
                "copy_" => Self::Copy,
                op if MOVES.contains(&op) => Self::Moves,
                op => Self::Op {
                    policy: find(op).and_then(|row| row.on(device)),
                    matmul: MATMULS.contains(&op),
                },
            };
        }
        if name.starts_with("autograd::engine::evaluate_function") {
            Self::Backward
        } else if name.starts_with(OPTIMIZER) {
            Self::Optimizer
        } else if name.starts_with("Optimizer.")
            || BOOKKEEPING.iter().any(|start| name.starts_with(start))
            || is_generated_node(name)
        {
            Self::Bookkeeping
        } else {
            Self::Custom
        }
    }
}

/// Whether this is a backward node that PyTorch generates: `MmBackward0`. Those of autograd functions written in
/// Python have no number: `OwnMatmulBackward`.
fn is_generated_node(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < name.len() && stem.ends_with("Backward")
}
