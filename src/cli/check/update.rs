//! Writes the baseline and says what it changes.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use super::super::Outcome;
use super::super::output::{Outputs, complain_of_all, print};
use super::{CheckArgs, asked_formats, measure, needed_formats, set_formats};
use crate::check::baseline;
use crate::check::figures::{Figures, Snapshot};
use crate::check::pairing::{Identity, Pairing};
use crate::check::rules::Rules;
use crate::error::{Error, Result, escape};
use crate::report::number::{count, plural};
use crate::report::save;

/// What is in the place of the baseline.
enum Before {
    Nothing,
    Baseline(Snapshot),
    /// A baseline of another version, or a damaged one.
    Unreadable(Error),
}

impl Before {
    /// # Errors
    /// There is something else than a baseline, which is not to be lost.
    fn at(path: &Path) -> Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(Error::io("cannot read", &error)),
        };
        if !baseline::is_baseline(&bytes) {
            return Err(Error::new("is no baseline, and so is not replaced by one"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|error| Error::new(error.to_string()));
        Ok(text.and_then(baseline::read).map_or_else(Self::Unreadable, Self::Baseline))
    }

    fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            Self::Baseline(snapshot) => Some(snapshot),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }
}

/// Makes the baseline of the tensors that are wanted; what it has of others stays.
pub(super) fn run(
    mut args: CheckArgs,
    path: &Path,
    rules: Option<&Rules>,
    outputs: &Outputs,
) -> Result<Outcome> {
    let wrong = |what: String| Err(Error::new(what).in_file(path));
    save::writable(path)?;
    let before = Before::at(path).map_err(|error| error.in_file(path))?;
    let input = &args.input;
    let filters =
        input.tensor.is_some() || input.exclude.is_some() || input.steps.is_some() || input.ranks.is_some();
    if let (Before::Unreadable(error), true) = (&before, filters) {
        return wrong(format!("{}; the tensors that are filtered out cannot be kept", error.what()));
    }
    let formats = match asked_formats(&args.cast) {
        Some(asked) => {
            let mut formats = needed_formats(rules, None);
            formats.extend(asked);
            formats
        }
        None => needed_formats(rules, before.snapshot()),
    };
    set_formats(&mut args.cast, formats)?;
    let measure::Measured { snapshot: mut now, problems, .. } = measure::snapshot(&args, outputs)?;
    if !problems.is_empty() {
        complain_of_all(problems.iter());
        return wrong("is left as it was: what could not be read would be missing in it".into());
    }
    let (changes, mut kept) = match &before {
        Before::Nothing => ("new".to_owned(), Vec::new()),
        Before::Unreadable(_) => ("in place of one that cannot be read".to_owned(), Vec::new()),
        Before::Baseline(before) => {
            let (wanted, kept): (Vec<_>, Vec<_>) =
                before.tensors.iter().cloned().partition(|tensor| args.input.wants(&tensor.identity));
            let wanted = Snapshot { options: before.options.clone(), tensors: wanted };
            if let Some(other) = now.other_option(before).filter(|_| !kept.is_empty()) {
                return wrong(format!(
                    "was made with other options: {other}; the tensors that are filtered out cannot be kept"
                ));
            }
            (changes(&now, &wanted, kept.len()), kept)
        }
    };
    if args.input.steps.is_none() {
        unite(&mut now.tensors, &mut kept, |tensor| &mut tensor.step);
    }
    if args.input.ranks.is_none() {
        unite(&mut now.tensors, &mut kept, |tensor| &mut tensor.rank);
    }
    now.tensors.extend(kept);
    if let Some(twice) = now.ambiguous() {
        let name = escape(&twice.name);
        return wrong(format!(
            "is not written: two tensors are called '{name}', and could not be told apart"
        ));
    }
    save::replace(path, baseline::write(&now).as_bytes())?;
    let tensors = plural(now.tensors.len() as u64, "tensor");
    print(&format!("{}: baseline of {tensors} ({changes})", escape(&path.display().to_string())))?;
    Ok(Outcome::Done)
}

/// `1 changed, 2 new, 0 gone, 38 kept`
fn changes(now: &Snapshot, before: &Snapshot, kept: usize) -> String {
    let pairing = Pairing::new(&now.identities(), &before.identities());
    let changed = |&&(new, old): &&(usize, usize)| now.tensors[new].values != before.tensors[old].values;
    let changed = pairing.pairs.iter().filter(changed).count();
    let kept = if kept > 0 { format!(", {} kept", count(kept as u64)) } else { String::new() };
    format!("{changed} changed, {} new, {} gone{kept}", pairing.only_first.len(), pairing.only_second.len())
}

/// Tensors of one step, or of one rank, are known without it. Where those of two come into one baseline they have to
/// be so still: without it.
fn unite(now: &mut [Figures], kept: &mut [Figures], of: fn(&mut Identity) -> &mut Option<u64>) {
    let numbers = |tensors: &mut [Figures]| -> BTreeSet<Option<u64>> {
        tensors.iter_mut().map(|tensor| *of(&mut tensor.identity)).collect()
    };
    let (first, second) = (numbers(now), numbers(kept));
    if first.len() == 1 && second.len() == 1 && first != second {
        now.iter_mut().chain(kept).for_each(|tensor| *of(&mut tensor.identity) = None);
    }
}
