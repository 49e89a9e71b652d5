//! The report on a terminal: what was recorded, a line for each scaler, the steps at which something happened,
//! sentences.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::events::{Moment, cause, cell, scale_text};
use super::findings::skip_pct;
use super::model::{EventRow, ScalerRun, SimulateReport};
use crate::error::escape;
use crate::report::number::{Num, count, full, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, shorten, wrap, wrap_words, write_lines};
use crate::scaler::trace::Step;

/// Widths that the column of tensors at fault can have.
const CAUSES: [usize; 3] = [32, 22, 15];
/// Most tensors made in float32 that are named.
const NAMED: usize = 6;

impl SimulateReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        if !self.scalers.is_empty() {
            writeln!(out)?;
            write_lines(&self.summary().lines(view.width), view, out)?;
            self.events_table(view, out)?;
        }
        self.sweep_table(view, out)?;
        writeln!(out)?;
        for sentence in self.findings.iter().map(String::as_str).chain([self.lower_bound]) {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let record = &self.record;
        let subject = match (&record.synthetic, record.inputs.as_slice()) {
            (Some(kind), _) => format!("SYNTHETIC record, not a training ({})", escape(kind)),
            (None, [only]) => escape(only),
            (None, [first, others @ ..]) => format!("{} and {} more", escape(first), others.len()),
            (None, []) => "no input".to_owned(),
        };
        let mut facts = vec![match record.steps {
            1 => format!("one step, {}", record.first_step),
            steps => format!(
                "{} from {} to {}",
                plural(steps, "step"),
                count(record.first_step),
                count(record.last_step)
            ),
        }];
        if record.missing > 0 {
            let what = match self.options.gaps {
                "hold" => "each taken for the one before it",
                _ => "left out",
            };
            facts.push(format!("{} missing between them, {what}", count(record.missing)));
        }
        match self.options.repeat {
            Some(1) => {}
            Some(passes) => facts.push(format!("repeated {passes} times")),
            None => facts.push("repeated until the state comes back".into()),
        }
        let head = format!("{subject}:");
        let text = facts.join("; ");
        // A path stays whole, whatever spaces it has.
        let pieces = if record.synthetic.is_some() { usize::MAX } else { 1 };
        let lines = wrap_words("", head.splitn(pieces, ' ').chain(text.split(' ')), view.width);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(&subject).filter(|_| index == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        for line in wrap("", &self.decides(), view.width) {
            writeln!(out, "{}", view.paint.dim(&line))?;
        }
        Ok(())
    }

    /// What decides an overflow here.
    fn decides(&self) -> String {
        let record = &self.record;
        let format = escape(&self.options.format);
        let any = |known: fn(&Step) -> bool| self.trace.steps.iter().any(known);
        let flags = any(|step| step.recorded.is_some());
        let magnitudes = any(|step| !step.amax().is_nan());
        let largest = format!("the largest gradient times the scale in {format}");
        let what = match (flags, magnitudes) {
            (true, true) => format!("recorded flags where they tell, else {largest}"),
            (true, false) => "recorded flags alone".to_owned(),
            (false, _) => largest,
        };
        let single = match record.fp32_grads.as_slice() {
            [] if record.tensors == 0 => String::new(),
            [] if record.synthetic.is_some() => String::new(),
            [] => format!("; --fp32-grads matches no tensor of {}", count(record.tensors)),
            names => {
                let shown: Vec<String> = names.iter().take(NAMED).map(|name| escape(name)).collect();
                let more = names.len().saturating_sub(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("; in float32 (--fp32-grads): {}{more}", shown.join(", "))
            }
        };
        format!("overflow: {what}{single}")
    }

    fn summary(&self) -> Table {
        let lost = self.record.has_histograms;
        let floors = self.scalers.iter().any(|run| run.at_floor > 0);
        let heads = [
            ("scaler", Align::Left),
            ("from", Align::Right),
            ("to", Align::Right),
            ("largest", Align::Right),
            ("skipped", Align::Right),
            ("warm-up", Align::Right),
            ("then %", Align::Right),
        ];
        let floor_head = floors.then_some(("at floor", Align::Right));
        let lost_head = lost.then_some(("underfl. %", Align::Right));
        let heads = heads.into_iter().chain(floor_head).chain(lost_head);
        let mut table = Table::new(heads.chain([("", Align::Left)]));
        for run in &self.scalers {
            let mut cells = vec![
                run.scaler.to_owned(),
                scale_text(run.first_scale.0),
                scale_text(run.last_scale.0),
                scale_text(run.largest_scale.0),
                count(run.skipped),
                count(run.warm_up_skipped),
                skip_pct(run),
            ];
            cells.extend(floors.then(|| count(run.at_floor)));
            cells.extend(lost.then(|| run.mean_underflow_pct.map_or("–".into(), |share| short(share.0, 3))));
            cells.push(ends(run));
            table.row(cells);
        }
        table
    }

    fn events_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let most = if view.top == 0 { usize::MAX } else { view.top };
        let (moments, total) = self.moments(most);
        writeln!(out)?;
        if moments.is_empty() {
            let all = "every step is applied and no scale changes";
            return writeln!(out, "{}", view.paint.dim(all));
        }
        let what = if self.all_steps { "each step" } else { "steps at which something happens" };
        writeln!(out, "{}", view.paint.dim(&format!("{what}: scale of the next step and event")))?;
        // Names of tensors give way before the scalers do.
        let fits = |lines: &Vec<String>| lines.iter().all(|line| line.width() <= view.width);
        let mut wide = CAUSES.iter().map(|&width| self.side_by_side(&moments, width).lines(usize::MAX / 2));
        let (lines, shown) = match wide.find(fits) {
            Some(lines) => (lines, moments.len()),
            None => self.one_below_the_other(&moments, most, view.width),
        };
        write_lines(&lines, view, out)?;
        if moments
            .iter()
            .flat_map(|moment| moment.rows.iter().flatten())
            .any(|row| row.gradient_factor != 1.0)
        {
            let legend = "(g×0.5): the applied gradient is 0.5 of the true one";
            writeln!(out, "{}", view.paint.dim(legend))?;
        }
        let more = total - shown as u64;
        if more > 0 {
            let all = format!("… {} more; --top 0 shows all {}", count(more), count(total));
            writeln!(out, "{}", view.paint.dim(&all))?;
        }
        Ok(())
    }

    fn side_by_side(&self, moments: &[Moment], causes_width: usize) -> Table {
        let scalers = self.scalers.iter().map(|run| (run.scaler, Align::Left));
        let heads = [("step", Align::Right)].into_iter().chain(scalers);
        // With one scaler there is room for more about the step.
        let one = self.scalers.len() == 1;
        let lost = one && self.record.has_histograms;
        let figures = [("headroom bits", one), ("underfl. %", lost), ("clean steps", one)];
        let figures = figures.iter().filter(|(_, shown)| *shown).map(|(head, _)| (*head, Align::Right));
        let mut table = Table::new(heads.chain(figures).chain([("tensor at fault", Align::Left)]));
        for moment in moments {
            let number = count(self.schedule.turn(moment.position).number);
            let cells = moment.rows.iter().map(|row| row.as_ref().map_or("stopped".to_owned(), cell));
            let mut cells: Vec<String> = std::iter::once(number).chain(cells).collect();
            if let [Some(row)] = moment.rows.as_slice() {
                let figure = |num: Option<Num>| num.map_or("–".to_owned(), |num| short(num.0, 3));
                cells.push(figure(row.headroom_log2));
                cells.extend(lost.then(|| figure(row.underflow_pct)));
                cells.push(match (row.growth_count, row.growth_after) {
                    (Some(done), Some(of)) => format!("{}/{}", full(done.0), full(of.0)),
                    _ => "–".to_owned(),
                });
            }
            let causes = moment.rows.iter().flatten().map(cause).find(|cause| !cause.is_empty());
            cells.push(shorten(&causes.unwrap_or_default(), causes_width));
            table.row(cells);
        }
        table
    }

    /// For more scalers than fit beside each other: a line for each that something happens to, up to `most` if
    /// that shows one step at all; and how many steps are shown.
    fn one_below_the_other(&self, moments: &[Moment], most: usize, width: usize) -> (Vec<String>, usize) {
        let heads = ["scaler", "step", "next scale and event", "tensor at fault"];
        let mut table = Table::new(heads.iter().map(|head| (*head, Align::Left)));
        let quiet =
            |row: &EventRow| row.event.is_empty() && !row.corrupt && row.scale_used == row.scale_after;
        let (mut shown, mut rows) = (0, 0);
        for moment in moments {
            let known =
                self.scalers.iter().zip(&moment.rows).filter_map(|(run, row)| Some((run, row.as_ref()?)));
            let told: Vec<_> = known.filter(|(_, row)| self.all_steps || !quiet(row)).collect();
            rows += told.len();
            if shown > 0 && rows > most {
                break;
            }
            shown += 1;
            for (run, row) in told {
                table.row([run.scaler.to_owned(), count(row.step), cell(row), shorten(&cause(row), 32)]);
            }
        }
        (table.lines(width), shown)
    }

    fn sweep_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let Some(found) = &self.suggestion else { return Ok(()) };
        writeln!(out)?;
        writeln!(out, "{}", view.paint.dim("constant scales"))?;
        let lost = self.record.has_histograms;
        let heads = ["scale", "overflowing steps", "underflow %"].into_iter().take(if lost { 3 } else { 2 });
        let mut table = Table::new(heads.map(|head| (head, Align::Right)).chain([("", Align::Left)]));
        for row in found.shown() {
            let safe = found.largest_log2.is_some_and(|largest| row.log2 <= largest)
                && found.smallest_log2.is_some_and(|smallest| row.log2 >= smallest);
            let note = match (safe, found.best_log2 == Some(row.log2)) {
                (_, true) => "← suggested",
                (true, false) => "safe",
                (false, false) => "",
            };
            let share = row.underflow_pct.filter(|_| lost).map(|share| short(share.0, 3));
            let figures = [format!("2^{}", row.log2), count(row.overflow_steps)];
            table.row(figures.into_iter().chain(share).chain([note.to_owned()]));
        }
        write_lines(&table.lines(view.width), view, out)
    }
}

/// How a run ends, for a table.
fn ends(run: &ScalerRun) -> String {
    match (&run.abort, run.corrupt, run.applied_nonfinite) {
        (Some(abort), ..) => format!("stops at step {}", count(abort.step)),
        (None, 1.., _) => "corrupt updates".into(),
        (None, 0, 1..) => "NaN applied".into(),
        (None, 0, 0) if run.wrong_gradient > 0 => {
            format!("{} wrong", plural(run.wrong_gradient, "update"))
        }
        (None, 0, 0) => String::new(),
    }
}
