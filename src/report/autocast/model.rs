//! What the audit of a trace is in JSON.

use serde::Serialize;

use super::sentences::sentences;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::training::autocast::policy::Policy;
use crate::training::autocast::table::LISTS_OF;
use crate::training::autocast::trace::Trace;
use crate::training::autocast::{Audit, CastRow, Cause, Finding, OpRow, Repeated, Verdict};

/// The audit of a trace. Times are in ns.
#[derive(Clone, Debug, Serialize)]
pub struct AutocastReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `autocast`.
    pub command: &'static str,
    /// The trace.
    pub trace: String,
    /// Whose lists were taken.
    pub device: &'static str,
    /// The version that the lists are of.
    pub lists: &'static str,
    /// The type that autocast cast to; `null` if it cast nothing.
    pub autocast_dtype: Option<&'static str>,
    /// Calls that autocast handled.
    pub autocast_calls: u64,
    /// Calls in the trace, labels included.
    pub calls: u64,
    /// Threads that they are of.
    pub threads: u32,
    /// Time of all outermost calls on the CPU, over all threads.
    pub total_ns: u64,
    /// Time on the device of what they launched.
    pub device_ns: u64,
    /// What is to be complained of, the most time at stake first.
    pub findings: Vec<FindingEntry>,
    /// Everything in sentences.
    pub sentences: Vec<String>,
    /// Every kind of conversion.
    pub casts: Vec<CastEntry>,
    /// Every op.
    pub ops: Vec<OpEntry>,
    /// What is odd about the trace.
    pub notices: Vec<String>,
}

/// Calls of an op with inputs of the same types that became the same.
#[derive(Clone, Debug, Serialize)]
pub struct OpEntry {
    /// The name: untrusted text.
    pub op: String,
    /// The list that it is in.
    pub list: Option<&'static str>,
    /// Floating-point types of its inputs, the widest first.
    pub types: Vec<&'static str>,
    /// What became of it.
    pub verdict: &'static str,
    /// Why it ran in float32, of missed matrix multiplications.
    pub cause: Option<&'static str>,
    /// The custom op that it ran in, if that is the cause.
    pub custom_op: Option<String>,
    /// How many.
    pub calls: u64,
    /// Time on the CPU without that of calls within.
    pub self_ns: u64,
    /// Time on the CPU.
    pub total_ns: u64,
    /// Time on the device of what they launched themselves.
    pub device_self_ns: u64,
    /// Time on the device, of calls within too.
    pub device_ns: u64,
    #[serde(skip)]
    pub(super) row: OpRow,
}

impl OpEntry {
    fn new(row: &OpRow, trace: &Trace) -> Self {
        let cause = match row.key.verdict {
            Verdict::Missed(cause) => Some(cause),
            _ => None,
        };
        Self {
            op: name(trace, row.key.name),
            list: row.key.policy.map(Policy::name),
            types: row.key.types.names().collect(),
            verdict: row.key.verdict.name(),
            cause: cause.map(Cause::name),
            custom_op: custom(trace, cause),
            calls: row.calls,
            self_ns: row.self_ns,
            total_ns: row.total_ns,
            device_self_ns: row.device_self_ns,
            device_ns: row.device_ns,
            row: *row,
        }
    }

    /// Floating-point types of its inputs, for a table.
    pub(super) fn types_text(&self) -> String {
        let names: Vec<_> = self.row.key.types.floats().map(|float| float.short).collect();
        if names.is_empty() { "–".into() } else { names.join("+") }
    }

    /// Its list, for a table.
    pub(super) fn list_text(&self) -> &'static str {
        self.row.key.policy.map_or("–", Policy::short)
    }
}

/// Conversions of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct CastEntry {
    /// Type of the source.
    pub from: &'static str,
    /// Type of the result.
    pub to: &'static str,
    /// Who asked for it: autocast, the backward pass or the code.
    pub cause: &'static str,
    /// How many.
    pub count: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Time on the CPU.
    pub ns: u64,
    /// Time on the device.
    pub device_ns: u64,
    #[serde(skip)]
    pub(super) meaning: &'static str,
}

impl CastEntry {
    fn new(row: &CastRow) -> Self {
        let CastRow { from, to, cause, count, bytes, ns, device_ns } = *row;
        Self { from, to, cause: cause.name(), count, bytes, ns, device_ns, meaning: cause.meaning() }
    }
}

/// Something that costs time or precision.
#[derive(Clone, Debug, Serialize)]
pub struct FindingEntry {
    /// Its kind, as `--fail-on` takes it.
    pub kind: &'static str,
    /// Why, of missed matrix multiplications.
    pub cause: Option<&'static str>,
    /// The custom op, if that is the cause.
    pub custom_op: Option<String>,
    /// The ops concerned, the longest first.
    pub ops: Vec<OpEntry>,
    /// The weights of repeated casts, by shape.
    pub weights: Vec<Repeated>,
    /// How many calls or casts.
    pub calls: u64,
    /// Time at stake: on the device where there is one, else on the CPU.
    pub ns: u64,
    /// What it means and what helps.
    pub sentence: String,
}

impl FindingEntry {
    fn new(finding: &Finding, trace: &Trace) -> Self {
        Self {
            kind: finding.kind.name(),
            cause: finding.cause.map(Cause::name),
            custom_op: custom(trace, finding.cause),
            ops: finding.ops.iter().map(|row| OpEntry::new(row, trace)).collect(),
            weights: finding.repeated.clone(),
            calls: finding.calls,
            ns: finding.ns,
            sentence: String::new(),
        }
    }
}

impl AutocastReport {
    /// The report of an audit of `trace`, which was read from `path`.
    pub fn new(path: String, trace: &Trace, audit: &Audit) -> Self {
        let mut report = Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "autocast",
            trace: path,
            device: audit.device.name(),
            lists: LISTS_OF,
            autocast_dtype: audit.lower,
            autocast_calls: audit.dispatched,
            calls: trace.calls.len() as u64,
            threads: trace.threads,
            total_ns: audit.total_ns,
            device_ns: audit.device_ns,
            findings: audit.findings.iter().map(|finding| FindingEntry::new(finding, trace)).collect(),
            sentences: Vec::new(),
            casts: audit.casts.iter().map(CastEntry::new).collect(),
            ops: audit.rows.iter().map(|row| OpEntry::new(row, trace)).collect(),
            notices: Vec::new(),
        };
        report.sentences = sentences(&mut report);
        report
    }

    /// Time that shares are of: on the device where there is one, else on the CPU, in ns.
    pub(super) fn whole(&self) -> u64 {
        if self.device_ns > 0 { self.device_ns } else { self.total_ns }
    }
}

fn name(trace: &Trace, number: u32) -> String {
    trace.names.get(number as usize).cloned().unwrap_or_default()
}

fn custom(trace: &Trace, cause: Option<Cause>) -> Option<String> {
    match cause {
        Some(Cause::Custom(number)) => Some(name(trace, number)),
        _ => None,
    }
}
