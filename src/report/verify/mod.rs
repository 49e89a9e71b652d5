//! The report of `verify`: who agrees with the definition on which casts, and what differs.

mod model;
mod terminal;
mod text;

use std::io::{self, Write};

pub use model::{CheckEntry, DifferenceEntry, ExampleEntry, KnownEntry, Machine, VerifyReport};

use super::{Report, json};

impl Report for VerifyReport {
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
