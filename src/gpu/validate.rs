//! Asks the card and compares: every conversion, both of its lanes, beside partners that could disturb it.

use std::num::NonZero;

use super::answer::Answer;
use super::driver::{Device, Module};
use super::own;
use super::ptx::{self, WALK_LOG2};
use super::steps::{self, Mismatch, Mismatches, Step, compare, map, widened};
use super::table::least_driver;
use super::{Conversion, Job};
use crate::cast::{CastPlan, Place};
use crate::error::{Error, Result};
use crate::format::decode::decode;
use crate::format::{self, FormatSpec};

/// Steps that a list has room for: twice those of tf32, which has the most.
const CAPACITY: usize = 1 << 20;

/// What stands in the other lane of a float32 pair: zero, NaN, −Inf, the largest number, a subnormal, a
/// number.
const PARTNERS: [u32; 6] = [0, 0x7fff_ffff, 0xff80_0000, 0x7f7f_ffff, 0x8000_0001, 0x40e9_0fdb];

/// How a conversion fared.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every result is the tool's.
    Equal,
    /// Some are not.
    Differs(Mismatches),
    /// The chip has no such instruction.
    NotInHardware,
    /// The driver is too old for the PTX that it is written in; with the CUDA version that it takes.
    NeedsDriver(i32),
    /// It could not be tried, or broke a rule of the harness.
    Failed(Error),
}

/// A question, the answer to it, and how many conversions it took.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The question.
    pub job: Job,
    /// The answer.
    pub verdict: Verdict,
    /// Results compared, each made twice.
    pub inputs: u64,
}

/// Tries every conversion on the card.
pub fn run(
    device: &Device,
    jobs: &[Job],
    threads: NonZero<usize>,
    mut progress: impl FnMut(),
) -> Vec<Outcome> {
    let mut known = Known { threads, lists: Vec::new() };
    let outcome = |job: &Job| {
        let (verdict, inputs) = judge(device, job, &mut known);
        progress();
        Outcome { job: *job, verdict, inputs }
    };
    jobs.iter().map(outcome).collect()
}

fn judge(device: &Device, job: &Job, known: &mut Known) -> (Verdict, u64) {
    if !job.is_on(device.target) {
        return (Verdict::NotInHardware, 0);
    }
    let version = ptx::version(device.target, &job.rows());
    if !device.takes(version) {
        return (Verdict::NeedsDriver(least_driver(version)), 0);
    }
    match try_all(device, job, known) {
        Err(error) => (Verdict::Failed(error), 0),
        Ok((mismatches, inputs)) if mismatches.count == 0 => (Verdict::Equal, inputs),
        Ok((mismatches, inputs)) => (Verdict::Differs(mismatches), inputs),
    }
}

/// The user's own kernel, compiled: its cast to a format, over all float32.
pub fn own(device: &Device, source: &str, plan: &CastPlan, threads: NonZero<usize>) -> (Verdict, u64) {
    let found = || {
        let module = device.load(own::compile(source, device.target)?)?;
        twice(|| counted(ask(device, &module, true, (0, false))?, 1 << 32)?.list())
    };
    match found() {
        Err(error) => (Verdict::Failed(error), 0),
        Ok(found) => match compare(&found, &steps::steps(plan, threads), true) {
            none if none.count == 0 => (Verdict::Equal, 1 << 32),
            mismatches => (Verdict::Differs(mismatches), 1 << 32),
        },
    }
}

/// Runs a kernel over all its inputs.
fn ask(device: &Device, module: &Module, walks: bool, lane: (u32, bool)) -> Result<Answer> {
    match walks {
        true => device.ask(module, "walk", (1 << (32 - WALK_LOG2), 2 * CAPACITY), lane),
        false => device.ask(module, "table", (1 << 16, 1 << 16), lane),
    }
}

/// Both lanes with every partner; a conversion of one value, and of packed codes, has neither.
fn try_all(device: &Device, job: &Job, known: &mut Known) -> Result<(Mismatches, u64)> {
    let module = device.load(ptx::job(device.target, job))?;
    let (mut mismatches, mut inputs) = (Mismatches::default(), 0);
    let partners = if job.lanes() == 2 { &PARTNERS[..] } else { &PARTNERS[..1] };
    for &partner in partners {
        let partner = if job.walks() { partner } else { partner >> 16 };
        for swap in [false, true].into_iter().take(job.lanes() as usize) {
            let lane = (partner, swap);
            inputs += if job.walks() { 1 << 32 } else { 1 << 16 };
            let ask = || ask(device, &module, job.walks(), lane);
            let found = match job.walks() {
                true => {
                    let found = twice(|| counted(ask()?, 1 << 32)?.list())?;
                    compare(&found, &known.list(job, lane)?, job.nan_codes_known())
                }
                false => compare_table(job, lane, &twice(|| Ok(counted(ask()?, 1 << 16)?.words))?)?,
            };
            mismatches.extend(found, (job.lanes() == 2).then_some(lane));
        }
    }
    Ok((mismatches, inputs))
}

