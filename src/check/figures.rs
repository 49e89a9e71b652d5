//! The figures of tensors, taken from a `histogram` report.

use std::collections::BTreeMap;

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
            tensors: tensors
                .ok_or_else(|| wrong("a tensor lacks its name, or has formats that are not known"))?,
        })
    }

    /// What the tensors are known by.
    pub fn identities(&self) -> Vec<Identity> {
        self.tensors.iter().map(|tensor| tensor.identity.clone()).collect()
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
    take(&mut values, tensor, None);
    for cell in tensor["formats"].as_array()? {
        let format = name_of(&find_any(cell["format"].as_str()?).ok()?);
        take(&mut values, cell, Some(format));
    }
    let shape = tensor["shape"].as_array().map(|shape| shape.iter().filter_map(Value::as_u64).collect());
    Some(Figures {
        identity: Identity {
            name: tensor["name"].as_str()?.to_owned(),
            step: tensor["step"].as_u64(),
            rank: tensor["rank"].as_u64(),
        },
        shape,
        dtype: tensor["dtype"].as_str().map(str::to_owned),
        digest: None,
        values,
    })
}

/// Takes every figure that has a name among the metrics.
pub(super) fn take(values: &mut BTreeMap<Metric, Option<f64>>, fields: &Value, format: Option<&'static str>) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        if let Some(metric) = Metric::find(name, format) {
            values.insert(metric, number(value));
        }
    }
}

/// A number as reports write it: NaN and Inf as strings, undefined as `null`.
fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => value.as_f64(),
    }
}
