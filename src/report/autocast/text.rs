//! The audit as CSV (a row an op) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::model::AutocastReport;
use super::sentences::time;
use super::terminal::{computes, verdict};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{bytes, count, percent, short};

/// Most ops in a Markdown report.
const MARKDOWN_ROWS: usize = 30;

const COLUMNS: [&str; 11] = [
    "op",
    "list",
    "types",
    "verdict",
    "cause",
    "custom_op",
    "calls",
    "self_ns",
    "total_ns",
    "device_self_ns",
    "device_ns",
];

impl AutocastReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS).map_err(io::Error::other)?;
        for op in &self.ops {
            let types = op.types.join("+");
            let texts = [&*op.op, op.list.unwrap_or(""), &types, op.verdict, op.cause.unwrap_or("")];
            let texts = texts.into_iter().chain([op.custom_op.as_deref().unwrap_or("")]).map(str::to_owned);
            let numbers = [op.calls, op.self_ns, op.total_ns, op.device_self_ns, op.device_ns];
            let record = texts.chain(numbers.map(|number| number.to_string()));
            csv.write_record(record).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect autocast: `{}`\n", code(&self.trace))?;
        let dtype = self.autocast_dtype.map_or(String::new(), |dtype| format!(" to {dtype}"));
        writeln!(
            out,
            "{} calls, {}; {} went through autocast{dtype}; lists of {} for {}.\n",
            count(self.calls),
            time(self.total_ns),
            count(self.autocast_calls),
            self.lists,
            self.device
        )?;
        for sentence in &self.sentences {
            writeln!(out, "- {}", sentence.replace('<', "&lt;"))?;
        }
        if !self.casts.is_empty() {
            writeln!(
                out,
                "\n| from | to | asked for by | casts | bytes | time |\n|:--|:--|:--|--:|--:|--:|"
            )?;
            for cast in &self.casts {
                let ns = if self.device_ns > 0 { cast.device_ns } else { cast.ns };
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} |",
                    cast.from,
                    cast.to,
                    cast.meaning,
                    count(cast.count),
                    bytes(cast.bytes),
                    time(ns)
                )?;
            }
        }
        writeln!(out, "\n| op | list | inputs | calls | ms | % | verdict |\n|:--|:--|:--|--:|--:|--:|:--|")?;
        let computing: Vec<_> = self.ops.iter().filter(|op| computes(op)).collect();
        for op in computing.iter().take(MARKDOWN_ROWS) {
            let own = if self.device_ns > 0 { op.device_self_ns } else { op.self_ns };
            writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} | {} |",
                code_in_cell(&op.op),
                op.list_text(),
                op.types_text(),
                count(op.calls),
                short(own as f64 / 1e6, 3),
                percent(own, self.whole()),
                verdict(op)
            )?;
        }
        let more = computing.len().saturating_sub(MARKDOWN_ROWS);
        if more > 0 {
            writeln!(out, "\n… and {more} more.")?;
        }
        for notice in &self.notices {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}
