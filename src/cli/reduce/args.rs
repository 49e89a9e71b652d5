//! What can be typed after `reduce`.

use clap::Args;

use super::super::args::{OutputArgs, choices, format_name, scale};
use super::super::input_args::InputArgs;
use crate::format::{self, FormatSpec};
use crate::training::reduce::case::{ACCUMULATIONS, DIVISIONS};
use crate::training::reduce::order::ALGORITHMS;
use crate::training::reduce::{Accumulate, Algorithm, Divide};

/// What an all-reduce in a low precision makes of the gradients of several ranks: the error of their mean for each
/// format, order of additions and way of dividing, beside the bytes that it takes
#[derive(Args)]
#[command(
    before_help = "Example:\n  amp-inspect reduce grads_rank*.safetensors --world-size 8..4096 --save out.png\n  \
                   amp-inspect reduce run/ --steps 100 --fsdp param=bf16,reduce=bf16,buffer=fp32",
    after_help = DEFINITIONS
)]
pub(in crate::cli) struct ReduceArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Formats on the wire (reduce_dtype), by name, alias or description (e5m3)
    #[arg(short, long, value_name = "NAME,…", value_delimiter = ',', value_parser = format_name, default_value = "float32,bfloat16,float16,e5m2", help_heading = "Reduction")]
    pub(super) formats: Vec<FormatSpec>,
    /// Algorithms; the first is used where something else is compared
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = algorithm, default_value = "ring,reduce-scatter,doubling,tree,flat", long_help = algorithms_help(), help_heading = "Reduction")]
    pub(super) algorithms: Vec<Algorithm>,
    /// What sums are kept in; the first is used where something else is compared
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = accumulation, default_value = "same,float32", long_help = accumulations_help(), help_heading = "Reduction")]
    pub(super) accumulate: Vec<Accumulate>,
    /// When to divide by the number of ranks; the first is used where something else is compared
    #[arg(long, value_name = "WHEN,…", value_delimiter = ',', value_parser = division, default_value = "before,split,after", long_help = divisions_help(), help_heading = "Reduction")]
    pub(super) divide: Vec<Divide>,
    /// Multiply gradients by this first, as a loss scale does (65536 or 2^16)
    #[arg(long, value_name = "S", value_parser = scale, default_value = "1", help_heading = "Reduction")]
    pub(super) scale: f32,
    /// Estimate other numbers of ranks, from recorded ranks drawn again: 8..4096 (each power of two) or a list
    #[arg(long, value_name = "A..B", value_parser = worlds, help_heading = "Reduction")]
    pub(super) world_size: Option<Worlds>,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Reduction")]
    pub(super) seed: u64,
    /// Say what each dtype of FSDP's mixed precision does to these gradients
    #[arg(long, value_name = "param=F,reduce=F,buffer=F", value_parser = fsdp, help_heading = "Reduction")]
    pub(super) fsdp: Option<Fsdp>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

const DEFINITIONS: &str = "\
Each rank's gradient, times the scale, is rounded to the format, divided, and added in the order
of the algorithm, rounding to nearest even. A tensor is a bucket of its own, and ranks are
neighbours in the order of their numbers. The exact mean is a compensated float64 sum.
  error %   ‖mean − exact mean‖ / ‖exact mean‖, of the elements that did not overflow
  overflow  elements whose mean became Inf or NaN on the way
  lost %    gradients of single ranks that are not 0 and become so before they are added
  sent      bytes that the busiest rank sends; a partial sum in float32 takes four

Exit code: 0 done, 2 wrong usage or something that could not be read.";

fn algorithm(text: &str) -> Result<Algorithm, String> {
    let row = ALGORITHMS.iter().find(|(name, ..)| *name == text);
    row.map(|row| row.1).ok_or_else(|| known(ALGORITHMS.iter().map(|row| row.0)))
}

fn accumulation(text: &str) -> Result<Accumulate, String> {
    let row = ACCUMULATIONS.iter().find(|(name, ..)| *name == text);
    row.map(|row| row.1).ok_or_else(|| known(ACCUMULATIONS.iter().map(|row| row.0)))
}

fn division(text: &str) -> Result<Divide, String> {
    if let Some((_, divide, _)) = DIVISIONS.iter().find(|(name, ..)| *name == text) {
        return Ok(*divide);
    }
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && (*factor as f32).is_normal());
    factor
        .map(Divide::By)
        .ok_or_else(|| known(DIVISIONS.iter().map(|row| row.0).chain(["a positive number"])))
}

fn known<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("known are {}", names.collect::<Vec<_>>().join(", "))
}

fn algorithms_help() -> String {
    let rows = choices(ALGORITHMS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("Algorithms; the first is used where something else is compared:{rows}")
}

fn accumulations_help() -> String {
    let rows = choices(ACCUMULATIONS.iter().map(|(name, _, meaning)| (*name, *meaning)));
    format!("What sums are kept in; the first is used where something else is compared:{rows}")
}

fn divisions_help() -> String {
    let rows = DIVISIONS.iter().map(|(name, _, meaning)| (*name, *meaning));
    let factor = ("F", "each gradient by F, the sum by the rest (gradient_predivide_factor)");
    format!(
        "When to divide by the number of ranks; the first is used where something else is compared:{}",
        choices(rows.chain([factor]))
    )
}

/// Most ranks that can be asked for.
const MOST: usize = 1 << 17;

/// Numbers of ranks.
#[derive(Clone, Debug)]
pub(super) struct Worlds(pub(super) Vec<usize>);

fn worlds(text: &str) -> Result<Worlds, String> {
    let wrong = || format!("{text} is no list of numbers of ranks from 2 to {MOST}, such as 8..4096");
    let number = |text: &str| text.trim().parse().ok().filter(|ranks| (2..=MOST).contains(ranks));
    let mut all: Vec<usize> = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) => {
                let (first, last) = number(first).zip(number(last)).ok_or_else(wrong)?;
                if first > last {
                    return Err(format!("{first}..{last} ends before it begins"));
                }
                let doubled = std::iter::successors(Some(first), |ranks| Some(2 * ranks));
                all.extend(doubled.take_while(|ranks| *ranks < last).chain([last]));
            }
            None => all.push(number(part).ok_or_else(wrong)?),
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(Worlds(all))
}

/// FSDP's mixed precision policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fsdp {
    pub(super) param: FormatSpec,
    pub(super) reduce: FormatSpec,
    pub(super) buffer: FormatSpec,
}

/// As in `torch.distributed.fsdp.MixedPrecision`: what is not given stays float32, but gradients are reduced in
/// the type of the parameters.
fn fsdp(text: &str) -> Result<Fsdp, String> {
    let (mut param, mut reduce, mut buffer) = (None, None, None);
    for pair in text.split(',') {
        let (key, name) =
            pair.split_once('=').ok_or_else(|| format!("{pair} is not of the form param=bf16"))?;
        let slot = match key.trim().trim_end_matches("_dtype") {
            "param" => &mut param,
            "reduce" => &mut reduce,
            "buffer" => &mut buffer,
            other => return Err(format!("{other} is none of param, reduce and buffer")),
        };
        if slot.replace(format_name(name.trim())?).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    let single = format::find("float32").map_err(|error| error.to_string())?;
    let param = param.unwrap_or(single);
    Ok(Fsdp { param, reduce: reduce.unwrap_or(param), buffer: buffer.unwrap_or(single) })
}
