//! Finished statistics → something to read: one model a subcommand, one file an output.
//!
//! Nothing here computes statistics. An output is a row of [`OUTPUTS`]; every subcommand's report can be
//! rendered by each.

pub mod histogram;
pub mod number;
pub mod picture;

use serde::Serialize;

/// Version of the layout of the JSON reports. Grows when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// Which program made a report.
#[derive(Clone, Debug, Serialize)]
pub struct Tool {
    /// Always `amp-inspect`.
    pub name: &'static str,
    /// The package version.
    pub version: &'static str,
}

impl Tool {
    /// This build.
    pub const THIS: Self = Self { name: "amp-inspect", version: env!("CARGO_PKG_VERSION") };
}
