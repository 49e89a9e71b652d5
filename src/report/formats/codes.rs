//! Every code of a small format.

use std::io::{self, Write};

use serde::Serialize;

use super::super::code::{Fields, hex};
use super::super::number::{Num, binary, full};
use super::super::{SCHEMA_VERSION, Tool};
use crate::error::{Error, Result};
use crate::format::FormatSpec;
use crate::format::decode::{CodeClass, classify, decode};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};

/// Widest format whose codes are listed: 256 of them can still be read.
pub const MAX_CODE_BITS: u32 = 8;

/// The codes of a format and their meanings.
#[derive(Clone, Debug, Serialize)]
pub struct CodesReport {
    /// Layout version of this JSON.
    pub schema_version: u32,
    /// What made it.
    pub tool: Tool,
    /// Always `formats`.
    pub command: &'static str,
    /// The format's name.
    pub format: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Its codes, in order.
    pub codes: Vec<CodeRow>,
}

/// One code.
#[derive(Clone, Debug, Serialize)]
pub struct CodeRow {
    /// In hex.
    pub code: String,
    /// The bits of its fields.
    pub fields: Fields,
    /// The value.
    pub value: Num,
    /// The same as an odd integer times a power of two.
    pub binary: String,
    /// `zero`, `subnormal`, `normal`, `inf` or `nan`.
    pub class: &'static str,
}

impl CodesReport {
    /// Lists `format`.
    ///
    /// # Errors
    /// A format of more than [`MAX_CODE_BITS`] bits.
    pub fn new(format: &FormatSpec) -> Result<Self> {
        if format.bits > MAX_CODE_BITS {
            return Err(Error::new(format!(
                "{} has {} codes: only formats of up to {MAX_CODE_BITS} bits are listed (explain --from {} CODE \
                 decodes single ones)",
                format.name,
                1_u64 << format.bits,
                format.name
            )));
        }
        let codes = (0..1 << format.bits)
            .map(|code| {
                let value = decode(format, code);
                CodeRow {
                    code: hex(code.into(), format.bits),
                    fields: Fields::of(format, code),
                    value: Num(value),
                    binary: binary(value),
                    class: match classify(format, code) {
                        CodeClass::Zero => "zero",
                        CodeClass::Subnormal => "subnormal",
                        CodeClass::Normal => "normal",
                        CodeClass::Infinite => "inf",
                        CodeClass::Nan => "nan",
                    },
                }
            })
            .collect();
        let (tool, source) = (Tool::THIS, format.source);
        let schema_version = SCHEMA_VERSION;
        Ok(Self { schema_version, tool, command: "formats", format: format.name, source, codes })
    }

    /// Writes the list for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}, {} codes", view.paint.bold(self.format), self.codes.len())?;
        wrap("", self.source, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)?;
        let heads = [
            ("code", Align::Left),
            (self.fields_head(), Align::Left),
            ("value", Align::Right),
            ("= m·2^e", Align::Left),
            ("class", Align::Left),
        ];
        let mut table = Table::new(heads);
        for row in &self.codes {
            table.row([
                row.code.clone(),
                row.fields.drawn(),
                full(row.value.0),
                row.binary.clone(),
                row.class.to_owned(),
            ]);
        }
        write_lines(&table.lines(view.width), view, out)
    }

    fn fields_head(&self) -> &'static str {
        if self.codes.first().is_some_and(|row| row.fields.sign.is_empty()) {
            "exponent"
        } else {
            "s|exp|sig"
        }
    }

    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let heads = ["format", "code", "sign", "exponent", "significand", "value", "binary", "class"];
        csv.write_record(heads).map_err(io::Error::other)?;
        for row in &self.codes {
            let Fields { sign, exponent, significand } = &row.fields;
            let value = full(row.value.0);
            csv.write_record([
                self.format,
                &row.code,
                sign,
                exponent,
                significand,
                &value,
                &row.binary,
                row.class,
            ])
            .map_err(io::Error::other)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect formats: the codes of {}\n\n{}\n", self.format, self.source)?;
        writeln!(out, "| code | bits | value | | class |\n|:--|:--|--:|:--|:--|")?;
        for row in &self.codes {
            let bits = row.fields.drawn().replace('|', " ");
            let value = full(row.value.0);
            writeln!(out, "| `{}` | `{bits}` | {value} | {} | {} |", row.code, row.binary, row.class)?;
        }
        Ok(())
    }
}
