//! The comparisons for people: a line for each format and maker, then what differs.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::{CheckEntry, DifferenceEntry, VerifyReport};
use crate::report::number::{count, full};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};
use crate::verify::Maker;

/// The maker whose differences are failures.
const OURS: &str = Maker::Ours.name();

/// All checks of a format and a maker in one line.
pub(super) struct Row<'a> {
    pub(super) format: &'a str,
    pub(super) implementation: String,
    /// Casts compared, and conversions back.
    pub(super) casts: usize,
    pub(super) inputs: u64,
    pub(super) differing: u64,
    /// Of the differing, those that are known.
    pub(super) known: u64,
}

/// Sums over the levels and casts.
pub(super) fn rows(checks: &[CheckEntry]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut formats: Vec<&str> = checks.iter().map(|check| check.format).collect();
    formats.dedup();
    for format in formats {
        for check in checks.iter().filter(|check| check.format == format) {
            let implementation = match check.maker {
                // Levels and modes share a line.
                OURS => "amp-inspect, SIMD".to_owned(),
                "CPU" => format!("CPU, {}", check.implementation.split(' ').next().unwrap_or_default()),
                maker => format!("{maker}, from {}", check.source),
            };
            let differing = &check.differences;
            let known: u64 = differing.iter().filter(|class| class.known.is_some()).map(|c| c.count).sum();
            let line =
                rows.iter_mut().find(|row| row.format == format && row.implementation == implementation);
            match line {
                Some(row) => {
                    row.casts += 1;
                    row.inputs += check.inputs;
                    row.differing += check.differing;
                    row.known += known;
                }
                None => rows.push(Row {
                    format,
                    implementation,
                    casts: 1,
                    inputs: check.inputs,
                    differing: check.differing,
                    known,
                }),
            }
        }
    }
    rows
}

