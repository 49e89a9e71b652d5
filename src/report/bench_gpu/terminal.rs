//! The report for people.

use std::io::{self, Write};

use super::model::{BenchReport, ConversionEntry, Status, ThroughputEntry};
use crate::report::number::{bytes, count, full, short};
use crate::report::style::View;
use crate::report::table::{Align, Table, wrap, write_lines};

impl BenchReport {
    /// Writes the report for people.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn terminal(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for line in self.head().iter().flat_map(|text| wrap("", text, view.width)) {
            writeln!(out, "{line}")?;
        }
        if !self.conversions.is_empty() {
            writeln!(out)?;
            match self.status {
                Status::Planned => write_lines(&self.plan().lines(view.width), view, out)?,
                _ => write_lines(&self.results().lines(view.width), view, out)?,
            }
            for target in &self.targets {
                let has = target.in_hardware.join(", ");
                let mut text = format!("{} ({}): converts to {has}", target.target, target.chips);
                if !target.not_in_hardware.is_empty() {
                    text += &format!("; not in hardware: {}", target.not_in_hardware.join(", "));
                }
                writeln!(out)?;
                wrap("• ", &format!("• {text}")[..], view.width)
                    .iter()
                    .try_for_each(|line| writeln!(out, "{}", line.replacen("• • ", "• ", 1)))?;
            }
            self.conversions.iter().try_for_each(|conversion| conversion.examples(view, out))?;
        }
        for text in self.wrong_kernels.iter().flat_map(|text| wrap("", text, view.width)) {
            writeln!(out, "\n{}", view.paint.bold(&text))?;
        }
        if !self.throughput.is_empty() {
            writeln!(out)?;
            self.rates(view, out)?;
        }
        if let Some(verdict) = self.verdict() {
            writeln!(out)?;
            wrap("", &verdict, view.width)
                .iter()
                .try_for_each(|line| writeln!(out, "{}", view.paint.bold(line)))?;
        }
        Ok(())
    }

    /// What was run on what.
    pub(super) fn head(&self) -> Vec<String> {
        let mut head = Vec::new();
        if self.status == Status::Planned {
            head.push(
                "What each kind of card converts in hardware, with the PTX version that a kernel for it takes. Nothing \
                 was run. All 2^32 float32 are tried, both lanes of pairs beside six partners; of narrower formats all \
                 codes."
                    .to_owned(),
            );
        }
        if let Some(skipped) = &self.skipped {
            head.push(format!("Skipped: {}; {}.", skipped.reason, skipped.remedy));
        }
        if let Some(card) = &self.environment {
            head.push(format!(
                "GPU {}: {}, compute capability {}, {} multiprocessors, {} L2; driver for CUDA {}; {} for {}.",
                card.device,
                card.name,
                card.compute_capability,
                card.multiprocessors,
                bytes(card.l2_bytes),
                card.driver_cuda,
                card.compiled,
                card.ptx_target
            ));
        }
        if let Some(cpu) = &self.cpu {
            head.push(format!(
                "CPU: {}, SIMD level {}, {} threads.",
                cpu.architecture, cpu.simd_level, cpu.threads
            ));
        }
        head
    }

    /// The result in one sentence.
    pub(super) fn verdict(&self) -> Option<String> {
        let run = |entry: &&ConversionEntry| entry.inputs > 0;
        let inputs: u64 = self.conversions.iter().filter(run).map(|entry| entry.inputs).sum();
        let wrong: u64 = self.conversions.iter().map(|entry| entry.mismatches).sum();
        let tried = self.conversions.iter().filter(run).count();
        let failed = self.conversions.iter().filter(|entry| entry.result == Some("failed")).count();
        match self.status {
            Status::Equal => Some(format!(
                "EQUAL: {tried} conversions of this card give this tool's results on all {} inputs.",
                count(inputs)
            )),
            Status::Differs if wrong == 0 => Some(format!(
                "FAILED: {failed} conversions could not be tried, and {} kernels for buffers are wrong.",
                self.wrong_kernels.len()
            )),
            Status::Differs => Some(format!(
                "DIFFERS: this card's results differ from this tool's on {} of {} inputs.",
                count(wrong),
                count(inputs)
            )),
            _ => None,
        }
    }

    /// Conversions by targets.
    fn plan(&self) -> Table {
        let targets = self.targets.iter().map(|target| (target.target.replace("sm_", ""), Align::Right));
        let mut table =
            Table::new([("instruction, for sm_".to_owned(), Align::Left)].into_iter().chain(targets));
        // A round trip is on every chip that has its parts, so that it takes no line.
        for entry in self.conversions.iter().filter(|entry| entry.instructions.len() == 1) {
            let versions = entry.ptx.iter().map(|version| version.clone().unwrap_or("–".to_owned()));
            table.row([entry.instructions[0].to_owned()].into_iter().chain(versions));
        }
        table
    }

    /// Conversions with their verdicts.
    fn results(&self) -> Table {
        let heads = [
            ("conversion", Align::Left),
            ("inputs", Align::Right),
            ("differ", Align::Right),
            ("", Align::Left),
        ];
        let mut table = Table::new(heads);
        for entry in &self.conversions {
            let result = entry.result.unwrap_or_default();
            let note = match (&entry.why, entry.nan_inputs_compared) {
                (Some(why), _) => format!("{result}: {why}"),
                (None, false) if entry.inputs > 0 => format!("{result}, NaN left out"),
                (None, _) => result.to_owned(),
            };
            let tried = |n: u64| if entry.inputs > 0 { count(n) } else { String::new() };
            table.row([entry.conversion.clone(), tried(entry.inputs), tried(entry.mismatches), note]);
        }
        table
    }

    /// A line for each device and format, bytes a second beside the share of the copy.
    fn rates(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for device in ["gpu", "cpu"] {
            let of_device = || self.throughput.iter().filter(move |entry| entry.device == device);
            let Some(copy) = of_device().find(|entry| entry.format.is_none()) else { continue };
            let peak = copy.pct_of_peak.map(|share| format!(", {} % of the peak", short(share.0, 3)));
            let text = format!(
                "{}: GB/s read and written, and % of a copy's {} GB/s{}; {} values, median of {}",
                device.to_uppercase(),
                short(copy.gb_per_s.0, 3),
                peak.unwrap_or_default(),
                count(copy.values),
                copy.repeats
            );
            wrap("", &text, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            let mut table = Table::new([
                ("format", Align::Left),
                ("encode", Align::Right),
                ("%", Align::Right),
                ("decode", Align::Right),
                ("%", Align::Right),
                ("roundtrip", Align::Right),
                ("%", Align::Right),
            ]);
            let mut formats: Vec<&str> = of_device().filter_map(|entry| entry.format).collect();
            formats.dedup();
            for format in formats {
                let mut cells = vec![format.to_owned()];
                for work in ["encode", "decode", "roundtrip"] {
                    let entry = of_device().find(|entry| entry.format == Some(format) && entry.work == work);
                    cells.extend(rate_cells(entry));
                }
                table.row(cells);
            }
            write_lines(&table.lines(view.width), view, out)?;
        }
        Ok(())
    }
}

fn rate_cells(entry: Option<&ThroughputEntry>) -> [String; 2] {
    let share = entry.and_then(|entry| entry.pct_of_copy).map(|share| share.0);
    [entry.map(|entry| entry.gb_per_s.0), share]
        .map(|figure| figure.map_or("–".to_owned(), |figure| short(figure, 3)))
}

impl ConversionEntry {
    /// The first results that differ.
    fn examples(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if self.first.is_empty() {
            return Ok(());
        }
        let shown = format!("{}: {} differ, the first of them", self.conversion, count(self.mismatches));
        writeln!(out, "\n{}", view.paint.bold(&shown))?;
        let mut table = Table::new([
            ("input", Align::Left),
            ("value", Align::Right),
            ("GPU", Align::Right),
            ("expected", Align::Right),
            ("class", Align::Left),
        ]);
        for first in &self.first {
            table.row([
                first.input.clone(),
                full(first.input_value.0),
                first.gpu.clone(),
                first.expected.clone(),
                first.class.to_owned(),
            ]);
        }
        write_lines(&table.lines(view.width), view, out)
    }
}
