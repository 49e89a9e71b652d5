//! The report on a terminal: errors by format and by what is varied, bytes, losses, numbers of ranks, tensors.

use std::io::{self, Write};

use super::findings::{divided, error_pct, size};
use super::model::{CaseRow, ReduceReport, TensorRow};
use crate::error::escape;
use crate::report::number::{bytes, count, full, percent, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, wrap_words, write_lines};

impl ReduceReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        let Some(base) = self.total.first() else { return Ok(()) };
        let base = format!("{}, sums {}, divided {}", base.algorithm, base.accumulate, divided(base));
        title(&format!("error of the mean, %; but for what is named: {base}"), view, out)?;
        write_folded(&self.errors_table(), view, out)?;
        title("bytes that the busiest rank sends", view, out)?;
        write_folded(&self.bytes_table(), view, out)?;
        title("gradients lost to zero before they are added, %, and means that overflow", view, out)?;
        write_folded(&self.losses_table(), view, out)?;
        if !self.worlds.is_empty() {
            let what = format!(
                "ESTIMATE from {} recorded ranks drawn again (seed {}), {}: error of the mean, %",
                self.ranks.len(),
                self.options.seed,
                plural(self.sampled, "element")
            );
            title(&what, view, out)?;
            self.worlds_table(view, out)?;
        }
        title(&format!("error of the mean by tensor, %: {base}"), view, out)?;
        self.tensors_table(view, out)?;
        writeln!(out)?;
        for sentence in &self.findings {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [first, others @ ..] => format!("{} and {} more", escape(first), others.len()),
            [] => String::new(),
        };
        let scale = match self.options.scale {
            1.0 => String::new(),
            scale => format!(", times {}", full(scale)),
        };
        let facts = format!(
            "{} of {}, {} a rank ({} in float32){scale}",
            plural(self.ranks.len() as u64, "rank"),
            plural(self.tensors.len() as u64, "tensor"),
            plural(self.elements, "element"),
            bytes(4 * self.elements)
        );
        let head = format!("{subject}:");
        for (number, line) in
            wrap_words("", [head.as_str()].into_iter().chain(facts.split(' ')), view.width).iter().enumerate()
        {
            match line.strip_prefix(&subject).filter(|_| number == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        Ok(())
    }

    /// The rows of a format.
    fn of<'r>(rows: &'r [CaseRow], format: &'r str) -> impl Iterator<Item = &'r CaseRow> {
        rows.iter().filter(move |row| row.format == format)
    }

    /// What a row differs in from the first of its format: the algorithm, the sums or the division.
    fn varied(row: &CaseRow, base: &CaseRow) -> String {
        if row.accumulate != base.accumulate {
            format!("{} sums", row.accumulate.replace("float32", "f32"))
        } else if row.divide != base.divide {
            divided(row)
        } else {
            row.algorithm.to_owned()
        }
    }

    pub(super) fn errors_table(&self) -> Table {
        let formats = self.formats();
        let first: Vec<&CaseRow> = formats.first().map_or(Vec::new(), |format| {
            // The ring's reduce-scatter has the ring's sums.
            Self::of(&self.total, format).filter(|row| !self.repeats_ring(row)).collect()
        });
        let heads = first.iter().map(|row| (Self::varied(row, first[0]), Align::Right));
        let mut table = Table::new([("format".to_owned(), Align::Left)].into_iter().chain(heads));
        for format in formats {
            let rows = Self::of(&self.total, format).filter(|row| !self.repeats_ring(row));
            table.row([format.to_owned()].into_iter().chain(rows.map(|row| error_pct(row.error))));
        }
        table
    }

    fn repeats_ring(&self, row: &CaseRow) -> bool {
        row.algorithm == "reduce-scatter" && self.total.iter().any(|row| row.algorithm == "ring")
    }

    pub(super) fn bytes_table(&self) -> Table {
        let formats = self.formats();
        let columns = |format: &str| -> Vec<(String, String)> {
            let rows: Vec<&CaseRow> = Self::of(&self.total, format).collect();
            let of_base = rows.iter().filter(|row| row.divide == rows[0].divide);
            of_base.map(|row| (Self::varied(row, rows[0]), size(row.sent_bytes))).collect()
        };
        let heads = formats.first().map_or(Vec::new(), |format| columns(format));
        let heads = heads.into_iter().map(|(head, _)| (head, Align::Right));
        let mut table = Table::new([("format".to_owned(), Align::Left)].into_iter().chain(heads));
        for format in formats {
            let cells = columns(format).into_iter().map(|(_, cell)| cell);
            table.row([format.to_owned()].into_iter().chain(cells));
        }
        table
    }

    pub(super) fn losses_table(&self) -> Table {
        let formats = self.formats();
        let divisions = |format: &'static str| -> Vec<&CaseRow> {
            let rows: Vec<&CaseRow> = Self::of(&self.total, format).collect();
            let mut known: Vec<&CaseRow> = Vec::new();
            for row in rows {
                if !known.iter().any(|other| other.divide == row.divide) {
                    known.push(row);
                }
            }
            known
        };
        let first = formats.first().map_or(Vec::new(), |format| divisions(format));
        let heads = first.iter().flat_map(|row| {
            [(format!("lost {}", divided(row)), Align::Right), ("overflow".to_owned(), Align::Right)]
        });
        let mut table = Table::new([("format".to_owned(), Align::Left)].into_iter().chain(heads));
        let gradients = self.elements * self.ranks.len() as u64;
        for format in formats {
            let cells = divisions(format)
                .into_iter()
                .flat_map(|row| [percent(row.lost, gradients), count(row.overflow)]);
            table.row([format.to_owned()].into_iter().chain(cells));
        }
        table
    }

    /// All formats in the first way, and the first narrow one in the others.
    fn worlds_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let formats = self.formats();
        let narrow = formats.iter().copied().find(|format| *format != "float32");
        let Some(first) = self.worlds.first() else { return Ok(()) };
        let base = |format: &str| first.cases.iter().position(|row| row.format == format);
        let mut columns: Vec<(String, usize)> =
            formats.iter().filter_map(|format| Some(((*format).to_owned(), base(format)?))).collect();
        let narrow_base = narrow.and_then(base);
        for (position, row) in first.cases.iter().enumerate() {
            if let Some(at) = narrow_base.filter(|&at| at != position && first.cases[at].format == row.format)
            {
                columns.push((Self::varied(row, &first.cases[at]), position));
            }
        }
        let heads = columns.iter().map(|(head, _)| (head.clone(), Align::Right));
        let mut table = Table::new([("ranks".to_owned(), Align::Right)].into_iter().chain(heads));
        for world in &self.worlds {
            let cells = columns.iter().map(|(_, position)| {
                let row = &world.cases[*position];
                let mark = if row.overflow > 0 { "!" } else { "" };
                format!("{}{mark}", error_pct(row.error))
            });
            table.row([count(world.ranks)].into_iter().chain(cells));
        }
        write_folded(&table, view, out)?;
        let mut notes = Vec::new();
        if let Some(narrow) = narrow.filter(|_| columns.len() > formats.len()) {
            notes.push(format!("from {} on: {narrow}", columns[formats.len()].0));
        }
        if self.worlds.iter().any(|world| columns.iter().any(|(_, at)| world.cases[*at].overflow > 0)) {
            notes.push("!: some means overflow and are left out".to_owned());
        }
        if !notes.is_empty() {
            for line in wrap("", &notes.join("; "), view.width) {
                writeln!(out, "{}", view.paint.dim(&line))?;
            }
        }
        Ok(())
    }

    fn tensors_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let formats = self.formats();
        let narrow = formats.iter().find(|format| **format != "float32").or(formats.first());
        let error = |row: &TensorRow, format: &str| Self::base(&row.cases, format).and_then(|row| row.error);
        let mut rows: Vec<&TensorRow> = self.tensors.iter().collect();
        let key =
            |row: &TensorRow| narrow.and_then(|format| error(row, format)).map_or(-1.0, |error| error.0);
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
        let heads = formats.iter().map(|format| (*format, Align::Right));
        let heads = [("tensor", Align::Left), ("elements", Align::Right), ("amax", Align::Right)]
            .into_iter()
            .chain(heads);
        let mut table = Table::new(heads);
        let most = if view.top == 0 { usize::MAX } else { view.top };
        for row in rows.iter().take(most) {
            let cells = formats.iter().map(|format| error_pct(error(row, format)));
            let first = [escape(&row.name), count(row.elements), short(row.amax.0, 3)];
            table.row(first.into_iter().chain(cells));
        }
        write_folded(&table, view, out)?;
        let more = rows.len().saturating_sub(most);
        if more > 0 {
            writeln!(out, "{}", view.paint.dim(&format!("… {more} more; --top 0 shows all")))?;
        }
        Ok(())
    }
}

/// The title of a table, after an empty line.
fn title(what: &str, view: &View, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    wrap("", what, view.width).iter().try_for_each(|line| writeln!(out, "{}", view.paint.dim(line)))
}

/// A table, its columns in as many parts as the width asks for.
fn write_folded(table: &Table, view: &View, out: &mut dyn Write) -> io::Result<()> {
    table.folded(view.width).iter().try_for_each(|part| write_lines(&part.lines(view.width), view, out))
}
