//! The report of `reduce`: what an all-reduce in each format makes of the gradients of several ranks.

mod findings;
mod model;
mod picture;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{CaseRow, FsdpRow, Options, ReduceReport, TensorRow, WorldRow};

use super::picture::Picture;
use super::{Report, json};

impl Report for ReduceReport {
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
