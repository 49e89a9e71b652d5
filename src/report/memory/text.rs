//! The ledgers as CSV (a row a term) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::model::MemoryReport;
use super::terminal::size;
use crate::report::histogram::code;
use crate::report::number::full;

impl MemoryReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let heads =
            ["recipe", "part", "what", "dtype", "bytes_each", "bytes", "divided", "rank_bytes", "passing"];
        csv.write_record(heads).map_err(io::Error::other)?;
        let flag = |flag: bool| u8::from(flag).to_string();
        for ledger in &self.recipes {
            for term in &ledger.terms {
                let texts = [ledger.recipe, term.part, term.what, term.dtype].map(str::to_owned);
                let figures = [
                    full(term.bytes_each),
                    term.bytes.to_string(),
                    flag(term.divided),
                    term.rank_bytes.to_string(),
                    flag(term.passing),
                ];
                csv.write_record(texts.into_iter().chain(figures)).map_err(io::Error::other)?;
            }
            for term in &ledger.activations {
                let bytes = term.bytes.to_string();
                let record = [ledger.recipe, "activations", term.what, "", "", "", "0", &bytes, "1"];
                csv.write_record(record).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect memory\n\n{}\n", code(&self.heading()))?;
        for ledger in &self.recipes {
            writeln!(out, "**{}**: {}\n", ledger.recipe, ledger.about)?;
            writeln!(out, "| term | type | bytes each | all | on a rank | |\n|:--|:--|--:|--:|--:|:--|")?;
            for term in &ledger.terms {
                let note = match (term.passing, term.divided && self.ranks > 1) {
                    (true, _) => "for a while".to_owned(),
                    (false, true) => format!("1/{}", self.ranks),
                    (false, false) => String::new(),
                };
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {note} |",
                    term.what,
                    term.dtype,
                    full(term.bytes_each),
                    size(term.bytes),
                    size(term.rank_bytes)
                )?;
            }
            for term in &ledger.activations {
                let size = size(term.bytes);
                writeln!(out, "| activations, {} | | | | {size} | {} |", term.what, term.formula)?;
            }
            writeln!(
                out,
                "| **kept** | | {} | {} | {} | |\n",
                full(ledger.bytes_per_parameter),
                size(ledger.kept_bytes),
                size(ledger.rank_kept_bytes)
            )?;
            if !ledger.flow.is_empty() {
                writeln!(out, "| stage | tensor | type | size | |\n|:--|:--|:--|--:|:--|")?;
                for stage in &ledger.flow {
                    let size = stage.bytes.map_or(String::new(), size);
                    let (stage, tensor, dtype, note) = (stage.stage, stage.tensor, stage.dtype, &stage.note);
                    writeln!(out, "| {stage} | {tensor} | {dtype} | {size} | {note} |")?;
                }
                writeln!(out)?;
            }
            writeln!(out, "- {}\n- {}", ledger.sum, ledger.doubt)?;
        }
        for sentence in &self.doubts {
            writeln!(out, "- {sentence}")?;
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}
