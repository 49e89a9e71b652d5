//! What can be typed about the input: which files, which tensors of them, and how to read them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use regex::Regex;

use super::args::{named, scale};
use crate::check::pairing::Identity;
use crate::source::Layout;
use crate::tensor::{ByteOrder, Dtype};

/// Which tensors.
#[derive(Args, Clone)]
#[command(next_help_heading = "Input")]
pub(super) struct InputArgs {
    /// Dumps to read: files (.npy, .npz, .safetensors, .pt, …), directories or globs
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Only tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) tensor: Option<Regex>,
    /// No tensors whose name matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(super) exclude: Option<Regex>,
    /// Only these training steps, ends included: 100, 0..1000, 0..1000:100, 500.., or a list
    #[arg(long, value_name = "A..B:S", value_parser = Ranges::parse)]
    pub(super) steps: Option<Ranges>,
    /// Only these ranks
    #[arg(long, value_name = "A..B", value_parser = Ranges::parse)]
    pub(super) ranks: Option<Ranges>,
    /// Where paths have step, rank and name: {step}/rank{rank}/{name}.npy [default: told by words like step100]
    #[arg(long, value_name = "TEMPLATE", value_parser = layout)]
    pub(super) layout: Option<Layout>,
    /// Read the stored bytes as this type, where the file has lost it (|V2, uint8, …) or is raw
    #[arg(long, value_name = "TYPE", value_parser = dtype)]
    pub(super) dtype: Option<Dtype>,
    /// Divide by this first: the loss scale that gradients were recorded with (65536 or 2^16)
    #[arg(long, value_name = "S", value_parser = scale)]
    pub(super) unscale: Option<f32>,
    /// Shape of raw files (.bin), as 256x64 [default: one dimension]
    #[arg(long, value_name = "NxM", value_parser = shape, requires = "dtype")]
    pub(super) shape: Option<Shape>,
    /// Byte order of raw files [default: little]
    #[arg(long, value_name = "ORDER", value_parser = endian_parser(), requires = "dtype")]
    pub(super) endian: Option<ByteOrder>,
}

impl InputArgs {
    /// The options that only dumps have a use for, and whether they were given.
    pub(super) fn of_dumps(&self) -> [(&'static str, bool); 8] {
        [
            ("--tensor", self.tensor.is_some()),
            ("--exclude", self.exclude.is_some()),
            ("--ranks", self.ranks.is_some()),
            ("--layout", self.layout.is_some()),
            ("--dtype", self.dtype.is_some()),
            ("--unscale", self.unscale.is_some()),
            ("--shape", self.shape.is_some()),
            ("--endian", self.endian.is_some()),
        ]
    }

    /// Whether the filters leave a tensor of another dump.
    pub(super) fn wants(&self, tensor: &Identity) -> bool {
        let matches = |regex: &Option<Regex>| regex.as_ref().map(|regex| regex.is_match(&tensor.name));
        let contains = |ranges: &Option<Ranges>, number: Option<u64>| {
            ranges.as_ref().zip(number).is_none_or(|(ranges, number)| ranges.contain(number))
        };
        matches(&self.tensor).unwrap_or(true)
            && !matches(&self.exclude).unwrap_or(false)
            && contains(&self.steps, tensor.step)
            && contains(&self.ranks, tensor.rank)
    }
}

/// Numbers that are wanted: ranges with both ends, and of each every so many.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    text: String,
    ranges: Vec<(u64, u64, u64)>,
}

impl Ranges {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no list of numbers and ranges such as 0..1000:100");
        let number = |text: &str, none: u64| if text.is_empty() { Ok(none) } else { text.parse() };
        let range = |part: &str| {
            let (range, step) = part.split_once(':').unwrap_or((part, "1"));
            let (first, last) = match range.split_once("..") {
                Some((first, last)) => {
                    (number(first, 0).ok()?, number(last.trim_start_matches('='), u64::MAX).ok()?)
                }
                None => (range.parse().ok()?, range.parse().ok()?),
            };
            let step = step.parse().ok().filter(|&step: &u64| step > 0)?;
            Some((first, last, step))
        };
        let ranges = text.split(',').map(|part| range(part.trim())).collect::<Option<Vec<_>>>();
        let ranges = ranges.ok_or_else(wrong)?;
        match ranges.iter().find(|(first, last, _)| first > last) {
            Some((first, last, _)) => Err(format!("{first}..{last} ends before it begins")),
            None => Ok(Self { text: text.to_owned(), ranges }),
        }
    }

    /// Whether `number` is wanted.
    pub(super) fn contain(&self, number: u64) -> bool {
        let inside = |&(first, last, step): &(u64, u64, u64)| {
            (first..=last).contains(&number) && (number - first).is_multiple_of(step)
        };
        self.ranges.iter().any(inside)
    }

    /// The number, if there is just one.
    pub(super) fn single(&self) -> Option<u64> {
        match self.ranges.as_slice() {
            &[(first, last, _)] if first == last => Some(first),
            _ => None,
        }
    }

    /// As typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// The extents of a tensor.
#[derive(Clone)]
pub(super) struct Shape(pub(super) Vec<u64>);

fn shape(text: &str) -> Result<Shape, String> {
    let extents = text.split(['x', ',', '×']).map(|extent| extent.trim().parse());
    extents
        .collect::<Result<_, _>>()
        .map(Shape)
        .map_err(|_: std::num::ParseIntError| "a shape is a list of numbers, such as 256x64".to_owned())
}

fn endian_parser() -> impl TypedValueParser<Value = ByteOrder> {
    named([("little", ByteOrder::Little), ("big", ByteOrder::Big)])
}

pub(super) fn layout(text: &str) -> Result<Layout, String> {
    Layout::parse(text).map_err(|error| error.to_string())
}

pub(super) fn dtype(text: &str) -> Result<Dtype, String> {
    Dtype::parse(text).map_err(|error| error.to_string())
}
