//! What the figures mean, in sentences, each derived from the counts.

use super::{Cell, FormatRow, HistogramReport};
use crate::cast::{CastPlan, Rounding, Target};
use crate::report::number::{count, percent, short};
use crate::stats::SourceStats;
use crate::stats::scales::{MAX_FLUSHED_SHARE, SafeScales, flushed, largest_without_overflow};

/// Sentences for the whole report, most important first. `source` has the values of all tensors.
pub(super) fn findings(report: &HistogramReport, source: &SourceStats) -> Vec<String> {
    let mut sentences = Vec::new();
    let not_finite = source.nan + source.inf();
    if not_finite > 0 {
        sentences.push(format!(
            "{} of the stored values {} NaN or Inf already and {} counted apart.",
            count(not_finite),
            if not_finite == 1 { "is" } else { "are" },
            if not_finite == 1 { "is" } else { "are" },
        ));
    }
    if source.nonzero_finite() == 0 {
        sentences.push("There is no finite nonzero value to cast.".into());
    }
    let verdicts: Vec<Verdict<'_>> = report
        .formats
        .iter()
        .zip(&report.total.formats)
        .map(|(row, cell)| Verdict::new(row, cell, source))
        .collect();
    sentences.extend(verdicts.iter().filter_map(Verdict::helped_by_a_scale));
    sentences.extend(hopeless(&verdicts));
    sentences.extend(verdicts.iter().filter_map(Verdict::lost_without_advice));
    sentences.extend(verdicts.iter().filter_map(Verdict::lost_in_blocks));
    sentences.extend(verdicts.iter().filter_map(Verdict::lost_signs));
    if source.nonzero_finite() > 0 {
        sentences.extend(kept(&verdicts));
    }
    sentences
}

/// One format's fate.
struct Verdict<'a> {
    row: &'a FormatRow,
    cell: &'a Cell,
    nonzero: u64,
    fate: Fate,
}

enum Fate {
    /// As cast, it flushes next to nothing and overflows nothing.
    Keeps,
    /// Some power-of-two scales would.
    NeedsScale(SafeScales),
    /// None would. The most that fits without overflow still flushes this many.
    NoScale { flushed: u64 },
    /// Some of it could not be read.
    Unknown,
    /// It loses some, and what other scales would do does not follow from the histogram.
    Loses,
    /// Its scales follow the values, and it loses some all the same.
    LosesInBlocks,
    /// It has no sign, and this many values are negative.
    LosesSigns { negative: u64 },
}

impl<'a> Verdict<'a> {
    fn new(row: &'a FormatRow, cell: &'a Cell, source: &SourceStats) -> Self {
        let nonzero = source.nonzero_finite();
        let few = cell.underflow as f64 <= MAX_FLUSHED_SHARE * nonzero as f64;
        let keeps = few && cell.overflow == 0 && cell.left_out_of_errors == 0;
        let negative = source.binades.iter().map(|(_, binade)| binade.negative).sum();
        let unknown = nonzero > 0 && cell.underflow_pct.is_none();
        let fate = match &row.target {
            _ if unknown => Fate::Unknown,
            Target::Plain(plan) if !plan.target.signed && negative > 0 => Fate::LosesSigns { negative },
            _ if keeps => Fate::Keeps,
            Target::Block(_) => Fate::LosesInBlocks,
            // The thresholds that the advice rests on are those of rounding to nearest.
            Target::Plain(plan) if !rounds_plainly(plan) => Fate::Loses,
            Target::Plain(plan) => match SafeScales::find(source, &plan.target) {
                Some(scales) => Fate::NeedsScale(scales),
                None => match largest_without_overflow(source, &plan.target) {
                    Some(best) => Fate::NoScale { flushed: flushed(source, &plan.target, best) },
                    None => Fate::Loses,
                },
            },
        };
        Self { row, cell, nonzero, fate }
    }

    fn helped_by_a_scale(&self) -> Option<String> {
        let Fate::NeedsScale(scales) = &self.fate else { return None };
        let range = if scales.smallest == scales.largest {
            format!("a scale of 2^{}", scales.largest)
        } else {
            format!("a scale between 2^{} and 2^{}", scales.smallest, scales.largest)
        };
        Some(format!(
            "{} {}; {range} would flush at most 0.01 % and overflow nothing.",
            self.row.name,
            self.losses()
        ))
    }

