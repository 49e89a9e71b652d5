//! The report of `fp8`: what each recipe's scales are, and what they do to each tensor.

mod cell;
mod definitions;
mod events;
mod findings;
mod model;
mod picture;
mod series;
mod terminal;
mod text;

use std::io::{self, Write};

pub use cell::{Cell, EventRow};
pub use model::{Fp8Report, METRICS, Metric, Options, Origin, RecipeRow, TensorRow};

use super::picture::Picture;
use super::{Report, json};

impl Report for Fp8Report {
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
