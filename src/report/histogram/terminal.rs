//! The report on a terminal: what was read, the histogram with every format's zones, tables, sentences.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::axis::{Columns, Limits, Zone, span};
use super::metric::Metric;
use super::{Cell, HistogramReport, Subject};
use crate::error::escape;
use crate::report::number::{count, percent, short};
use crate::report::style::{Paint, View};
use crate::report::table::{Align, Table, shorten, wrap, write_lines};

/// Rows of the histogram.
const HEIGHT: usize = 8;
/// Widest column of the histogram, in characters.
const WIDEST: usize = 4;
/// Width of the longest share, `0.00123 %`.
const SHARE: usize = 9;

/// How much heads may be shortened.
const LEVELS: usize = 3;
/// Columns about formats: the heads, each shorter than the one before, and the figure.
const FIGURES: [([&str; LEVELS], Metric); 6] = [
    (["underflow %", "underfl. %", "under %"], Metric::Underflow),
    (["subnormal %", "subn. %", "subn. %"], Metric::Subnormal),
    (["overflow %", "overfl. %", "over %"], Metric::Overflow),
    (["SQNR dB", "SQNR dB", "SQNR dB"], Metric::Sqnr),
    (["max rel", "max rel", "max rel"], Metric::MaxRel),
    (["headroom bits", "headr. bits", "headr."], Metric::Headroom),
];

