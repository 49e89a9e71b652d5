//! `amp-inspect bench-gpu`: what can be typed, and its wiring.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Outcome;
use super::args::{OutputArgs, any_format_name};
use super::output::Outputs;
use super::progress::Progress;
use crate::cast::CastPlan;
use crate::cast::fast::Level;
use crate::cast::profile::Profile;
use crate::error::{Error, Result, escape};
use crate::format::table::{BLOCK_FORMATS, FORMATS};
use crate::format::{Named, find_block};
use crate::gpu::blocks::Blocks;
use crate::gpu::bulk::Bulk;
use crate::gpu::validate::{self, Verdict};
use crate::gpu::{Device, Job, cpu, own, throughput};
use crate::report::bench_gpu::{BenchReport, CpuEntry, Status};

/// Whether an NVIDIA card rounds bit for bit as this tool says, over all inputs of each conversion it has, and
/// how fast it casts, in percent of its own copy
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect bench-gpu --save gpu.json --save gpu.png\n  amp-inspect bench-gpu --cpu-only\n  \
                   amp-inspect bench-gpu --dry-run",
    after_help = DEFINITIONS
)]
pub(super) struct BenchGpuArgs {
    /// Number of the card, from 0
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Card")]
    device: u32,
    /// Only time the processor
    #[arg(long, conflicts_with_all = ["dry_run", "if_available"], help_heading = "Card")]
    cpu_only: bool,
    /// Only say what would be tried on each kind of card
    #[arg(long, conflicts_with = "if_available", help_heading = "Card")]
    dry_run: bool,
    /// Without a card that can be used, report that and end well
    #[arg(long, help_heading = "Card")]
    if_available: bool,
    /// Formats to try, by name, alias or description; blocks ask for their elements' [default: all]
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = any_format_name, help_heading = "Work")]
    formats: Vec<Named>,
    /// Check this cast in CUDA C++ in place of the card's instructions; needs NVRTC, and one format
    #[arg(long, value_name = "FILE.cu", requires = "formats", conflicts_with_all = ["cpu_only", "dry_run"], help_heading = "Work")]
    kernel: Option<PathBuf>,
    /// Values in the buffers that are timed [default: 16 times the card's L2, at least 2^26; CPU: 2^25, at most 2^28]
    #[arg(long, value_name = "N", value_parser = size, help_heading = "Work")]
    size: Option<u64>,
    /// Smaller buffers and fewer repeats; what is compared stays the same
    #[arg(long, help_heading = "Work")]
    quick: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const DEFINITIONS: &str = "\
What is compared: of casts from float32 all 2^32 inputs, in both lanes of pairs
beside zero, NaN, Inf, the largest number, a subnormal and a number; of narrower
formats all codes, or all pairs of them. NaN codes and saturation are those of
the profile nvidia; where NVIDIA leaves the NaN open (tf32) NaN inputs are left
out, and the report says so. Nothing is emulated: what a chip has no instruction
for is reported as not in hardware. Everything runs twice.

Stochastic rounding (cvt.rs; B200 and B300): all inputs in each of two or four
lanes for ten sets of random bits. Which of them two lanes of FP8, FP6 and FP4
add that share bits PTX leaves open: the report says which were seen, and they
must give what this tool's cast gives by those bits.

The file of --kernel defines  __device__ unsigned cast(float x)  which returns
the code, to nearest even, saturating as the profile nvidia does. An example is
testdata/kernels/e4m3.cu. What NVRTC says of it follows the error.

  encode     float32 to the format; codes of 6 bits take a byte, and on the CPU
             those of 4 bits too. In blocks: to scales and codes. On the card
             MXFP8 (e4m3 and e5m2, floor and rceil), nvfp4:te with a given scale
             of the tensor, and e4m3fn:1x128 (f32 and pow2), each compared on
             hard values first; on the CPU all, of a matrix of 4096 columns,
             where NVFP4's search for the tensor's largest magnitude counts as
             time, what it reads does not
  decode     the format to float32; of blocks on the card MXFP8 alone
  roundtrip  both, without storing the codes
  GB/s       10^9 bytes a second, read and written, median run
  % of copy  of a plain copy of float32 in the same run, by GB/s
  % of peak  of 2 · memory clock · bus width, which the card tells

Exit code: 0 all equal, 1 a result differs, 2 wrong usage, no usable card or
nothing to compare.";

fn size(text: &str) -> std::result::Result<u64, String> {
    let parsed = match text.strip_prefix("2^") {
        Some(exponent) => exponent.parse().ok().and_then(|exponent| 1_u64.checked_shl(exponent)),
        None => text.parse().ok(),
    };
    let parsed = parsed.filter(|values| (1..=1 << 34).contains(values));
    parsed.ok_or_else(|| "a number of values from 1 to 2^34, such as 2^28".into())
}

