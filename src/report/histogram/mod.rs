//! The report of `histogram`: what each format does to each tensor.

mod axis;
mod blocks;
mod cell;
mod definitions;
mod findings;
mod heading;
mod metric;
mod model;
mod picture;
mod row;
mod steps;
mod terminal;
mod text;

use std::io::{self, Write};

pub use cell::{Blocks, Cell, Worst};
pub use metric::{Metric, SORTS, Sort};
pub(super) use model::as_map;
pub use model::{HistogramReport, Input, Options, Place, Subject};
pub use row::{BlockRow, FormatRow};
pub(super) use text::{code, code_in_cell};

use super::picture::Picture;
use super::{Report, json};

impl Report for HistogramReport {
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
        Some(if self.is_by_place() { picture::heat_map(self) } else { picture::picture(self) })
    }
}