impl HistogramReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        self.heading(view, out)?;
        self.histogram(view, out)?;
        self.formats_table(view, out)?;
        self.blocks_tables(view, out)?;
        if self.tensors.len() > 1 || self.is_by_place() {
            self.tensors_table(view, out)?;
        }
        if !self.findings.is_empty() {
            writeln!(out)?;
            for sentence in &self.findings {
                for line in wrap("• ", sentence, view.width) {
                    writeln!(out, "{line}")?;
                }
            }
        }
        Ok(())
    }

    fn histogram(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let Some(span) = span(&self.formats, &self.total.binades) else { return Ok(()) };
        let names = self.formats.iter().map(|row| row.name.len()).max().unwrap_or(0);
        // name, flushed share, │ zones │, overflow share
        let left = names + 2 + SHARE;
        let room = view.width.saturating_sub(left + 2 + 1 + SHARE).max(16);
        let columns = Columns::new(span, room);
        let wide = (room / columns.count as usize).clamp(1, WIDEST);
        let totals = columns.totals(&self.total.binades);
        let peak = totals.iter().copied().max().unwrap_or(0).max(1);

        writeln!(out)?;
        let unit =
            if columns.binades == 1 { "binade".into() } else { format!("{} binades", columns.binades) };
        let title = format!("share of the nonzero values in each {unit} of |x|");
        let title =
            if self.is_by_place() { format!("{title}, {by} by {by}", by = self.options.by) } else { title };
        writeln!(out, "{}{title}", " ".repeat(left + 1))?;
        if self.is_by_place() {
            for line in self.heat_map(&columns, wide, left, view) {
                writeln!(out, "{line}")?;
            }
        }
        for row in (0..HEIGHT).rev().filter(|_| !self.is_by_place()) {
            let label = if row + 1 == HEIGHT {
                format!("{} %", percent(peak, self.total.nonzero_finite))
            } else {
                String::new()
            };
            let bars: String = totals.iter().map(|&total| bar(total, peak, row).repeat(wide)).collect();
            writeln!(out, "{label:>left$} │{}", view.paint.bars(bars.trim_end()))?;
        }
        let (ticks, labels) = axis_lines(&columns, wide);
        writeln!(out, "{:>left$} └{ticks}", "flushed")?;
        writeln!(out, "{:>left$}  {labels} overflow", "to zero")?;
        for (row, cell) in self.formats.iter().zip(&self.total.formats) {
            let zones = match Limits::of(row) {
                Some(limits) => {
                    let zones = (0..columns.count).map(|column| columns.zone(&limits, column));
                    zones.map(|zone| view.paint.zone(zone, &symbol(zone).repeat(wide))).collect::<String>()
                }
                None => {
                    let width = columns.count as usize * wide;
                    view.paint.dim(&format!("{:^width$}", shorten(&row.no_limits(width), width)))
                }
            };
            let share = |part| format!("{} %", percent(part, self.total.nonzero_finite));
            let (under, over) = (share(cell.underflow), share(cell.overflow));
            writeln!(out, "{:<names$}  {under:>SHARE$} │{zones}│ {over}", row.name)?;
        }
        if self.formats.iter().all(|row| row.block.is_some()) {
            return Ok(());
        }
        let zones = [Zone::Flushed, Zone::Subnormal, Zone::Normal, Zone::Overflow];
        let legend = |paint: Paint| {
            let entry = |zone| format!("{} {}", paint.zone(zone, &symbol(zone).repeat(2)), zone_name(zone));
            zones.map(entry).join("   ")
        };
        let room = view.width.saturating_sub(legend(Paint { on: false }).chars().count());
        writeln!(out, "{}{}", " ".repeat(room.min(left + 2)), legend(view.paint))
    }

    fn formats_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        // Block formats have no headroom.
        let blocks_only = !self.formats.is_empty() && self.formats.iter().all(|row| row.block.is_some());
        let columns = &FIGURES[..FIGURES.len() - usize::from(blocks_only)];
        let table = |level: usize| {
            let heads = columns.iter().map(|(titles, _)| (titles[level], Align::Right));
            let mut table = Table::new([("format", Align::Left)].into_iter().chain(heads));
            for cell in &self.total.formats {
                let figures = columns.iter().map(|(_, metric)| metric.text(cell));
                table.row(std::iter::once(cell.format.to_owned()).chain(figures));
            }
            table
        };
        // Heads give way before the names of the formats do.
        let fits =
            |level: &usize| table(*level).lines(usize::MAX / 2).iter().all(|line| line.width() <= view.width);
        let level = (0..LEVELS).find(fits).unwrap_or(LEVELS - 1);
        let dim = |text: &str, out: &mut dyn Write| {
            let lines = wrap("", text, view.width);
            lines.iter().try_for_each(|line| writeln!(out, "{}", view.paint.dim(line)))
        };
        let of = match self.tensors.as_slice() {
            [only] => self.full_name(only),
            _ if self.is_by_place() => format!("all {}s together", self.options.by),
            _ => "all tensors together".into(),
        };
        writeln!(out)?;
        dim(&format!("{of}: shares are of the nonzero values"), out)?;
        write_table(&table(level), view, out)?;
        self.cast_options().map_or(Ok(()), |options| dim(&options, out))
    }

    fn tensors_table(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let sort = self.options.sort;
        let tensors = self.sorted();
        let shown = if view.top == 0 { tensors.len() } else { view.top.min(tensors.len()) };
        writeln!(out)?;
        let by = self.options.by;
        let ranks = tensors.iter().any(|tensor| !tensor.ranks.is_empty());
        let ranks = if ranks { ", ranks together" } else { "" };
        writeln!(out, "{}", view.paint.dim(&format!("by {by}{ranks}: {}", sort.metric().meaning())))?;
        let formats: Vec<_> = self.formats.iter().map(|row| (row.name, Align::Right)).collect();
        let roomy = view.width >= 60 + 10 * formats.len();
        let about = [("elements", Align::Right), ("amax", Align::Right)];
        let about = &about[..if roomy { 2 } else { 0 }];
        let side = if self.is_by_place() { Align::Right } else { Align::Left };
        let head = [(by, side)].into_iter().chain(about.iter().copied()).chain(formats);
        let mut table = Table::new(head);
        for tensor in &tensors[..shown] {
            let mut row =
                vec![tensor.number(by).map_or_else(|| self.keyed_name(tensor), |number| number.to_string())];
            if roomy {
                row.push(count(tensor.elements));
                row.push(tensor.amax.map_or("–".into(), |amax| short(amax.0, 3)));
            }
            row.extend(tensor.formats.iter().map(|cell: &Cell| sort.metric().text(cell)));
            table.row(row);
        }
        write_table(&table, view, out)?;
        if shown < tensors.len() {
            let rest = format!("… {} more; --top 0 shows all {}", tensors.len() - shown, tensors.len());
            writeln!(out, "{}", view.paint.dim(&rest))?;
        }
        self.file_keys(&tensors[..shown], view, out)
    }

    /// Which files the keys in the names of `tensors`, and of the worst blocks, stand for.
    fn file_keys(&self, tensors: &[&Subject], view: &View, out: &mut dyn Write) -> io::Result<()> {
        if self.inputs.len() < 2 {
            return Ok(());
        }
        let blocks = self.total.formats.iter().filter_map(|cell| cell.blocks.as_ref());
        let worst = blocks.filter_map(|blocks| blocks.worst.first()?.input);
        let mut shown: Vec<usize> = tensors.iter().filter_map(|tensor| tensor.input).chain(worst).collect();
        shown.sort_unstable();
        shown.dedup();
        for index in shown {
            let Some(input) = self.inputs.get(index) else { continue };
            let key = format!("[{}] ", index + 1);
            let room = view.width.saturating_sub(key.width());
            let path = shorten(&escape(self.short_path(&input.path)), room);
            writeln!(out, "{}", view.paint.dim(&format!("{key}{path}")))?;
        }
        Ok(())
    }

    /// The tensors in the order asked for; steps stay in theirs.
    pub fn sorted(&self) -> Vec<&Subject> {
        let mut tensors: Vec<&Subject> = self.tensors.iter().collect();
        if !self.is_by_place() {
            self.options.sort.order(&mut tensors);
        }
        tensors
    }

    /// A path without the folders that all inputs share.
    fn short_path<'a>(&self, path: &'a str) -> &'a str {
        let shared = |other: &str| path.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let common = self.inputs.iter().map(|input| shared(&input.path)).min().unwrap_or(0);
        let folder =
            path.as_bytes()[..common].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        path.get(folder..).unwrap_or(path)
    }

    /// A tensor's name, with the key of the file it is in if there are several.
    pub(super) fn keyed_name(&self, tensor: &Subject) -> String {
        let name = escape(&tensor.name);
        match (tensor.input, self.step_of_sum(tensor)) {
            (Some(index), _) if self.inputs.len() > 1 => format!("[{}] {name}", index + 1),
            (_, Some(step)) => format!("[step {step}] {name}"),
            _ => name,
        }
    }

    /// A tensor's name, with the file it is in if there are several.
    pub(super) fn full_name(&self, tensor: &Subject) -> String {
        let file = tensor.input.filter(|_| self.inputs.len() > 1).and_then(|index| self.inputs.get(index));
        match file {
            Some(file) => escape(&format!("{} {}", self.short_path(&file.path), tensor.name)),
            None => match self.step_of_sum(tensor) {
                Some(step) => format!("step {step} {}", escape(&tensor.name)),
                None => escape(&tensor.name),
            },
        }
    }

    /// The step of a tensor that several ranks add up to, which is in no one file, if there are several steps.
    fn step_of_sum(&self, tensor: &Subject) -> Option<u64> {
        let several = || self.inputs.iter().any(|input| input.step != tensor.step);
        tensor.step.filter(|_| !tensor.ranks.is_empty() && several())
    }
}

