//! The report as CSV (a row a tensor) and as Markdown (for a pull request).

use std::io::{self, Write};

use super::findings::{index_text, ulps};
use super::terminal::{cosine_text, word};
use super::{CompareReport, Element, Row};
use crate::report::histogram::{code, code_in_cell};
use crate::report::number::{Num, count, full, percent, plural, short};

/// Most rows of tensors in a Markdown report.
const MARKDOWN_ROWS: usize = 50;

/// A column of the CSV: the head, and the figure as text; undefined is empty.
type Column = (&'static str, fn(&Row) -> String);

const COLUMNS: &[Column] = &[
    ("tensor", |row| row.tensor.clone()),
    ("other_tensor", |row| row.other_tensor.clone()),
    ("step", |row| whole(row.step)),
    ("rank", |row| whole(row.rank)),
    ("shape", |row| row.shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")),
    ("dtype", |row| row.dtype.clone()),
    ("other_dtype", |row| row.other_dtype.clone()),
    ("verdict", |row| word(row.verdict).to_ascii_lowercase()),
    ("bitwise_equal", |row| row.bitwise_equal.to_string()),
    ("elements", |row| row.elements.to_string()),
    ("different", |row| row.different.to_string()),
    ("nan_mismatch", |row| row.nan_mismatch.to_string()),
    ("inf_mismatch", |row| row.inf_mismatch.to_string()),
    ("finite", |row| row.finite.to_string()),
    ("max_abs", |row| text(row.max_abs)),
    ("mean_abs", |row| text(row.mean_abs)),
    ("rms_error", |row| text(row.rms_error)),
    ("rms", |row| text(row.rms)),
    ("rel_l2", |row| text(row.rel_l2)),
    ("cosine", |row| text(row.cosine)),
    ("symmetric_diff", |row| text(row.symmetric_diff)),
    ("ulp_of", |row| row.ulp_of.to_owned()),
    ("max_ulp", |row| whole(row.max_ulp)),
    ("p99_ulp", |row| whole(row.p99_ulp)),
    ("sign_flips", |row| row.sign_flips.to_string()),
    ("rtol", |row| full(row.rtol)),
    ("atol", |row| full(row.atol)),
    ("outside", |row| row.outside.to_string()),
    ("outside_pct", |row| text(row.outside_pct)),
    ("worst_index", |row| row.telling().map_or(String::new(), index)),
    ("worst_reference", |row| row.telling().map_or(String::new(), |element| full(element.reference.0))),
    ("worst_other", |row| row.telling().map_or(String::new(), |element| full(element.other.0))),
];

fn whole(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn text(num: Option<Num>) -> String {
    num.map_or(String::new(), |num| full(num.0))
}

fn index(element: &Element) -> String {
    element.index.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

impl CompareReport {
    /// A row a tensor; those that were not compared have a name, a verdict and nothing else.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().map(|(head, _)| *head)).map_err(io::Error::other)?;
        for row in &self.tensors {
            csv.write_record(COLUMNS.iter().map(|(_, figure)| figure(row))).map_err(io::Error::other)?;
        }
        let missing = self.missing.iter().map(|alone| (&alone.tensor, alone.step, alone.rank, "missing"));
        let extra = self.extra.iter().map(|alone| (&alone.tensor, alone.step, alone.rank, "extra"));
        let reshaped = self.reshaped.iter().map(|other| (&other.tensor, None, None, "reshaped"));
        for (name, step, rank, verdict) in missing.chain(extra).chain(reshaped) {
            let cell = |&(head, _): &Column| match head {
                "tensor" => name.clone(),
                "step" => whole(step),
                "rank" => whole(rank),
                "verdict" => verdict.to_owned(),
                _ => String::new(),
            };
            csv.write_record(COLUMNS.iter().map(cell)).map_err(io::Error::other)?;
        }
        csv.flush()
    }

    /// The tables and sentences.
    pub(super) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let [reference, other] = [&self.reference, &self.other].map(|side| code(&side.path));
        writeln!(out, "### amp-inspect compare: `{reference}` and `{other}`\n")?;
        writeln!(
            out,
            "{} compared: {} equal, {} within tolerance, {} outside; {} missing, {} extra, {} of another shape.\n",
            plural(self.tensors.len() as u64, "tensor"),
            count(self.equal),
            count(self.within),
            count(self.outside),
            self.missing.len(),
            self.extra.len(),
            self.reshaped.len()
        )?;
        for sentence in &self.findings {
            writeln!(out, "- {}", code_free(sentence))?;
        }
        let rows = self.sorted();
        if !rows.is_empty() {
            writeln!(
                out,
                "\n| tensor | verdict | outside % | rel L2 | max abs | max ulp | p99 ulp | cosine | worst element |"
            )?;
            writeln!(out, "|:--|:--|--:|--:|--:|--:|--:|--:|:--|")?;
        }
        let figure = |num: Option<Num>| num.map_or("–".into(), |num| short(num.0, 3));
        for row in rows.iter().take(MARKDOWN_ROWS) {
            let worst = row.telling().map_or(String::new(), |element| {
                let (x, y) = (short(element.reference.0, 4), short(element.other.0, 4));
                format!("{}: {x} → {y}", index_text(&element.index))
            });
            writeln!(
                out,
                "| `{}` | {} | {} | {} | {} | {} | {} | {} | {worst} |",
                code_in_cell(&self.full_name(row)),
                word(row.verdict),
                percent(row.outside, row.elements),
                figure(row.rel_l2),
                figure(row.max_abs),
                ulps(row.max_ulp),
                ulps(row.p99_ulp),
                row.cosine.map_or("–".into(), |cosine| cosine_text(cosine.0)),
            )?;
        }
        if rows.len() > MARKDOWN_ROWS {
            writeln!(out, "\n… and {} more.", rows.len() - MARKDOWN_ROWS)?;
        }
        for notice in self.notices.iter().chain(&self.problems) {
            writeln!(out, "\n> `{}`", code(notice))?;
        }
        Ok(())
    }
}

/// A sentence with names in it as it may stand in Markdown: as text.
fn code_free(sentence: &str) -> String {
    let mut safe = String::with_capacity(sentence.len());
    for c in sentence.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '*' | '_' | '`' | '[' | ']' | '|' | '\\' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
