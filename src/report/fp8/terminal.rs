//! The report on a terminal: what was read, a line for each recipe, a figure for each tensor and recipe, what
//! happened to delayed scales, sentences.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::cell::Cell;
use super::events::{FIGURES, USED, spans};
use super::model::{Fp8Report, METRICS, Metric, TensorRow};
use crate::error::escape;
use crate::report::number::{Num, bytes, count, percent, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, shorten, wrap, wrap_words, write_lines};
use crate::scaler::fp8::ROLES;

/// Columns that a tensor's name is given at least, where tables would be cut.
const NAME: usize = 20;

impl Fp8Report {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        if !self.has_magnitudes_only() {
            self.recipes_table(view, out)?;
        }
        match (self.recipes.len(), self.tensors.len()) {
            _ if self.has_magnitudes_only() => self.series_table(view, out)?,
            (1, _) => self.scales_table(view, out)?,
            (_, 1) => self.one_tensor(view, out)?,
            _ => self.tensors_table(view, out)?,
        }
        self.events_table(view, out)?;
        writeln!(out)?;
        for sentence in &self.findings {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// What a row of the main table is.
    pub(super) fn what(&self) -> &'static str {
        if self.has_series() { "step of a tensor" } else { "tensor" }
    }

    /// What the main table shows.
    pub(super) fn meaning(&self) -> &'static str {
        METRICS.iter().find(|(_, metric, _)| *metric == self.options.sort).map_or("", |(.., meaning)| meaning)
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let subject = match self.inputs.as_slice() {
            [only] => escape(&only.path),
            inputs => format!("{} files", inputs.len()),
        };
        let series = self.tensors.iter().map(|tensor| tensor.series).max().map_or(0, |last| last + 1);
        let elements = self.tensors.iter().map(|tensor| tensor.elements).sum();
        let size: u64 = self.inputs.iter().map(|input| input.bytes).sum();
        let steps = match self.tensors.len() {
            all if all > series => format!(" in {} steps", count(self.steps())),
            _ => String::new(),
        };
        let tensors = plural(series as u64, "tensor");
        let facts = if self.has_magnitudes_only() {
            format!("the largest magnitudes of {tensors}{steps}")
        } else {
            format!("{tensors}{steps}, {}, {}", plural(elements, "element"), bytes(size))
        };
        let head = format!("{subject}:");
        let lines = wrap_words("", std::iter::once(&*head).chain(facts.split(' ')), view.width);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(&subject).filter(|_| index == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        let of = |role: &str| self.tensors.iter().filter(|tensor| tensor.role == role).count() as u64;
        let roles: Vec<String> = ROLES
            .iter()
            .filter(|(name, _)| of(name) > 0)
            .map(|(name, _)| format!("{}s", plural(of(name), name).trim_end_matches('s')))
            .collect();
        let by = match self.options.role {
            Some(_) => "as said",
            None if self.has_magnitudes_only() => "as traces have them",
            None => "by name",
        };
        let text = format!("{} ({by}); {}", roles.join(", "), self.formulation);
        wrap("", &text, view.width).iter().try_for_each(|line| writeln!(out, "{}", view.paint.dim(line)))
    }

    /// Number of different steps.
    fn steps(&self) -> u64 {
        let mut steps: Vec<u64> = self.tensors.iter().filter_map(|tensor| tensor.step).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.len() as u64
    }

