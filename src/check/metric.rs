//! The figures that rules can name: those of a `histogram` report, by the names of its JSON.

use crate::format::{Named, find_any};

/// Figures of a tensor, whatever the format.
pub const TENSOR_METRICS: &[&str] = &[
    "elements",
    "nan",
    "positive_inf",
    "negative_inf",
    "zero",
    "nonzero_finite",
    "amax",
    "amin",
    "dynamic_range_log2",
    "mean",
    "rms",
];

/// Figures of a tensor in a format, which follows after a dot: `underflow_pct.float16`.
pub const FORMAT_METRICS: &[&str] = &[
    "underflow",
    "subnormal",
    "normal",
    "overflow",
    "exceeds_max",
    "underflow_pct",
    "underflow_pct_of_all",
    "subnormal_pct",
    "subnormal_pct_of_all",
    "overflow_pct",
    "overflow_pct_of_all",
    "mse",
    "rel_l2",
    "sqnr_db",
    "max_abs",
    "max_rel",
    "mean_rel",
    "left_out_of_errors",
    "headroom_log2",
];

/// Counts that elements of NaN and Inf are no reason to distrust.
const COUNTS_OF_ALL: &[&str] = &["elements", "nan", "positive_inf", "negative_inf", "zero", "nonzero_finite"];

/// Units that may stand after a number: how they are written, and the end of the names that have them.
const UNITS: &[(&str, &[&str])] = &[("%", &["_pct", "_pct_of_all"]), ("dB", &["_db"]), ("bits", &["_log2"])];

/// A figure of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    name: &'static str,
    format: Option<&'static str>,
}

impl Metric {
    /// Reads `amax` or `underflow_pct.float16`; the format may go by any of its names, or be described.
    ///
    /// # Errors
    /// A sentence that says which names would be valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let known =
            |names: &'static [&'static str], name: &str| names.iter().copied().find(|known| *known == name);
        match text.split_once('.') {
            None => match (known(TENSOR_METRICS, text), known(FORMAT_METRICS, text)) {
                (Some(name), _) => Ok(Self { name, format: None }),
                (None, Some(name)) => Err(format!("'{name}' needs a format: {name}.float16")),
                (None, None) => Err(unknown(text)),
            },
            Some((name, format)) => match (known(FORMAT_METRICS, name), known(TENSOR_METRICS, name)) {
                (Some(name), _) => {
                    let format = find_any(format).map_err(|error| error.what().to_owned())?;
                    Ok(Self { name, format: Some(name_of(&format)) })
                }
                (None, Some(name)) => Err(format!("'{name}' has no format: it is of the stored values")),
                (None, None) => Err(unknown(name)),
            },
        }
    }

    /// A figure of a tensor in `format`, or of the stored values; `None` if there is none of this name.
    pub fn find(name: &str, format: Option<&'static str>) -> Option<Self> {
        let names = if format.is_some() { FORMAT_METRICS } else { TENSOR_METRICS };
        names.iter().find(|known| **known == name).map(|name| Self { name, format })
    }

    /// The name without the format.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Canonical name of the format.
    pub fn format(&self) -> Option<&'static str> {
        self.format
    }

    /// The unit that may stand after its limits.
    pub fn unit(&self) -> Option<&'static str> {
        let has = |(_, ends): &&(&str, &[&str])| ends.iter().any(|end| self.name.ends_with(end));
        UNITS.iter().find(has).map(|(unit, _)| *unit)
    }

    /// Whether it counts elements of every kind; every other figure leaves NaN and Inf out.
    pub fn counts_all(&self) -> bool {
        self.format.is_none() && COUNTS_OF_ALL.contains(&self.name)
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.format {
            Some(format) => write!(f, "{}.{format}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// Canonical name of a format.
pub fn name_of(format: &Named) -> &'static str {
    match format {
        Named::Plain(format) => format.name,
        Named::Block(spec) => spec.name,
    }
}

/// Whether `text` is a unit.
pub fn is_unit(text: &str) -> bool {
    UNITS.iter().any(|(unit, _)| *unit == text)
}

fn unknown(name: &str) -> String {
    let name = crate::error::escape(name);
    format!(
        "there is no figure '{name}'; of the stored values there are {}; of a format, as in underflow_pct.float16, {}",
        TENSOR_METRICS.join(", "),
        FORMAT_METRICS.join(", ")
    )
}
