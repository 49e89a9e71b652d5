//! The report of `histogram`: what each format does to each tensor.

mod findings;
mod model;
mod picture;

pub use model::{Cell, FormatRow, HistogramReport, Input, Options, Subject};
