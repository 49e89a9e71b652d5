//! The report on a terminal: each way of keeping weights, how large the updates are beside an ulp, each tensor,
//! sentences.

use std::io::{self, Write};

use super::findings::{pct, percent};
use super::model::{FormatRow, Mark, TensorRow, UpdatesReport, WayRow};
use crate::error::escape;
use crate::report::number::{Num, brief, count, percent as share, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, wrap_words, write_lines};
use crate::training::updates::Way;

/// Most lines of the histogram.
const OCTAVES: usize = 24;

impl UpdatesReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        writeln!(out)?;
        write_lines(&self.ways_table().lines(view.width), view, out)?;
        if self.options.steps > 1 {
            writeln!(out)?;
            let what = "% of the way after so many times the same update";
            writeln!(out, "{}", view.paint.dim(what))?;
            write_lines(&self.steps_table().lines(view.width), view, out)?;
        }
        if let Some(format) = self.total.formats.get(1) {
            writeln!(out)?;
            histogram(format, view, out)?;
        }
        writeln!(out)?;
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
            [only] => escape(only),
            [first, others @ ..] => format!("{} and {} more", escape(first), others.len()),
            [] => String::new(),
        };
        let facts = format!(
            "{}, {}",
            plural(self.tensors.len() as u64, "tensor"),
            plural(self.total.elements, "weight")
        );
        for (number, line) in
            wrap_words("", [format!("{subject}:").as_str()].into_iter().chain(facts.split(' ')), view.width)
                .iter()
                .enumerate()
        {
            match line.strip_prefix(&subject).filter(|_| number == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        let lr = match self.total.lr {
            Some(lr) => format!("lr {}", brief(lr, 8)),
            None => "learning rates of the parameter groups".to_owned(),
        };
        let decay = match self.total.weight_decay {
            Some(0.0) => String::new(),
            Some(decay) => format!(", weight decay {}", brief(decay, 8)),
            None => ", weight decay of the parameter groups".to_owned(),
        };
        for line in wrap("", &format!("{}; {lr}{decay}", self.rule), view.width) {
            writeln!(out, "{}", view.paint.dim(&line))?;
        }
        Ok(())
    }

    fn ways_table(&self) -> Table {
        let heads = ["bits", "unmoved %", "off %", "along %", "size %", "error %"];
        let heads = heads.iter().map(|head| (*head, Align::Right));
        let mut table = Table::new([("weights kept in", Align::Left)].into_iter().chain(heads));
        let figures = |mark: &Mark| {
            [
                mark.unmoved_pct.map_or("–".to_owned(), |share| pct(share.0)),
                mark.off_pct.map_or("–".to_owned(), |share| pct(share.0)),
                percent(mark.along),
                percent(mark.effective_lr),
                percent(mark.error),
            ]
        };
        for (number, format) in self.total.formats.iter().enumerate() {
            for way in &format.ways {
                let Some(mark) = way.after.first() else { continue };
                let name = way_name(format, way);
                table.row([name, way.bits.to_string()].into_iter().chain(figures(mark)));
            }
            if number == 0
                && self.total.formats.iter().any(|format| format.format == "bfloat16")
                && let Some(mark) = format.nearest()
            {
                let name = "bfloat16 + 16 bits apart".to_owned();
                table.row([name, "32".to_owned()].into_iter().chain(figures(mark)));
            }
        }
        table
    }

    fn steps_table(&self) -> Table {
        let formats = &self.total.formats;
        let columns: Vec<(&FormatRow, &WayRow)> = formats
            .iter()
            .take(2)
            .flat_map(|format| format.ways.iter().map(move |way| (format, way)))
            .filter(|(_, way)| way.after.len() > 1)
            .collect();
        let heads = columns.iter().map(|(format, way)| {
            let head = if way.way == Way::Nearest.name() { format.format } else { way.way };
            (head, Align::Right)
        });
        let mut table = Table::new(
            [("steps", Align::Right)].into_iter().chain(heads).chain([("unmoved %", Align::Right)]),
        );
        let marks = columns.first().map_or(0, |(_, way)| way.after.len());
        for mark in 0..marks {
            let steps = columns.first().map_or(0, |(_, way)| way.after[mark].steps);
            let along = columns.iter().map(|(_, way)| percent(way.after[mark].along));
            let unmoved =
                formats.get(1).and_then(|format| format.way(Way::Nearest)?.after.get(mark)?.unmoved_pct);
            let unmoved = unmoved.map_or("–".to_owned(), |share| pct(share.0));
            table.row([count(steps)].into_iter().chain(along).chain([unmoved]));
        }
        table
    }

    fn tensors_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let low = self.total.formats.get(1..).unwrap_or_default();
        let Some(first) = low.first() else { return Ok(()) };
        let mut rows: Vec<&TensorRow> = self.tensors.iter().collect();
        let unmoved = |row: &TensorRow| {
            row.formats.get(1).and_then(|format| format.nearest()?.unmoved_pct).map_or(-1.0, |share| share.0)
        };
        rows.sort_by(|a, b| unmoved(b).total_cmp(&unmoved(a)));
        let what = format!(
            "updates that vanish, %, rounded to nearest even; lr for half of them in {}",
            first.format
        );
        writeln!(out, "{}", view.paint.dim(&what))?;
        let heads = low.iter().map(|format| (format.format, Align::Right));
        let heads = [("tensor", Align::Left), ("updates", Align::Right)].into_iter().chain(heads);
        let mut table = Table::new(heads.chain([("lr for half", Align::Right)]));
        let most = if view.top == 0 { usize::MAX } else { view.top };
        for row in rows.iter().take(most) {
            let formats = row.formats.get(1..).unwrap_or_default();
            let cells = formats.iter().map(|format| {
                format
                    .nearest()
                    .and_then(|mark| mark.unmoved_pct)
                    .map_or("–".to_owned(), |share| pct(share.0))
            });
            let half = formats.first().and_then(|format| format.lr_for_half);
            let half = half.map_or("–".to_owned(), |Num(lr)| short(lr, 2));
            let updates = formats.first().map_or(0, |format| format.updates);
            table.row([escape(&row.name), count(updates)].into_iter().chain(cells).chain([half]));
        }
        write_lines(&table.lines(view.width), view, out)?;
        let more = rows.len().saturating_sub(most);
        if more > 0 {
            writeln!(out, "{}", view.paint.dim(&format!("… {more} more; --top 0 shows all")))?;
        }
        Ok(())
    }
}