    fn recipes_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        let roomy = view.width >= 110;
        let heads = [("recipe", Align::Left), ("bits", Align::Right), ("underflow %", Align::Right)];
        let rest = [
            ("saturated", Align::Right),
            ("SQNR dB", Align::Right),
            ("worst", Align::Right),
            ("tensor", Align::Left),
        ];
        let formats = roomy.then_some(("format", Align::Left));
        let heads: Vec<_> =
            heads[..1].iter().copied().chain(formats).chain(heads[1..].iter().copied()).chain(rest).collect();
        let mut table = Table::new(heads.iter().copied());
        let num = |num: Option<Num>| num.map_or("–".to_owned(), |num| short(num.0, 3));
        let mut rows = Vec::new();
        for row in &self.recipes {
            let mut cells = vec![row.recipe.to_owned()];
            cells.extend(roomy.then(|| row.formats.join(", ")));
            cells.extend([
                short(row.bits_per_element.0, 3),
                unless(row.is_spoiled(), percent(row.underflow, row.nonzero_finite)),
                unless(row.is_spoiled(), count(row.saturated)),
                num(row.sqnr_db),
                num(row.worst_sqnr_db),
            ]);
            rows.push((cells, row.worst));
        }
        let width = |(column, (head, _)): (usize, &(&str, Align))| {
            rows.iter().map(|(cells, _)| cells[column].width()).fold(head.width(), usize::max) + 2
        };
        let others: usize = heads.iter().enumerate().take(heads.len() - 1).map(width).sum();
        let room = view.width.saturating_sub(others).max(NAME / 2);
        for (mut cells, worst) in rows {
            let worst = worst.and_then(|worst| self.tensors.get(worst));
            cells.push(worst.map_or(String::new(), |tensor| shorten(&self.name(tensor), room)));
            table.row(cells);
        }
        write_lines(&table.lines(view.width), view, out)
    }

    /// A tensor's name, with its step if there are several.
    pub(super) fn name(&self, tensor: &TensorRow) -> String {
        match tensor.step {
            Some(step) if self.has_series() => format!("{} [{step}]", escape(&tensor.name)),
            _ => escape(&tensor.name),
        }
    }

    /// The tensors, worst first by the first recipe.
    pub(super) fn sorted(&self) -> Vec<&TensorRow> {
        let mut tensors: Vec<&TensorRow> = self.tensors.iter().collect();
        let badness = |tensor: &TensorRow| {
            tensor.recipes.first().map_or(f64::NEG_INFINITY, |cell| cell.badness(self.options.sort))
        };
        tensors.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        tensors
    }

    /// A column a recipe, as many as fit.
    fn tensors_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let tensors = self.sorted();
        let shown = if view.top == 0 { tensors.len() } else { view.top.min(tensors.len()) };
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim(&format!("by {}: {}", self.what(), self.meaning())))?;
        let names: Vec<String> = tensors[..shown].iter().map(|tensor| self.name(tensor)).collect();
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let mut room = view.width.saturating_sub(longest.min(NAME) + 10);
        let columns = self.recipes.iter().take_while(|row| {
            let (family, variant) = head_of(row.recipe);
            let width = family.width().max(variant.width()).max(6) + 2;
            let fits = width <= room;
            room = room.saturating_sub(width);
            fits
        });
        let columns = columns.count().max(1);
        let recipes = || self.recipes[..columns].iter().map(|row| head_of(row.recipe));
        let heads = recipes().map(|(family, _)| (family, Align::Right));
        let mut table =
            Table::new([("tensor", Align::Left), ("amax", Align::Right)].into_iter().chain(heads));
        if recipes().any(|(_, variant)| !variant.is_empty()) {
            let variants = recipes().map(|(_, variant)| variant.to_owned());
            table.row([String::new(), String::new()].into_iter().chain(variants));
        }
        for (tensor, name) in tensors[..shown].iter().zip(names) {
            let amax = tensor.amax.map_or("–".into(), |amax| short(amax.0, 3));
            let cells = tensor.recipes[..columns].iter().map(|cell| figure(cell, tensor, self.options.sort));
            table.row([name, amax].into_iter().chain(cells));
        }
        write_lines(&table.lines(view.width), view, out)?;
        let hidden = self.recipes.len() - columns;
        if hidden > 0 {
            let text =
                format!("… {} to the right; COLUMNS=200 and --csv have all", plural(hidden as u64, "recipe"));
            writeln!(out, "{}", view.paint.dim(&text))?;
        }
        self.more(shown, tensors.len(), view, out)
    }

    /// The scale of each tensor, for one recipe.
    fn scales_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let tensors = self.sorted();
        let shown = if view.top == 0 { tensors.len() } else { view.top.min(tensors.len()) };
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim(&format!("by {}: {}", self.what(), self.meaning())))?;
        let roomy = view.width >= ROOMY;
        let mut table = Table::new(heads("tensor", roomy));
        for tensor in &tensors[..shown] {
            for cell in &tensor.recipes {
                table.row(row(self.name(tensor), tensor, cell, roomy));
            }
        }
        write_lines(&table.lines(view.width), view, out)?;
        self.more(shown, tensors.len(), view, out)
    }

    /// The scale of each recipe, for one tensor.
    fn one_tensor(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let Some(tensor) = self.tensors.first() else { return Ok(()) };
        writeln!(out)?;
        let text =
            format!("{}: {}, {}", escape(&tensor.name), tensor.role, plural(tensor.elements, "element"));
        writeln!(out, "{}", view.paint.dim(&shorten(&text, view.width)))?;
        let roomy = view.width >= ROOMY;
        let mut table = Table::new(heads("recipe", roomy));
        tensor.recipes.iter().for_each(|cell| table.row(row(cell.recipe.to_owned(), tensor, cell, roomy)));
        write_lines(&table.lines(view.width), view, out)
    }

    fn events_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let spans = spans(self);
        let Some(first) = spans.first() else { return Ok(()) };
        let shown = if view.top == 0 { spans.len() } else { view.top.min(spans.len()) };
        let several = spans.iter().any(|span| span.recipe() != first.recipe());
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim("delayed scales: steps at which something happens"))?;
        let recipe = several.then_some(("recipe", Align::Left));
        // The magnitude that a scale was formed from is left out first.
        let columns = FIGURES.iter().enumerate().filter(|(index, _)| view.width >= 100 || *index != USED);
        let columns: Vec<(usize, &str)> = columns.map(|(index, head)| (index, *head)).collect();
        let heads = [("step", Align::Right)].into_iter().chain(recipe);
        let heads = heads.chain(columns.iter().map(|(_, head)| (*head, Align::Right)));
        let mut table =
            Table::new([("tensor", Align::Left)].into_iter().chain(heads).chain([("event", Align::Left)]));
        for span in &spans[..shown] {
            let mut cells = vec![escape(&span.tensor().name), span.steps()];
            cells.extend(several.then(|| span.recipe().to_owned()));
            let figures = span.figures();
            cells.extend(columns.iter().map(|(index, _)| figures[*index].clone()));
            let others = cells.iter().skip(1).map(|cell| cell.width().max(5) + 2).sum::<usize>() + 20;
            cells.push(shorten(&span.events(), view.width.saturating_sub(others).max(12)));
            table.row(cells);
        }
        write_lines(&table.lines(view.width), view, out)?;
        self.more(shown, spans.len(), view, out)
    }

    pub(super) fn more(&self, shown: usize, all: usize, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if shown < all {
            writeln!(
                out,
                "{}",
                view.paint.dim(&format!(
                    "… {} more; --top 0 shows all {}",
                    count((all - shown) as u64),
                    count(all as u64)
                ))
            )?;
        }
        Ok(())
    }
}

