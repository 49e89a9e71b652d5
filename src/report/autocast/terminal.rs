//! The audit on a terminal: what was recorded, conversions, ops, sentences.

use std::io::{self, Write};

use super::model::{AutocastReport, OpEntry};
use super::sentences::time;
use crate::error::escape;
use crate::report::number::{bytes, count, percent, plural, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, wrap_words, write_lines};
use crate::training::autocast::Verdict;
use crate::training::autocast::policy::Policy;
use crate::training::autocast::table::MATMULS;

/// Whether the lower precision is meant for it.
pub(super) fn is_matmul(op: &OpEntry) -> bool {
    let name = op.op.strip_prefix("aten::");
    op.row.key.policy == Some(Policy::Lower) || name.is_some_and(|name| MATMULS.contains(&name))
}

/// A verdict for people.
pub(super) fn verdict(op: &OpEntry) -> &'static str {
    match op.row.key.verdict {
        Verdict::AsListed if op.list.is_none() && is_matmul(op) => "low precision",
        Verdict::AsListed if op.list.is_none() => "in a listed op",
        Verdict::AsListed => "as listed",
        Verdict::Missed(_) => "MISSED",
        Verdict::RanLow => "RAN LOW",
        Verdict::Unlisted => "as its inputs",
        Verdict::Backward => "as its forward",
        Verdict::Dispatch => "autocast's casts",
        Verdict::Outer => "see the ops in it",
        Verdict::Cast => "cast",
        Verdict::Moves => "moves data",
        Verdict::NotEligible => "not eligible",
        Verdict::Custom => "unknown op",
        Verdict::Bookkeeping => "bookkeeping",
    }
}

/// Whether a row is of the main table; the others are summed up below it.
pub(super) fn computes(op: &OpEntry) -> bool {
    !matches!(
        op.row.key.verdict,
        Verdict::Dispatch | Verdict::Outer | Verdict::Cast | Verdict::Moves | Verdict::Bookkeeping
    )
}

impl AutocastReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        self.casts_table(view, out)?;
        self.ops_table(view, out)?;
        writeln!(out)?;
        for sentence in &self.sentences {
            for line in wrap("• ", sentence, view.width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let subject = escape(&self.trace);
        let head = format!("{subject}:");
        let threads = plural(self.threads.into(), "thread");
        let mut facts = format!("{} on {threads}, {}", plural(self.calls, "call"), time(self.total_ns));
        if self.device_ns > 0 {
            facts.push_str(&format!(" on the CPU, {} on the device", time(self.device_ns)));
        }
        let lines = wrap_words("", std::iter::once(head.as_str()).chain(facts.split(' ')), view.width);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(&subject).filter(|_| index == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        let lists = format!("lists of {} for {}", self.lists, self.device);
        let what = match self.autocast_dtype {
            Some(dtype) => {
                format!("autocast to {dtype} handled {}; {lists}", plural(self.autocast_calls, "call"))
            }
            None if self.autocast_calls > 0 => {
                format!("autocast handled {}; {lists}", plural(self.autocast_calls, "call"))
            }
            None => format!("no call went through autocast; {lists}"),
        };
        for line in wrap("", &what, view.width) {
            writeln!(out, "{}", view.paint.dim(&line))?;
        }
        Ok(())
    }

    fn casts_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if self.casts.is_empty() {
            return Ok(());
        }
        let heads = [
            ("casts", Align::Right),
            ("bytes", Align::Right),
            (self.unit(), Align::Right),
            ("%", Align::Right),
        ];
        let head = [("from", Align::Left), ("to", Align::Left)].into_iter().chain(heads);
        let mut table = Table::new(head.chain([("asked for by", Align::Left)]));
        for cast in &self.casts {
            let ns = if self.device_ns > 0 { cast.device_ns } else { cast.ns };
            table.row([
                cast.from.to_owned(),
                cast.to.to_owned(),
                count(cast.count),
                bytes(cast.bytes),
                ms(ns),
                percent(ns, self.whole()),
                cast.meaning.to_owned(),
            ]);
        }
        writeln!(out)?;
        write_lines(&table.lines(view.width), view, out)
    }

    /// Head of the column of times.
    fn unit(&self) -> &'static str {
        if self.device_ns > 0 { "device ms" } else { "ms" }
    }

    fn ops_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let own = |op: &OpEntry| if self.device_ns > 0 { op.device_self_ns } else { op.self_ns };
        let computing: Vec<&OpEntry> = self.ops.iter().filter(|op| computes(op)).collect();
        let most = if view.top == 0 { usize::MAX } else { view.top };
        let heads = [("op (aten::)", Align::Left), ("list", Align::Left), ("inputs", Align::Left)];
        let figures = [("calls", Align::Right), (self.unit(), Align::Right), ("%", Align::Right)];
        let mut table = Table::new(heads.into_iter().chain(figures).chain([("verdict", Align::Left)]));
        for op in computing.iter().take(most) {
            table.row([
                escape(op.op.strip_prefix("aten::").unwrap_or(&op.op)),
                op.list_text().to_owned(),
                op.types_text(),
                count(op.calls),
                ms(own(op)),
                percent(own(op), self.whole()),
                verdict(op).to_owned(),
            ]);
        }
        writeln!(out)?;
        write_lines(&table.lines(view.width), view, out)?;
        let more = computing.len().saturating_sub(most);
        if more > 0 {
            let all = format!("… {more} more; --top 0 shows all {}", computing.len());
            writeln!(out, "{}", view.paint.dim(&all))?;
        }
        let sum = |wanted: &[Verdict]| -> u64 {
            self.ops
                .iter()
                .filter(|op| wanted.contains(&op.row.key.verdict))
                .map(own)
                .fold(0, u64::saturating_add)
        };
        let parts = [
            ("casts", sum(&[Verdict::Cast])),
            ("moving data", sum(&[Verdict::Moves])),
            ("calling ops in ops", sum(&[Verdict::Dispatch, Verdict::Outer])),
            ("autograd and other bookkeeping", sum(&[Verdict::Bookkeeping])),
        ];
        let parts = parts.iter().filter(|(_, ns)| *ns > 0);
        let parts: Vec<String> = parts
            .map(|(what, ns)| format!("{what} {} ms ({} %)", ms(*ns), percent(*ns, self.whole())))
            .collect();
        if !parts.is_empty() {
            for line in wrap("", &format!("besides: {}", parts.join(", ")), view.width) {
                writeln!(out, "{}", view.paint.dim(&line))?;
            }
        }
        Ok(())
    }
}

fn ms(ns: u64) -> String {
    short(ns as f64 / 1e6, 3)
}
