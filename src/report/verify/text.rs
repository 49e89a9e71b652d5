//! The comparisons as CSV (a row for each that finds nothing, and for each difference) and as Markdown.

use std::io::{self, Write};

use super::VerifyReport;
use super::terminal::{Row, rows};
use crate::report::number::full;

const HEADS: [&str; 20] = [
    "format",
    "maker",
    "implementation",
    "source",
    "rounding",
    "overflow",
    "nan",
    "all_float32",
    "inputs",
    "differing",
    "input_kind",
    "result",
    "count",
    "known",
    "reference",
    "first_input",
    "first_input_value",
    "first_definition",
    "first_found",
    "first_found_value",
];

impl VerifyReport {
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(HEADS).map_err(io::Error::other)?;
        for check in &self.checks {
            let (inputs, differing) = (check.inputs.to_string(), check.differing.to_string());
            let all = check.all_float32.to_string();
            let head = [
                check.format,
                check.maker,
                &check.implementation,
                check.source,
                check.rounding,
                check.overflow,
                check.nan,
                &all,
                &inputs,
                &differing,
            ];
            if check.differences.is_empty() {
                csv.write_record(head.iter().chain([""; 10].iter())).map_err(io::Error::other)?;
            }
            for difference in &check.differences {
                let count = difference.count.to_string();
                let (why, reference) =
                    difference.known.map_or(("", ""), |known| (known.why, known.reference));
                let [input, value, definition, found, found_value] = match difference.first.first() {
                    Some(first) => [
                        first.input.clone(),
                        full(first.input_value.0),
                        first.definition.clone(),
                        first.found.clone(),
                        full(first.found_value.0),
                    ],
                    None => Default::default(),
                };
                let tail = [
                    difference.input,
                    difference.result,
                    &count,
                    why,
                    reference,
                    &input,
                    &value,
                    &definition,
                    &found,
                    &found_value,
                ];
                csv.write_record(head.iter().chain(&tail)).map_err(io::Error::other)?;
            }
        }
        csv.flush()
    }

    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### amp-inspect verify\n\n{}\n", self.verdict())?;
        writeln!(out, "| format | implementation | inputs | differ |\n|:--|:--|--:|--:|")?;
        for Row { format, implementation, inputs, differing, .. } in rows(&self.checks) {
            writeln!(out, "| `{format}` | {implementation} | {inputs} | {differing} |")?;
        }
        let differing: Vec<_> = self.checks.iter().filter(|check| check.differing > 0).collect();
        if differing.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n| format | implementation | from | input | result | count | first | definition | found | known |"
        )?;
        writeln!(out, "|:--|:--|:--|:--|:--|--:|--:|--:|--:|:--|")?;
        for check in differing {
            for difference in &check.differences {
                let known = difference
                    .known
                    .map_or("no".to_owned(), |known| format!("{}; {}", known.why, known.reference));
                let first = difference.first.first();
                let [input, definition, found] = first.map_or_else(Default::default, |first| {
                    [&first.input, &first.definition, &first.found].map(|code| format!("`{code}`"))
                });
                writeln!(
                    out,
                    "| `{}` | {} {} | {} | {} | {} | {} | {input} | {definition} | {found} | {known} |",
                    check.format,
                    check.maker,
                    check.implementation,
                    check.source,
                    difference.input,
                    difference.result,
                    difference.count,
                )?;
            }
        }
        Ok(())
    }
}
