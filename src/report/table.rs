//! Columns of text, aligned, in the width there is.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::style::View;

/// Which side the text of a column keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// Columns between two columns.
const GAP: usize = 2;

/// Rows of cells under a header.
pub(crate) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub(crate) fn new(header: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Self {
        let (titles, aligns) = header.into_iter().map(|(title, align)| (title.into(), align)).unzip();
        Self { aligns, rows: vec![titles] }
    }

    /// Adds a row: one cell a column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The columns in tables that fit `width` one below the other, each with the first column, which may come to take a
    /// third of the width.
    pub(crate) fn folded(&self, width: usize) -> Vec<Self> {
        let of = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        let first = of(0).min(width / 3);
        let (mut parts, mut part, mut used) = (Vec::new(), vec![0], first);
        for column in 1..self.aligns.len() {
            let more = GAP + of(column);
            if used + more > width && part.len() > 1 {
                parts.push(std::mem::replace(&mut part, vec![0]));
                used = first;
            }
            part.push(column);
            used += more;
        }
        parts.push(part);
        let cut = |part: Vec<usize>| Self {
            aligns: part.iter().filter_map(|&column| self.aligns.get(column).copied()).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| part.iter().filter_map(|&column| row.get(column).cloned()).collect())
                .collect(),
        };
        parts.into_iter().map(cut).collect()
    }

    /// The rows as lines without trailing spaces, the header first. If they would be wider than `width`, the
    /// first column is shortened in the middle, but never below 8 columns.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let mut widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
            })
            .collect();
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first = (*first).min((*first + width).saturating_sub(total).max(8));
        }
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.aligns) {
                if !line.is_empty() {
                    line.push_str(&" ".repeat(GAP));
                }
                let cell = shorten(cell, width);
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                match align {
                    Align::Left => line.extend([&*cell, &padding]),
                    Align::Right => line.extend([&*padding, &cell]),
                }
            }
            line.truncate(line.trim_end().len());
            line
        };
        self.rows.iter().map(line).collect()
    }
}

/// `text` in at most `width` columns, with … in place of its middle: both ends of a tensor's name tell
/// something.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let (head, tail) = (room.div_ceil(2), room / 2);
    let start = take_width(text.chars(), head);
    let end: String = take_width(text.chars().rev(), tail).chars().rev().collect();
    format!("{start}…{end}")
}

fn take_width(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut taken = String::new();
    for c in chars {
        taken.push(c);
        if taken.width() > width {
            taken.pop();
            break;
        }
    }
    taken
}

/// Writes the lines of a table, its header emphasised.
pub(crate) fn write_lines(lines: &[String], view: &View, out: &mut dyn Write) -> io::Result<()> {
    for (index, line) in lines.iter().enumerate() {
        if index == 0 { writeln!(out, "{}", view.paint.bold(line))? } else { writeln!(out, "{line}")? }
    }
    Ok(())
}

/// Breaks a text into lines of at most `width` columns; `bullet` indents the lines after the first.
pub(crate) fn wrap(bullet: &str, text: &str, width: usize) -> Vec<String> {
    wrap_words(bullet, text.split(' '), width)
}

/// [`wrap`] of words that may have spaces in them, as paths do. A word wider than a line is not broken.
pub(crate) fn wrap_words<'a>(
    bullet: &str,
    words: impl IntoIterator<Item = &'a str>,
    width: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = bullet.to_owned();
    let mut fresh = true;
    for word in words {
        if !fresh && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(bullet.width())));
        } else if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_glued() {
        let text = "é % ü of 0.1 % and • • of all 12 % values";
        for bullet in ["", "• ", "    "] {
            for width in 1..40 {
                let lines = wrap(bullet, text, width);
                let body = |line: &String| line.chars().skip(bullet.width()).collect::<String>();
                assert_eq!(lines.iter().map(body).collect::<Vec<_>>().join(" "), text, "{width}");
                let longest = bullet.width() + 6;
                assert!(lines.iter().all(|line| line.width() <= width.max(longest)), "{lines:?}");
            }
        }
        assert_eq!(wrap_words("", ["a b", "c"], 2), ["a b", "c"]);
    }
}