pub(super) fn write_table(table: &Table, view: &View, out: &mut dyn Write) -> io::Result<()> {
    write_lines(&table.lines(view.width), view, out)
}

/// One row, counted from the bottom, of the bar for `total`. Something is never drawn as nothing.
fn bar(total: u64, peak: u64, row: usize) -> &'static str {
    const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let eighths = (total as f64 / peak as f64 * (8 * HEIGHT) as f64).round() as usize;
    let eighths = eighths.max(usize::from(total > 0));
    EIGHTHS[eighths.saturating_sub(8 * row).min(8)]
}

/// The axis with its ticks, and the labels 2^e under them.
fn axis_lines(columns: &Columns, wide: usize) -> (String, String) {
    let width = columns.count as usize * wide;
    let mut ticks = vec!['─'; width];
    let mut labels = vec![' '; width];
    // Ticks every so many binades that labels of up to 6 characters keep apart.
    let step = [1, 2, 4, 8, 16, 32, 64, 128]
        .into_iter()
        .find(|step| step % columns.binades == 0 && (step / columns.binades) as usize * wide >= 8)
        .unwrap_or(8 * columns.binades);
    for column in 0..columns.count {
        let exponent = columns.first + column * columns.binades;
        let at = column as usize * wide;
        let label = format!("2^{exponent}");
        if exponent.rem_euclid(step) == 0 && at + label.len() <= width {
            ticks[at] = '┬';
            for (offset, c) in label.chars().enumerate() {
                labels[at + offset] = c;
            }
        }
    }
    (ticks.into_iter().collect(), labels.into_iter().collect())
}

fn symbol(zone: Zone) -> &'static str {
    match zone {
        Zone::Flushed => "·",
        Zone::Subnormal => "░",
        Zone::Normal => "█",
        Zone::Overflow => "×",
    }
}

fn zone_name(zone: Zone) -> &'static str {
    match zone {
        Zone::Flushed => "flushed to zero",
        Zone::Subnormal => "subnormal",
        Zone::Normal => "normal",
        Zone::Overflow => "overflow",
    }
}

impl Paint {
    fn bars(self, text: &str) -> String {
        self.wrap("36", text)
    }

    fn zone(self, zone: Zone, text: &str) -> String {
        match zone {
            Zone::Flushed => self.wrap("31", text),
            Zone::Subnormal => self.wrap("33", text),
            Zone::Normal => self.wrap("34", text),
            Zone::Overflow => self.wrap("35;1", text),
        }
    }
}
