//! `amp-inspect fp8` on traces, which have the largest magnitude of each tensor at each step and no values.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;

use super::args::Fp8Args;
use super::{Outcome, Outputs, options};
use crate::cli::simulate::refuse;
use crate::error::{Error, Result};
use crate::format::find;
use crate::pipeline::{Fp8Plan, replay_magnitudes};
use crate::report::fp8::{Cell, Fp8Report, Origin};
use crate::report::histogram::{Input, Place};
use crate::scaler::fp8::Role;
use crate::scaler::trace::{Evidence, Join, Magnitude, read};
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
    let mut report = Fp8Report::new(&plan.recipes, options(&args));
    let mut series: Vec<Series> = Vec::new();
    for (input, path) in paths.iter().enumerate() {
        let (found, said) = magnitudes(path, &args)?;
        notices.extend(said.into_iter().map(|notice| format!("{}: {notice}", path.display())));
        report.inputs.push(Input::new(path.display().to_string(), Vec::new()));
        report.inputs[input].tensors = found.len() as u64;
        for (name, steps) in found {
            let number = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
                series.push(Series { name, steps: BTreeMap::new() });
                series.len() - 1
            });
            for (step, amax) in steps {
                let known = series[number].steps.entry(step).or_insert((amax, input));
                if amax > known.0 {
                    *known = (amax, input);
                }
            }
        }
    }
    if series.is_empty() {
        let error = Error::new(match &args.input.steps {
            Some(steps) => format!("has no magnitude at a step of --steps {}", steps.text()),
            None => "has no magnitudes: grad_amax or amax:TENSOR".to_owned(),
        });
        return Err(error.in_file(&paths[0]));
    }

    // The columns of traces are those of gradients.
    let role = args.roles.role.unwrap_or(Role::Gradient);
    for (number, Series { name, steps }) in series.into_iter().enumerate() {
        let all: Vec<f32> = steps.values().map(|(amax, _)| *amax).collect();
        for ((step, (amax, input)), casts) in steps.into_iter().zip(replay_magnitudes(role, &all, &plan)) {
            let cells = plan.recipes.iter().zip(&casts).map(|(recipe, cast)| {
                Cell::new(recipe.name, &cast.spec, cast.scale, cast.moment.as_ref(), None)
            });
            let place = Place { name: name.clone(), step: Some(step), ranks: Vec::new() };
            let amax = amax.is_finite().then_some(f64::from(amax));
            let origin = Origin { input, series: number, place, role: role.name(), info: None, amax };
            report.push(origin, &SourceStats::default(), cells.collect(), &vec![None; casts.len()]);
        }
    }
    report.conclude();
    outputs.notices(&notices);
    report.notices = notices;
    outputs.write(&report, Fp8Report::terminal)?;
    Ok(Outcome::Done)
}

/// A tensor over all files.
struct Series {
    name: String,
    /// By step the largest magnitude, and the number of the file that has it.
    steps: BTreeMap<u64, (f32, usize)>,
}

/// A tensor's largest magnitudes by step, of one file.
type Found = Vec<(String, BTreeMap<u64, f32>)>;

/// The magnitudes of each tensor in a trace, and what is to be said beside them.
fn magnitudes(path: &Path, args: &Fp8Args) -> Result<(Found, Vec<String>)> {
    let none = Regex::new("$^").map_err(|error| Error::new(error.to_string()))?;
    let mut join = Join::new(find("float32")?, none, Evidence::Magnitudes).remembering();
    let said = read(path, &args.column, &mut join)?;
    let (names, magnitudes) = join.into_magnitudes();
    let mut by_tensor: BTreeMap<Option<u32>, BTreeMap<u64, f32>> = BTreeMap::new();
    for Magnitude { step, tensor, amax } in magnitudes {
        if args.input.steps.as_ref().is_none_or(|steps| steps.contain(step)) {
            let known = by_tensor.entry(tensor).or_default().entry(step).or_insert(0.0);
            *known = known.max(amax as f32);
        }
    }
    // Without a tensor's name the column says what it is of.
    let name = |tensor: Option<u32>| tensor.and_then(|tensor| names.get(tensor as usize));
    let found = by_tensor.into_iter();
    let found =
        found.map(|(tensor, steps)| (name(tensor).map_or_else(|| "amax".to_owned(), String::clone), steps));
    Ok((found.collect(), said))
}
