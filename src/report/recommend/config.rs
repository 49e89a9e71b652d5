//! The recommendation as a file for training scripts.

use std::io::{self, Write};

use serde::Serialize;

use super::model::{By, Options, RecommendReport};
use crate::report::histogram::as_map;
use crate::report::{Report, SCHEMA_VERSION, Tool, json};

/// Widest format, in bits an element, that a layer under FP8 recipes can have.
const FP8_BITS: f64 = 9.0;

/// Tensor by tensor what to take, and the modules that are to stay out of FP8.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    schema_version: u32,
    tool: Tool,
    bounds: Options,
    /// Format of each tensor; the stored type where none will do.
    #[serde(serialize_with = "as_map")]
    dtypes: Vec<(String, String)>,
    /// Modules with a tensor that no 8-bit or narrower format serves, by their full names: what torchao's
    /// `module_filter_fn` and torchtitan's `filter_fqns` leave out.
    keep_in_higher_precision: Vec<String>,
    /// The same for Transformer Engine's `DisableFP8Layer` feature (`layer_name_regex_pattern`); `null` if it is none.
    transformer_engine_layer_name_regex_pattern: Option<String>,
}

impl Config {
    /// Of a finished report.
    pub fn new(report: &RecommendReport) -> Self {
        let rows: Vec<_> = match report.options.by {
            By::Tensor => report.rows.iter().collect(),
            By::Layer => Vec::new(),
        };
        let mut dtypes: Vec<(String, String)> = Vec::new();
        let mut keep: Vec<String> = Vec::new();
        for row in rows {
            let chosen = row.recommended.as_ref();
            let stored = || row.stored.clone().unwrap_or_default();
            dtypes.push((row.name.clone(), chosen.map_or_else(stored, |chosen| chosen.format.to_owned())));
            if chosen.is_none_or(|chosen| chosen.bits.0 > FP8_BITS) {
                keep.push(module(&row.name).to_owned());
            }
        }
        dtypes.sort();
        keep.sort();
        keep.dedup();
        let names: Vec<String> = keep.iter().map(|name| regex::escape(name)).collect();
        let pattern = (!keep.is_empty()).then(|| format!("^({})$", names.join("|")));
        Self {
            schema_version: SCHEMA_VERSION,
            tool: Tool::THIS,
            bounds: report.options.clone(),
            dtypes,
            keep_in_higher_precision: keep,
            transformer_engine_layer_name_regex_pattern: pattern,
        }
    }
}

/// The module that a parameter or its gradient belongs to.
fn module(name: &str) -> &str {
    let name = name.strip_suffix(".grad").unwrap_or(name);
    [".weight", ".bias"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

impl Report for Config {
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json(self, out)
    }

    fn csv(&self, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::other("a configuration is JSON"))
    }

    fn markdown(&self, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::other("a configuration is JSON"))
    }
}