fn counted(answer: Answer, inputs: u64) -> Result<Answer> {
    match answer.inputs == inputs {
        true => Ok(answer),
        false => Err(Error::new(format!("the kernel converted {} inputs of {inputs}", answer.inputs))),
    }
}

fn twice<T: PartialEq>(work: impl Fn() -> Result<T>) -> Result<T> {
    let (first, second) = (work()?, work()?);
    if first == second { Ok(first) } else { Err(Error::new("two runs of the kernel gave different results")) }
}

/// Lists of steps that have been made, as several questions need the same.
struct Known {
    threads: NonZero<usize>,
    lists: Vec<(CastPlan, Vec<Step>)>,
}

impl Known {
    /// What the question's walk must give.
    fn list(&mut self, job: &Job, (partner, swap): (u32, bool)) -> Result<Vec<Step>> {
        let rows = job.rows();
        let Some(encode) = rows.first() else { return Ok(Vec::new()) };
        let plan = encode.plan()?;
        let at = match self.lists.iter().position(|(known, _)| *known == plan) {
            Some(at) => at,
            None => {
                self.lists.push((plan, steps::steps(&plan, self.threads)));
                self.lists.len() - 1
            }
        };
        let list = &self.lists[at].1;
        match job {
            Job::Roundtrip { decode, .. } => {
                let back = back(&plan.target, *decode)?;
                Ok(map(list, back))
            }
            Job::One(row) if row.lanes == 2 => {
                let bits = ptx::container(row.to);
                let beside = plan.cast_f32(f32::from_bits(partner), Place::default()).code;
                Ok(map(list, |code| packed(code, beside, bits, swap)))
            }
            Job::One(_) => Ok(list.clone()),
        }
    }
}

/// What a code becomes on its way to float32.
fn back<'a>(code: &'a FormatSpec, decode: Option<&'a Conversion>) -> Result<impl Fn(u32) -> u32 + 'a> {
    let narrow = match decode {
        Some(row) => Some((row.target()?, row.plan()?)),
        None => None,
    };
    Ok(move |u| match &narrow {
        Some((halves, plan)) => float32(halves, widened(code, u, plan)),
        None => float32(code, u),
    })
}

/// A code of 16 bits as a float32. What has the exponents of float32 is shifted, NaN and all; of the rest a NaN
/// has all bits set but the sign.
fn float32(halves: &FormatSpec, code: u32) -> u32 {
    if halves.exponent_bits() == 8 {
        return code << 16;
    }
    let value = decode(halves, code);
    if value.is_nan() { 0x7fff_ffff } else { (value as f32).to_bits() }
}

/// Two codes as the instruction packs them: the first operand, which is `code` if swapped, is the upper one.
fn packed(code: u32, beside: u32, bits: u32, swap: bool) -> u32 {
    if swap { code << bits | beside } else { beside << bits | code }
}

/// Compares the results of all codes, or of all pairs of them.
fn compare_table(job: &Job, (partner, swap): (u32, bool), found: &[u32]) -> Result<Mismatches> {
    let mut mismatches = Mismatches::default();
    let rows = job.rows();
    let Some(row) = rows.first() else { return Ok(mismatches) };
    let from = format::find(row.from)?;
    let bits = ptx::container(row.from);
    let mask = (1_u64 << from.bits) as u32 - 1;
    let plan = row.plan()?;
    let one = |code: u32| match row.to {
        "float32" => float32(&from, code),
        _ => widened(&from, code, &plan),
    };
    for (u, &found) in (0..).zip(found) {
        let expected = if row.takes_pairs() {
            // Bits above a code of six bits, and above a pair of four, are not the instruction's business.
            let (low, high) = (u & ((1 << bits) - 1), u >> bits);
            if low > mask || high > mask {
                continue;
            }
            one(high) << ptx::container(row.to) | one(low)
        } else if row.lanes == 2 {
            packed(one(u), one(partner), ptx::container(row.to), swap)
        } else {
            one(u)
        };
        if found != expected {
            mismatches.add(Mismatch { input: u, found, expected, beside: None });
        }
    }
    Ok(mismatches)
}
