//! The report of `memory`: the terms of each recipe, and the stages of a step.

mod model;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{Counted, LedgerEntry, LineEntry, MemoryReport};

use super::{Report, json};

impl Report for MemoryReport {
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
