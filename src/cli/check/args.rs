//! What can be typed after `check`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;

use super::super::args::{CastArgs, OutputArgs, named, save_help};
use super::super::input_args::InputArgs;
use crate::check::metric::{FORMAT_METRICS, TENSOR_METRICS};
use crate::check::rules::Severity;
use crate::report::Needs;

/// Fails where a dump breaks rules, or is worse than a baseline: underflow, overflow, SQNR, NaN, and any other figure
/// of `histogram`, for each tensor
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect check grads.safetensors --rules rules.toml --save junit.xml\n  \
                   amp-inspect check grads.safetensors --baseline base.json --update-baseline\n  \
                   amp-inspect check grads.safetensors --baseline base.json",
    after_help = definitions(),
    mut_arg("save", |save| save.long_help(save_help(&[Needs::Verdicts])))
)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Rules in TOML, see below
    #[arg(long, value_name = "FILE", help_heading = "Check")]
    pub(super) rules: Option<PathBuf>,
    /// Figures as they were. Without --rules no tensor may be worse
    #[arg(long, value_name = "FILE", help_heading = "Check")]
    pub(super) baseline: Option<PathBuf>,
    /// Write the baseline in place of checking; with --tensor and the like only that of these tensors
    #[arg(long, requires = "baseline", help_heading = "Check")]
    pub(super) update_baseline: bool,
    /// Fail also where a figure is better than the baseline by more than the tolerance
    #[arg(long, requires = "baseline", help_heading = "Check")]
    pub(super) ratchet: bool,
    /// From which severity on a finding fails the check
    #[arg(long, value_name = "LEVEL", default_value = "error", value_parser = fail_on_parser(), help_heading = "Check")]
    pub(super) fail_on: FailOn,
    #[command(flatten)]
    pub(super) cast: CastArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// From which severity on a finding fails the check.
#[derive(Clone, Copy)]
pub(super) struct FailOn(pub(super) Option<Severity>);

fn fail_on_parser() -> impl TypedValueParser<Value = FailOn> {
    named([
        ("error", FailOn(Some(Severity::Error))),
        ("warn", FailOn(Some(Severity::Warn))),
        ("never", FailOn(None)),
    ])
}

fn definitions() -> String {
    let list = |names: &[&str]| {
        let mut lines = vec![String::from(" ")];
        for name in names {
            match lines.last_mut() {
                Some(line) if line.len() + 2 + name.len() < 76 => line.push_str(&format!(" {name}")),
                _ => lines.push(format!("  {name}")),
            }
        }
        lines.join("\n")
    };
    format!(
        "\
Rules, of which the first whose pattern matches is a tensor's:
  [[rule]]
  name = \"fp16 gradients\"
  tensor = '^h\\.'               # a regular expression; all tensors if left out
  check = \"underflow_pct.float16 <= 0.5 % and nan == 0\"
  severity = \"error\"            # or \"warn\"
  allow_nan = false             # figures may be undefined, or leave NaN out

  [severity]                    # error, warn or ignore; these are the defaults
  no_rule = \"error\"
  vanished = \"error\"
  new = \"warn\"
  changed = \"error\"             # another shape or type

A check joins comparisons by 'and' and 'or', with brackets; a limit is made of
numbers and 'baseline', the same figure there, by + - * /. It has to come out
finite, unless the figure in the baseline is infinite itself:
  sqnr_db.e4m3fn >= 25 dB or underflow_pct.e4m3fn <= baseline * 1.1 + 0.05

Figures of the stored values:
{}
Figures of a format, named after a dot:
{}

Without rules: NaN and Inf no more, underflow_pct and overflow_pct at most
baseline * 1.1 + 0.05, sqnr_db at least baseline - 1.

PATH may also be one report that 'histogram --json' wrote: its figures are what
they are, so that options of the cast are refused.
In GitHub Actions findings become annotations and the job's summary.

Exit code: 0 passed; 1 something fails; 2 wrong usage, something could not be
read, no tensor, a rule that matches nothing, or a figure that is undefined or
leaves out NaN or Inf where the rule does not allow it.",
        list(TENSOR_METRICS),
        list(FORMAT_METRICS)
    )
}
