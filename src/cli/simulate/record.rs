//! From the paths that were typed to a trace: made up, from traces, or from dumps.

use std::path::{Path, PathBuf};

use super::args::{SimulateArgs, Unscale};
use crate::cli::input_args::InputArgs;
use crate::cli::inputs::{Dump, Inputs, Selected, require};
use crate::cli::progress::Progress;
use crate::cli::threads;
use crate::error::{Error, Result};
use crate::pipeline;
use crate::report::simulate::Record;
use crate::scaler::dumps::Dumps;
use crate::scaler::trace::{Evidence, Join, SYNTHETICS, Step, Synthetic, Trace, read as read_trace};
use crate::source::metadata::recorded_scale;
use crate::stats::{StatsPlan, TensorAccumulator};

/// Extensions of traces; TensorBoard's event files are told by their names, and all else are dumps.
const TRACES: [&str; 5] = ["csv", "tsv", "jsonl", "ndjson", "json"];

/// Steps of a made-up record.
const DEFAULT_STEPS: u32 = 6000;
const MAX_STEPS: u32 = 1_000_000;

/// A trace, and what is to be said of how it came about.
pub(super) struct Read {
    pub(super) trace: Trace,
    pub(super) record: Record,
    pub(super) notices: Vec<String>,
    pub(super) problems: Vec<Error>,
}

/// Reads or makes up the record.
pub(super) fn read(args: &SimulateArgs) -> Result<Read> {
    if args.paths.is_empty() {
        return made_up(args);
    }
    let traces: Vec<Vec<PathBuf>> = args.paths.iter().map(|path| traces_at(path)).collect();
    let read = if traces.iter().all(|traces| !traces.is_empty()) {
        from_traces(args, &traces.concat())
    } else if traces.iter().all(Vec::is_empty) {
        from_dumps(args)
    } else {
        Err(Error::new("traces (.csv, .tsv, .jsonl, TensorBoard) and dumps are not read together"))
    };
    let mut read = read?;
    let steps = &read.trace.steps;
    let said = |step: &Step| step.recorded.is_some() || step.nonfinite.is_some() || !step.amax().is_nan();
    if !steps.iter().any(said) {
        let what = format!(
            "with --evidence {} nothing in the record says whether a step overflows",
            args.evidence.name()
        );
        return Err(Error::new(what));
    }
    if args.suggest && !has_magnitudes(&read.trace) {
        return Err(Error::new(
            "--suggest needs finite gradients that are not all zero: grad_amax, amax:TENSOR or dumps",
        ));
    }
    if read.trace.tensors.is_empty() && args.evidence != Evidence::Flags && has_magnitudes(&read.trace) {
        let all = format!(
            "the record names no tensors: every gradient is taken to be made in {}",
            args.format.name
        );
        read.notices.push(all);
    }
    Ok(read)
}

/// The traces that `path` stands for: itself, the event files in it, or none.
fn traces_at(path: &Path) -> Vec<PathBuf> {
    let is_event_file =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".tfevents."));
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if is_event_file(path) || TRACES.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return vec![path.to_owned()];
    }
    // What cannot be listed is told of when it is read.
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut events: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_event_file(path)).collect();
    events.sort();
    events
}

fn has_magnitudes(trace: &Trace) -> bool {
    trace.steps.iter().any(|step| step.amax() > 0.0)
}

/// Refuses the first option that was given and says nothing of such a record.
pub(in crate::cli) fn refuse(given: &[(&str, bool)], why: &str) -> Result<()> {
    given
        .iter()
        .find(|(_, given)| *given)
        .map_or(Ok(()), |(option, _)| Err(Error::new(format!("{option} {why}"))))
}

