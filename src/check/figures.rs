//! The figures of tensors, taken from a `histogram` report.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::metric::{Metric, name_of};
use super::pairing::Identity;
use crate::error::{Error, Result, escape};
use crate::format::find_any;

/// The figures of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// What it is known by.
    pub identity: Identity,
    /// Extent of each dimension, if they are one tensor's.
    pub shape: Option<Vec<u64>>,
    /// Stored type, likewise.
    pub dtype: Option<String>,
    /// Digest of the stored values, if they were read.
    pub digest: Option<String>,
    /// Every figure; `None` is undefined.
    pub values: BTreeMap<Metric, Option<f64>>,
}

impl Figures {
    /// A figure; `None` if it is undefined or was not computed.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(metric).copied().flatten()
    }

    /// Number of elements that are NaN or Inf.
    pub fn not_finite(&self) -> f64 {
        let count = |name| Metric::find(name, None).and_then(|metric| self.value(&metric)).unwrap_or(0.0);
        count("nan") + count("positive_inf") + count("negative_inf")
    }
}

/// The tensors of a dump, and the options that fixed their figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The options, by the names that reports have for them.
    pub options: BTreeMap<&'static str, Value>,
    /// The tensors, in the order of the report.
    pub tensors: Vec<Figures>,
}

/// Options that change figures.
pub(super) const OPTIONS: &[&str] =
    &["scale", "profile", "rounding", "overflow", "ftz", "daz", "dtype", "unscale"];

impl Snapshot {
    /// Takes the figures from the JSON of a `histogram` report by tensor.
    ///
    /// # Errors
    /// It is no such report.
    pub fn from_report(report: &Value) -> Result<Self> {
        let wrong = |what: &str| Error::new(format!("is no report of 'histogram --json': {what}"));
        if report["command"] != "histogram" {
            return Err(wrong("its field 'command' is another"));
        }
        if report["schema_version"] != crate::check::baseline::REPORT_SCHEMA {
            return Err(wrong("its 'schema_version' is another than this version writes; make it again"));
        }
        if report["options"]["by"] != "tensor" {
            return Err(wrong("its rows are steps or ranks; make it without --by"));
        }
        let tensors = report["tensors"].as_array().ok_or_else(|| wrong("'tensors' is missing"))?;
        let tensors = tensors.iter().map(figures).collect::<Option<_>>();
        Ok(Self {
            options: options(&report["options"]),
            tensors: tensors.ok_or_else(|| {
                wrong("a tensor lacks its name, has formats that are not known, or is damaged")
            })?,
        })
    }

    /// What the tensors are known by.
    pub fn identities(&self) -> Vec<Identity> {
        self.tensors.iter().map(|tensor| tensor.identity.clone()).collect()
    }

    /// The formats that it has figures of, each once.
    pub fn formats(&self) -> Vec<&'static str> {
        let mut formats: Vec<&str> = Vec::new();
        for metric in self.tensors.iter().flat_map(|tensor| tensor.values.keys()) {
            formats.extend(metric.format().filter(|format| !formats.contains(format)));
        }
        formats
    }

    /// A tensor that another one cannot be told from: what it is called.
    pub fn ambiguous(&self) -> Option<&Identity> {
        let mut known = BTreeSet::new();
        self.tensors.iter().map(|tensor| &tensor.identity).find(|identity| !known.insert(*identity))
    }

    /// The first option that differs, with both values.
    pub fn other_option(&self, other: &Self) -> Option<String> {
        let text = |value: Option<&Value>| escape(&value.unwrap_or(&Value::Null).to_string());
        let differs = |name: &&&str| self.options.get(**name) != other.options.get(**name);
        OPTIONS.iter().find(differs).map(|name| {
            format!("{name} {} there, {} now", text(other.options.get(name)), text(self.options.get(name)))
        })
    }
}

/// The options that change figures.
pub(super) fn options(all: &Value) -> BTreeMap<&'static str, Value> {
    OPTIONS.iter().map(|&name| (name, all[name].clone())).collect()
}

fn figures(tensor: &Value) -> Option<Figures> {
    let mut values = BTreeMap::new();
    take(&mut values, tensor, None)?;
    for cell in tensor["formats"].as_array()? {
        let format = name_of(&find_any(cell["format"].as_str()?).ok()?);
        take(&mut values, cell, Some(format))?;
    }
    described(tensor, values)
}

/// The figures of a tensor, with what it is under the names that reports and baselines share. `None` if one of the
/// fields has another type.
pub(super) fn described(tensor: &Value, values: BTreeMap<Metric, Option<f64>>) -> Option<Figures> {
    fn optional<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
        if value.is_null() { Some(None) } else { read(value).map(Some) }
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let extents = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect();
    Some(Figures {
        identity: Identity {
            name: text(&tensor["name"])?,
            step: optional(&tensor["step"], Value::as_u64)?,
            rank: optional(&tensor["rank"], Value::as_u64)?,
        },
        shape: optional(&tensor["shape"], extents)?,
        dtype: optional(&tensor["dtype"], text)?,
        digest: optional(&tensor["xxh3_128"], text)?,
        values,
    })
}

/// Takes every figure that has a name among the metrics. `None` if one of them is no figure.
pub(super) fn take(
    values: &mut BTreeMap<Metric, Option<f64>>,
    fields: &Value,
    format: Option<&'static str>,
) -> Option<()> {
    for (name, value) in fields.as_object()? {
        if let Some(metric) = Metric::find(name, format) {
            values.insert(metric, number(value)?);
        }
    }
    Some(())
}

/// A figure as reports write it: NaN and Inf as strings, undefined as `null`. `None` if it is something else.
fn number(value: &Value) -> Option<Option<f64>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => match text.as_str() {
            "inf" => Some(Some(f64::INFINITY)),
            "-inf" => Some(Some(f64::NEG_INFINITY)),
            "nan" => Some(None),
            _ => None,
        },
        _ => value.as_f64().map(Some),
    }
}
