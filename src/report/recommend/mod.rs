//! The report of `recommend`: the cheapest format that will do for each tensor, and why.

mod config;
mod definitions;
mod findings;
mod model;
mod terminal;
mod text;

use std::io::{self, Write};

pub use config::Config;
pub use model::{By, Chosen, Fails, Options, RecommendReport, Row, Subject};

use super::{Report, json};

impl Report for RecommendReport {
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
