//! The report of `explain`: what each format makes of one value, and why.

mod given;
mod line;
mod model;
mod neighbours;
mod terminal;
mod text;

use std::io::{self, Write};

pub use given::{CodesOf, Form, Given, Held};
pub(super) use model::class_name;
pub use model::{CastRow, ExplainReport, Explained, Near, Options};
pub use neighbours::{Neighbour, Place};

use super::{Report, json};

impl Report for ExplainReport {
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
