//! The reports of `simulate-scaler`: what each scaler would have done, and which scalers there are.

mod events;
mod findings;
mod list;
mod model;
mod picture;
mod suggestion;
mod terminal;
mod text;

use std::io::{self, Write};

pub use list::ScalersReport;
pub use model::{Options, Record, SimulateReport};

use super::picture::Picture;
use super::{Report, json};

impl Report for SimulateReport {
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

impl Report for ScalersReport {
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
