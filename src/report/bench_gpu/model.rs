//! Every question to the card with its answer, and every time, ready for any output.

use serde::Serialize;

use super::super::number::{Num, plural};
use super::super::{SCHEMA_VERSION, Tool};
use super::example::Example;
use crate::cast::CastPlan;
use crate::error::Result;
use crate::gpu::target::{TARGETS, Target, Version};
use crate::gpu::throughput::{Measured, Timing, Work};
use crate::gpu::validate::{Outcome, Verdict};
use crate::gpu::{Absent, Conversion, Environment, Job, ptx};

/// Fewer values than these, 4 MiB of float32, stay in the caches nearest a core.
const LEAST_VALUES: u64 = 1 << 20;

/// What kind of run it was, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing was run: what would be.
    Planned,
    /// Only the processor was timed.
    CpuOnly,
    /// There is no card that can be used.
    Skipped,
    /// Every conversion that the card has equals the tool's.
    Equal,
    /// The card has none of the conversions asked for, or its driver is too old for them.
    NothingTried,
    /// Some conversion does not, or could not be tried.
    Differs,
}

/// What `bench-gpu` found.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `bench-gpu`.
    pub command: &'static str,
    /// What kind of run it was, and how it ended.
    pub status: Status,
    /// Why there is no card.
    pub skipped: Option<Skipped>,
    /// The card.
    pub environment: Option<Environment>,
    /// The processor, if it was timed.
    pub cpu: Option<CpuEntry>,
    /// What PTX is written for.
    pub targets: Vec<TargetEntry>,
    /// Every conversion asked for.
    pub conversions: Vec<ConversionEntry>,
    /// Kernels that were not timed, since their results are wrong.
    pub wrong_kernels: Vec<String>,
    /// Why the card was not timed.
    pub not_timed: Option<String>,
    /// What makes times doubtful.
    pub notices: Vec<String>,
    /// Every time.
    pub throughput: Vec<ThroughputEntry>,
}

/// Why there is no card that can be used.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// The code that the driver gave, if it gave one.
    pub code: Option<i32>,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub remedy: &'static str,
}

/// How the processor was used.
#[derive(Clone, Debug, Serialize)]
pub struct CpuEntry {
    /// Its architecture.
    pub architecture: &'static str,
    /// The level of SIMD code.
    pub simd_level: &'static str,
    /// Threads.
    pub threads: usize,
}

/// A target of PTX.
#[derive(Clone, Debug, Serialize)]
pub struct TargetEntry {
    /// Its name.
    pub target: &'static str,
    /// Cards that it is chosen for.
    pub chips: &'static str,
    /// Formats that some instruction converts to.
    pub in_hardware: Vec<&'static str>,
    /// Formats that none does there, but on another chip.
    pub not_in_hardware: Vec<&'static str>,
}

/// A conversion, and how it fared.
#[derive(Clone, Debug, Serialize)]
pub struct ConversionEntry {
    /// From what to what, and how.
    pub conversion: String,
    /// Its PTX instructions, in order.
    pub instructions: Vec<&'static str>,
    /// Whether each of them is one instruction of the chip, too.
    pub one_instruction_each: bool,
    /// For each target in [`BenchReport::targets`] the PTX version that it takes; `None` where it is not in
    /// hardware.
    pub ptx: Vec<Option<String>>,
    /// How it fared: `equal`, `differs`, `not in hardware`, `driver too old` or `failed`; `None` if
    /// it was not run.
    pub result: Option<&'static str>,
    /// Results compared, each made twice.
    pub inputs: u64,
    /// Results that differ.
    pub mismatches: u64,
    /// Whether NaN inputs are compared: their result is documented.
    pub nan_inputs_compared: bool,
    /// Of stochastic rounding: for each lane, the lowest first, the bits of its operand that were seen to be added
    /// to the discarded bits, the most significant first.
    pub random_bits_seen: Vec<Vec<u32>>,
    /// Why it was not tried, or failed.
    pub why: Option<String>,
    /// The first results that differ.
    pub first: Vec<MismatchEntry>,
}

/// One result that differs.
#[derive(Clone, Debug, Serialize)]
pub struct MismatchEntry {
    /// Bits of the input.
    pub input: String,
    /// The number; of a pair the one whose result differs.
    pub input_value: Num,
    /// Of several values at once: bits of the value in the other lanes.
    pub beside: Option<String>,
    /// Of several values at once: where the input was, `lower` or `upper`, or of four `1`, the lowest, to `4`.
    pub lane: Option<&'static str>,
    /// Of stochastic rounding: the operand of random bits.
    pub random: Option<String>,
    /// What the card gave; of several values at once all codes.
    pub gpu: String,
    /// What the tool gives.
    pub expected: String,
    /// What the definition makes of the number.
    pub class: &'static str,
}