/// A format and a way of keeping weights in it.
pub(super) fn way_name(format: &FormatRow, way: &WayRow) -> String {
    if format.format == "float32" {
        "float32 (master)".to_owned()
    } else {
        format!("{} {}", format.format, way.way)
    }
}

/// A bar an octave of |update| / ulp, the line of half an ulp between them.
fn histogram(format: &FormatRow, view: &View, out: &mut dyn Write) -> io::Result<()> {
    let what = format!("|update| / ulp of the weight in {}", format.format);
    writeln!(out, "{}", view.paint.dim(&what))?;
    let all = format.octaves();
    let Some(&(last, _)) = all.last() else {
        return writeln!(out, "{}", view.paint.dim("every update is zero"));
    };
    let first = all[0].0.max(last.max(-1) - OCTAVES as i32 + 1);
    let of = |exponent: i32| all.iter().filter(|(known, _)| *known == exponent).map(|(_, n)| n).sum::<u64>();
    let below: u64 = all.iter().filter(|(known, _)| *known < first).map(|(_, n)| n).sum();
    let largest = (first..=last).map(of).max().unwrap_or(0).max(1);
    let room = view.width.saturating_sub(24).min(100);
    if below > 0 {
        writeln!(out, "{:>12}  {:>7} %", format!("below 2^{first}"), share(below, format.updates))?;
    }
    for exponent in (first..=last.max(-1)).rev() {
        if exponent == -2 && last >= -1 {
            let text = " half an ulp: rounding to nearest drops what is below ";
            writeln!(out, "{}", view.paint.dim(&format!("{:>12}  {}{}", "", "╌╌", text)))?;
        }
        let n = of(exponent);
        let eighths = (n as f64 / largest as f64 * room as f64 * 8.0).round() as usize;
        let eighths = if n > 0 { eighths.max(1) } else { 0 };
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar = format!("{}{part}", "█".repeat(eighths / 8));
        let line = format!("{:>12}  {:>7} % {bar}", format!("2^{exponent}"), share(n, format.updates));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
