//! `amp-inspect fp8` on traces, which have the largest magnitude of each tensor at each step and no values.

use std::collections::BTreeMap;
use std::path::Path;

use super::args::Fp8Args;
use super::{Outcome, Outputs, options};
use crate::cli::simulate::refuse;
use crate::error::{Error, Result};
use crate::format::find;
use crate::pipeline::{Fp8Plan, replay_magnitudes};
use crate::report::fp8::{Cell, Fp8Report, Origin};
use crate::report::histogram::{Input, Place};
use crate::scaler::fp8::Role;
use crate::scaler::trace::{Evidence, Join, read};
use crate::stats::SourceStats;

/// Extensions of traces; TensorBoard's event files are told by their names.
const TRACES: [&str; 4] = ["csv", "tsv", "jsonl", "ndjson"];

/// Whether a path is that of a trace, by its name.
pub(super) fn is_trace(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.contains(".tfevents.") || TRACES.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

pub(super) fn run(args: Fp8Args, mut plan: Fp8Plan, outputs: Outputs) -> Result<Outcome> {
    let paths = &args.input.paths;
    if let Some(dump) = paths.iter().find(|path| !is_trace(path)) {
        return Err(Error::new("traces (.csv, .tsv, .jsonl, TensorBoard) and dumps are not read together")
            .in_file(dump));
    }
    refuse(&args.input.of_dumps(), "is for dumps, not for traces")?;
    let all = plan.recipes.len();
    plan.recipes.retain(|recipe| recipe.variant().is_some());
    if plan.recipes.is_empty() {
        return Err(Error::new(
            "a trace has no values, only their largest magnitudes: the recipes for it are those of delayed scaling",
        ));
    }
    let mut notices = Vec::new();
    if plan.recipes.len() < all {
        notices.push(
            "a trace has no values, only their largest magnitudes: other recipes are left out".to_owned(),
        );
    }
    let any = regex::Regex::new("$^").map_err(|error| Error::new(error.to_string()))?;
    let mut join = Join::new(find("float32")?, any, Evidence::Magnitudes).remembering();
    for path in paths {
        let said = read(path, &args.column, &mut join)?;
        notices.extend(said.into_iter().map(|notice| format!("{}: {notice}", path.display())));
    }
    let (names, magnitudes) = join.into_magnitudes();
    let steps = args.input.steps.as_ref();
    let mut series: BTreeMap<Option<u32>, BTreeMap<u64, f32>> = BTreeMap::new();
    for magnitude in magnitudes {
        if steps.is_none_or(|steps| steps.contain(magnitude.step)) {
            let amax = series.entry(magnitude.tensor).or_default().entry(magnitude.step).or_insert(0.0);
            *amax = amax.max(magnitude.amax as f32);
        }
    }
    if series.is_empty() {
        return Err(Error::new(match steps {
            Some(steps) => format!("the trace has no magnitude at a step of --steps {}", steps.text()),
            None => "the trace has no magnitudes: grad_amax or amax:TENSOR".to_owned(),
        }));
    }

    let mut report = Fp8Report::new(&plan.recipes, options(&args));
    report.inputs = paths.iter().map(|path| Input::new(path.display().to_string(), Vec::new())).collect();
    // The columns of traces are those of gradients.
    let role = args.roles.role.unwrap_or(Role::Gradient);
    for (number, (tensor, amaxes)) in series.into_iter().enumerate() {
        // Without a tensor's name the column says what it is of.
        let name = tensor.and_then(|tensor| names.get(tensor as usize)).map_or("amax", String::as_str);
        let all: Vec<f32> = amaxes.values().copied().collect();
        for ((&step, &amax), casts) in amaxes.iter().zip(replay_magnitudes(role, &all, &plan)) {
            let cells = plan.recipes.iter().zip(&casts).map(|(recipe, cast)| {
                Cell::new(recipe.name, &cast.spec, cast.scale, cast.moment.as_ref(), None)
            });
            let place = Place { name: name.to_owned(), step: Some(step), ranks: Vec::new() };
            let amax = amax.is_finite().then_some(f64::from(amax));
            let origin = Origin { input: 0, series: number, place, role: role.name(), info: None, amax };
            report.push(origin, &SourceStats::default(), cells.collect(), &vec![None; casts.len()]);
        }
    }
    report.conclude();
    outputs.notices(&notices);
    report.notices = notices;
    outputs.write(&report, Fp8Report::terminal)?;
    Ok(Outcome::Done)
}
