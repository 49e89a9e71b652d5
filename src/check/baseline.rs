//! The baseline: figures as they were, in a file that a person can review.
//!
//! One line has what a tensor is, one its stored values' figures, one those of each format, so that the diff of two
//! baselines shows which figure of which tensor changed. Tensors are sorted by name, numbers are those that read
//! back as the same, nothing says when or where it was made.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::figures::{Figures, Snapshot, described, options, take};
use super::metric::{Metric, name_of};
use super::pairing::Identity;
use crate::error::{Error, Result, escape};
use crate::format::find_any;

/// What the file says that it is.
const KIND: &str = "amp-inspect baseline";
/// Version of the layout of baselines. Grows when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u64 = 1;
/// Version of the `histogram` reports that figures are taken from.
pub(super) const REPORT_SCHEMA: u64 = 1;

/// What the fields mean, as the file says.
const DEFINITIONS: &[(&str, &str)] = &[
    ("figures", "those of 'amp-inspect histogram --json', whose definitions hold; null is undefined"),
    (
        "xxh3_128",
        "digest of shape, type and the exact values, in runs of 2^22 elements in the order of the file",
    ),
];

/// Writes a baseline.
pub fn write(snapshot: &Snapshot) -> String {
    let mut tensors: Vec<&Figures> = snapshot.tensors.iter().collect();
    tensors.sort_by(|a, b| a.identity.cmp(&b.identity));
    let map = |pairs: &[(&str, &str)]| -> Value {
        pairs.iter().map(|&(key, value)| (key.to_owned(), Value::from(value))).collect::<Map<_, _>>().into()
    };
    let mut text = String::from("{\n");
    let head = [
        ("kind", Value::from(KIND)),
        ("schema_version", SCHEMA_VERSION.into()),
        ("tool", format!("amp-inspect {}", env!("CARGO_PKG_VERSION")).into()),
        ("options", json!(snapshot.options)),
        ("definitions", map(DEFINITIONS)),
    ];
    for (name, value) in head {
        // Writing to a string does not fail.
        let _ = writeln!(text, " \"{name}\": {value},");
    }
    text.push_str(" \"tensors\": [");
    for (number, tensor) in tensors.iter().enumerate() {
        let Identity { name, step, rank } = &tensor.identity;
        let what = json!({
            "name": name, "step": step, "rank": rank, "shape": tensor.shape, "dtype": tensor.dtype,
            "xxh3_128": tensor.digest,
        });
        let what = what.to_string();
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{separator}\n  {},\n   \"stored\": {}",
            what.trim_end_matches('}'),
            fields(tensor, None)
        );
        let mut formats: Vec<&str> = tensor.values.keys().filter_map(Metric::format).collect();
        formats.dedup();
        formats.sort_unstable();
        formats.dedup();
        for format in formats {
            let _ = write!(text, ",\n   {}: {}", json!(format), fields(tensor, Some(format)));
        }
        text.push('}');
    }
    text.push_str("\n ]\n}\n");
    text
}

/// The figures of the stored values, or of one format, on one line.
fn fields(tensor: &Figures, format: Option<&str>) -> Value {
    let of_format = tensor.values.iter().filter(|(metric, _)| metric.format() == format);
    let number = |value: &Option<f64>| match value {
        Some(x) if x.is_finite() => {
            // Counts without a decimal point.
            if x.fract() == 0.0 && x.abs() < 9e15 { json!(*x as i64) } else { json!(x) }
        }
        Some(x) => Value::from(if *x > 0.0 { "inf" } else { "-inf" }),
        None => Value::Null,
    };
    of_format.map(|(metric, value)| (metric.name().to_owned(), number(value))).collect::<Map<_, _>>().into()
}

/// Reads a baseline.
///
/// # Errors
/// It is none, of another layout, or damaged.
pub fn read(text: &str) -> Result<Snapshot> {
    let file: Value =
        serde_json::from_str(text).map_err(|error| Error::new(format!("is no baseline: {error}")))?;
    if file["kind"] != KIND {
        return Err(Error::new(
            "is no baseline: its field 'kind' is missing or another; 'check --update-baseline' writes one",
        ));
    }
    match file["schema_version"].as_u64() {
        Some(SCHEMA_VERSION) => {}
        Some(newer) if newer > SCHEMA_VERSION => {
            return Err(Error::new(format!(
                "has schema version {newer}, of a newer amp-inspect; this one reads {SCHEMA_VERSION}"
            )));
        }
        _ => {
            return Err(Error::new(format!(
                "has no schema version that is known (this amp-inspect reads {SCHEMA_VERSION}); make it again with \
                 --update-baseline"
            )));
        }
    }
    let wrong = |what: String| Error::new(format!("is no baseline: {what}"));
    if !file["options"].is_object() {
        return Err(wrong("its field 'options' is missing or another".into()));
    }
    let tensors = file["tensors"].as_array().filter(|tensors| !tensors.is_empty());
    let tensors = tensors.ok_or_else(|| wrong("its field 'tensors' is no list of tensors".into()))?;
    let tensors = tensors.iter().enumerate().map(|(number, tensor)| {
        figures(tensor).ok_or_else(|| wrong(format!("tensor {} is damaged", number + 1)))
    });
    let snapshot = Snapshot { options: options(&file["options"]), tensors: tensors.collect::<Result<_>>()? };
    match snapshot.ambiguous() {
        Some(twice) => Err(wrong(format!("tensor '{}' is there twice", escape(&twice.name)))),
        None => Ok(snapshot),
    }
}

/// Whether a file is a baseline, of whatever version and in whatever state, and may be replaced by another.
pub fn is_baseline(bytes: &[u8]) -> bool {
    serde_json::from_slice(bytes).is_ok_and(|file: Value| file["kind"] == KIND)
}

fn figures(tensor: &Value) -> Option<Figures> {
    let mut values = BTreeMap::new();
    take(&mut values, &tensor["stored"], None)?;
    for (name, fields) in tensor.as_object()?.iter().filter(|(name, _)| *name != "stored") {
        match find_any(name) {
            Ok(format) => take(&mut values, fields, Some(name_of(&format)))?,
            Err(_) if fields.is_object() => return None,
            Err(_) => {}
        }
    }
    described(tensor, values)
}