impl VerifyReport {
    /// The result in one sentence.
    pub(super) fn verdict(&self) -> String {
        let ours = self.checks.iter().filter(|check| check.maker == OURS);
        let differing: u64 = ours.clone().map(|check| check.differing).sum();
        let inputs: u64 = ours.map(|check| check.inputs).sum();
        if self.passed {
            format!(
                "PASSED: this tool's SIMD code equals the definition in all {} comparisons.",
                count(inputs)
            )
        } else {
            format!(
                "FAILED: this tool's SIMD code differs from the definition in {} of {} comparisons.",
                count(differing),
                count(inputs)
            )
        }
    }

    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let telling = "every number and tie with its neighbours, limits, NaNs, subnormals";
        let inputs = if self.full {
            format!("all 2^32 float32 for each default cast and each instruction; for the rest {telling}")
        } else {
            telling.to_owned()
        };
        let machine = &self.machine;
        let mut head = vec![format!("SIMD levels {}", machine.simd_levels.join(", "))];
        if !machine.instructions.is_empty() {
            head.push(format!("instructions {}", machine.instructions.join(", ")));
        }
        let about = format!("The definition against every other implementation here. Inputs: {inputs}.");
        let processor = format!("{}: {}.", machine.architecture, head.join("; "));
        for line in [about, processor].iter().flat_map(|text| wrap("", text, view.width)) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        let heads = [
            ("format", Align::Left),
            ("implementation", Align::Left),
            ("checks", Align::Right),
            ("inputs", Align::Right),
            ("differ", Align::Right),
            ("known", Align::Right),
        ];
        let mut table = Table::new(heads);
        for row in rows(&self.checks) {
            let known = match row.differing {
                0 => String::new(),
                all if all == row.known => "all".to_owned(),
                _ => count(row.known),
            };
            table.row([
                row.format.to_owned(),
                row.implementation,
                row.casts.to_string(),
                count(row.inputs),
                count(row.differing),
                known,
            ]);
        }
        write_lines(&table.lines(view.width), view, out)?;
        let counts = self.checks.iter().flat_map(|check| &check.differences).map(|class| class.count);
        let digits = counts.map(|n| count(n).width()).max().unwrap_or(0);
        for (reason, differences) in by_reason(&self.checks) {
            writeln!(out)?;
            for line in wrap("", &reason, view.width) {
                writeln!(out, "{}", view.paint.bold(&line))?;
            }
            let mut title = String::new();
            for difference in &differences {
                let next = difference.title();
                if next != title {
                    title = next;
                    wrap("  ", &format!("  {title}"), view.width)
                        .iter()
                        .try_for_each(|line| writeln!(out, "{line}"))?;
                }
                difference.lines(digits, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
        writeln!(out)?;
        wrap("", &self.verdict(), view.width)
            .iter()
            .try_for_each(|line| writeln!(out, "{}", view.paint.bold(line)))
    }
}

/// A difference of implementations that share it, down to the first input.
struct Shared<'a> {
    check: &'a CheckEntry,
    difference: &'a DifferenceEntry,
    /// Names of further implementations.
    others: Vec<&'a str>,
}

/// Differences under their reasons: first faults of this tool, then what is new, then what is known.
fn by_reason(checks: &[CheckEntry]) -> Vec<(String, Vec<Shared<'_>>)> {
    let mut reasons: Vec<(String, Vec<Shared>)> = Vec::new();
    let pairs = checks.iter().flat_map(|check| check.differences.iter().map(move |class| (check, class)));
    for (check, difference) in pairs {
        let reason = match difference.known {
            Some(known) => format!("known: {} ({})", known.why, known.reference),
            None if check.maker == OURS => "A FAULT OF THIS TOOL".to_owned(),
            None => "not known before".to_owned(),
        };
        let group = match reasons.iter().position(|(known, _)| *known == reason) {
            Some(at) => &mut reasons[at].1,
            None => {
                reasons.push((reason, Vec::new()));
                let last = reasons.len() - 1;
                &mut reasons[last].1
            }
        };
        let same = |shared: &&mut Shared| {
            let (a, b) = (shared.check, check);
            (a.maker, a.format, a.source) == (b.maker, b.format, b.source)
                && same_figures(shared.difference, difference)
                && (a.maker != OURS || (a.rounding, a.overflow, a.nan) == (b.rounding, b.overflow, b.nan))
        };
        match group.iter_mut().find(same) {
            Some(shared) => shared.others.push(&check.implementation),
            None => group.push(Shared { check, difference, others: Vec::new() }),
        }
    }
    reasons.sort_by_key(|(_, shared)| {
        let first = shared.first();
        let ours = first.is_some_and(|shared| shared.check.maker == OURS);
        (!ours, first.is_some_and(|shared| shared.difference.known.is_some()))
    });
    reasons
}

impl Shared<'_> {
    /// Who: the names, and from what to what.
    fn title(&self) -> String {
        let check = self.check;
        let names: Vec<&str> =
            std::iter::once(&*check.implementation).chain(self.others.iter().copied()).collect();
        let mut title = match check.source {
            "codes" => format!("{}: values of {} codes", names.join(", "), check.format),
            source => format!("{}: {source} to {}", names.join(", "), check.format),
        };
        if check.maker == OURS && check.source != "codes" {
            title += &format!(", {}, overflow {}, NaN {}", check.rounding, check.overflow, check.nan);
        }
        title
    }

    /// What: how many, the kind of input, and the first one, with its value where there is room.
    fn lines(&self, digits: usize, width: usize) -> Vec<String> {
        let DifferenceEntry { input, result, count: n, first, .. } = self.difference;
        let line = format!("    {:>digits$}  {input} → {result}", count(*n));
        let Some(first) = first.first() else {
            return vec![line];
        };
        let codes = format!("{}, not {}", first.found, first.definition);
        let with_value = format!("{} = {}: {codes}", first.input, full(first.input_value.0));
        let bare = format!("{}: {codes}", first.input);
        let fits = |text: &String| line.width() + 2 + text.width() <= width;
        match [&with_value, &bare].into_iter().find(|text| fits(text)) {
            Some(text) => vec![format!("{line}  {text}")],
            None => vec![line, format!("{}{bare}", " ".repeat(digits + 6))],
        }
    }
}

fn same_figures(a: &DifferenceEntry, b: &DifferenceEntry) -> bool {
    let codes = |entry: &DifferenceEntry| -> Vec<[String; 3]> {
        let first = entry.first.iter();
        first.map(|first| [&first.input, &first.definition, &first.found].map(String::clone)).collect()
    };
    (a.input, a.result, a.count) == (b.input, b.result, b.count) && codes(a) == codes(b)
}
