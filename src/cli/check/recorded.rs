//! Figures of a report that `histogram` made before: they are what they are, and can only be chosen from.

use std::path::Path;

use serde_json::Value;

use super::measure::Measured;
use super::{CheckArgs, asked_formats};
use crate::check::figures::Snapshot;
use crate::error::{Error, Result};

/// Longest report that is read.
const LONGEST: u64 = 1 << 30;

/// The figures of a report that are wanted, and what it says was amiss when it was made.
pub(super) fn measured(args: &CheckArgs, report: &Value) -> Result<Measured> {
    if let Some(option) = needs_values(args) {
        return Err(Error::new(format!("is a report: {option} needs the dump that it was made of")));
    }
    let mut snapshot = Snapshot::from_report(report)?;
    if snapshot.tensors.is_empty() {
        return Err(Error::new("has no tensors"));
    }
    let has = snapshot.formats();
    if let Some(format) = asked_formats(&args.cast).iter().flatten().find(|format| !has.contains(format)) {
        return Err(Error::new(format!("is a report without figures of {format}")));
    }
    snapshot.tensors.retain(|tensor| args.input.wants(&tensor.identity));
    if snapshot.tensors.is_empty() {
        return Err(Error::new(
            "no tensor of the report is left: check --tensor, --exclude, --steps and --ranks",
        ));
    }
    let problems = sentences(report, "problems")?.into_iter().map(Error::new).collect();
    Ok(Measured { snapshot, notices: sentences(report, "notices")?, problems })
}

/// The first option that was given and asks for other figures than a report has.
fn needs_values(args: &CheckArgs) -> Option<&'static str> {
    let (input, cast) = (&args.input, &args.cast);
    let options = [
        (input.unscale.is_some(), "--unscale"),
        (input.dtype.is_some(), "--dtype"),
        (input.layout.is_some(), "--layout"),
        (cast.scale != 1.0, "--scale"),
        (cast.profile.is_some(), "--profile"),
        (cast.overflow.is_some(), "--overflow"),
        (cast.rounding.is_some(), "--rounding"),
        (cast.ftz, "--ftz"),
        (cast.daz, "--daz"),
    ];
    options.into_iter().find_map(|(given, name)| given.then_some(name))
}

fn sentences(report: &Value, name: &str) -> Result<Vec<String>> {
    let sentences = report[name].as_array();
    let sentences = sentences.and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
    sentences.ok_or_else(|| {
        Error::new(format!("is no report of 'histogram --json': '{name}' is no list of texts"))
    })
}

/// The JSON at this path, if it is a report of `histogram`.
pub(super) fn report_at(path: &Path) -> Option<Value> {
    let named_so = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if !named_so || length > LONGEST {
        return None;
    }
    let report: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    (report["tool"]["name"] == "amp-inspect").then_some(report)
}
