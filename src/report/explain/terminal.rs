//! The report on a terminal: the value, what each format stores for it, and between which numbers it lies.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::line::{draw, ends};
use super::{CastRow, ExplainReport, Explained, Form, Held};
use crate::error::escape;
use crate::report::number::{Num, brief, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, shorten, wrap, write_lines};

/// Longest piece of a number line, odd, so that the tie is in its middle.
const LONGEST_LINE: usize = 41;
const SHORTEST_LINE: usize = 9;

const MOVED_TO_A_TIE: &str = "The number as typed is not halfway: float64 rounded it to the tie. Cast in one \
                              step, it might have gone to the other side.";

/// How much a table shows.
#[derive(Clone, Copy)]
struct Detail {
    /// Characters for a number.
    number: usize,
    /// The stored number also as m·2^e.
    binary: bool,
    /// The error in ulps.
    ulps: bool,
}

impl ExplainReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            self.heading(value, view, out)?;
            writeln!(out)?;
            self.stored(value, view, out)?;
            self.lines(value, view, out)?;
        }
        let Some(policies) = self.policies() else { return Ok(()) };
        writeln!(out)?;
        wrap("", &policies, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn heading(&self, value: &Explained, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let given = &value.given;
        let what = what_it_is(value);
        let input = shorten(&escape(&given.input), view.width.saturating_sub(what.width()));
        writeln!(out, "{}{what}", view.paint.bold(&input))?;
        let name = given.held.iter().map(|held| held.format.len()).max().unwrap_or(0);
        let code = given.held.iter().map(|held| held.code.len()).max().unwrap_or(0);
        for held in &given.held {
            let start = format!("  {:<name$}  {:<code$}  ", held.format, held.code);
            let room = view.width.saturating_sub(start.width());
            writeln!(out, "{start}{}", number_in(held, room))?;
            if given.form == Form::Code {
                let drawn = format!("{:indent$}{}", "", held.fields.drawn(), indent = name + 4);
                writeln!(out, "{drawn}  (sign|exponent|significand)")?;
            }
        }
        if self.options.scale != 1.0 {
            let scale = brief(self.options.scale.into(), 12);
            writeln!(out, "  times the scale {scale}: {} is cast", brief(value.product.0, 24))?;
        }
        Ok(())
    }

    /// What is stored: the richest table that fits.
    fn stored(&self, value: &Explained, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let details = [
            Detail { number: 17, binary: true, ulps: true },
            Detail { number: 13, binary: true, ulps: true },
            Detail { number: 13, binary: false, ulps: true },
            Detail { number: 11, binary: false, ulps: true },
            Detail { number: 9, binary: false, ulps: true },
            Detail { number: 9, binary: false, ulps: false },
            Detail { number: 7, binary: false, ulps: false },
        ];
        let tables = [64, 18].iter().flat_map(|&fields| details.map(|detail| (detail, fields)));
        let mut lines = Vec::new();
        for (detail, fields) in tables {
            let table = self.stored_table(value, detail, fields);
            lines = table.lines(usize::MAX / 2);
            if lines.iter().all(|line| line.width() <= view.width) {
                break;
            }
            // Long names give way only if nothing else is left to give.
            lines = table.lines(view.width);
        }
        write_lines(&lines, view, out)
    }

    fn stored_table(&self, value: &Explained, detail: Detail, fields: usize) -> Table {
        let scaled = self.options.scale != 1.0;
        let mut heads =
            vec![("format", Align::Left), ("code", Align::Left), ("s|exponent|significand", Align::Left)];
        if fields < heads[2].0.len() || value.formats.iter().all(|row| row.fields.drawn().len() < 22) {
            heads[2].0 = "s|exp|significand";
        }
        heads.push(("stored", Align::Right));
        if detail.binary {
            heads.push(("= m·2^e", Align::Left));
        }
        if scaled {
            heads.push(("÷ scale", Align::Right));
        }
        heads.push(("error %", Align::Right));
        if detail.ulps {
            heads.push(("ulps", Align::Right));
        }
        heads.push(("class", Align::Left));
        let mut table = Table::new(heads);
        for row in &value.formats {
            let drawn: Vec<char> = row.fields.drawn().chars().collect();
            let mut pieces = drawn.chunks(fields).map(|piece| piece.iter().collect::<String>());
            let first = pieces.next().unwrap_or_default();
            let mut cells = vec![row.format.to_owned(), row.code.clone(), first];
            cells.push(brief(row.stored.0, detail.number));
            if detail.binary {
                cells.push(row.stored_binary.clone());
            }
            if scaled {
                cells.push(brief(row.dequantised.0, detail.number));
            }
            cells.push(signed(row.error_pct));
            if detail.ulps {
                cells.push(signed(row.error_ulp));
            }
            cells.push(row.class.to_owned());
            let columns = cells.len();
            table.row(cells);
            // A long significand goes on below its beginning: no bit is left out.
            for piece in pieces {
                let mut cells = vec![String::new(); columns];
                cells[2] = piece;
                table.row(cells);
            }
        }
        table
    }

    /// Between which numbers the value lies, format by format.
    fn lines(&self, value: &Explained, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let product = value.product.0;
        if !product.is_finite() {
            return Ok(());
        }
        let name = value.formats.iter().map(|row| row.format.width()).max().unwrap_or(0);
        let what = if self.options.scale == 1.0 { "x" } else { "p" };
        let mut shown = Vec::new();
        let mut widths = [0; 3];
        // As many digits as leave room for a line.
        for digits in [17, 13, 12, 11, 10, 9, 8] {
            shown.clear();
            widths = [0; 3];
            for row in &value.formats {
                let [below, above] = ends(row, |x| brief(x, digits));
                let texts = [below, above, beside(row, what, digits)];
                if is_drawn(row) {
                    for (width, text) in widths.iter_mut().zip(&texts) {
                        *width = (*width).max(text.width());
                    }
                }
                shown.push((row, texts));
            }
            if name + widths.iter().sum::<usize>() + 6 + 19 <= view.width {
                break;
            }
        }
        let taken = name + widths.iter().sum::<usize>() + 6;
        let length = (view.width.saturating_sub(taken).clamp(SHORTEST_LINE, LONGEST_LINE) - 1) | 1;
        let what = if self.options.scale == 1.0 { "the value x" } else { "the product p" };
        let legend = format!("between which numbers:  ▼ {what}   ┼ the tie, halfway   ● what is stored");
        writeln!(out)?;
        writeln!(out, "{}", view.paint.bold(&legend))?;
        for (row, [below, above, beside]) in shown {
            let line = draw(row, product, length, view.paint);
            if !is_drawn(row) {
                let first = row.above.as_ref().map_or(String::new(), |near| brief(near.value.0, 13));
                writeln!(out, "{:<name$}  begins at {first}: no number of it is below", row.format)?;
                continue;
            }
            let before = " ".repeat(widths[0] - below.width());
            let after = " ".repeat(widths[1] - above.width());
            let text = format!("{:<name$}  {before}{below} {line} {above}{after}  {beside}", row.format);
            writeln!(out, "{}", text.trim_end())?;
        }
        if value.moved_to_a_tie() {
            writeln!(out)?;
            wrap("• ", MOVED_TO_A_TIE, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }
}

/// Whether the value lies on the number line of the format, or past its largest number.
fn is_drawn(row: &CastRow) -> bool {
    row.exact || row.tie.is_some()
}

/// What the heading says after the value.
fn what_it_is(value: &Explained) -> String {
    let given = &value.given;
    match given.form {
        Form::Code => format!(", a code of {}:", given.held.first().map_or("", |held| held.format)),
        Form::Decimal | Form::Hexadecimal if !given.value.0.is_finite() => String::new(),
        Form::Decimal | Form::Hexadecimal => {
            let exact = |name: &str| given.held.iter().any(|held| held.format == name && held.exact);
            match (exact("float64"), exact("float32")) {
                (true, true) => " is exactly a float32".into(),
                (true, false) => " is exactly a float64, but not a float32".into(),
                _ => " is not exactly a float64; the nearest one is cast:".into(),
            }
        }
    }
}

/// The number held, with as many of its decimals as fit.
fn number_in(held: &Held, room: usize) -> String {
    let with_binary = format!("{} = {}", held.decimal, held.binary);
    if held.decimal != held.binary && with_binary.width() <= room && held.binary.len() <= 12 {
        return with_binary;
    }
    if held.decimal.width() <= room {
        return held.decimal.clone();
    }
    // Cut, not rounded: the digits shown are the number's own.
    let (digits, exponent) = held.decimal.split_once('e').unwrap_or((&held.decimal, ""));
    let exponent = if exponent.is_empty() { String::new() } else { format!("e{exponent}") };
    let shown: String = digits.chars().take(room.saturating_sub(1 + exponent.width())).collect();
    format!("{shown}…{exponent}")
}

/// Which side of the tie the value is on.
fn beside(row: &CastRow, what: &str, digits: usize) -> String {
    let Some(Num(tie)) = row.tie else {
        return if row.exact { "exact".into() } else { String::new() };
    };
    let sign = match row.side {
        Some("below") => '<',
        Some("above") => '>',
        _ => '=',
    };
    format!("{what} {sign} {}", brief(tie, digits))
}

/// A figure with its sign. 100 is said only of all of it: what is too near is only told from it.
pub(super) fn signed(figure: Option<Num>) -> String {
    let Some(Num(x)) = figure else { return "–".into() };
    if x == 0.0 {
        return "0".into();
    }
    let sign = if x > 0.0 { "+" } else { "" };
    let near = |digits| x.abs() < 100.0 && short(x.abs(), digits).parse() == Ok(100.0);
    match (3..=8).find(|&digits| !near(digits)) {
        Some(digits) => format!("{sign}{}", short(x, digits)),
        None if x < 0.0 => ">-100".into(),
        None => "<+100".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hundred_is_called_so() {
        let figures = [
            (-100.0, "-100"),
            (-99.999_999_98, ">-100"),
            (99.999_999_98, "<+100"),
            (-99.999_98, "-99.99998"),
            (0.25, "+0.250"),
            (0.0, "0"),
        ];
        for (figure, text) in figures {
            assert_eq!(signed(Some(Num(figure))), text);
        }
    }
}
