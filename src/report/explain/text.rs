//! The report as CSV (a row for each value and format) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::terminal::signed;
use super::{CastRow, ExplainReport, Explained};
use crate::error::escape;
use crate::report::by_choice;
use crate::report::number::{Num, brief, full};

/// A column of the CSV: the head, and the figure as text; undefined is empty.
type Column = (&'static str, fn(&CastRow) -> String);

const COLUMNS: &[Column] = &[
    ("format", |r| r.format.to_owned()),
    ("overflow_policy", |r| r.overflow.to_owned()),
    ("class", |r| r.class.to_owned()),
    ("code", |r| r.code.clone()),
    ("sign", |r| r.fields.sign.clone()),
    ("exponent", |r| r.fields.exponent.clone()),
    ("significand", |r| r.fields.significand.clone()),
    ("stored", |r| full(r.stored.0)),
    ("dequantised", |r| full(r.dequantised.0)),
    ("error", |r| text(r.error)),
    ("error_pct", |r| text(r.error_pct)),
    ("error_ulp", |r| text(r.error_ulp)),
    ("ulp", |r| text(r.ulp)),
    ("exact", |r| r.exact.to_string()),
    ("below", |r| text(r.below.as_ref().map(|near| near.value))),
    ("above", |r| text(r.above.as_ref().map(|near| near.value))),
    ("tie", |r| text(r.tie)),
    ("side", |r| r.side.unwrap_or("").to_owned()),
];

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

impl ExplainReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let heads = ["input", "value", "scale", "product"];
        csv.write_record(heads.iter().chain(COLUMNS.iter().map(|(head, _)| head)))
            .map_err(io::Error::other)?;
        for value in &self.values {
            for row in &value.formats {
                let mut record = vec![
                    value.given.input.clone(),
                    full(value.given.value.0),
                    self.options.scale.to_string(),
                    full(value.product.0),
                ];
                record.extend(COLUMNS.iter().map(|(_, figure)| figure(row)));
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            self.markdown_of(value, out)?;
        }
        self.policies().map_or(Ok(()), |policies| writeln!(out, "\n{policies}"))
    }

    /// Which overflow policy was in force where, if it mattered.
    pub(super) fn policies(&self) -> Option<String> {
        let rows = || self.values.iter().flat_map(|value| &value.formats);
        if !rows().any(|row| matches!(row.class, "overflow" | "inf")) {
            return None;
        }
        let formats = self.values.first().map_or(&[][..], |value| &value.formats);
        let policies = formats.iter().map(|row| (row.overflow.to_owned(), row.format));
        Some(format!("overflow policy: {}", by_choice(policies)))
    }

    fn markdown_of(&self, value: &Explained, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect explain: `{}`\n", escape(&value.given.input).replace('`', "'"))?;
        for held in &value.given.held {
            let exact = if held.exact { "" } else { ", the nearest" };
            writeln!(out, "- {} `{}` = {}{exact}", held.format, held.code, held.decimal)?;
        }
        if self.options.scale != 1.0 {
            writeln!(out, "- times the scale {}: {} is cast", self.options.scale, full(value.product.0))?;
        }
        writeln!(out, "\n| format | code | bits | stored | | error % | ulps | class | between | tie |")?;
        writeln!(out, "|:--|:--|:--|--:|:--|--:|--:|:--|:--|--:|")?;
        let end = |near: &Option<super::Near>| near.as_ref().map_or("–".into(), |n| brief(n.value.0, 13));
        for row in &value.formats {
            let bits = row.fields.drawn().replace('|', " ");
            writeln!(
                out,
                "| {} | `{}` | `{bits}` | {} | {} | {} | {} | {} | {} … {} | {} |",
                row.format,
                row.code,
                brief(row.stored.0, 13),
                row.stored_binary,
                signed(row.error_pct),
                signed(row.error_ulp),
                row.class,
                end(&row.below),
                end(&row.above),
                row.tie.map_or("–".into(), |tie| brief(tie.0, 13)),
            )?;
        }
        Ok(())
    }
}
