//! Wiring of `amp-inspect simulate-scaler`.

mod args;
mod record;

pub(super) use args::{SimulateArgs, column_help};
pub(super) use record::refuse;

use args::{Scalers, Unscale};

use super::output::{Outputs, complain_of_all};
use super::progress::Progress;
use super::{Outcome, threads};
use crate::error::{Error, Result, escape};
use crate::pipeline;
use crate::report::number::{Num, plural};
use crate::report::simulate::{Options, ScalersReport, SimulateReport};
use crate::scaler::run::Setup;
use crate::scaler::schedule::{Length, Schedule};
use crate::scaler::suggest::suggest;
use crate::scaler::trace::Trace;
use crate::scaler::{LooksAt, SCALERS, ScalerSpec, Settings};

pub(super) fn run(args: SimulateArgs) -> Result<Outcome> {
    if args.list {
        let report = ScalersReport::default();
        Outputs::without_pictures(args.output)?.write(&report, ScalersReport::terminal)?;
        return Ok(Outcome::Done);
    }
    let outputs = Outputs::prepare(args.output.clone())?;
    outputs.keep_apart(None, &args.paths)?;
    let mut setups = setups(&args)?;
    let record::Read { trace, record, mut notices, problems } = record::read(&args)?;
    notices.extend(leave_out(&mut setups, &trace)?);
    let length = if args.until_steady { Length::UntilSteady } else { Length::Passes(args.repeat) };
    let schedule = Schedule::new(&trace, args.gaps, length)?;

    let progress = Progress::of_steps(schedule.pass() * args.repeat * setups.len() as u64, args.output.quiet);
    let runs =
        pipeline::run_scalers(&trace, &schedule, &setups, args.clip, threads(args.output.threads), |steps| {
            progress.add(steps);
        });
    progress.finish();
    let presumed = runs.iter().map(|run| run.totals.presumed).max().unwrap_or(0);
    notices.extend((presumed > 0).then(|| {
        format!(
            "no magnitudes are known of up to {}: a flag recorded at another or an unknown scale decides, or else they \
             are taken to be clean",
            plural(presumed, "step")
        )
    }));
    let suggestion = args.suggest.then(|| suggest(&trace, &schedule)).transpose()?;

    outputs.notices(&notices);
    let mut report = SimulateReport::new(options(&args), record, trace, schedule, runs, suggestion);
    report.notices = notices;
    report.problems = problems.iter().map(Error::to_string).collect();
    complain_of_all(report.problems.iter());
    let incomplete = !report.problems.is_empty();
    outputs.write(&report, SimulateReport::terminal)?;
    Ok(if incomplete { Outcome::Incomplete } else { Outcome::Done })
}

/// The scalers that were named, each once, with what was set.
fn setups(args: &SimulateArgs) -> Result<Vec<Setup>> {
    let mut setups: Vec<Setup> = Vec::new();
    for scalers in &args.scaler {
        let specs = match scalers {
            Scalers::One(spec) => std::slice::from_ref(*spec),
            Scalers::All => SCALERS,
        };
        for spec in specs {
            if !setups.iter().any(|setup| setup.spec.name == spec.name) {
                setups.push(Setup { spec, settings: Settings::defaults(spec) });
            }
        }
    }
    for pair in &args.set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Error::new(format!("--set takes KEY=VALUE, not '{}'", escape(pair))));
        };
        // Names of scalers have dots in their versions, those of parameters have none.
        let (only, name) = key.rsplit_once('.').map_or((None, key), |(scaler, name)| (Some(scaler), name));
        let only = only.map(crate::scaler::find).transpose()?;
        let mut set = false;
        for setup in setups.iter_mut().filter(|setup| only.is_none_or(|only| only.name == setup.spec.name)) {
            set |= setup.settings.set(setup.spec, name, value)?;
        }
        if !set {
            return Err(Error::new(format!("--set: {}", no_parameter(name, only, &setups))));
        }
    }
    Ok(setups)
}

/// Why no parameter called `name` was set, of the scaler `only` or of any.
fn no_parameter(name: &str, only: Option<&ScalerSpec>, setups: &[Setup]) -> String {
    let name = escape(name);
    match (only, setups) {
        (Some(only), _) if setups.iter().all(|setup| setup.spec.name != only.name) => {
            format!("{} is not among the scalers that are simulated", only.name)
        }
        (Some(spec), _) | (None, &[Setup { spec, .. }]) => {
            let known: Vec<&str> = spec.parameters.iter().map(|parameter| parameter.name).collect();
            format!("{} has no parameter '{name}'; it has {}", spec.name, known.join(", "))
        }
        (None, _) => {
            let names: Vec<&str> = setups.iter().map(|setup| setup.spec.name).collect();
            let of = names.join(", ");
            format!("no parameter '{name}' of {of}; --list shows the parameters of each scaler")
        }
    }
}

/// Leaves out scalers that look at more than the record has.
fn leave_out(setups: &mut Vec<Setup>, trace: &Trace) -> Result<Option<String>> {
    let largest = trace.steps.iter().all(|step| !step.amax().is_nan() || step.nonfinite.is_some());
    let counts = trace.steps.iter().all(|step| step.histogram.is_some());
    let lacks = |setup: &Setup| match setup.spec.looks_at {
        LooksAt::Flags => None,
        LooksAt::Largest if largest => None,
        LooksAt::Largest => {
            Some("looks at the largest gradient of each step, which the record does not have")
        }
        LooksAt::Counts if counts => None,
        LooksAt::Counts => Some("counts large gradients, which only dumps tell"),
    };
    let without: Vec<String> = setups
        .iter()
        .filter_map(|setup| lacks(setup).map(|why| format!("{} {why}", setup.spec.name)))
        .collect();
    if without.is_empty() {
        return Ok(None);
    }
    let without = without.join("; ");
    setups.retain(|setup| lacks(setup).is_none());
    if setups.is_empty() { Err(Error::new(without)) } else { Ok(Some(format!("left out: {without}"))) }
}

fn options(args: &SimulateArgs) -> Options {
    Options {
        format: args.format.name.to_owned(),
        gaps: args.gaps.name(),
        repeat: (!args.until_steady).then_some(args.repeat),
        evidence: args.evidence.name(),
        fp32_grads: args.fp32_grads.to_string(),
        unscale: match args.unscale {
            Unscale::By(scale) => Some(Num(scale.into())),
            Unscale::Recorded => None,
        },
        clip: args.clip.map(Num),
        all_steps: args.all,
    }
}
