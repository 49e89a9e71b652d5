//! Which scale would have served: the sweep over powers of two, and what follows from it.

use super::run::{Run, Setup};
use super::schedule::{Gaps, Length, Schedule};
use super::simulate::simulate;
use super::trace::Trace;
use super::{Settings, table};
use crate::error::Result;
use crate::format::exponent_of;
use crate::stats::scales::{MAX_FLUSHED_SHARE, flushed};

/// Exponents below and above the largest safe one that the sweep covers.
const REACH: (i32, i32) = (24, 4);
/// Share of skipped steps that a growth interval may cost.
pub const MAX_SKIP_RATIO: f64 = 0.002;
/// Growth intervals that are tried.
const INTERVALS: [u32; 6] = [50, 100, 200, 500, 1000, 2000];

/// One power of two as a constant scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// log2 of the scale.
    pub exponent: i32,
    /// Recorded steps that overflow at it, apart from those that do at any.
    pub overflows: u64,
    /// Share of all nonzero values that are flushed to zero, if histograms are known.
    pub flushed: Option<f64>,
}

/// A tensor that stands in the way of a scale that is safe at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Its name.
    pub tensor: String,
    /// Its largest magnitude.
    pub amax: f64,
    /// Share of its nonzero values that are flushed at the largest scale without overflow.
    pub flushed: Option<f64>,
}

/// What the record says about scales.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The sweep, smallest scale first.
    pub sweep: Vec<Candidate>,
    /// log2 of the largest scale at which no step overflows; `None` if there is none.
    pub largest: Option<i32>,
    /// log2 of the smallest scale that flushes at most [`MAX_FLUSHED_SHARE`]; `None` if none below `largest` does,
    /// or if that is not known.
    pub smallest: Option<i32>,
    /// Whether shares of flushed values are known.
    pub has_histograms: bool,
    /// log2 of the constant scale to take: one bit below the largest, if that is still safe.
    pub best: Option<i32>,
    /// The tensor with the largest magnitude, and those that lose most at the largest scale.
    pub limits: Vec<Limit>,
    /// log2 of a scale to start a dynamic scaler from, fit for the first steps.
    pub init: Option<i32>,
    /// The shortest growth interval that costs torch at most [`MAX_SKIP_RATIO`] of the steps, and that share.
    pub interval: Option<(u32, f64)>,
}

/// Reads `trace` for scales.
///
/// # Errors
/// The trace has no step.
pub fn suggest(trace: &Trace, schedule: &Schedule) -> Result<Suggestion> {
    let all = trace.steps.len();
    // What overflows at a scale overflows at every larger one.
    let largest_of = |steps: usize| {
        let (mut fits, mut too_large) = (-127, 128);
        while too_large - fits > 1 {
            let middle = i32::midpoint(fits, too_large);
            *(if overflows(trace, middle, steps) == 0 { &mut fits } else { &mut too_large }) = middle;
        }
        (fits >= -126).then_some(fits)
    };
    let largest = largest_of(all);
    let has_histograms = !trace.histograms.is_empty();
    let share = |k: i32| has_histograms.then(|| flushed_share(trace, k));
    let safe = |k: i32| share(k).is_some_and(|share| share <= MAX_FLUSHED_SHARE);
    let smallest = largest.and_then(|largest| (-126..=largest).rev().take_while(|&k| safe(k)).last());
    let middle = largest.unwrap_or(0);
    let range = (middle - REACH.0).max(-126)..=(middle + REACH.1).min(127);
    let sweep = range.map(|exponent| Candidate {
        exponent,
        overflows: overflows(trace, exponent, all),
        flushed: share(exponent),
    });
    let best =
        largest.map(|largest| if smallest.is_some_and(|s| s == largest) { largest } else { largest - 1 });
    // A scale for the first steps: a hundredth of the record, but at least ten.
    let init = largest_of((all / 100).max(10).min(all));
    Ok(Suggestion {
        sweep: sweep.collect(),
        largest,
        smallest,
        has_histograms,
        best,
        limits: limits(trace, middle),
        init,
        interval: init.map(|init| interval(trace, schedule, init)).transpose()?.flatten(),
    })
}

/// How many of the first `steps` steps overflow at 2^`k`, apart from those that do at any scale.
fn overflows(trace: &Trace, k: i32, steps: usize) -> u64 {
    let scale = crate::format::pow2(k);
    let finite = trace.steps[..steps].iter().filter(|step| step.nonfinite.is_none());
    finite.filter(|step| trace.at_scale(step, scale).found_inf()).count() as u64
}

fn flushed_share(trace: &Trace, k: i32) -> f64 {
    let lost: u64 = trace.histograms.iter().map(|source| flushed(source, trace.format(), k)).sum();
    let whole: u64 = trace.histograms.iter().map(|source| source.nonzero_finite()).sum();
    lost as f64 / whole.max(1) as f64
}

/// The tensor that ends the range above, then those that end it below, worst first.
fn limits(trace: &Trace, largest: i32) -> Vec<Limit> {
    const SHOWN: usize = 5;
    let limit = |index: u32, amax: f64| {
        let source = trace.by_tensor.get(index as usize);
        let flushed = source.map(|source| {
            flushed(source, trace.format(), largest) as f64 / source.nonzero_finite().max(1) as f64
        });
        Some(Limit { tensor: trace.name(Some(index))?.to_owned(), amax, flushed })
    };
    let top = trace.steps.iter().filter(|step| !step.low.amax.is_nan());
    let top = top.max_by(|a, b| a.low.amax.total_cmp(&b.low.amax));
    let above = top.and_then(|step| limit(step.low.tensor?, step.low.amax));
    let mut below: Vec<Limit> = (0_u32..)
        .zip(&trace.by_tensor)
        .filter_map(|(index, source)| limit(index, source.amax()?))
        .filter(|limit| limit.flushed.is_some_and(|share| share > MAX_FLUSHED_SHARE))
        .collect();
    below.sort_by(|a, b| b.flushed.unwrap_or(0.0).total_cmp(&a.flushed.unwrap_or(0.0)));
    below.truncate(SHOWN);
    let above = above.filter(|above| !below.iter().any(|limit| limit.tensor == above.tensor));
    above.into_iter().chain(below).collect()
}

fn interval(trace: &Trace, schedule: &Schedule, init: i32) -> Result<Option<(u32, f64)>> {
    let spec = table::find("torch")?;
    let once = Schedule::new(trace, Gaps::Skip, Length::Passes(1))?;
    let schedule = if schedule.gaps() == Gaps::Hold { schedule } else { &once };
    for interval in INTERVALS {
        let mut settings = Settings::defaults(spec);
        settings.set(spec, "init_scale", &format!("2^{init}"))?;
        settings.set(spec, "growth_interval", &interval.to_string())?;
        let run: Run = simulate(trace, schedule, &Setup { spec, settings }, None, |_| {});
        let skipped = run.totals.skipped - run.totals.nonfinite;
        let ratio = skipped as f64 / run.totals.steps.max(1) as f64;
        if ratio <= MAX_SKIP_RATIO {
            return Ok(Some((interval, ratio)));
        }
    }
    Ok(None)
}

/// log2 of a scale, if it is a power of two.
pub fn exact_log2(scale: f64) -> Option<i32> {
    let exponent = (scale > 0.0 && scale.is_finite()).then(|| exponent_of(scale))?;
    (crate::format::pow2(exponent) == scale).then_some(exponent)
}
