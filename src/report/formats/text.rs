//! The parameters as CSV (a row for each format) and as Markdown (README's table).

use std::io::{self, Write};

use super::{FormatEntry, FormatsReport, Limit};
use crate::report::number::{full, short};

/// A column of the CSV: the head, and the figure as text; what a format lacks is empty.
type Column = (&'static str, fn(&FormatEntry) -> String);

const COLUMNS: &[Column] = &[
    ("format", |f| f.name.to_owned()),
    ("bits", |f| f.bits.to_string()),
    ("sign_bits", |f| f.sign_bits.to_string()),
    ("exponent_bits", |f| f.exponent_bits.to_string()),
    ("significand_bits", |f| f.significand_bits.to_string()),
    ("precision_bits", |f| f.precision_bits.to_string()),
    ("exponent_bias", |f| f.exponent_bias.to_string()),
    ("emin", |f| f.emin.to_string()),
    ("emax", |f| f.emax.to_string()),
    ("max_finite", |f| full(f.max_finite.value.0)),
    ("overflow_threshold", |f| full(f.overflow_threshold.value.0)),
    ("overflow_includes_threshold", |f| f.overflow_includes_threshold.to_string()),
    ("min_normal", |f| full(f.min_normal.value.0)),
    ("max_subnormal", |f| text(&f.max_subnormal)),
    ("min_subnormal", |f| text(&f.min_subnormal)),
    ("flush_threshold", |f| text(&f.flush_threshold)),
    ("epsilon", |f| full(f.epsilon.value.0)),
    ("infinity_code", |f| f.infinity_code.clone().unwrap_or_default()),
    ("nan_codes", |f| f.nan_codes.to_string()),
    ("nan_code", |f| f.nan_code.clone().unwrap_or_default()),
    ("negative_zero", |f| f.negative_zero.to_string()),
    ("finite_codes", |f| f.finite_codes.to_string()),
    ("source", |f| f.source.to_owned()),
];

fn text(limit: &Option<Limit>) -> String {
    limit.as_ref().map_or(String::new(), |limit| full(limit.value.0))
}

impl FormatsReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().map(|(head, _)| head)).map_err(io::Error::other)?;
        for format in &self.formats {
            csv.write_record(COLUMNS.iter().map(|(_, figure)| figure(format))).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect formats\n")?;
        let heads = [
            "name",
            "also called",
            "s/e/m",
            "bias",
            "largest",
            "overflows",
            "smallest normal",
            "smallest subnormal",
            "becomes zero",
            "Inf",
            "NaN codes",
            "−0",
        ];
        writeln!(out, "| {} |", heads.join(" | "))?;
        writeln!(out, "|:--|:--|:--|--:|--:|:--|--:|--:|:--|:--|:--|:--|")?;
        self.formats.iter().try_for_each(|format| writeln!(out, "{}", markdown_row(format)))?;
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "- {note}"))
    }
}

fn markdown_row(format: &FormatEntry) -> String {
    let aliases: Vec<String> = format.aliases.iter().take(3).map(|alias| format!("`{alias}`")).collect();
    let code = |code: &Option<String>| code.as_ref().map_or("–".to_owned(), |code| format!("`{code}`"));
    let nan = match format.nan_codes {
        0 => "–".to_owned(),
        1 => code(&format.nan_code),
        many => format!("{} of {many}", code(&format.nan_code)),
    };
    let cells = [
        format!("`{}`", format.name),
        aliases.join(" "),
        format.split(),
        format.exponent_bias.to_string(),
        largest(&format.max_finite),
        format!("{} {}", format.overflow_word(), largest(&format.overflow_threshold)),
        format.min_normal.binary.clone(),
        format.min_subnormal.as_ref().map_or("–".into(), |limit| limit.binary.clone()),
        format.flush_threshold.as_ref().map_or("never".into(), |limit| format!("≤ {}", limit.binary)),
        code(&format.infinity_code),
        nan,
        (if format.negative_zero { "yes" } else { "no" }).into(),
    ];
    format!("| {} |", cells.join(" | "))
}

/// A limit near the top: plain up to six digits, else seven significant ones.
pub(super) fn largest(limit: &Limit) -> String {
    let x = limit.value.0;
    if x < 1e6 { full(x) } else { short(x, 7) }
}

impl FormatEntry {
    /// Bits of sign, exponent and significand: `1/4/3`.
    pub(super) fn split(&self) -> String {
        format!("{}/{}/{}", self.sign_bits, self.exponent_bits, self.significand_bits)
    }

    /// How the overflow threshold reads: `from` it on, or only `above` it.
    pub(super) fn overflow_word(&self) -> &'static str {
        if self.overflow_includes_threshold { "from" } else { "above" }
    }
}
