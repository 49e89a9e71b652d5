//! The tables about blocks and their scales, for a terminal and as Markdown.

use std::io::{self, Write};

use super::terminal::write_table;
use super::text::code_in_cell;
use super::{Blocks, Cell, FormatRow, HistogramReport, Subject, Worst};
use crate::error::escape;
use crate::format::block::BlockShape;
use crate::format::{exponent_of, pow2};
use crate::report::number::{Num, count, percent, short};
use crate::report::style::View;
use crate::report::table::{Align, Table};

/// A column about scales: the head, the head where there is little room, the figure, and whether the column
/// is left out where all figures are 0.
type Column = (&'static str, &'static str, fn(&Blocks) -> u64, bool);

const SCALES: &[Column] = &[
    ("zero", "zero", |blocks| blocks.scale_zero, false),
    ("subnormal", "subn.", |blocks| blocks.scale_subnormal, false),
    ("raised", "raised", |blocks| blocks.scale_raised, true),
    ("saturated", "sat.", |blocks| blocks.scale_saturated, false),
    ("NaN", "NaN", |blocks| blocks.scale_nan, true),
];

const ABOUT: &str = "blocks: range of the stored scales, how many are zero, subnormal or at a limit";
/// Columns from which on there is room for whole words.
const ROOMY: usize = 90;

impl FormatRow {
    /// Why a block format has no zones: `a scale for each 32 values (floor)`, or `32 (floor)` where that is
    /// longer than `width` characters.
    pub(super) fn no_limits(&self, width: usize) -> String {
        let Some(plan) = self.target.block() else { return String::new() };
        let recipe = plan.spec.recipe.name();
        let (values, along) = match plan.spec.shape {
            BlockShape::Row | BlockShape::Tensor => {
                return format!("a scale for each {} ({recipe})", plan.spec.shape.text());
            }
            BlockShape::Run { length, axis: -1 } => (length.to_string(), String::new()),
            BlockShape::Run { length, axis } => (length.to_string(), format!(" along axis {axis}")),
            BlockShape::Tile { rows, columns } => (format!("{rows}×{columns}"), String::new()),
        };
        let long = format!("a scale for each {values} values{along} ({recipe})");
        if long.chars().count() <= width { long } else { format!("{values}{along} ({recipe})") }
    }
}

impl HistogramReport {
    /// The cells of block formats, all tensors together.
    fn block_cells(&self) -> impl Iterator<Item = (&Cell, &Blocks)> {
        self.total.formats.iter().filter_map(|cell| Some((cell, cell.blocks.as_deref()?)))
    }

    /// Column heads and rows of the table about scales.
    fn scales(&self, roomy: bool) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let columns: Vec<&Column> = SCALES
            .iter()
            .filter(|(_, _, figure, optional)| !optional || self.block_cells().any(|(_, b)| figure(b) > 0))
            .collect();
        let heads = ["format", "blocks", if roomy { "scale min" } else { "min" }, "max"].into_iter();
        let kinds = columns.iter().map(|(head, short, ..)| if roomy { *head } else { *short });
        let heads = heads.chain(kinds).chain(["clipped %"]).collect();
        let row = |(cell, blocks): (&Cell, &Blocks)| {
            let mut row = vec![cell.format.to_owned(), count(blocks.count)];
            row.extend([blocks.scale_min, blocks.scale_max].map(|scale| scale.map_or("–".into(), power)));
            row.extend(columns.iter().map(|(_, _, figure, _)| count(figure(blocks))));
            row.push(percent(blocks.clipped, self.total.nonzero_finite));
            row
        };
        (heads, self.block_cells().map(row).collect())
    }

    /// Place, format and error of each block format's worst block.
    fn worst_rows(&self, name: fn(&Self, &Subject) -> String) -> Vec<[String; 3]> {
        let row = |(cell, blocks): (&Cell, &Blocks)| {
            let worst = blocks.worst.first()?;
            let percent = format!("{} %", short(100.0 * worst.rel_l2.0, 3));
            Some([self.place(worst, name), cell.format.to_owned(), percent])
        };
        self.block_cells().filter_map(row).collect()
    }

    /// `h.0.fc.weight [3, 32]`, the tensor as `name` has it.
    fn place(&self, worst: &Worst, name: fn(&Self, &Subject) -> String) -> String {
        let index: Vec<String> = worst.index.iter().map(u64::to_string).collect();
        let of = |tensor: &Subject| (tensor.input, tensor.step, Some(tensor.name.clone()));
        let wanted = (worst.input, worst.step, worst.tensor.clone());
        let is_it = |tensor: &&Subject| of(tensor) == wanted;
        let name = match self.tensors.iter().find(is_it) {
            Some(tensor) => name(self, tensor),
            None => escape(worst.tensor.as_deref().unwrap_or_default()),
        };
        format!("{name} [{}]", index.join(", "))
    }

    pub(super) fn blocks_tables(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if self.block_cells().next().is_none() {
            return Ok(());
        }
        let (heads, rows) = self.scales(view.width >= ROOMY);
        let align = |(index, head)| (head, if index == 0 { Align::Left } else { Align::Right });
        let mut table = Table::new(heads.into_iter().enumerate().map(align));
        rows.into_iter().for_each(|row| table.row(row));
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim(ABOUT))?;
        write_table(&table, view, out)?;
        let worst = self.worst_rows(Self::keyed_name);
        if !worst.is_empty() {
            let heads = [("worst block", Align::Left), ("format", Align::Left), ("error", Align::Right)];
            let mut table = Table::new(heads);
            worst.into_iter().for_each(|row| table.row(row));
            writeln!(out)?;
            write_table(&table, view, out)?;
        }
        Ok(())
    }

    pub(super) fn write_blocks_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.block_cells().next().is_none() {
            return Ok(());
        }
        let (heads, rows) = self.scales(true);
        writeln!(out, "\n| {} |\n|:--{}|", heads.join(" | "), "|--:".repeat(heads.len() - 1))?;
        for row in rows {
            writeln!(out, "| {} |", row.join(" | "))?;
        }
        let worst = self.worst_rows(Self::full_name);
        if !worst.is_empty() {
            writeln!(out, "\n| worst block | format | error |\n|:--|:--|--:|")?;
        }
        for [place, format, error] in worst {
            writeln!(out, "| `{}` | {format} | {error} |", code_in_cell(&place))?;
        }
        Ok(())
    }
}

/// A power of two as such, anything else in digits.
fn power(Num(scale): Num) -> String {
    if scale == 0.0 {
        return "0".into();
    }
    let exponent = exponent_of(scale);
    if scale == pow2(exponent) { format!("2^{exponent}") } else { short(scale, 3) }
}