/// One time.
#[derive(Clone, Debug, Serialize)]
pub struct ThroughputEntry {
    /// `gpu` or `cpu`.
    pub device: &'static str,
    /// The format; `None` of a copy.
    pub format: Option<&'static str>,
    /// `copy`, `encode` (float32 to the format), `decode` (back) or `roundtrip` (both).
    pub work: &'static str,
    /// Values in the buffer.
    pub values: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Runs.
    pub repeats: usize,
    /// Median time in seconds.
    pub median_s: Num,
    /// Time that one run of twenty stays under.
    pub p5_s: Num,
    /// Time that one run of twenty exceeds.
    pub p95_s: Num,
    /// 10⁹ bytes a second, read and written, of the median run.
    pub gb_per_s: Num,
    /// Of the copy in the same run, by bytes a second.
    pub pct_of_copy: Option<Num>,
    /// Of 2 · memory clock · bus width, which the card tells.
    pub pct_of_peak: Option<Num>,
}

/// `8.1`.
fn version_text((major, minor): Version) -> String {
    format!("{major}.{minor}")
}

impl BenchReport {
    fn new(status: Status) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "bench-gpu",
            status,
            skipped: None,
            environment: None,
            cpu: None,
            targets: Vec::new(),
            conversions: Vec::new(),
            wrong_kernels: Vec::new(),
            not_timed: None,
            notices: Vec::new(),
            throughput: Vec::new(),
        }
    }

    /// What would be tried on each kind of card.
    pub fn planned(jobs: &[Job]) -> Self {
        let targets: Vec<&Target> = TARGETS.iter().collect();
        let conversions = jobs.iter().map(|job| ConversionEntry::new(job, &targets)).collect();
        let targets = targets.iter().map(|target| TargetEntry::new(target, jobs)).collect();
        Self { targets, conversions, ..Self::new(Status::Planned) }
    }

    /// No card, and that is allowed.
    pub fn skipped(absent: &Absent) -> Self {
        let Absent { code, what, remedy } = absent.clone();
        Self { skipped: Some(Skipped { code, reason: what, remedy }), ..Self::new(Status::Skipped) }
    }

    /// The processor alone.
    pub fn cpu_only(cpu: CpuEntry, timings: &[Timing]) -> Self {
        let mut report = Self::new(Status::CpuOnly);
        report.add_cpu(cpu, timings);
        report
    }

    /// What a card answered.
    ///
    /// # Errors
    /// The table of conversions names a format that there is none of.
    pub fn answered(environment: Environment, target: &Target, outcomes: &[Outcome]) -> Result<Self> {
        let equal = |outcome: &Outcome| !matches!(outcome.verdict, Verdict::Differs(_) | Verdict::Failed(_));
        let status = match outcomes.iter().all(equal) {
            true if outcomes.iter().all(|outcome| outcome.inputs == 0) => Status::NothingTried,
            true => Status::Equal,
            false => Status::Differs,
        };
        let jobs: Vec<Job> = outcomes.iter().map(|outcome| outcome.job).collect();
        let conversions = outcomes
            .iter()
            .map(|outcome| ConversionEntry::answered(outcome, target))
            .collect::<Result<_>>()?;
        let targets = vec![TargetEntry::new(target, &jobs)];
        Ok(Self { environment: Some(environment), targets, conversions, ..Self::new(status) })
    }

    /// What a card answered about a kernel of the user's own, of this name.
    pub fn of_own_kernel(
        environment: Environment,
        name: String,
        plan: &CastPlan,
        (verdict, inputs): &(Verdict, u64),
    ) -> Self {
        let passed = matches!(verdict, Verdict::Equal);
        let mut entry = ConversionEntry {
            conversion: name,
            instructions: Vec::new(),
            one_instruction_each: false,
            ptx: Vec::new(),
            result: None,
            inputs: 0,
            mismatches: 0,
            nan_inputs_compared: true,
            random_bits_seen: Vec::new(),
            why: None,
            first: Vec::new(),
        };
        entry.judge(verdict, *inputs, &Example::of_cast(plan));
        let status = if passed { Status::Equal } else { Status::Differs };
        Self { environment: Some(environment), conversions: vec![entry], ..Self::new(status) }
    }

    /// Adds the times of the card.
    pub fn add_gpu(&mut self, measured: &Measured) {
        if !measured.wrong.is_empty() {
            self.status = Status::Differs;
        }
        self.wrong_kernels.extend(measured.wrong.iter().map(ToString::to_string));
        let timings = &measured.timings;
        let peak = self.environment.as_ref().and_then(|card| card.peak_bytes_per_second);
        self.add_timings("gpu", timings, peak);
    }

    /// Adds the times of the processor.
    pub fn add_cpu(&mut self, cpu: CpuEntry, timings: &[Timing]) {
        self.cpu = Some(cpu);
        self.add_timings("cpu", timings, None);
    }

    fn add_timings(&mut self, device: &'static str, timings: &[Timing], peak: Option<u64>) {
        let copy = timings.iter().find(|timing| timing.work == Work::Copy);
        if let Some(few) = copy.map(|copy| copy.values).filter(|&values| values < LEAST_VALUES) {
            self.notices.push(format!(
                "{}: buffers of {} are too small to time: what is measured is caches, and the start of the work. Take \
                 --size 2^22 or more.",
                device.to_uppercase(),
                plural(few, "value")
            ));
        }
        let copy = copy.map(Timing::rate);
        self.throughput.extend(timings.iter().map(|timing| ThroughputEntry {
            device,
            format: timing.format,
            work: timing.work.name(),
            values: timing.values,
            bytes: timing.bytes,
            repeats: timing.seconds.len(),
            median_s: Num(timing.quantile(0.5)),
            p5_s: Num(timing.quantile(0.05)),
            p95_s: Num(timing.quantile(0.95)),
            gb_per_s: Num(timing.rate() / 1e9),
            pct_of_copy: copy.map(|copy| Num(100.0 * timing.rate() / copy)),
            pct_of_peak: peak.map(|peak| Num(100.0 * timing.rate() / peak as f64)),
        }));
    }
}