pub(super) fn run(args: BenchGpuArgs) -> Result<Outcome> {
    let quiet = args.output.quiet;
    let threads = super::threads(args.output.threads);
    // Blocks ask for the conversions of their elements.
    let element = |named: &Named| match named {
        Named::Plain(format) => format.name,
        Named::Block(spec) => spec.element.name,
    };
    let names: Vec<&str> = args.formats.iter().map(element).collect();
    let jobs = Job::all(&names);
    if jobs.is_empty() && !args.cpu_only && args.kernel.is_none() {
        return Err(Error::new(
            "no card converts to these formats in hardware; --dry-run lists what there is",
        ));
    }
    if args.dry_run {
        let outputs = Outputs::without_pictures(args.output)?;
        outputs.write(&BenchReport::planned(&jobs), BenchReport::terminal)?;
        return Ok(Outcome::Done);
    }
    let outputs = Outputs::prepare(args.output.clone())?;
    if args.cpu_only {
        let (cpu, timings) = time_cpu(&args, threads);
        outputs.write(&BenchReport::cpu_only(cpu, &timings), BenchReport::terminal)?;
        return Ok(Outcome::Done);
    }
    let own_kernel = match &args.kernel {
        Some(path) => Some((path, read_kernel(path, &args.formats)?)),
        None => None,
    };
    let device = match Device::open(args.device) {
        Ok(device) => device,
        Err(absent) if args.if_available => {
            outputs.write(&BenchReport::skipped(&absent), BenchReport::terminal)?;
            return Ok(Outcome::Done);
        }
        Err(absent) => return Err(absent.into()),
    };
    if let Some((path, (source, plan))) = own_kernel {
        let file = path.to_string_lossy();
        let ptx = own::compile(&source, &file, &device).map_err(|error| error.in_file(path))?;
        let found = validate::own(&device, ptx, &plan);
        let name = format!("{}: float32→{}", escape(&file), plan.target.name);
        let report = BenchReport::of_own_kernel(device.environment, name, &plan, &found);
        return finish(outputs, &report);
    }
    let progress = Progress::of_conversions(jobs.len() as u64, quiet);
    let outcomes = validate::run(&device, &jobs, || progress.add(1));
    progress.finish();
    let mut report = BenchReport::answered(device.environment.clone(), device.target, &outcomes)?;
    let right = |name: &&str| {
        // Buffers are converted without random bits.
        let about = |job: &Job| {
            job.rows().first().is_some_and(|row| {
                row.random.is_none() && (row.from == *name || (row.from == "float32" && row.to == *name))
            })
        };
        outcomes
            .iter()
            .filter(|o| about(&o.job))
            .all(|o| matches!(o.verdict, Verdict::Equal | Verdict::NotInHardware | Verdict::NeedsDriver(_)))
    };
    let wanted = if names.is_empty() { Bulk::formats() } else { names };
    let timed: Vec<&str> = wanted.into_iter().filter(right).collect();
    let asked =
        |blocks: &Blocks| args.formats.is_empty() || args.formats.contains(&Named::Block(blocks.spec));
    let blocks: Vec<Blocks> = Blocks::on(device.target)
        .into_iter()
        .filter(|blocks| asked(blocks) && timed.contains(&blocks.spec.element.name))
        .collect();
    let values = throughput::values(&device, args.size, args.quick);
    let (repeats, _) = repeats(args.quick);
    // What has been compared is worth its report, whatever becomes of the times.
    match throughput::run(&device, (&timed, &blocks), values, repeats) {
        Ok(measured) => report.add_gpu(&measured),
        Err(error) => report.not_timed = Some(error.to_string()),
    }
    let (cpu, timings) = time_cpu(&args, threads);
    report.add_cpu(cpu, &timings);
    finish(outputs, &report)
}

fn finish(outputs: Outputs, report: &BenchReport) -> Result<Outcome> {
    outputs.write(report, BenchReport::terminal)?;
    Ok(match report.status {
        Status::Differs => Outcome::Findings,
        Status::NothingTried => Outcome::Incomplete,
        _ if report.not_timed.is_some() => Outcome::Incomplete,
        _ => Outcome::Done,
    })
}

/// Runs that are timed on the card and on the processor.
fn repeats(quick: bool) -> (usize, usize) {
    if quick { (20, 5) } else { (50, 9) }
}

/// The source of a kernel, and the cast that it shall be.
fn read_kernel(path: &Path, formats: &[Named]) -> Result<(String, CastPlan)> {
    let [Named::Plain(format)] = formats else {
        return Err(Error::new("--kernel casts to one format, not of blocks: give one with --formats"));
    };
    let profile = Profile::find("nvidia").ok_or_else(|| Error::new("there is no profile nvidia"))?;
    let source =
        std::fs::read_to_string(path).map_err(|error| Error::io("cannot read", &error).in_file(path))?;
    if source.contains('\0') {
        return Err(Error::new("a kernel is text, and this has a zero byte").in_file(path));
    }
    Ok((source, profile.plan(*format)))
}

fn time_cpu(args: &BenchGpuArgs, threads: NonZero<usize>) -> (CpuEntry, Vec<throughput::Timing>) {
    let all = || {
        let narrow = FORMATS.iter().copied().filter(|format| format.bits < 32).map(Named::Plain);
        let blocks = BLOCK_FORMATS.iter().filter_map(|row| find_block(row.name).ok());
        narrow.chain(blocks.map(Named::Block)).collect()
    };
    let formats: Vec<Named> = if args.formats.is_empty() { all() } else { args.formats.clone() };
    let values = args.size.unwrap_or(if args.quick { 1 << 22 } else { 1 << 25 }).min(1 << 28);
    let (_, repeats) = repeats(args.quick);
    let progress = Progress::of_formats(formats.len() as u64, args.output.quiet);
    let timings = cpu::run(&formats, values as usize, repeats, threads, || progress.add(1));
    progress.finish();
    let cpu = CpuEntry {
        architecture: std::env::consts::ARCH,
        simd_level: Level::best().name(),
        threads: threads.get(),
    };
    (cpu, timings)
}
