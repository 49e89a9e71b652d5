//! Wiring of `amp-inspect fp8`.

mod args;
mod trace;

pub(super) use args::{Fp8Args, RoleArgs};

use super::Outcome;
use super::by::By;
use super::inputs::{Inputs, Selected};
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::rows::rows;
use super::series::{Series, series};
use super::simulate::refuse;
use crate::error::{Error, Result};
use crate::pipeline::{self, Fp8Plan, Fp8Step};
use crate::report::fp8::{Cell, Fp8Report, Options, Origin};
use crate::report::histogram::Place;
use crate::report::number::Num;
use crate::scaler::fp8::{AMAX_ALGOS, FORMATS, Recipe, Settings};

pub(super) fn run(args: Fp8Args) -> Result<Outcome> {
    let threads = super::threads(args.output.threads);
    let outputs = Outputs::prepare(args.output.clone())?;
    outputs.keep_apart(None, &args.input.paths)?;
    let plan = plan(&args);
    if args.input.paths.iter().any(|path| trace::is_trace(path)) {
        return trace::run(args, plan, outputs);
    }
    refuse(&[("--column", !args.column.is_empty())], "is for traces, not for dumps")?;
    let mut report = Fp8Report::new(&plan.recipes, options(&args));
    let roles = args.roles.roles();
    let inputs = Inputs::open(args.input);
    let (selected, notices, mut problems) = inputs.select_once(threads);
    outputs.notices(&notices);
    super::inputs::require(&selected, &inputs, &problems)?;

    let rows = rows(&inputs, &selected, By::Tensor);
    let series = series(&inputs, &selected, rows, &roles);
    let (tasks, dumps): (Vec<_>, Vec<_>) =
        selected.into_iter().map(|Selected { task, dump, .. }| (task, dump)).unzip();
    let progress = Progress::new(plan.bytes_to_read(&tasks), args.output.quiet);
    let of_series: Vec<_> = series.iter().map(Series::tasks).collect();
    let found = pipeline::run_fp8(&tasks, &of_series, &plan, threads, |bytes| progress.add(bytes));
    progress.finish();
    problems.extend(found.problems);

    report.inputs = inputs.dumps().iter().map(super::histogram::input_row).collect();
    let mut any = false;
    for (number, (series, steps)) in series.into_iter().zip(found.series).enumerate() {
        for ((place, members), step) in series.steps.into_iter().zip(steps) {
            let (Some(step), Some(&first)) = (step, members.first()) else { continue };
            for &member in &members {
                report.inputs[dumps[member]].count(&tasks[member].info);
            }
            let place = Place { name: series.name.clone(), ..place };
            let (input, info) = (dumps[first], &tasks[first].info);
            let role = series.role.name();
            let amax = step.source.amax();
            let origin = Origin { input, series: number, place, role, info: Some(info), amax };
            push(&mut report, &plan, origin, &step);
            any = true;
        }
    }
    if !any {
        return super::inputs::require(&[], &inputs, &problems).map(|()| Outcome::Incomplete);
    }
    report.conclude();
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, Fp8Report::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

fn push(report: &mut Fp8Report, plan: &Fp8Plan, origin: Origin<'_>, step: &Fp8Step) {
    let cells = plan.recipes.iter().zip(&step.recipes).map(|(recipe, cast)| {
        Cell::new(recipe.name, &cast.spec, cast.scale, cast.moment.as_ref(), cast.stats.as_ref())
    });
    let stats: Vec<_> = step.recipes.iter().map(|cast| cast.stats.as_ref()).collect();
    report.push(origin, &step.source, cells.collect(), &stats);
}

/// What was asked for, each recipe once.
fn plan(args: &Fp8Args) -> Fp8Plan {
    let mut recipes: Vec<&'static Recipe> = Vec::new();
    for recipe in args.recipe.iter().flat_map(|recipes| &recipes.0) {
        if !recipes.iter().any(|known| known.name == recipe.name) {
            recipes.push(recipe);
        }
    }
    let settings = Settings { history: args.history as usize, margin: args.margin, algo: args.amax_algo };
    Fp8Plan { recipes, elements: args.format, settings }
}

fn options(args: &Fp8Args) -> Options {
    let name = |names: &[(&'static str, _, &str)], wanted| {
        names.iter().find(|(_, value, _)| *value == wanted).map(|(name, ..)| *name)
    };
    Options {
        format: args.format.and_then(|format| FORMATS.iter().find(|row| row.1 == format)).map(|row| row.0),
        role: args.roles.role.map(crate::scaler::fp8::Role::name),
        gradients: args.roles.gradients.to_string(),
        activations: args.roles.activations.to_string(),
        history: args.history as usize,
        margin: args.margin,
        amax_algo: name(AMAX_ALGOS, args.amax_algo).unwrap_or_default(),
        unscale: args.input.unscale.map(|scale| Num(scale.into())),
        sort: args.sort,
    }
}
