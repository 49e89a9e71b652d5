//! Finished statistics → something to read: one model a subcommand, one function an output.
//!
//! Nothing here computes statistics. An output is a row of [`OUTPUTS`]; every subcommand's report can be
//! rendered by each.

pub mod autocast;
pub mod bench_gpu;
pub mod check;
mod code;
pub mod compare;
pub mod explain;
pub mod formats;
pub mod fp8;
pub mod histogram;
mod junit;
pub mod listing;
pub mod memory;
pub mod number;
pub mod picture;
pub mod recommend;
pub mod reduce;
pub mod save;
pub mod simulate;
pub mod style;
mod table;
pub mod updates;
pub mod verify;

use std::io::{self, Write};

use serde::Serialize;

use picture::{Picture, to_png, to_svg};

/// Version of the layout of the JSON reports. Grows when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// What a subcommand found, ready for any output.
pub trait Report {
    /// Every figure at full precision, with the definitions and options that fix its meaning.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn json(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Every figure at full precision, one row an observation.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn csv(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Tables and sentences for a pull request.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn markdown(&self, out: &mut dyn Write) -> io::Result<()>;

    /// JUnit XML: a case for each demand, passed or failed. Only of commands that judge.
    ///
    /// # Errors
    /// `out` cannot be written, or this report judges nothing.
    fn junit(&self, _out: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::other("this report judges nothing"))
    }

    /// The one picture that says most; `None` where a picture would say nothing.
    fn picture(&self) -> Option<Picture> {
        None
    }
}

/// What was chosen for which formats: `ieee for float16; saturate for e4m3fn, e2m1fn`.
fn by_choice<'a>(formats: impl IntoIterator<Item = (String, &'a str)>) -> String {
    let mut choices: Vec<(String, Vec<&str>)> = Vec::new();
    for (choice, format) in formats {
        match choices.iter_mut().find(|(known, _)| *known == choice) {
            Some((_, names)) => names.push(format),
            None => choices.push((choice, vec![format])),
        }
    }
    let texts = choices.iter().map(|(choice, names)| format!("{choice} for {}", names.join(", ")));
    texts.collect::<Vec<_>>().join("; ")
}

/// A kind of file that `--save` can write.
pub struct Output {
    /// The extension that asks for it.
    pub extension: &'static str,
    /// What it is, for `--help`.
    pub about: &'static str,
    /// What a report must have for it.
    pub needs: Needs,
    /// Renders a report.
    pub render: fn(&dyn Report, &mut dyn Write) -> io::Result<()>,
}

/// What not every report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Every report has it.
    Nothing,
    /// A picture.
    Picture,
    /// A verdict for each tensor.
    Verdicts,
}

/// Every kind of file that `--save` can write.
pub const OUTPUTS: &[Output] = &[
    Output {
        extension: "json",
        about: "all figures with their definitions",
        needs: Needs::Nothing,
        render: |report, out| report.json(out),
    },
    Output {
        extension: "csv",
        about: "all figures, one row an observation",
        needs: Needs::Nothing,
        render: |report, out| report.csv(out),
    },
    Output {
        extension: "md",
        about: "the tables, for a pull request",
        needs: Needs::Nothing,
        render: |report, out| report.markdown(out),
    },
    Output {
        extension: "png",
        about: "the picture, 2400 pixels wide",
        needs: Needs::Picture,
        render: |report, out| draw(report, to_png, out),
    },
    Output {
        extension: "svg",
        about: "the picture, to be scaled",
        needs: Needs::Picture,
        render: |report, out| draw(report, to_svg, out),
    },
    Output {
        extension: "xml",
        about: "the verdicts, as JUnit XML",
        needs: Needs::Verdicts,
        render: |report, out| report.junit(out),
    },
];

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

fn json(model: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, model)?;
    out.write_all(b"\n")
}

/// Writes the picture of a report; a report without one is refused before it comes to this.
fn draw(
    report: &dyn Report,
    to_file: fn(&Picture) -> crate::error::Result<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let picture = report.picture().ok_or_else(|| io::Error::other("this report has no picture"))?;
    out.write_all(&to_file(&picture).map_err(io::Error::other)?)
}
