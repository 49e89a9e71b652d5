//! What a whole trace comes to: rows, conversions, and what is to be complained of.

use serde::Serialize;

use super::casts::{CastRow, Casts, Repeats};
use super::policy::Device;
use super::row::{Cause, Key, OpRow, Verdict};
use super::trace::Trace;
use super::walk::Walk;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A matrix multiplication ran in float32.
    MissedMatmul,
    /// An op that autocast runs in float32 ran in a narrower type.
    RanLow,
    /// A custom op ran in float32, and autocast knows nothing of it.
    CustomOp,
    /// A weight was cast more than once.
    RepeatedCast,
}

/// Every kind, its name and what it is.
pub const KINDS: &[(&str, FindingKind, &str)] = &[
    ("missed-matmul", FindingKind::MissedMatmul, "a matrix multiplication ran in float32"),
    ("ran-low", FindingKind::RanLow, "an op of the float32 list ran in a narrower type"),
    ("custom-op", FindingKind::CustomOp, "an op that autocast does not know ran in float32"),
    ("repeated-cast", FindingKind::RepeatedCast, "weights were cast more often than there are weights"),
];

impl FindingKind {
    /// The name in [`KINDS`].
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self).map_or("", |(name, ..)| name)
    }
}

/// Something that costs time or precision.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Why, of a missed matrix multiplication.
    pub cause: Option<Cause>,
    /// The ops concerned, with calls and times of each, the longest first; none of a repeated cast.
    pub ops: Vec<OpRow>,
    /// The weights concerned, of a repeated cast, by shape, the longest first.
    pub repeated: Vec<Repeated>,
    /// How many calls or casts.
    pub calls: u64,
    /// Time at stake in ns: on the device where there is one, else on the CPU, with all calls within.
    pub ns: u64,
}

/// Weights of one shape that were cast again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// Their shape.
    pub shape: Vec<u64>,
    /// How many such weights got a gradient.
    pub parameters: u64,
    /// How many casts of them there are.
    pub casts: u64,
    /// Bytes read and written by these.
    pub bytes: u64,
    /// Time that they took, in ns.
    pub ns: u64,
}

/// The audit of a trace.
pub struct Audit {
    /// Whose lists were taken.
    pub device: Device,
    /// The type that autocast cast to; `None` if it cast nothing.
    pub lower: Option<&'static str>,
    /// Calls that autocast handled.
    pub dispatched: u64,
    /// Time of all outermost calls on the CPU, in ns, over all threads.
    pub total_ns: u64,
    /// Time on the device of what calls launched, in ns; 0 without a device.
    pub device_ns: u64,
    /// Every op, the longest first: by its own time on the device, then on the CPU.
    pub rows: Vec<OpRow>,
    /// Every kind of conversion, the longest first.
    pub casts: Vec<CastRow>,
    /// What is to be complained of, the most time at stake first.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Audits `trace` by the lists of `device`; if none is given, by those of CUDA if kernels ran on a device,
    /// else by those of the CPU.
    pub fn new(trace: &Trace, device: Option<Device>) -> Self {
        let on_device = !trace.kernels.is_empty() || trace.stray_kernels > 0;
        let device = device.unwrap_or(if on_device { Device::Cuda } else { Device::Cpu });
        let mut walk = Walk::new(trace, device);
        walk.run();
        let Walk { rows, casts, dispatched, lower, total_ns, device_ns, opaque, .. } = walk;
        let mut rows: Vec<OpRow> = rows.into_values().collect();
        if dispatched == 0 {
            for row in &mut rows {
                if let Verdict::Missed(cause) = &mut row.key.verdict
                    && *cause != Cause::Optimizer
                {
                    *cause = Cause::NoAutocast;
                }
            }
            rows = merge(rows);
        }
        let name = |key: &Key| &trace.names[key.name as usize];
        rows.sort_by(|a, b| {
            let times = (b.device_self_ns, b.self_ns).cmp(&(a.device_self_ns, a.self_ns));
            times.then_with(|| name(&a.key).cmp(name(&b.key))).then_with(|| a.key.cmp(&b.key))
        });
        let opaque = if dispatched == 0 { Vec::new() } else { opaque.into_values().collect() };
        let findings = findings(&rows, opaque, &casts, device_ns > 0);
        let lower = lower.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
        Self { device, lower, dispatched, total_ns, device_ns, rows, casts: casts.rows(), findings }
    }
}

/// Adds up rows that have come to have the same key.
fn merge(rows: Vec<OpRow>) -> Vec<OpRow> {
    let mut sums = std::collections::BTreeMap::<Key, OpRow>::new();
    for row in rows {
        let sum = sums.entry(row.key).or_insert_with(|| OpRow::new(row.key));
        sum.calls += row.calls;
        sum.self_ns = sum.self_ns.saturating_add(row.self_ns);
        sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
        sum.device_ns = sum.device_ns.saturating_add(row.device_ns);
        sum.device_self_ns = sum.device_self_ns.saturating_add(row.device_self_ns);
    }
    sums.into_values().collect()
}

fn findings(rows: &[OpRow], opaque: Vec<OpRow>, casts: &Casts, on_device: bool) -> Vec<Finding> {
    let stake = |row: &OpRow| if on_device { row.device_ns } else { row.total_ns };
    let mut groups = std::collections::BTreeMap::<(FindingKind, Option<Cause>), Vec<OpRow>>::new();
    for row in rows {
        match row.key.verdict {
            Verdict::Missed(Cause::Optimizer) => {}
            Verdict::Missed(cause) => {
                groups.entry((FindingKind::MissedMatmul, Some(cause))).or_default().push(*row);
            }
            Verdict::RanLow => groups.entry((FindingKind::RanLow, None)).or_default().push(*row),
            _ => {}
        }
    }
    for row in opaque.into_iter().filter(|row| row.key.types.is_float32()) {
        groups.entry((FindingKind::CustomOp, None)).or_default().push(row);
    }
    let mut findings: Vec<Finding> = groups
        .into_iter()
        .map(|((kind, cause), mut ops)| {
            ops.sort_by_key(|row| (std::cmp::Reverse(stake(row)), row.key));
            let calls = ops.iter().map(|row| row.calls).sum();
            let ns = ops.iter().map(stake).fold(0, u64::saturating_add);
            Finding { kind, cause, ops, repeated: Vec::new(), calls, ns }
        })
        .collect();
    let repeat = |(shape, parameters, sum): (&[u64], u64, Repeats)| {
        let ns = if on_device { sum.device_ns } else { sum.ns };
        Repeated { shape: shape.to_vec(), parameters, casts: sum.count, bytes: sum.bytes, ns }
    };
    let mut repeated: Vec<Repeated> = casts.repeats().map(repeat).collect();
    repeated.sort_by_key(|weights| std::cmp::Reverse(weights.ns));
    if !repeated.is_empty() {
        let calls = repeated.iter().map(|weights| weights.casts).sum();
        let ns = repeated.iter().map(|weights| weights.ns).fold(0, u64::saturating_add);
        findings.push(Finding {
            kind: FindingKind::RepeatedCast,
            cause: None,
            ops: Vec::new(),
            repeated,
            calls,
            ns,
        });
    }
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.ns), finding.kind));
    findings
}
