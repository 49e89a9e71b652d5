//! Why there may be no card to be used, and the codes of the driver with what to do about each.

use crate::error::Error;

/// Why there is no card to be used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The code that the driver gave, if it gave one.
    pub code: Option<i32>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

impl Absent {
    pub(super) fn new(what: impl Into<String>, remedy: &'static str) -> Self {
        Self { code: None, what: what.into(), remedy }
    }

    /// The answer of a function of the driver that did not succeed.
    pub(super) fn answered(function: &str, code: i32) -> Self {
        let (name, remedy) = meaning(code);
        Self { code: Some(code), what: format!("{function} gave error {code} ({name})"), remedy }
    }
}

impl From<Absent> for Error {
    fn from(absent: Absent) -> Self {
        Self::new(format!("{}; {}", absent.what, absent.remedy))
    }
}

/// Codes that people meet, with what to do (CUDA driver API, "CUresult").
const CODES: &[(i32, &str, &str)] = &[
    (2, "out of memory", "free memory on the card, or use a smaller --size"),
    (3, "not initialised", "reload the NVIDIA kernel modules, or restart the machine"),
    (
        34,
        "stub library",
        "a toolkit's stub was found before the driver's libcuda; take it out of LD_LIBRARY_PATH",
    ),
    (35, "driver older than asked for", "update the NVIDIA driver"),
    (46, "device busy or unavailable", "another process holds the card in exclusive mode: end it, or wait"),
    (100, "no device", "check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, --gpus all"),
    (101, "no such device", "choose another --device"),
    (200, "invalid kernel image", "report this: the driver rejects the PTX"),
    (218, "invalid PTX", "report this: the driver rejects the PTX"),
    (222, "PTX newer than the driver", "update the NVIDIA driver"),
    (700, "illegal address", "report this: a kernel left its buffers"),
    (719, "launch failed", "look for Xid errors in the kernel log"),
    (802, "system not ready", "start nvidia-fabricmanager, or wait until it is up"),
    (
        803,
        "driver and library do not match",
        "restart the machine: the kernel module and libcuda differ in version",
    ),
    (804, "compatibility library not for this card", "take the cuda-compat package out of LD_LIBRARY_PATH"),
    (999, "unknown error", "look at dmesg and nvidia-smi; often a restart of the machine helps"),
];

pub(super) fn meaning(code: i32) -> (&'static str, &'static str) {
    let row = CODES.iter().find(|(known, ..)| *known == code);
    row.map_or(("unknown to this tool", "look the code up in cuda.h, under CUresult"), |row| (row.1, row.2))
}
