//! The report of `check`: which tensors are not as rules and the baseline have them.

mod github;
mod junit;
mod model;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{CaseRow, CheckReport, FigureRow, Options, Verdict};

use super::{Report, json};

impl Report for CheckReport {
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
}
