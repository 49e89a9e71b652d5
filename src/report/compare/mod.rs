//! The report of `compare`: how far the tensors of two dumps are apart.

mod findings;
mod junit;
mod model;
mod picture;
mod sort;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{Alone, CompareReport, Element, Options, Reshaped, Row, Side, Verdict};
pub use sort::{SORTS, Sort};

use super::picture::Picture;
use super::{Report, json};

impl Report for CompareReport {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_csv(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_markdown(out)
    }

    fn junit(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_junit(out)
    }

    fn picture(&self) -> Option<Picture> {
        Some(picture::picture(self))
    }
}
