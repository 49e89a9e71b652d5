//! The report for people.

use std::io::{self, Write};

use super::model::{BenchReport, ConversionEntry, Status, ThroughputEntry};
use crate::report::number::{brief, bytes, count, plural, short};
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
            for line in
                self.reasons().iter().chain(&self.random_bits()).flat_map(|text| wrap("• ", text, view.width))
            {
                writeln!(out, "{line}")?;
            }
            if self.status == Status::Planned
                && self.conversions.iter().any(|entry| !entry.one_instruction_each)
            {
                let note = "* in PTX alone: the assembler writes integer instructions for it, on every chip";
                wrap("", note, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
            if !self.targets.is_empty() {
                writeln!(out)?;
            }
            for target in &self.targets {
                let list = |formats: &[&str]| match formats {
                    [] => "none of these".to_owned(),
                    _ => formats.join(", "),
                };
                let mut text = format!(
                    "{} ({}): converts to {}",
                    target.target,
                    target.chips,
                    list(&target.in_hardware)
                );
                if !target.not_in_hardware.is_empty() {
                    text += &format!("; not in hardware: {}", list(&target.not_in_hardware));
                }
                wrap("• ", &text, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
            self.conversions.iter().try_for_each(|conversion| conversion.examples(view, out))?;
        }
        for text in self.wrong_kernels.iter().flat_map(|text| wrap("", text, view.width)) {
            writeln!(out, "\n{}", view.paint.bold(&text))?;
        }
        if let Some(why) = &self.not_timed {
            writeln!(out)?;
            let text = format!("The card was not timed: {why}");
            wrap("", &text, view.width)
                .iter()
                .try_for_each(|line| writeln!(out, "{}", view.paint.bold(line)))?;
        }
        if !self.throughput.is_empty() {
            writeln!(out)?;
            self.rates(view, out)?;
            for line in self.notices.iter().flat_map(|text| wrap("• ", text, view.width)) {
                writeln!(out, "{line}")?;
            }
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
                 was run. All 2^32 float32 are tried, both lanes of pairs beside six partners, stochastic rounding (rs) \
                 with ten sets of random bits; of narrower formats all codes."
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
                "CPU: {}, SIMD level {}, {}.",
                cpu.architecture,
                cpu.simd_level,
                plural(cpu.threads as u64, "thread")
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
                "EQUAL: {} of this card {} this tool's results in all {} cases.",
                plural(tried as u64, "conversion"),
                if tried == 1 { "gives" } else { "give" },
                count(inputs)
            )),
            Status::Differs if wrong == 0 => Some(format!(
                "FAILED: {} could not be tried, and {} for buffers gave wrong results.",
                plural(failed as u64, "conversion"),
                plural(self.wrong_kernels.len() as u64, "kernel")
            )),
            Status::NothingTried => {
                Some("NOTHING COMPARED: this card with this driver has none of these conversions.".to_owned())
            }
            Status::Differs => Some(format!(
                "DIFFERS: this card's results differ from this tool's in {} of {} cases.",
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
            let mark = if entry.one_instruction_each { "" } else { " *" };
            table.row([format!("{}{mark}", entry.instructions[0])].into_iter().chain(versions));
        }
        table
    }

    /// Conversions with their verdicts.
    fn results(&self) -> Table {
        let heads = [
            ("conversion", Align::Left),
            ("cases", Align::Right),
            ("differ", Align::Right),
            ("", Align::Left),
        ];
        let mut table = Table::new(heads);
        for entry in &self.conversions {
            let result = entry.result.unwrap_or_default();
            let note = match entry.nan_inputs_compared {
                false if entry.inputs > 0 => format!("{result}, NaN left out"),
                _ => result.to_owned(),
            };
            let tried = |n: u64| if entry.inputs > 0 { count(n) } else { String::new() };
            table.row([entry.short(), tried(entry.inputs), tried(entry.mismatches), note]);
        }
        table
    }

    /// Why conversions were not tried, or failed: once for all of a reason.
    fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for (entry, why) in self.conversions.iter().filter_map(|entry| Some((entry, entry.why.as_deref()?))) {
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(entry.short()),
                None => reasons.push((why, vec![entry.short()])),
            }
        }
        reasons.into_iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect()
    }

    /// Which random bits were seen to act, once for all conversions that share it.
    fn random_bits(&self) -> Vec<String> {
        let mut seen: Vec<(&[Vec<u32>], Vec<String>)> = Vec::new();
        for entry in self.conversions.iter().filter(|entry| !entry.random_bits_seen.is_empty()) {
            match seen.iter_mut().find(|(known, _)| *known == entry.random_bits_seen) {
                Some((_, names)) => names.push(entry.short()),
                None => seen.push((&entry.random_bits_seen, vec![entry.short()])),
            }
        }
        let line = |(lanes, names): (&[Vec<u32>], Vec<String>)| {
            let lanes: Vec<String> = lanes.iter().map(|bits| ranges(bits)).collect();
            format!(
                "{}: bits of rbits that were seen to be added, the most significant first, from the lowest lane up: {}",
                names.join(", "),
                lanes.join("; ")
            )
        };
        seen.into_iter().map(line).collect()
    }

    /// A line for each device and format, bytes a second beside the share of the copy.
    fn rates(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        for device in ["gpu", "cpu"] {
            let of_device = || self.throughput.iter().filter(move |entry| entry.device == device);
            let Some(copy) = of_device().find(|entry| entry.format.is_none()) else { continue };
            let peak = copy.pct_of_peak.map(|share| format!(", {} % of the peak", short(share.0, 3)));
            let text = format!(
                "{}: GB/s read and written, and % of a copy's {} GB/s{}; {}, median of {}",
                device.to_uppercase(),
                short(copy.gb_per_s.0, 3),
                peak.unwrap_or_default(),
                plural(copy.values, "value"),
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
            if formats.is_empty() {
                continue;
            }
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

/// Numbers that follow each other, up or down, as `7 to 0`.
fn ranges(numbers: &[u32]) -> String {
    if numbers.is_empty() {
        return "unclear".to_owned();
    }
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((first, last))
                if last.abs_diff(number) == 1 && (first == last || (*first < *last) == (*last < number)) =>
            {
                *last = number;
            }
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): (u32, u32)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(", ")
}

fn rate_cells(entry: Option<&ThroughputEntry>) -> [String; 2] {
    let share = entry.and_then(|entry| entry.pct_of_copy).map(|share| share.0);
    [entry.map(|entry| entry.gb_per_s.0), share]
        .map(|figure| figure.map_or("–".to_owned(), |figure| short(figure, 3)))
}

impl ConversionEntry {
    /// The name where there is little room: the instruction, if it is one.
    fn short(&self) -> String {
        match self.instructions.as_slice() {
            [instruction] => (*instruction).to_owned(),
            [] => self.conversion.clone(),
            _ => format!("roundtrip {}", self.conversion.split(['→', ' ']).nth(1).unwrap_or_default()),
        }
    }

    /// The first results that differ.
    fn examples(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        if self.first.is_empty() {
            return Ok(());
        }
        let shown = format!("{}: {} differ, the first of them", self.conversion, count(self.mismatches));
        writeln!(out, "\n{}", view.paint.bold(&shown))?;
        let random = self.first.iter().any(|first| first.random.is_some());
        let heads = [
            ("input", Align::Left),
            ("value", Align::Right),
            ("lane", Align::Left),
            ("beside", Align::Left),
            ("rbits", Align::Left),
            ("GPU", Align::Right),
            ("expected", Align::Right),
            ("class", Align::Left),
        ];
        let mut table = Table::new(heads.into_iter().filter(|(head, _)| random || *head != "rbits"));
        for first in &self.first {
            let cells = [first.input.clone(), brief(first.input_value.0, 14)].into_iter();
            let cells = cells
                .chain([first.lane.unwrap_or_default().to_owned(), first.beside.clone().unwrap_or_default()]);
            let cells = cells.chain(random.then(|| first.random.clone().unwrap_or_default()));
            table.row(cells.chain([first.gpu.clone(), first.expected.clone(), first.class.to_owned()]));
        }
        write_lines(&table.lines(view.width), view, out)
    }
}
