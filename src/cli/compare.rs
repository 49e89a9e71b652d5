//! Wiring of `amp-inspect compare`.

use std::collections::HashMap;

use clap::Args;
use clap::builder::TypedValueParser;

use super::Outcome;
use super::args::{OutputArgs, choices, named, save_help};
use super::input_args::InputArgs;
use super::inputs::{Inputs, Selected};
use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use crate::check::pairing::{Identity, Pairing, Rename};
use crate::error::{Error, Result, escape};
use crate::pipeline::{self, Task};
use crate::report::Needs;
use crate::report::compare::{Alone, CompareReport, Options, Reshaped, Row, SORTS, Side, Sort};
use crate::stats::pair::Tolerance;
use crate::stats::{PairAccumulator, PairPlan};

/// How far two dumps are apart, tensor by tensor: errors, units in the last place, signs, NaN and Inf, the
/// worst element, and the first tensor that differs
#[derive(Args)]
#[command(
    override_usage = "amp-inspect compare [OPTIONS] REFERENCE OTHER",
    before_help = "Example:\n  amp-inspect compare fp32.safetensors bf16.safetensors --save errors.png\n  \
                   amp-inspect compare jax/ torch.pt --map '^block_(\\d+)/(\\w+)=h.$1.$2'",
    after_help = DEFINITIONS,
    mut_arg("save", |save| save.long_help(save_help(&[Needs::Picture, Needs::Verdicts])))
)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Change names of the reference before they are looked for; $1 is the first group (repeatable)
    #[arg(long, value_name = "REGEX=NEW", value_parser = rename, help_heading = "Input")]
    map: Vec<Rename>,
    /// Relative tolerance [default: by type, as torch.testing.assert_close]
    #[arg(long, value_name = "R", value_parser = tolerance, help_heading = "Comparison")]
    rtol: Option<f64>,
    /// Absolute tolerance [default: by type, as torch.testing.assert_close]
    #[arg(long, value_name = "A", value_parser = tolerance, help_heading = "Comparison")]
    atol: Option<f64>,
    /// Order of the tensors in tables
    #[arg(long, value_name = "KEY", default_value = "worst", value_parser = sort_parser(), long_help = sort_help(), hide_possible_values = true, help_heading = "Output")]
    sort: Sort,
    #[command(flatten)]
    output: OutputArgs,
}

const DEFINITIONS: &str = "\
Definitions (x: an element of the reference, y: the other's at that place):
  equal       the same value and sign; any NaN equals any NaN
  outside     |x − y| > atol + rtol·|x|, or NaN or Inf on one side only
  rel L2      ‖x − y‖ / ‖x‖; this and the rest over pairs of finite elements
  max abs, mean abs
              of |x − y|
  max ulp     how many numbers of the coarser type lie from x to y, both
              rounded to it
  p99 ulp     what 99 % of the pairs do not exceed
  cosine      x·y / (‖x‖·‖y‖)
  sign flips  pairs of nonzero elements with opposite signs

Tolerances by type, of two types the larger:
  float64     rtol 1e-7, atol 1e-7
  float32     rtol 1.3e-6, atol 1e-5
  float16     rtol 1e-3, atol 1e-5
  bfloat16    rtol 1.6e-2, atol 1e-5
  others      rtol one unit in the last place, atol 0

A step or rank is part of a tensor's name where one of the dumps has several.

Exit code: 0 every tensor is in both and within the tolerance; 1 some are not;
2 wrong usage, something could not be read, or nothing was compared.";

fn rename(text: &str) -> std::result::Result<Rename, String> {
    Rename::parse(text).map_err(|error| error.to_string())
}

fn tolerance(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a tolerance is a number from 0 on".into())
}

fn sort_parser() -> impl TypedValueParser<Value = Sort> {
    named(SORTS.iter().map(|(name, sort, _)| (*name, *sort)))
}

