//! The reports of `formats`: the exact parameters of the formats, and every code of a small one.

mod codes;
mod model;
mod terminal;
mod text;

use std::io::{self, Write};

pub use codes::{CodeRow, CodesReport, MAX_CODE_BITS};
pub use model::{FormatEntry, FormatsReport, Limit};

use super::{Report, json};

impl Report for FormatsReport {
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

impl Report for CodesReport {
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
