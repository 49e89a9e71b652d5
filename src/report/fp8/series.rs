//! What delayed scaling does to each tensor over all steps: a line for each, where there are only magnitudes.

use std::io::{self, Write};

use super::cell::Cell;
use super::model::{Fp8Report, TensorRow};
use crate::error::escape;
use crate::report::number::{count, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, write_lines};

/// A tensor under one recipe.
struct Line<'a> {
    tensor: &'a TensorRow,
    recipe: &'static str,
    steps: u64,
    saturates: u64,
    stale: u64,
    frozen: u64,
    /// The most that a magnitude is beyond the range in the one, and that range lies idle in the other, in bits.
    beyond: f64,
    idle: f64,
}

impl Line<'_> {
    fn add(&mut self, cell: &Cell) {
        let has = |name: &str| cell.events.iter().any(|event| event.event == name);
        let bits = cell.bits_off.map_or(0.0, |bits| bits.0);
        self.steps += 1;
        self.frozen += u64::from(has("frozen"));
        if has("saturates") {
            self.saturates += 1;
            self.beyond = self.beyond.max(-bits);
        }
        if has("stale") {
            self.stale += 1;
            self.idle = self.idle.max(bits);
        }
    }
}

impl Fp8Report {
    /// The tensors whose scales most often let values saturate, then those with the most idle range.
    pub(super) fn series_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let lines = self.lines();
        let shown = if view.top == 0 { lines.len() } else { view.top.min(lines.len()) };
        let several = self.recipes.len() > 1;
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim("by tensor: number of steps, and the most bits"))?;
        let figures = ["steps", "saturates", "bits", "stale", "bits", "frozen"];
        let recipe = several.then_some(("recipe", Align::Left));
        let heads = [("tensor", Align::Left)].into_iter().chain(recipe);
        let mut table = Table::new(heads.chain(figures.map(|head| (head, Align::Right))));
        for line in &lines[..shown] {
            let bits = |bits: f64| if bits > 0.0 { short(bits, 3) } else { "–".to_owned() };
            let recipe = several.then(|| line.recipe.to_owned());
            let figures = [
                count(line.steps),
                count(line.saturates),
                bits(line.beyond),
                count(line.stale),
                bits(line.idle),
                count(line.frozen),
            ];
            table.row([escape(&line.tensor.name)].into_iter().chain(recipe).chain(figures));
        }
        write_lines(&table.lines(view.width), view, out)?;
        self.more(shown, lines.len(), view, out)
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for tensor in &self.tensors {
            for cell in &tensor.recipes {
                let same =
                    |line: &&mut Line<'_>| line.tensor.series == tensor.series && line.recipe == cell.recipe;
                // Steps of a tensor lie together.
                let near = lines.len().saturating_sub(self.recipes.len());
                match lines[near..].iter_mut().find(same) {
                    Some(line) => line.add(cell),
                    None => {
                        let (recipe, beyond, idle) = (cell.recipe, 0.0, 0.0);
                        let mut line = Line {
                            tensor,
                            recipe,
                            steps: 0,
                            saturates: 0,
                            stale: 0,
                            frozen: 0,
                            beyond,
                            idle,
                        };
                        line.add(cell);
                        lines.push(line);
                    }
                }
            }
        }
        lines.sort_by(|a, b| b.saturates.cmp(&a.saturates).then(b.idle.total_cmp(&a.idle)));
        lines
    }
}