    fn lost_without_advice(&self) -> Option<String> {
        matches!(self.fate, Fate::Loses).then(|| format!("{} {}.", self.row.name, self.losses()))
    }

    fn lost_signs(&self) -> Option<String> {
        let Fate::LosesSigns { negative } = self.fate else { return None };
        Some(format!("{} has no sign: those of {} negative values are lost.", self.row.name, count(negative)))
    }

    /// What a block format loses, and whether that is whole blocks.
    fn lost_in_blocks(&self) -> Option<String> {
        let (Fate::LosesInBlocks, Some(blocks)) = (&self.fate, &self.cell.blocks) else { return None };
        let sqnr = match self.cell.sqnr_db {
            Some(sqnr) if sqnr.0.is_finite() => format!(" (SQNR {} dB)", short(sqnr.0, 3)),
            _ => String::new(),
        };
        let mut sentence = format!("{} {}{sqnr}", self.row.name, self.losses());
        let whole = [(blocks.scale_zero, "a scale of 0"), (blocks.scale_nan, "a scale that is NaN")];
        for (lost, why) in whole.into_iter().filter(|(lost, _)| *lost > 0) {
            let (of, verb) = (count(blocks.count), if lost == 1 { "has" } else { "have" });
            sentence += &format!("; {} of {of} blocks {verb} {why} and {verb} lost all values", count(lost));
        }
        Some(sentence + ".")
    }

    /// `loses 31.2 % of the nonzero values to zero and 0.5 % to overflow`
    fn losses(&self) -> String {
        let share = |part| format!("{} %", percent(part, self.nonzero));
        match (self.cell.underflow, self.cell.overflow) {
            (0, 0) => "loses no nonzero value".into(),
            (under, 0) => format!("loses {} of the nonzero values to zero", share(under)),
            (0, over) => format!("loses {} of the nonzero values to overflow", share(over)),
            (under, over) => {
                format!(
                    "loses {} of the nonzero values to zero and {} to overflow",
                    share(under),
                    share(over)
                )
            }
        }
    }
}

fn rounds_plainly(plan: &CastPlan) -> bool {
    plan.rounding == Rounding::NearestEven && !plan.flush_subnormal_results && !plan.flush_subnormal_inputs
}

/// The formats that keep the values, with the price in precision.
fn kept(verdicts: &[Verdict<'_>]) -> Option<String> {
    let keeping: Vec<_> = verdicts.iter().filter(|verdict| matches!(verdict.fate, Fate::Keeps)).collect();
    let described: Vec<String> = keeping
        .iter()
        .map(|verdict| match verdict.cell.sqnr_db {
            Some(sqnr) if sqnr.0.is_finite() => {
                format!("{} (SQNR {} dB)", verdict.row.name, short(sqnr.0, 3))
            }
            Some(_) => format!("{} (exactly)", verdict.row.name),
            None => verdict.row.name.to_owned(),
        })
        .collect();
    let all = keeping.iter().all(|verdict| verdict.cell.underflow == 0);
    let what = if all { "every value in range" } else { "at least 99.99 % of the values in range" };
    let verb = if keeping.len() == 1 { "keeps" } else { "keep" };
    (!keeping.is_empty()).then(|| format!("{} {verb} {what}.", list(&described)))
}

/// The formats that no single scale can save.
fn hopeless(verdicts: &[Verdict<'_>]) -> Option<String> {
    let lost: Vec<String> = verdicts
        .iter()
        .filter_map(|verdict| match verdict.fate {
            Fate::NoScale { flushed } => {
                Some(format!("{} ({} %)", verdict.row.name, percent(flushed, verdict.nonzero)))
            }
            _ => None,
        })
        .collect();
    (!lost.is_empty()).then(|| {
        format!(
            "No single scale brings {} under 0.01 %: in brackets what is still flushed at the largest scale without \
             overflow. A scale for each block or tensor may.",
            list(&lost)
        )
    })
}

/// `a`, `a and b`, `a, b and c`
fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
