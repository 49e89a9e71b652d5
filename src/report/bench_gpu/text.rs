//! The report as CSV (a row for each conversion and each time) and as Markdown.

use std::io::{self, Write};

use super::model::BenchReport;
use crate::report::number::{count, full, short};

const HEADS: [&str; 17] = [
    "kind",
    "device",
    "conversion",
    "instructions",
    "result",
    "inputs",
    "mismatches",
    "format",
    "work",
    "values",
    "bytes",
    "median_s",
    "p5_s",
    "p95_s",
    "gb_per_s",
    "pct_of_copy",
    "pct_of_peak",
];

impl BenchReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let mut write = |row: &[String]| csv.write_record(row).map_err(io::Error::other);
        write(&HEADS.map(str::to_owned))?;
        let empty = |n: usize| vec![String::new(); n];
        for entry in &self.conversions {
            let mut row = vec!["conversion".to_owned(), "gpu".to_owned()];
            row.extend([entry.conversion.clone(), entry.instructions.join(" ")]);
            row.push(entry.result.unwrap_or_default().to_owned());
            match entry.inputs {
                0 => row.extend(empty(2)),
                inputs => row.extend([inputs.to_string(), entry.mismatches.to_string()]),
            }
            row.extend(empty(10));
            write(&row)?;
        }
        for entry in &self.throughput {
            let mut row = vec!["throughput".to_owned(), entry.device.to_owned()];
            row.extend(empty(5));
            row.extend([entry.format.unwrap_or_default().to_owned(), entry.work.to_owned()]);
            row.extend([entry.values.to_string(), entry.bytes.to_string()]);
            row.extend([entry.median_s, entry.p5_s, entry.p95_s, entry.gb_per_s].map(|x| full(x.0)));
            row.extend(
                [entry.pct_of_copy, entry.pct_of_peak].map(|x| x.map_or(String::new(), |x| full(x.0))),
            );
            write(&row)?;
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect bench-gpu")?;
        let verdict = self.verdict();
        let not_timed = self.not_timed.as_ref().map(|why| format!("The card was not timed: {why}"));
        let lines = self.head().into_iter().chain(verdict).chain(not_timed).chain(self.wrong_kernels.clone());
        let lines = lines.chain(self.notices.clone());
        lines.into_iter().try_for_each(|line| writeln!(out, "\n{line}"))?;
        if !self.conversions.is_empty() {
            let targets: Vec<&str> = self.targets.iter().map(|target| target.target).collect();
            writeln!(
                out,
                "\n| conversion | instructions | {} | result | inputs | differ |",
                targets.join(" | ")
            )?;
            writeln!(out, "|:--|:--|{}:--|--:|--:|", ":--|".repeat(targets.len()))?;
            for entry in &self.conversions {
                let ptx: Vec<&str> = entry.ptx.iter().map(|ptx| ptx.as_deref().unwrap_or("–")).collect();
                writeln!(
                    out,
                    "| {} | `{}` | {} | {} | {} | {} |",
                    entry.conversion,
                    entry.instructions.join("`, `"),
                    ptx.join(" | "),
                    entry.result.unwrap_or_default(),
                    count(entry.inputs),
                    count(entry.mismatches)
                )?;
            }
        }
        let first =
            self.conversions.iter().flat_map(|entry| entry.first.iter().map(move |first| (entry, first)));
        for (index, (entry, first)) in first.enumerate() {
            if index == 0 {
                writeln!(
                    out,
                    "\n| conversion | input | value | lane | beside | rbits | GPU | expected | class |\n\
                     |:--|--:|--:|:--|:--|:--|--:|--:|:--|"
                )?;
            }
            let value = full(first.input_value.0);
            let or_dash =
                |text: &Option<String>| text.as_ref().map_or("–".to_owned(), |text| format!("`{text}`"));
            writeln!(
                out,
                "| {} | `{}` | {value} | {} | {} | {} | `{}` | `{}` | {} |",
                entry.conversion,
                first.input,
                first.lane.unwrap_or("–"),
                or_dash(&first.beside),
                or_dash(&first.random),
                first.gpu,
                first.expected,
                first.class
            )?;
        }
        if !self.throughput.is_empty() {
            writeln!(out, "\n| device | format | work | median ms | GB/s | % of copy | % of peak |")?;
            writeln!(out, "|:--|:--|:--|--:|--:|--:|--:|")?;
        }
        for entry in &self.throughput {
            let share = |share: Option<super::super::number::Num>| {
                share.map_or("–".to_owned(), |share| short(share.0, 3))
            };
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                entry.device,
                entry.format.unwrap_or("float32"),
                entry.work,
                short(1e3 * entry.median_s.0, 4),
                short(entry.gb_per_s.0, 4),
                share(entry.pct_of_copy),
                share(entry.pct_of_peak)
            )?;
        }
        Ok(())
    }
}
