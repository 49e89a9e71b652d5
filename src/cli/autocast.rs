//! `amp-inspect autocast`: what can be typed, and its wiring.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::Outcome;
use super::args::{OutputArgs, TextOutputArgs, choices, named};
use super::output::Outputs;
use super::progress::Progress;
use crate::error::{Error, Result};
use crate::report::autocast::{AutocastReport, ListReport};
use crate::report::number::plural;
use crate::training::autocast::policy::{DEVICES, Device};
use crate::training::autocast::trace::{self, Trace};
use crate::training::autocast::{Audit, FindingKind, KINDS};

/// Which ops of a profiler trace really ran in low precision: matrix multiplications left in float32, casts
/// and what they cost, ops that autocast does not know
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect autocast trace.json.gz\n  amp-inspect autocast trace.json --fail-on missed-matmul\n  amp-inspect autocast --list softmax",
    after_help = DEFINITIONS
)]
pub(super) struct AutocastArgs {
    /// A trace that torch.profiler exported with record_shapes=True, plain or gzip'ed
    #[arg(value_name = "TRACE", required_unless_present = "list", help_heading = "Input")]
    trace: Option<PathBuf>,
    /// Whose lists to judge by [default: cuda if kernels ran on a device, else cpu]
    #[arg(long, value_name = "DEVICE", value_parser = device_parser(), help_heading = "Input")]
    device: Option<Device>,
    /// Print autocast's lists, or the ops in them whose name contains OP
    #[arg(long, value_name = "OP", num_args = 0..=1, conflicts_with_all = ["trace", "device", "fail_on"], help_heading = "Lists")]
    list: Option<Option<String>>,
    /// Exit with 1 if there is one of these
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = kind_parser(), long_help = kinds_help(), hide_possible_values = true, help_heading = "Output")]
    fail_on: Vec<FindingKind>,
    /// Rows of ops to show, 0 for all
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Output")]
    top: usize,
    #[command(flatten)]
    output: TextOutputArgs,
}

const DEFINITIONS: &str = "\
A call of a listed op in a call of the same op, with as many inputs, is autocast
calling it again after the casts: that shows what went through autocast. Ops are
judged where the work is done: an outer aten::linear shows the types that it was
given, the aten::mm in it those that were multiplied.

  as listed       ran in the type that its list asks for
  in a listed op  of no list, but called by an op of the float32 list
  low precision   multiplies matrices, is of no list, ran in low precision
  MISSED          multiplies matrices, and ran in float32
  RAN LOW         of the float32 list, and ran in a narrower type
  as its inputs   of no list: runs in the types that it is given
  as its forward  a backward op: the forward pass has made the types
  not eligible    float64, or no floating-point input
  unknown op      not PyTorch's: autocast knows nothing of it

Time is an op's own, without that of the ops in it; time at stake includes them.
If there are kernels of a device in the trace it is theirs, joined by external id
or else by correlation.

Exit code: 0 done, 1 a finding of --fail-on, 2 wrong usage or something that
could not be read.";

fn device_parser() -> impl TypedValueParser<Value = Device> {
    named(DEVICES.iter().copied())
}

fn kind_parser() -> impl TypedValueParser<Value = FindingKind> {
    named(KINDS.iter().map(|(name, kind, _)| (*name, *kind)))
}

fn kinds_help() -> String {
    let rows = KINDS.iter().map(|(name, _, meaning)| (*name, *meaning));
    format!("Exit with 1 if there is one of these:{}", choices(rows))
}

pub(super) fn run(args: AutocastArgs) -> Result<Outcome> {
    let output = OutputArgs { top: args.top, ..args.output.into() };
    let quiet = output.quiet;
    let outputs = Outputs::without_pictures(output)?;
    outputs.keep_apart(None, args.trace.as_slice())?;
    let Some(path) = args.trace else {
        let report = ListReport::new(args.list.flatten().as_deref());
        outputs.write(&report, ListReport::terminal)?;
        return Ok(Outcome::Done);
    };
    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let progress = Progress::new(bytes, quiet);
    let trace = trace::read(&path, |bytes| progress.add(bytes));
    progress.finish();
    let trace = trace?;
    require(&trace).map_err(|error| error.in_file(&path))?;
    let audit = Audit::new(&trace, args.device);
    let mut report = AutocastReport::new(path.display().to_string(), &trace, &audit);
    report.notices = notices(&trace);
    outputs.notices(&report.notices);
    let failed = audit.findings.iter().any(|finding| args.fail_on.contains(&finding.kind));
    outputs.write(&report, AutocastReport::terminal)?;
    Ok(if failed { Outcome::Findings } else { Outcome::Done })
}

/// Refuses a trace that nothing can be said about.
fn require(trace: &Trace) -> Result<()> {
    if trace.calls.is_empty() {
        return Err(Error::new(
            "has no calls of ops on the CPU: profile with activities=[ProfilerActivity.CPU, …]",
        ));
    }
    if trace.typed_calls == 0 {
        return Err(Error::new(
            "has no types of inputs: profile with torch.profiler.profile(record_shapes=True)",
        ));
    }
    Ok(())
}

fn notices(trace: &Trace) -> Vec<String> {
    let mut notices = Vec::new();
    if trace.malformed > 0 {
        notices.push(format!("left out {} without times", plural(trace.malformed, "event")));
    }
    if trace.stray_kernels > 0 {
        let ms = trace.stray_kernels as f64 / 1e6;
        notices.push(format!("{ms} ms on the device belong to no call in the trace and are left out"));
    }
    notices
}