/// The options that only dumps have a use for, and whether they were given.
fn of_dumps(args: &SimulateArgs) -> [(&'static str, bool); 6] {
    [
        ("--tensor", args.tensor.is_some()),
        ("--exclude", args.exclude.is_some()),
        ("--ranks", args.ranks.is_some()),
        ("--layout", args.layout.is_some()),
        ("--dtype", args.dtype.is_some()),
        ("--unscale", !matches!(args.unscale, Unscale::By(1.0))),
    ]
}

/// The options that only traces have a use for, and whether they were given.
fn of_traces(args: &SimulateArgs) -> [(&'static str, bool); 1] {
    [("--column", !args.column.is_empty())]
}

fn made_up(args: &SimulateArgs) -> Result<Read> {
    refuse(&of_dumps(args), "is for dumps, of which no path is given")?;
    refuse(&of_traces(args), "is for traces, of which no path is given")?;
    let steps = match &args.steps {
        None => DEFAULT_STEPS,
        Some(steps) => {
            let number = steps.single().and_then(|number| u32::try_from(number).ok());
            number.filter(|number| (1..=MAX_STEPS).contains(number)).ok_or_else(|| {
                Error::new(format!(
                    "--steps {}: of a made-up record it is their number, from 1 to {MAX_STEPS}",
                    steps.text()
                ))
            })?
        }
    };
    let kind = args.synthetic.unwrap_or(Synthetic::Decay);
    let name = SYNTHETICS.iter().find(|(_, known, _)| *known == kind);
    let about = name.map(|(name, _, about)| format!("{name}, seed {}: {about}", args.seed));
    Ok(Read {
        trace: kind.trace(steps, args.seed, args.format),
        record: Record { synthetic: about, ..Record::default() },
        notices: Vec::new(),
        problems: Vec::new(),
    })
}

fn inputs(args: &SimulateArgs) -> Vec<String> {
    args.paths.iter().map(|path| path.display().to_string()).collect()
}

fn from_traces(args: &SimulateArgs, paths: &[PathBuf]) -> Result<Read> {
    refuse(&of_dumps(args), "is for dumps, not for traces")?;
    let mut join = Join::new(args.format, args.fp32_grads.clone(), args.evidence);
    let mut notices = Vec::new();
    for path in paths {
        let said = read_trace(path, &args.column, &mut join)?;
        notices.extend(said.into_iter().map(|notice| format!("{}: {notice}", path.display())));
    }
    let (mut trace, single) = join.finish();
    if let Some(steps) = &args.steps {
        trace.steps.retain(|step| steps.contain(step.number));
        if trace.steps.is_empty() {
            return Err(Error::new(format!("the record has no step of --steps {}", steps.text())));
        }
    }
    let record = Record { inputs: inputs(args), fp32_grads: single, ..Record::default() };
    Ok(Read { trace, record, notices, problems: Vec::new() })
}

fn from_dumps(args: &SimulateArgs) -> Result<Read> {
    refuse(&of_traces(args), "is for traces, not for dumps")?;
    let filters = InputArgs {
        paths: args.paths.clone(),
        tensor: args.tensor.clone(),
        exclude: args.exclude.clone(),
        steps: args.steps.clone(),
        ranks: args.ranks.clone(),
        layout: args.layout.clone(),
        dtype: args.dtype.clone(),
        unscale: None,
        shape: None,
        endian: None,
    };
    let inputs = Inputs::open(filters);
    let (mut selected, skipped, mut problems) = inputs.select();
    problems.splice(0..0, inputs.problems.iter().cloned());
    let mut notices: Vec<String> = inputs.notices.iter().cloned().chain(skipped).collect();
    notices.extend(match args.unscale {
        Unscale::By(scale) => inputs.other_scales(scale),
        Unscale::Recorded => None,
    });
    notices.extend(Inputs::drop_replicas(&mut selected, threads(args.output.threads)));
    require(&selected, &inputs, &problems)?;

    let (mut tasks, mut files) = (Vec::new(), Vec::new());
    for Selected { task, dump, .. } in selected {
        let Dump { path, place, source } = &inputs.dumps()[dump];
        let scale = match args.unscale {
            Unscale::By(scale) => Some(scale.into()),
            Unscale::Recorded => recorded_scale(source.metadata()).map(|(_, scale)| scale),
        };
        let lacks = match (place.step, scale) {
            (Some(step), Some(scale)) => {
                files.push((step, scale, dump));
                tasks.push(task);
                continue;
            }
            (None, _) => {
                "says nowhere which step it is of: neither its metadata nor its path; --layout may tell"
            }
            (_, None) => "does not record its loss scale: its metadata has no loss_scale",
        };
        let error = Error::new(lacks).in_file(path);
        if problems.last() != Some(&error) {
            problems.push(error);
        }
    }
    let progress = Progress::new(tasks.iter().map(|task| task.info.bytes()).sum(), args.output.quiet);
    let plan = StatsPlan::new(Vec::new());
    let new = |info: &crate::tensor::TensorInfo| TensorAccumulator::new(&plan, &info.name, info.elements);
    let results = pipeline::run(&tasks, threads(args.output.threads), new, |bytes| progress.add(bytes));
    progress.finish();

    let mut join = Join::new(args.format, args.fp32_grads.clone(), args.evidence);
    let mut dumps = Dumps::default();
    for ((task, &(step, scale, dump)), result) in tasks.iter().zip(&files).zip(results) {
        match result {
            Ok(stats) => dumps.add(step, &inputs.name(dump, &task.info), &stats.source, scale, &mut join),
            Err(error) => problems.push(error),
        }
    }
    if !dumps.has_histograms {
        notices.push(
            "what underflows is not known: the scale of the stored gradients is no power of two".into(),
        );
    }
    if dumps.repeated > 0 {
        let many = dumps.repeated;
        notices.push(format!(
            "{many} tensors are in more than one file of their step, as ranks and copies are: all count"
        ));
    }
    dumps.finish(&mut join);
    let (trace, single) = join.finish();
    if trace.steps.is_empty() {
        return Err(problems.pop().unwrap_or_else(|| Error::new("found no dump of a known step")));
    }
    let record = Record { inputs: self::inputs(args), fp32_grads: single, ..Record::default() };
    Ok(Read { trace, record, notices, problems })
}
