//! The parameters on a terminal: formats side by side where they fit, else a table or two.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::text::largest;
use super::{FormatEntry, FormatsReport, Limit};
use crate::report::number::{full, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};

/// Most formats that are shown side by side, all figures below each other.
const SIDE_BY_SIDE: usize = 4;

/// A column of the tables.
struct Column {
    head: &'static str,
    align: Align,
    /// Comes in the second table, where one is not wide enough.
    second: bool,
    text: fn(&FormatEntry) -> String,
    /// What it says where there is much room.
    wide: fn(&FormatEntry) -> String,
}

const fn column(head: &'static str, align: Align, second: bool, text: fn(&FormatEntry) -> String) -> Column {
    Column { head, align, second, text, wide: text }
}

const COLUMNS: &[Column] = &[
    column("s/e/m", Align::Left, false, FormatEntry::split),
    column("bias", Align::Right, false, |f| f.exponent_bias.to_string()),
    column("largest", Align::Right, false, |f| largest(&f.max_finite)),
    column("overflows", Align::Right, false, |f| {
        let sign = if f.overflow_includes_threshold { '≥' } else { '>' };
        format!("{sign}{}", largest(&f.overflow_threshold))
    }),
    Column {
        wide: |f| with_decimal(&f.min_normal),
        ..column("normal", Align::Right, false, |f| f.min_normal.binary.clone())
    },
    Column {
        wide: |f| f.min_subnormal.as_ref().map_or("–".into(), with_decimal),
        ..column("subnorm", Align::Right, false, |f| power(&f.min_subnormal, "–", ""))
    },
    Column {
        wide: |f| {
            f.flush_threshold.as_ref().map_or("never".into(), |limit| format!("≤{}", with_decimal(limit)))
        },
        ..column("zero", Align::Right, false, |f| power(&f.flush_threshold, "never", "≤"))
    },
    column("exact largest", Align::Left, true, |f| f.max_finite.binary.clone()),
    column("prec.", Align::Right, true, |f| f.precision_bits.to_string()),
    column("eps", Align::Right, true, |f| f.epsilon.binary.clone()),
    column("Inf", Align::Left, true, |f| f.infinity_code.clone().unwrap_or("–".into())),
    column("NaN", Align::Left, true, |f| f.nan_code.clone().unwrap_or("–".into())),
    column("NaNs", Align::Right, true, |f| f.nan_codes.to_string()),
    column("−0", Align::Left, true, |f| yes(f.negative_zero)),
];

