//! Wiring of `amp-inspect check`.

mod args;
mod ci;
mod measure;
mod recorded;
mod update;

use std::path::Path;

pub(super) use args::CheckArgs;
pub(super) use ci::{InitCiArgs, init_ci};

use super::Outcome;
use super::args::{CastArgs, DEFAULT_FORMATS};
use super::output::{Outputs, complain_of_all};
use crate::check::baseline;
use crate::check::figures::Snapshot;
use crate::check::judge::judge;
use crate::check::metric::name_of;
use crate::check::rules::{Rules, Severity};
use crate::error::{Error, Result};
use crate::format::find_any;
use crate::report::check::{CheckReport, Options, Verdict};

pub(super) fn run(mut args: CheckArgs) -> Result<Outcome> {
    if args.rules.is_none() && args.baseline.is_none() {
        return Err(Error::new("there is nothing to check against: give --rules, --baseline or both"));
    }
    let outputs = Outputs::with_verdicts(args.output.clone())?;
    let (updated, kept) = match args.update_baseline {
        true => (args.baseline.clone(), None),
        false => (None, args.baseline.clone()),
    };
    let read_from: Vec<_> = args.input.paths.iter().chain(&args.rules).chain(&kept).collect();
    outputs.keep_apart(updated.as_deref(), &read_from)?;
    let rules = args
        .rules
        .as_deref()
        .map(|path| read(path).and_then(|text| Rules::parse(&text)).map_err(|error| error.in_file(path)));
    let rules = rules.transpose()?;
    if let Some(path) = updated {
        return update::run(args, &path, rules.as_ref(), &outputs);
    }
    let baseline = args
        .baseline
        .as_deref()
        .map(|path| read(path).and_then(|text| baseline::read(&text)).map_err(|error| error.in_file(path)));
    let mut baseline = baseline.transpose()?;
    if let Some(baseline) = &mut baseline {
        baseline.tensors.retain(|tensor| args.input.wants(&tensor.identity));
    }
    let relative = rules.as_ref().and_then(Rules::relative);
    if let (Some((metric, line)), None) = (relative, &args.baseline) {
        let line = line.map_or(String::new(), |line| format!("line {line}: "));
        return Err(Error::new(format!(
            "{line}a limit of {metric} follows from the baseline; give --baseline"
        ))
        .in_file(args.rules.clone().unwrap_or_default()));
    }
    let needed = needed_formats(rules.as_ref(), baseline.as_ref());
    let asked = asked_formats(&args.cast);
    if let Some(idle) = asked.iter().flatten().find(|format| !needed.contains(format)) {
        return Err(Error::new(format!(
            "--formats {idle}: neither the rules nor the baseline have a figure of it"
        )));
    }
    set_formats(&mut args.cast, needed)?;
    let measured = measure::snapshot(&args, &outputs)?;
    if let (Some(baseline), Some(path)) = (&baseline, &args.baseline)
        && let Some(other) = measured.snapshot.other_option(baseline)
    {
        return Err(Error::new(format!("was made with other options: {other}")).in_file(path));
    }
    let rules = match (rules, &baseline) {
        (Some(rules), _) => rules,
        (None, Some(baseline)) => Rules::keep_to(baseline),
        // One of the two is there.
        (None, None) => return Err(Error::new("there is nothing to check against")),
    };
    let judgement = judge(&measured.snapshot, &rules, baseline.as_ref(), args.ratchet);
    let tensors = measured.snapshot.tensors.len() as u64;
    let mut report = CheckReport::new(options(&args), tensors, judgement, args.fail_on.0);
    report.notices = measured.notices;
    report.add_problems(measured.problems.iter().map(Error::to_string).collect());
    complain_of_all(report.troubles.iter().chain(&report.problems).collect::<Vec<_>>().into_iter());
    ci::annotate(&report);
    let outcome = match report.verdict {
        Verdict::Pass => Outcome::Done,
        Verdict::Fail => Outcome::Findings,
        Verdict::Trouble => Outcome::Incomplete,
    };
    let summary = ci::summarise(&report);
    outputs.write(&report, CheckReport::terminal)?;
    summary?;
    Ok(outcome)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::io("cannot read", &error))
}

/// The formats that the rules and the baseline have figures of.
fn needed_formats(rules: Option<&Rules>, baseline: Option<&Snapshot>) -> Vec<&'static str> {
    let mut needed = rules.map(Rules::formats).unwrap_or_default();
    for format in baseline.into_iter().flat_map(Snapshot::formats) {
        if !needed.contains(&format) {
            needed.push(format);
        }
    }
    needed
}

/// The formats that were typed, if they are not those that there are without typing.
fn asked_formats(cast: &CastArgs) -> Option<Vec<&'static str>> {
    let names: Vec<&str> = cast.formats.iter().map(name_of).collect();
    (names.join(",") != DEFAULT_FORMATS).then_some(names)
}

/// Casts to these formats, if there are any, in place of those of the command line.
fn set_formats(cast: &mut CastArgs, formats: Vec<&str>) -> Result<()> {
    if !formats.is_empty() {
        cast.formats = formats.into_iter().map(find_any).collect::<Result<_>>()?;
    }
    Ok(())
}

fn options(args: &CheckArgs) -> Options {
    let text = |path: &std::path::PathBuf| path.display().to_string();
    Options {
        paths: args.input.paths.iter().map(text).collect(),
        rules: args.rules.as_ref().map(text),
        baseline: args.baseline.as_ref().map(text),
        ratchet: args.ratchet,
        fail_on: args.fail_on.0.map(Severity::name),
        update: args.baseline.as_ref().map(|_| ci::update_command()),
    }
}
