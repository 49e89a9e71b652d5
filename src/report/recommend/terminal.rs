//! The report on a terminal: the bounds, a line for each tensor or layer, sentences.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::model::{By, RecommendReport, Row};

use crate::error::escape;
use crate::report::number::{bytes, full, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, shorten, wrap, wrap_words, write_lines};

/// Columns from which on there is room for memory.
const ROOMY: usize = 110;

impl RecommendReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        self.table(view, out)?;
        writeln!(out)?;
        for sentence in &self.findings {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// The bounds in words.
    pub(super) fn bounds(&self) -> String {
        let options = &self.options;
        format!(
            "the cheapest format with at most {} % underflow and {} % overflow of the nonzero values and an SQNR of at least \
             {} dB, at every step",
            full(options.max_underflow_pct.0),
            full(options.max_overflow_pct.0),
            full(options.min_sqnr_db.0)
        )
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [only] => escape(&only.path),
            inputs => format!("{} files", inputs.len()),
        };
        let whole = &self.whole;
        let facts = format!(
            "{}, {}, {}",
            plural(whole.tensors, "tensor"),
            plural(whole.elements, "element"),
            bytes(whole.bytes_stored)
        );
        let head = format!("{subject}:");
        let lines = wrap_words("", std::iter::once(&*head).chain(facts.split(' ')), view.width);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(&subject).filter(|_| index == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        let lines = wrap("", &self.bounds(), view.width);
        lines.iter().try_for_each(|line| writeln!(out, "{}", view.paint.dim(line)))
    }

    fn table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let shown = if view.top == 0 { self.rows.len() } else { view.top.min(self.rows.len()) };
        let roomy = view.width >= ROOMY;
        let first = if self.options.by == By::Layer { "layer" } else { "tensor" };
        let right = |head| (head, Align::Right);
        let mut heads = vec![(first, Align::Left)];
        heads.extend(roomy.then_some(("role", Align::Left)));
        heads.push(("take", Align::Left));
        heads.extend(roomy.then_some(right("bits")));
        heads.extend([right("under %"), right("SQNR")]);
        heads.extend(roomy.then_some(right("memory")));
        heads.push(("why not cheaper", Align::Left));
        let mut table = Table::new(heads);
        let name = self.rows[..shown].iter().map(|row| row.name.width()).max().unwrap_or(0).min(16);
        let used = name + 16 + 9 + 8 + if roomy { 44 } else { 0 };
        let room = view.width.saturating_sub(used).max(24);
        for row in &self.rows[..shown] {
            table.row(cells(row, roomy, room));
        }
        writeln!(out)?;
        write_lines(&table.lines(view.width), view, out)?;
        if shown < self.rows.len() {
            let rest = format!("… {} more; --top 0 shows all {}", self.rows.len() - shown, self.rows.len());
            writeln!(out, "{}", view.paint.dim(&rest))?;
        }
        Ok(())
    }
}

fn cells(row: &Row, roomy: bool, room: usize) -> Vec<String> {
    let mut cells = vec![escape(&row.name)];
    cells.extend(roomy.then(|| row.role.unwrap_or("several").to_owned()));
    match &row.recommended {
        Some(chosen) => {
            cells.push(chosen.format.to_owned());
            cells.extend(roomy.then(|| short(chosen.bits.0, 3)));
            cells.push(short(chosen.underflow_pct.0, 3));
            cells.push(chosen.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3)));
        }
        None => {
            cells.push(row.fix.clone());
            cells.extend(std::iter::repeat_n("–".to_owned(), if roomy { 3 } else { 2 }));
        }
    }
    cells.extend(roomy.then(|| format!("{} of {}", bytes(row.bytes_recommended), bytes(row.bytes_stored))));
    cells.push(shorten(&row.reason, room));
    cells
}
