//! The report of `updates`: what becomes of weight updates in each format and each way of keeping weights.

mod findings;
mod model;
mod picture;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{FormatRow, Mark, Options, TensorRow, UpdatesReport, WayRow};

use super::picture::Picture;
use super::{Report, json};

impl Report for UpdatesReport {
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
