//! The report of `bench-gpu`: which conversions the card has and whether they are the tool's, and how fast card
//! and processor cast.

mod example;
mod model;
mod picture;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{
    BenchReport, ConversionEntry, CpuEntry, MismatchEntry, Skipped, Status, TargetEntry, ThroughputEntry,
};

use super::picture::Picture;
use super::{Report, json};

impl Report for BenchReport {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_csv(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_markdown(out)
    }

    fn picture(&self) -> Option<Picture> {
        Some(picture::picture(self))
    }
}