/// A line of the side-by-side view.
type Line = (&'static str, fn(&FormatEntry) -> String);

const LINES: &[Line] = &[
    ("bits (s/e/m)", |f| format!("{} ({})", f.bits, f.split())),
    ("precision, bits", |f| f.precision_bits.to_string()),
    ("exponent bias", |f| f.exponent_bias.to_string()),
    ("normal exponents", |f| format!("{} to {}", f.emin, f.emax)),
    ("largest", |f| both(&f.max_finite)),
    ("overflows", |f| format!("{} {}", f.overflow_word(), both(&f.overflow_threshold))),
    ("smallest normal", |f| both(&f.min_normal)),
    ("largest subnormal", |f| f.max_subnormal.as_ref().map_or("none".into(), both)),
    ("smallest subnormal", |f| f.min_subnormal.as_ref().map_or("none".into(), both)),
    ("becomes zero", |f| {
        f.flush_threshold.as_ref().map_or("never".into(), |limit| format!("≤ {}", both(limit)))
    }),
    ("1 to next (eps)", |f| both(&f.epsilon)),
    ("Inf", |f| f.infinity_code.clone().unwrap_or("none".into())),
    ("NaN", |f| match (f.nan_codes, &f.nan_code) {
        (1, Some(code)) => code.clone(),
        (many, Some(code)) => format!("{code}, one of {many}"),
        (_, None) => "none".into(),
    }),
    ("−0", |f| yes(f.negative_zero)),
    ("finite codes", |f| f.finite_codes.to_string()),
];

impl FormatsReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let fits = |lines: &[String]| lines.iter().all(|line| line.width() <= view.width);
        let beside = self.side_by_side();
        if self.formats.len() == 1 || (self.formats.len() <= SIDE_BY_SIDE && fits(&beside)) {
            write_lines(&beside, view, out)?;
            self.names(view, out)?;
        } else {
            let all = |wide| self.table(|_| true, wide).lines(usize::MAX / 2);
            if let Some(lines) = [true, false].into_iter().map(all).find(|lines| fits(lines)) {
                write_lines(&lines, view, out)?;
            } else {
                write_lines(&self.table(|column| !column.second, false).lines(view.width), view, out)?;
                writeln!(out)?;
                write_lines(&self.table(|column| column.second, false).lines(view.width), view, out)?;
            }
            writeln!(out)?;
            let heads = "normal, subnorm: the smallest of each · overflows, zero: magnitudes that round to \
                         overflow and to zero · prec.: significand bits with the implicit one · eps: from 1 to the \
                         next number · NaN: the one that casts give, and how many there are";
            prose("", heads, view).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        if !self.notes.is_empty() {
            writeln!(out, "\n{}", view.paint.bold("what tables get wrong"))?;
        }
        for note in &self.notes {
            prose("• ", note, view).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    fn side_by_side(&self) -> Vec<String> {
        let heads = self.formats.iter().map(|format| (format.name, Align::Left));
        let mut table = Table::new([("", Align::Left)].into_iter().chain(heads));
        for (name, text) in LINES {
            table.row(std::iter::once((*name).to_owned()).chain(self.formats.iter().map(text)));
        }
        table.lines(usize::MAX / 2)
    }

    /// What the one format shown is also called, and where it comes from.
    fn names(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let [only] = self.formats.as_slice() else { return Ok(()) };
        writeln!(out)?;
        if !only.aliases.is_empty() {
            let aliases = format!("also called {}", only.aliases.join(", "));
            prose("", &aliases, view).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let source = format!("defined in {}", only.source);
        let source = if only.aliases.is_empty() { only.source.to_owned() } else { source };
        prose("", &source, view).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn table(&self, wanted: impl Fn(&Column) -> bool, wide: bool) -> Table {
        let columns: Vec<&Column> = COLUMNS.iter().filter(|column| wanted(column)).collect();
        let heads = columns.iter().map(|column| (column.head, column.align));
        let mut table = Table::new([("format", Align::Left)].into_iter().chain(heads));
        for format in &self.formats {
            let cells =
                columns.iter().map(|column| if wide { (column.wide)(format) } else { (column.text)(format) });
            table.row(std::iter::once(format.name.to_owned()).chain(cells));
        }
        table
    }
}

/// A limit in both notations: `448 = 7·2^6`.
fn both(limit: &Limit) -> String {
    let x = limit.value.0;
    let decimal = if full(x).len() <= 9 { full(x) } else { short(x, 7) };
    if decimal == limit.binary { decimal } else { format!("{decimal} = {}", limit.binary) }
}

/// A small limit with its decimals behind: `2^-9 = 0.001953`.
fn with_decimal(limit: &Limit) -> String {
    let x = limit.value.0;
    let decimal = if full(x).len() <= 9 { full(x) } else { short(x, 4) };
    if decimal == limit.binary { decimal } else { format!("{} = {decimal}", limit.binary) }
}

fn power(limit: &Option<Limit>, none: &str, sign: &str) -> String {
    limit.as_ref().map_or(none.to_owned(), |limit| format!("{sign}{}", limit.binary))
}

fn yes(is: bool) -> String {
    (if is { "yes" } else { "no" }).into()
}

/// A paragraph, in lines that are not too long to follow.
fn prose(bullet: &str, text: &str, view: &View) -> Vec<String> {
    const LONGEST: usize = 100;
    wrap(bullet, text, view.width.min(LONGEST))
}
