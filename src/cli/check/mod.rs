//! Wiring of `amp-inspect check`.

mod args;
mod ci;
mod measure;

use std::path::Path;

pub(super) use args::CheckArgs;
pub(super) use ci::{InitCiArgs, init_ci};

use super::Outcome;
use super::args::CastArgs;
use super::output::{Outputs, complain_of_all};
use crate::check::baseline;
use crate::check::figures::Snapshot;
use crate::check::judge::judge;
use crate::check::rules::{Rules, Severity};
use crate::error::{Error, Result, escape};
use crate::format::find_any;
use crate::report::check::{CheckReport, Options, Verdict};
use crate::report::number::plural;
use crate::report::save;

pub(super) fn run(mut args: CheckArgs) -> Result<Outcome> {
    if args.rules.is_none() && args.baseline.is_none() {
        return Err(Error::new("there is nothing to check against: give --rules, --baseline or both"));
    }
    let outputs = Outputs::with_verdicts(args.output.clone())?;
    let rules = args
        .rules
        .as_deref()
        .map(|path| read(path).and_then(|text| Rules::parse(&text)).map_err(|error| error.in_file(path)));
    let rules = rules.transpose()?;
    let mut baseline = match &args.baseline {
        Some(path) if !args.update_baseline => {
            Some(read(path).and_then(|text| baseline::read(&text)).map_err(|error| error.in_file(path))?)
        }
        _ => None,
    };
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
    add_formats(&mut args.cast, rules.as_ref(), baseline.as_ref())?;
    let measured = measure::snapshot(&args, &outputs)?;
    if let (true, Some(path)) = (args.update_baseline, &args.baseline) {
        return update(path, &measured);
    }
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

/// The formats that figures are needed of: those of the rules and the baseline, or else those asked for.
fn add_formats(cast: &mut CastArgs, rules: Option<&Rules>, baseline: Option<&Snapshot>) -> Result<()> {
    let mut needed = rules.map(Rules::formats).unwrap_or_default();
    let figures =
        baseline.into_iter().flat_map(|baseline| &baseline.tensors).flat_map(|tensor| tensor.values.keys());
    for format in figures.filter_map(|metric| metric.format()) {
        if !needed.contains(&format) {
            needed.push(format);
        }
    }
    if !needed.is_empty() {
        cast.formats = needed.into_iter().map(find_any).collect::<Result<_>>()?;
    }
    Ok(())
}

/// Writes the baseline and says what it changes.
fn update(path: &Path, measured: &measure::Measured) -> Result<Outcome> {
    if let Some((last, others)) = measured.problems.split_last() {
        complain_of_all(others.iter());
        complain_of_all([last].into_iter());
        return Err(
            Error::new("is left as it was: what could not be read would be missing in it").in_file(path)
        );
    }
    let before = read(path).ok().and_then(|text| baseline::read(&text).ok());
    save::replace(path, baseline::write(&measured.snapshot).as_bytes())?;
    let now = &measured.snapshot;
    let tensors = plural(now.tensors.len() as u64, "tensor");
    let changes = match before {
        None => "new".to_owned(),
        Some(before) => {
            let pairing = crate::check::pairing::Pairing::new(&now.identities(), &before.identities());
            let changed =
                |&&(new, old): &&(usize, usize)| now.tensors[new].values != before.tensors[old].values;
            let changed = pairing.pairs.iter().filter(changed).count();
            format!("{changed} changed, {} new, {} gone", pairing.only_first.len(), pairing.only_second.len())
        }
    };
    super::output::print(&format!(
        "{}: baseline of {tensors} ({changes})",
        escape(&path.display().to_string())
    ))?;
    Ok(Outcome::Done)
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
