//! Asks the card and compares: every conversion, each of its lanes, beside partners that could disturb it.

use super::answer::Answer;
use super::driver::{Device, Module};
use super::ptx::{self, WALK_LOG2};
use super::steps::{self, Beside, Mismatch, Mismatches, Step, compare, map, widened};
use super::stochastic;
use super::target::least_driver;
use super::{Conversion, Job};
use crate::cast::{CastPlan, Place};
use crate::error::{Error, Result};
use crate::format::decode::decode;
use crate::format::{self, FormatSpec};

/// Steps that a list always has room for: many more than a narrow format has codes, for cards that err.
const LEAST_ROOM: usize = 1 << 12;
/// Bits of the format with the longest list, tf32.
const MOST_BITS: u32 = 19;

/// What stands in the other lanes of float32: zero, NaN, −Inf, the largest number, a subnormal, a
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
    /// Of stochastic rounding: the bits of its operand that each lane was seen to add, as in
    /// [`stochastic::Tried`].
    pub random: Vec<Vec<u32>>,
}

/// Tries every conversion on the card.
pub fn run(device: &Device, jobs: &[Job], mut progress: impl FnMut()) -> Vec<Outcome> {
    let mut known = Known { lists: Vec::new() };
    let outcome = |job: &Job| {
        let outcome = judge(device, job, &mut known);
        progress();
        outcome
    };
    jobs.iter().map(outcome).collect()
}

fn judge(device: &Device, job: &Job, known: &mut Known) -> Outcome {
    let untried = |verdict| Outcome { job: *job, verdict, inputs: 0, random: Vec::new() };
    if !job.is_on(device.target) {
        return untried(Verdict::NotInHardware);
    }
    let version = ptx::version(device.target, &job.rows());
    if !device.takes(version) {
        return untried(Verdict::NeedsDriver(least_driver(version)));
    }
    match try_all(device, job, known) {
        Err(error) => untried(Verdict::Failed(error)),
        Ok(tried) => Outcome {
            job: *job,
            inputs: tried.inputs,
            random: tried.random,
            verdict: match tried.mismatches {
                none if none.count == 0 => Verdict::Equal,
                mismatches => Verdict::Differs(mismatches),
            },
        },
    }
}

/// The user's own kernel, compiled by [`own`](super::own): its cast to a format, over all float32.
pub fn own(device: &Device, ptx: String, plan: &CastPlan) -> (Verdict, u64) {
    let found = || {
        let module = device.load(ptx)?;
        twice(|| walk(device, &module, MOST_BITS, Beside::default()))
    };
    match found() {
        Err(error) => (Verdict::Failed(error), 0),
        Ok(found) => match compare(&found, &steps::steps(plan), true) {
            none if none.count == 0 => (Verdict::Equal, 1 << 32),
            mismatches => (Verdict::Differs(mismatches), 1 << 32),
        },
    }
}

/// The steps over all float32 of a kernel that casts to a format of so many bits.
fn walk(device: &Device, module: &Module, bits: u32, beside: Beside) -> Result<Vec<Step>> {
    let room = (2 << bits).max(LEAST_ROOM);
    counted(device.ask(module, "walk", (1 << (32 - WALK_LOG2), 2 * room), beside)?, 1 << 32)?.list()
}

/// The results of all codes, or pairs of codes.
fn table(device: &Device, module: &Module, beside: Beside) -> Result<Vec<u32>> {
    Ok(counted(device.ask(module, "table", (1 << 16, 1 << 16), beside)?, 1 << 16)?.words)
}

/// Each lane with every partner; a conversion of one value, and of packed codes, has neither.
fn try_all(device: &Device, job: &Job, known: &mut Known) -> Result<stochastic::Tried> {
    let module = device.load(ptx::job(device.target, job))?;
    let rows = job.rows();
    let bits = rows.first().map_or(Ok(0), |row| row.target().map(|target| target.bits))?;
    let walk = |beside| twice(|| walk(device, &module, bits, beside));
    if let Job::One(row) = job
        && row.random.is_some()
    {
        return stochastic::try_all(row, &PARTNERS, walk);
    }
    let (mut mismatches, mut inputs) = (Mismatches::default(), 0);
    let partners = if job.lanes() > 1 { &PARTNERS[..] } else { &PARTNERS[..1] };
    for &partner in partners {
        let partner = if job.walks() { partner } else { partner >> 16 };
        for lane in 0..job.lanes() {
            let beside = Beside { partner, lane, random: 0 };
            inputs += if job.walks() { 1 << 32 } else { 1 << 16 };
            let found = match job.walks() {
                true => compare(&walk(beside)?, &known.list(job, beside)?, job.nan_codes_known()),
                false => compare_table(job, beside, &twice(|| table(device, &module, beside))?)?,
            };
            mismatches.extend(found, (job.lanes() > 1).then_some(beside));
        }
    }
    Ok(stochastic::Tried { mismatches, inputs, random: Vec::new() })
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
    lists: Vec<(CastPlan, Vec<Step>)>,
}

impl Known {
    /// What the question's walk must give.
    fn list(&mut self, job: &Job, Beside { partner, lane, .. }: Beside) -> Result<Vec<Step>> {
        let rows = job.rows();
        let Some(encode) = rows.first() else { return Ok(Vec::new()) };
        let plan = encode.plan()?;
        let at = match self.lists.iter().position(|(known, _)| *known == plan) {
            Some(at) => at,
            None => {
                self.lists.push((plan, steps::steps(&plan)));
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
                Ok(map(list, |code| packed(code, beside, bits, lane)))
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

/// Two codes as the instruction packs them, `code` in this lane.
fn packed(code: u32, beside: u32, bits: u32, lane: u32) -> u32 {
    if lane == 1 { code << bits | beside } else { beside << bits | code }
}

/// Compares the results of all codes, or of all pairs of them.
fn compare_table(job: &Job, Beside { partner, lane, .. }: Beside, found: &[u32]) -> Result<Mismatches> {
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
            packed(one(u), one(partner), ptx::container(row.to), lane)
        } else {
            one(u)
        };
        if found != expected {
            mismatches.add(Mismatch { input: u, found, expected, beside: None });
        }
    }
    Ok(mismatches)
}
