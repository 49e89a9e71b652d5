//! The reports of `autocast`: the audit of a trace, and the lists.

mod list;
mod model;
mod sentences;
mod terminal;
mod text;

use std::io::{self, Write};

pub use list::ListReport;
pub use model::{AutocastReport, CastEntry, FindingEntry, OpEntry};

use super::{Report, json};

impl Report for AutocastReport {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_csv(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_markdown(out)
    }
}

impl Report for ListReport {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_csv(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_markdown(out)
    }
}
