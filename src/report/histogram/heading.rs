//! What was read, and with which options it was cast, in lines for a terminal.

use std::io::{self, Write};

use super::HistogramReport;
use crate::cast::{CastPlan, Overflow, Rounding};
use crate::error::escape;
use crate::report::by_choice;
use crate::report::number::{Num, bytes, count, full, percent, plural, short};
use crate::report::style::View;
use crate::report::table::{shorten, wrap, wrap_words};

/// Most facts of a file that are shown.
const FACTS: usize = 4;
/// Longest name or value of one.
const LONGEST_FACT: usize = 24;
/// Words in the names of the facts that come first.
const FIRST: [&str; 4] = ["step", "epoch", "loss", "iter"];

impl HistogramReport {
    pub(super) fn heading(&self, view: &View, out: &mut dyn Write) -> io::Result<()> {
        let size: u64 = self.inputs.iter().map(|input| input.bytes).sum();
        let read = format!(
            "{}, {} {}, {}",
            plural(self.tensors.len() as u64, self.options.by),
            plural(self.total.elements, "element"),
            self.dtypes(),
            bytes(size)
        );
        // Steps have elements of several types.
        let read = read.replace(" , ", ", ");
        let (subject, facts) = match self.inputs.as_slice() {
            [only] => (escape(&only.path), escape(&facts(&only.metadata))),
            inputs => (format!("{} files", inputs.len()), String::new()),
        };
        let (head, read) = (format!("{subject}:"), format!("{read}{facts}"));
        let lines = wrap_words("", std::iter::once(&*head).chain(read.split(' ')), view.width);
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(&subject).filter(|_| index == 0) {
                Some(rest) => writeln!(out, "{}{rest}", view.paint.bold(&subject))?,
                None => writeln!(out, "{line}")?,
            }
        }
        let total = &self.total;
        let range = match (total.amin, total.amax, total.dynamic_range_log2) {
            (Some(Num(amin)), Some(Num(amax)), Some(Num(range))) => {
                format!("|x| from {} to {} ({} binades)", short(amin, 3), short(amax, 3), short(range, 3))
            }
            _ => "no finite nonzero value".into(),
        };
        let share = |part, what| format!(", {} {what}", if part == 0 { "no".into() } else { count(part) });
        let zeros = format!(", {} % zeros", percent(total.zero, total.elements));
        let inf = total.positive_inf + total.negative_inf;
        let range = match self.options.unscale {
            Some(scale) => format!("stored values divided by {}; {range}", full(scale.into())),
            None => range,
        };
        let text = format!("{range}{zeros}{}{}", share(total.nan, "NaN"), share(inf, "Inf"));
        wrap("", &text, view.width).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn dtypes(&self) -> String {
        let mut names: Vec<&str> = self.tensors.iter().filter_map(|tensor| tensor.dtype.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        names.join("/")
    }

    /// Every cast option that is not the default; `None` if all are.
    pub(super) fn cast_options(&self) -> Option<String> {
        let options = &self.options;
        let plans = || self.formats.iter().filter_map(|row| row.target.plain());
        let mut texts = Vec::new();
        texts.extend(options.profile.map(|profile| format!("profile {profile}")));
        if options.rounding != Rounding::default().name() {
            texts.push(format!("rounding {}", options.rounding));
        }
        let bits = |plan: &CastPlan| match plan.rounding {
            Rounding::Stochastic { bits, .. } => Some((bits.to_string(), plan.target.name)),
            _ => None,
        };
        if plans().any(|plan| bits(plan).is_some()) {
            texts.push(format!("seed {}, random bits {}", options.seed, by_choice(plans().filter_map(bits))));
        }
        if plans().any(|plan| plan.overflow != Overflow::default_for(&plan.target)) {
            let policies = plans().map(|plan| (plan.overflow.name().to_owned(), plan.target.name));
            texts.push(format!("overflow policy {}", by_choice(policies)));
        }
        texts.extend(options.ftz.then(|| "subnormal results flushed (--ftz)".to_owned()));
        texts.extend(options.daz.then(|| "subnormal inputs taken for zero (--daz)".to_owned()));
        if options.scale != 1.0 {
            texts.push(format!("scale {}", full(options.scale.into())));
        }
        (!texts.is_empty()).then(|| format!("cast with {}", texts.join(" · ")))
    }
}

/// The facts that say where in a run a file is from, and a few others: `, step 1500, loss 3.2, … 7 more`.
fn facts(metadata: &[(String, String)]) -> String {
    let rank = |key: &str| {
        let key = key.to_ascii_lowercase();
        FIRST.iter().position(|first| key.contains(first)).unwrap_or(FIRST.len())
    };
    let mut facts: Vec<_> = metadata.iter().collect();
    facts.sort_by_key(|(key, _)| rank(key));
    let cut = |text| shorten(text, LONGEST_FACT);
    let shown = facts.iter().take(FACTS).map(|(key, value)| format!(", {} {}", cut(key), cut(value)));
    let more = facts.len().saturating_sub(FACTS);
    shown.collect::<String>() + &if more == 0 { String::new() } else { format!(", … {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_facts_are_shown_and_the_step_first() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let few = [pair("model", "gpt"), pair("global_step", "7")];
        assert_eq!(facts(&few), ", global_step 7, model gpt");
        let many = [
            pair("config", &"x".repeat(5000)),
            pair("Loss", "2.5"),
            pair("a", "b"),
            pair("c", "d"),
            pair("step", "9"),
            pair("e", "f"),
        ];
        assert_eq!(facts(&many), ", step 9, Loss 2.5, config xxxxxxxxxxxx…xxxxxxxxxxx, a b, … 2 more");
    }
}
