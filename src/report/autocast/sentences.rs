//! What a trace comes to, in sentences: complaints first, then what is fine and what stayed in float32.

use super::model::{AutocastReport, CastEntry, FindingEntry};
use crate::error::escape;
use crate::report::number::{bytes, count, percent, plural, short};
use crate::training::autocast::{Cause, Repeated, Verdict};

/// Most names in a sentence.
const NAMED: usize = 5;

/// Writes the sentence of each finding, and gives all there is to say.
pub(super) fn sentences(report: &mut AutocastReport) -> Vec<String> {
    let told: Vec<String> = report.findings.iter().map(|finding| finding_sentence(report, finding)).collect();
    for (finding, sentence) in report.findings.iter_mut().zip(&told) {
        finding.sentence.clone_from(sentence);
    }
    let mut all = told;
    all.extend(matmuls(report));
    all.extend(casts(report));
    all.extend(stayed(report));
    all.extend(unknown(report));
    all
}

/// A time with a unit.
pub(super) fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", short(ns as f64 / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{} ms", short(ns as f64 / 1e6, 3)),
        _ => format!("{} s", short(ns as f64 / 1e9, 3)),
    }
}

fn share(report: &AutocastReport, ns: u64) -> String {
    let what = if report.device_ns > 0 { "of the device time" } else { "of the time" };
    format!("{}, {} % {what}", time(ns), percent(ns, report.whole()))
}

/// Names with their numbers of calls: `26 aten::mm, 13 aten::addmm and 2 more`.
fn named<'a>(ops: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for (op, calls) in ops {
        match sums.iter_mut().find(|(known, _)| *known == op) {
            Some((_, sum)) => *sum += calls,
            None => sums.push((op, calls)),
        }
    }
    let shown: Vec<String> =
        sums.iter().take(NAMED).map(|(op, calls)| format!("{} {}", count(*calls), escape(op))).collect();
    match sums.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} other ops", shown.join(", ")),
    }
}

fn finding_sentence(report: &AutocastReport, finding: &FindingEntry) -> String {
    let device = report.device;
    let dtype = report.autocast_dtype.unwrap_or("bfloat16");
    let ops = named(finding.ops.iter().map(|op| (op.op.as_str(), op.calls)));
    let stake = share(report, finding.ns);
    if !finding.weights.is_empty() {
        let parameters = finding.weights.iter().map(|weights| weights.parameters).sum();
        let size = finding.weights.iter().fold(0_u64, |sum, weights| sum.saturating_add(weights.bytes));
        return format!(
            "{} of {} of shape {} ({stake}; {}): autocast's cache should keep one for each. It was off \
             (cache_enabled=False), the region was entered again and again, or activations were recomputed.",
            plural(finding.calls, "cast"),
            plural(parameters, "weight"),
            shapes(&finding.weights),
            bytes(size)
        );
    }
    let row = finding.ops.first().map(|op| op.row.key.verdict);
    let cause = match row {
        Some(Verdict::Missed(cause)) => Some(cause),
        _ => None,
    };
    match cause {
        Some(Cause::NoAutocast) => format!(
            "Nothing in this trace went through autocast: {ops} ran in float32 ({stake}). Was the step inside \
             torch.autocast(\"{device}\")?"
        ),
        Some(Cause::Custom(_)) => {
            let custom = escape(finding.custom_op.as_deref().unwrap_or(""));
            format!(
                "{custom}: {ops} ran in float32 in it ({stake}). Autocast does not know this op, and was off there. If it \
                 is an autograd function, torch.amp.custom_fwd(device_type=\"{device}\", cast_inputs=torch.{dtype}) on \
                 its forward casts what it is given."
            )
        }
        Some(Cause::Off) => format!(
            "{ops} ran in float32 where autocast was off ({stake}): in a region with enabled=False, or outside of any."
        ),
        Some(Cause::NotListed) => format!(
            "{ops} ran in float32 ({stake}): of no list of {device}, so autocast leaves the inputs as they are."
        ),
        Some(Cause::Through) => {
            format!("{ops} went through autocast and ran in float32 all the same ({stake}).")
        }
        Some(Cause::Backward | Cause::Optimizer) => {
            format!("{ops} ran in float32 in the backward pass ({stake}), as their forward did.")
        }
        None if finding.kind == "ran-low" => format!(
            "{ops} ran in a narrower type ({stake}), though of the list that autocast runs in float32: it was off there."
        ),
        None => format!(
            "{ops} ran in float32 ({stake}): not PyTorch's, so autocast leaves the inputs as they are."
        ),
    }
}