fn sort_help() -> String {
    let keys = choices(SORTS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("Order of the tensors in tables:{keys}")
}

pub(super) fn run(args: CompareArgs) -> Result<Outcome> {
    let CompareArgs { input, map, rtol, atol, sort, output } = args;
    let threads = super::threads(output.threads);
    let quiet = output.quiet;
    let [reference, other] = input.paths.as_slice() else {
        let given = input.paths.len();
        let what = "compare takes two paths, a reference and what is compared with it; a directory or a quoted glob can \
                    stand for several files";
        return Err(Error::new(format!("{what} ({given} given)")));
    };
    let outputs = Outputs::with_verdicts_and_picture(output)?;
    outputs.keep_apart(None, &input.paths)?;
    let side = |path| Inputs::open(InputArgs { paths: vec![path], ..input.clone() });
    let inputs = [side(reference.clone()), side(other.clone())];
    let (mut notices, mut problems) = (Vec::new(), Vec::new());
    let [first, second] = [&inputs[0], &inputs[1]].map(|inputs| {
        let (selected, skipped, failed) = inputs.select();
        notices.extend(inputs.notices.iter().cloned().chain(skipped));
        notices.extend(inputs.other_scales(input.unscale.unwrap_or(1.0)));
        problems.extend(inputs.problems.iter().cloned().chain(failed));
        selected
    });
    outputs.notices(&notices);
    super::inputs::require(&first, &inputs[0], &problems)?;
    super::inputs::require(&second, &inputs[1], &problems)?;

    let renamed = |name: String| map.iter().fold(name, |name, map| map.apply(&name));
    let places = [identities(&inputs[0], &first, renamed), identities(&inputs[1], &second, |name| name)];
    let pairing = match (&*first, &*second) {
        // Arrays in files of their own: these two are meant, whatever they are called.
        ([_], [_]) if !inputs[0].filters_tensors() => Pairing { pairs: vec![(0, 0)], ..Pairing::default() },
        _ => Pairing::new(&places[0], &places[1]),
    };
    let own_places = identities(&inputs[0], &first, |name| name);
    refuse_collisions(&own_places, &places[0])?;
    let options = Options {
        rtol,
        atol,
        map: map.iter().map(|map| map.text().to_owned()).collect(),
        tensor: input.tensor.as_ref().map(ToString::to_string),
        exclude: input.exclude.as_ref().map(ToString::to_string),
        steps: input.steps.as_ref().map(|steps| steps.text().to_owned()),
        ranks: input.ranks.as_ref().map(|ranks| ranks.text().to_owned()),
        dtype: input.dtype.as_ref().map(|dtype| dtype.name().to_owned()),
        unscale: input.unscale.map(f64::from),
        sort,
    };
    let [reference, other] = [(&first, 0), (&second, 1)].map(|(selected, number)| Side {
        path: input.paths[number].display().to_string(),
        files: inputs[number].dumps().len() as u64,
        tensors: selected.len() as u64,
        elements: selected.iter().map(|tensor| tensor.task.info.elements).sum(),
    });
    let mut report = CompareReport::new(options, reference, other);
    report.missing = pairing.only_first.iter().map(|&tensor| Alone::from(&own_places[tensor])).collect();
    report.extra = pairing.only_second.iter().map(|&tensor| Alone::from(&places[1][tensor])).collect();

    let (same_shape, reshaped): (Vec<_>, Vec<_>) =
        pairing.pairs.into_iter().partition(|&(a, b)| first[a].task.info.shape == second[b].task.info.shape);
    report.reshaped = reshaped
        .into_iter()
        .map(|(a, b)| Reshaped {
            tensor: own_places[a].name.clone(),
            shape: first[a].task.info.shape.clone(),
            other_shape: second[b].task.info.shape.clone(),
        })
        .collect();
    let plans: Vec<PairPlan> = same_shape
        .iter()
        .map(|&(a, b)| {
            let (a, b) = (&first[a].task.info.dtype, &second[b].task.info.dtype);
            let default = Tolerance::default_for(a, b);
            let tolerance =
                Tolerance { rtol: rtol.unwrap_or(default.rtol), atol: atol.unwrap_or(default.atol) };
            PairPlan::new(a, b, tolerance)
        })
        .collect();
    let groups: Vec<Vec<Task<'_>>> =
        same_shape.iter().map(|&(a, b)| [&first[a].task, &second[b].task].map(Task::clone).into()).collect();
    let progress = Progress::new(groups.iter().flatten().map(|task| task.info.bytes()).sum(), quiet);
    let new = |group: usize| PairAccumulator::new(&plans[group]);
    let results = pipeline::run_together(&groups, threads, new, |bytes| progress.add(bytes));
    progress.finish();
    for ((result, &(a, b)), plan) in results.into_iter().zip(&same_shape).zip(&plans) {
        let (x, y) = (&first[a].task, &second[b].task);
        let column_major = x.source.column_major(x.index) && y.source.column_major(y.index);
        match result {
            Ok(stats) => {
                report.tensors.push(Row::new(&own_places[a], &x.info, &y.info, plan, &stats, column_major));
            }
            Err(error) => problems.push(error),
        }
    }
    if report.tensors.is_empty() && report.reshaped.is_empty() {
        complain_of_all(problems.iter());
        return Err(Error::new(nothing_compared(&report)));
    }
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    report.conclude();
    complain_of_all(report.problems.iter());
    let outcome = match (report.problems.is_empty() && !report.tensors.is_empty(), report.agrees()) {
        (false, _) => Outcome::Incomplete,
        (true, true) => Outcome::Done,
        (true, false) => Outcome::Findings,
    };
    outputs.write(&report, CompareReport::terminal)?;
    Ok(outcome)
}

/// What the selected tensors are known by.
fn identities(inputs: &Inputs, selected: &[Selected<'_>], name: impl Fn(String) -> String) -> Vec<Identity> {
    let identity = |tensor: &Selected<'_>| {
        let place = &inputs.dumps()[tensor.dump].place;
        let key = inputs.key(tensor.dump, &tensor.task.info);
        Identity { name: name(key), step: place.step, rank: place.rank }
    };
    selected.iter().map(identity).collect()
}

/// Refuses a map that gives two tensors the same name: only one of them would be compared.
fn refuse_collisions(own: &[Identity], renamed: &[Identity]) -> Result<()> {
    let mut known: HashMap<&Identity, &Identity> = HashMap::new();
    for (own, renamed) in own.iter().zip(renamed) {
        let before = known.entry(renamed).or_insert(own);
        if before.name != own.name {
            let [one, other, both] = [&before.name, &own.name, &renamed.name].map(|name| escape(name));
            return Err(Error::new(format!(
                "--map makes two tensors one: '{one}' and '{other}' become '{both}'"
            )));
        }
    }
    Ok(())
}

/// Why nothing was compared.
fn nothing_compared(report: &CompareReport) -> String {
    let first = |alone: &[Alone]| alone.first().map(|alone| escape(&alone.tensor));
    match (first(&report.missing), first(&report.extra)) {
        (Some(one), Some(other)) => format!(
            "nothing was compared: no tensor of one dump is called as one of the other ('{one}', '{other}'); --map \
             changes names"
        ),
        _ => "nothing was compared".into(),
    }
}
