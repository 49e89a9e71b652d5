//! The report of `simulate-scaler --list`: every scaler with its parameters, defaults and source.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::histogram::as_map;
use crate::report::style::View;
use crate::report::table::wrap;
use crate::report::{SCHEMA_VERSION, Tool};
use crate::scaler::{SCALERS, ScalerSpec};

/// Every scaler that can be replayed.
#[derive(Clone, Debug, Serialize)]
pub struct ScalersReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `simulate-scaler --list`.
    pub command: &'static str,
    /// The scalers.
    pub scalers: Vec<ScalerRow>,
}

/// One scaler.
#[derive(Clone, Debug, Serialize)]
pub struct ScalerRow {
    /// Its name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What it is.
    pub about: &'static str,
    /// Where the rule and the defaults come from.
    pub source: &'static str,
    /// Type of the scale.
    pub float: &'static str,
    /// Parameters and their defaults.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Whether gradients are divided by the scale after its update.
    pub divides_by_new_scale: bool,
}

impl ScalerRow {
    fn new(spec: &ScalerSpec) -> Self {
        let parameters = spec.parameters.iter();
        Self {
            name: spec.name,
            aliases: spec.aliases,
            about: spec.about,
            source: spec.source,
            float: spec.float.name(),
            parameters: parameters
                .map(|parameter| (parameter.name, parameter.text(parameter.default)))
                .collect(),
            divides_by_new_scale: spec.divides_by_new_scale,
        }
    }

    fn defaults(&self) -> String {
        let settings: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.join(" ")
    }
}

impl Default for ScalersReport {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            command: "simulate-scaler --list",
            scalers: SCALERS.iter().map(ScalerRow::new).collect(),
        }
    }
}

impl ScalersReport {
    /// Writes the list for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for (index, row) in self.scalers.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            let aliases =
                if row.aliases.is_empty() { String::new() } else { format!(" ({})", row.aliases.join(", ")) };
            writeln!(out, "{}{aliases}", view.paint.bold(row.name))?;
            for line in wrap("    ", row.about, view.width) {
                writeln!(out, "{line}")?;
            }
            for line in wrap("    ", &row.defaults(), view.width) {
                writeln!(out, "{line}")?;
            }
            for line in wrap("    ", &format!("{}; {}", row.source, row.float), view.width) {
                writeln!(out, "{}", view.paint.dim(&line))?;
            }
        }
        Ok(())
    }

    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let heads = ["scaler", "parameter", "default", "float", "about", "source"];
        csv.write_record(heads).map_err(io::Error::other)?;
        for row in &self.scalers {
            for (name, default) in &row.parameters {
                let record = [row.name, name, default, row.float, row.about, row.source];
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| scaler | what | defaults | type | source |\n|:--|:--|:--|:--|:--|")?;
        for row in &self.scalers {
            writeln!(
                out,
                "| `{}` | {} | {} | {} | {} |",
                row.name,
                row.about,
                row.defaults(),
                row.float,
                row.source
            )?;
        }
        Ok(())
    }
}