/// `64x16, 16x64 and 3 other shapes`
fn shapes(weights: &[Repeated]) -> String {
    let shape = |weights: &Repeated| {
        let extents: Vec<String> = weights.shape.iter().map(u64::to_string).collect();
        extents.join("x")
    };
    let shown: Vec<String> = weights.iter().take(NAMED).map(shape).collect();
    match weights.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} other shapes", shown.join(", ")),
    }
}

/// What the matrix multiplications ran in, if nothing is wrong with them.
fn matmuls(report: &AutocastReport) -> Option<String> {
    let ran_low =
        |op: &&super::OpEntry| op.row.key.verdict == Verdict::AsListed && op.row.key.types.has_low();
    let matmul = |op: &&super::OpEntry| ran_low(op) && super::terminal::is_matmul(op);
    let low: Vec<_> = report.ops.iter().filter(matmul).collect();
    let missed = report.findings.iter().any(|finding| finding.kind == "missed-matmul");
    let calls: u64 = low.iter().map(|op| op.calls).sum();
    if calls == 0 {
        return None;
    }
    let narrowest = low.iter().filter_map(|op| op.types.last().copied());
    let types: Vec<&str> = narrowest.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    let (all, ran) = if missed { ("", "did run") } else { ("All ", "ran") };
    let without =
        if report.autocast_calls == 0 { " without autocast: the model itself is in it" } else { "" };
    let products = plural(calls, "matrix multiplication");
    Some(format!("{all}{products} {ran} in {}{without}.", types.join(" and ")))
}

/// What casts cost.
fn casts(report: &AutocastReport) -> Option<String> {
    let total: u64 = report.casts.iter().map(|cast| cast.count).sum();
    let size = report.casts.iter().fold(0_u64, |sum, cast| sum.saturating_add(cast.bytes));
    let of = |cast: &CastEntry| if report.device_ns > 0 { cast.device_ns } else { cast.ns };
    let ns = report.casts.iter().map(of).fold(0, u64::saturating_add);
    (total > 0).then(|| {
        let moved = format!("{} read and written", bytes(size));
        format!("{} between types: {}, {moved}.", plural(total, "cast"), share(report, ns))
    })
}

/// What of the forward pass stayed in float32, by its list or for want of one.
fn stayed(report: &AutocastReport) -> Option<String> {
    if report.autocast_calls == 0 {
        return None;
    }
    let of = |verdict: Verdict| {
        let ops =
            report.ops.iter().filter(|op| op.row.key.verdict == verdict && op.row.key.types.is_float32());
        let ops = ops.filter(|op| !super::terminal::is_matmul(op));
        let mut names: Vec<String> = Vec::new();
        for op in ops {
            let name = escape(op.op.strip_prefix("aten::").unwrap_or(&op.op));
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join(", ")
    };
    let (listed, unlisted) = (of(Verdict::AsListed), of(Verdict::Unlisted));
    let mut parts = Vec::new();
    if !listed.is_empty() {
        parts.push(format!("In float32 by their lists: {listed}."));
    }
    if !unlisted.is_empty() {
        parts.push(format!("In float32 as their inputs, for they are of no list: {unlisted}."));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Ops that are not PyTorch's.
fn unknown(report: &AutocastReport) -> Option<String> {
    let custom = report.ops.iter().filter(|op| op.row.key.verdict == Verdict::Custom);
    let names = named(custom.map(|op| (op.op.as_str(), op.calls)));
    (!names.is_empty()).then(|| format!("Not PyTorch's, and so unknown to autocast: {names}."))
}