impl TargetEntry {
    fn new(target: &Target, jobs: &[Job]) -> Self {
        let mut formats: Vec<&'static str> = Vec::new();
        let ones = || jobs.iter().flat_map(Job::rows).filter(|row| row.from == "float32");
        ones().for_each(|row| {
            if !formats.contains(&row.to) {
                formats.push(row.to);
            }
        });
        let converts = |row: &Conversion| row.is_on(target) && row.is_one_instruction();
        let has = |format: &&str| ones().any(|row| row.to == *format && converts(row));
        let (in_hardware, not_in_hardware) = formats.into_iter().partition(has);
        Self { target: target.name, chips: target.chips, in_hardware, not_in_hardware }
    }
}

impl ConversionEntry {
    fn new(job: &Job, targets: &[&Target]) -> Self {
        let version =
            |target: &&Target| job.is_on(target).then(|| version_text(ptx::version(target, &job.rows())));
        Self {
            conversion: job.name(),
            instructions: job.rows().iter().map(|row| row.instruction).collect(),
            one_instruction_each: job.rows().iter().all(|row| row.is_one_instruction()),
            ptx: targets.iter().map(version).collect(),
            result: None,
            inputs: 0,
            mismatches: 0,
            nan_inputs_compared: job.nan_codes_known(),
            random_bits_seen: Vec::new(),
            why: None,
            first: Vec::new(),
        }
    }

    fn answered(outcome: &Outcome, target: &Target) -> Result<Self> {
        let mut entry = Self::new(&outcome.job, &[target]);
        entry.judge(&outcome.verdict, outcome.inputs, &Example::new(&outcome.job)?);
        entry.random_bits_seen.clone_from(&outcome.random);
        Ok(entry)
    }

    fn judge(&mut self, verdict: &Verdict, inputs: u64, example: &Example) {
        self.inputs = inputs;
        self.result = Some(match verdict {
            Verdict::Equal => "equal",
            Verdict::NotInHardware => "not in hardware",
            Verdict::NeedsDriver(least) => {
                self.why = Some(format!("needs a driver of CUDA {}.{}", least / 1000, least % 1000 / 10));
                "driver too old"
            }
            Verdict::Failed(error) => {
                self.why = Some(error.to_string());
                "failed"
            }
            Verdict::Differs(mismatches) => {
                self.mismatches = mismatches.count;
                self.first = mismatches.first.iter().map(|mismatch| example.entry(mismatch)).collect();
                "differs"
            }
        });
    }
}