/// A recipe's name on two lines: `block-` and `1x128`, `mxfp8` and `floor`.
fn head_of(recipe: &str) -> (&str, &str) {
    let at = recipe.find(':').or_else(|| recipe.find('-'));
    at.map_or((recipe, ""), |at| (&recipe[..at], &recipe[at + 1..]))
}

/// Columns from which on there is room for all that is said of a scale.
const ROOMY: usize = 100;

/// Heads of a table of scales; `roomy` or not.
fn heads(first: &'static str, roomy: bool) -> Vec<(&'static str, Align)> {
    let right = |head| (head, Align::Right);
    let mut heads = vec![(first, Align::Left)];
    heads.extend(roomy.then_some(("format", Align::Left)));
    heads.extend(["amax", "scale"].map(right));
    heads.extend(roomy.then(|| right("scale_inv")));
    heads.extend(["underflow %", "saturated", "SQNR dB"].map(right));
    heads
}

fn row(name: String, tensor: &TensorRow, cell: &Cell, roomy: bool) -> Vec<String> {
    let num = |num: Option<Num>, digits| num.map_or("–".to_owned(), |num| short(num.0, digits));
    let inverse = || match (cell.scale_inv, cell.scale_inv_min, cell.scale_inv_max) {
        (Some(only), ..) => short(only.0, 4),
        (None, Some(low), Some(high)) => format!("{}…{}", short(low.0, 2), short(high.0, 2)),
        _ => "–".into(),
    };
    let mut cells = vec![name];
    cells.extend(roomy.then(|| cell.format.to_owned()));
    cells.extend([num(tensor.amax, 3), num(cell.scale, 4)]);
    cells.extend(roomy.then(inverse));
    cells.extend(
        [Metric::Underflow, Metric::Saturated, Metric::Sqnr].map(|metric| figure(cell, tensor, metric)),
    );
    cells
}

/// A figure of a cell as text.
pub(super) fn figure(cell: &Cell, tensor: &TensorRow, metric: Metric) -> String {
    match metric {
        Metric::Sqnr => cell.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3)),
        Metric::Underflow => cell.underflow.map_or("–".into(), |n| {
            unless(cell.is_spoiled(tensor.nonzero_finite), percent(n, tensor.nonzero_finite))
        }),
        Metric::Saturated => {
            cell.saturated.map_or("–".into(), |n| unless(cell.is_spoiled(tensor.nonzero_finite), count(n)))
        }
    }
}

/// A dash where no value is left to have the figure.
pub(super) fn unless(is_spoiled: bool, figure: String) -> String {
    if is_spoiled { "–".to_owned() } else { figure }
}
