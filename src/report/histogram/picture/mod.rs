//! The picture of a histogram report: the magnitudes of all tensors, and below, on the same axis, what
//! each format makes of them.

mod axis;
mod heat;
mod strips;

pub(super) use heat::heat_map;

use super::HistogramReport;
use super::axis::Limits;
use crate::report::number;
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};
use axis::{Axis, label, scientific};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 800;
const MARGIN: f64 = 40.0;
/// Ends of the shared axis; the figures stand on both sides of it.
const LEFT: f64 = 336.0;
const RIGHT: f64 = 1012.0;
const TOP: f64 = 122.0;
/// From the axis to the first strip.
const BETWEEN: f64 = 94.0;
/// From the last strip to the lower edge.
const BELOW: f64 = 50.0;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const BAR: Colour = Colour(84, 84, 84);
const ALARM: Colour = Colour(176, 58, 0);
const NOTE: TextStyle = TextStyle::new(12.0, INK);

/// Lays the picture out. It is 1200 × 800 logical pixels, and taller for more than 16 formats.
pub(super) fn picture(report: &HistogramReport) -> Picture {
    let limits: Vec<_> = report.formats.iter().map(Limits::of).collect();
    let axis = Axis::new(report, &limits);
    let pitch = strips::pitch(limits.len());
    let panel = pitch * limits.len() as f64;
    let height = f64::from(HEIGHT) + (panel - 17.0 * 16.0 - 8.0).max(0.0);
    let bottom = height - BELOW;
    let base = bottom - panel - BETWEEN;

    let mut picture = Picture::new(WIDTH, height as u32);
    head(&mut picture, report);
    let guides = if report.total.nonzero_finite > 0 { TOP } else { base };
    axis.draw(&mut picture, base, guides, bottom);
    bars(&mut picture, report, &axis, base);
    figures(&mut picture, report);
    if !limits.is_empty() {
        strips::heads(&mut picture, bottom - panel - 12.0);
        picture.text((MARGIN, height - 22.0), FOOTNOTE, NOTE.coloured(AXIS));
    }
    for (index, limits) in limits.iter().enumerate() {
        let y = bottom - panel + pitch * index as f64;
        strips::strip(&mut picture, report, index, &axis, limits.as_ref(), (y, pitch));
    }
    picture
}

const FOOTNOTE: &str = "Percent of the finite nonzero elements. SQNR: signal to quantisation noise ratio; elements \
                        that are stored as Inf or NaN are left out of it. ▸ ◂ limit beyond the axis.";

fn head(picture: &mut Picture, report: &HistogramReport) {
    let title = TextStyle::new(20.0, INK).bold();
    let subtitle = TextStyle::new(14.0, AXIS);
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let read = match report.inputs.as_slice() {
        [] => "No input".to_owned(),
        [input] => title.fit(&input.path, room),
        [first, others @ ..] => {
            let more = format!(" and {} more", number::count(others.len() as u64));
            title.fit(&first.path, room - title.width(&more)) + &more
        }
    };
    picture.text((MARGIN, 48.0), &read, title);

    let mut facts = Vec::new();
    match report.tensors.as_slice() {
        [tensor] if !report.is_by_place() => {
            facts.push(format!("tensor {}", subtitle.fit(&tensor.name, 420.0)));
        }
        rows => facts.push(number::plural(rows.len() as u64, report.options.by)),
    }
    facts.push(number::plural(report.total.elements, "element"));
    let options = &report.options;
    if options.scale != 1.0 {
        let exact = number::full(options.scale.into());
        let scale = if exact.len() > 7 { label(options.scale.into()) } else { exact };
        facts.push(format!("cast of x·{scale}, limits drawn for x"));
    }
    if !options.rounding.starts_with("nearest") {
        facts.push(format!("rounding {}, limits drawn for nearest", options.rounding));
    }
    facts.extend(options.profile.map(|profile| format!("profile {profile}")));
    for (on, name) in [(options.ftz, "FTZ"), (options.daz, "DAZ")] {
        facts.extend(on.then(|| name.to_owned()));
    }
    let mut room = room;
    if !report.problems.is_empty() {
        let missing = format!("incomplete: {} could not be read", report.problems.len());
        room -= subtitle.width(&missing) + 20.0;
        let style = subtitle.coloured(ALARM).anchored(Anchor::End);
        picture.text((f64::from(WIDTH) - MARGIN, 72.0), &missing, style);
    }
    picture.text((MARGIN, 72.0), &subtitle.fit(&facts.join(" · "), room), subtitle);
}

fn bars(picture: &mut Picture, report: &HistogramReport, axis: &Axis, base: f64) {
    let total = &report.total;
    let whole = total.nonzero_finite as f64;
    let largest = total.binades.iter().map(|(_, binade)| binade.total()).max().unwrap_or(0);
    if largest == 0 {
        let style = TextStyle::new(16.0, AXIS).anchored(Anchor::Middle);
        picture.text(
            (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, base)),
            "no finite nonzero values",
            style,
        );
        return;
    }
    let highest = 100.0 * largest as f64 / whole;
    let height = |percent: f64| (base - TOP) * percent / (1.04 * highest);
    picture.text((LEFT, TOP - 14.0), "share of the finite nonzero elements in each power of two, %", NOTE);

    // First, so that the bars cover it.
    let magnitude = 10_f64.powf((highest / 4.0).log10().floor());
    let pitch = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    let pitch = pitch.into_iter().find(|step| highest / step <= 6.0).unwrap_or(highest);
    let decimals = (-pitch.log10().floor()).max(0.0) as usize;
    let ticks = (highest / pitch).floor() as u32;
    for tick in 0..=ticks {
        let percent = f64::from(tick) * pitch;
        let y = base - height(percent);
        if tick > 0 {
            picture.line(&[(LEFT, y), (RIGHT, y)], 1.0, FAINT);
        }
        let style = NOTE.anchored(Anchor::End);
        picture.text((LEFT - 8.0, y + 4.0), &format!("{percent:.decimals$}"), style);
    }
    // Narrow bars overlap instead: browsers would show the seam between edges that only touch.
    let gap: f64 = if axis.binade() >= 5.0 { 1.0 } else { -0.5 };
    for (exponent, binade) in total.binades.iter() {
        let (x0, x1) = (axis.x(exponent.into()), axis.x(f64::from(exponent) + 1.0));
        // Never so low that it vanishes: it is the rare large elements that overflow.
        let tall = height(100.0 * binade.total() as f64 / whole).max(2.5);
        picture.rect((x0 + gap.max(0.0), base - tall), ((x1 - x0 - gap).max(1.0), tall), BAR);
    }
}

/// The counts beside the histogram.
fn figures(picture: &mut Picture, report: &HistogramReport) {
    let total = &report.total;
    let counted = [
        ("finite nonzero", total.nonzero_finite, true),
        ("zero", total.zero, false),
        ("NaN", total.nan, false),
        ("+Inf", total.positive_inf, false),
        ("−Inf", total.negative_inf, false),
    ];
    let counts = counted.into_iter().filter(|&(_, count, always)| always || count > 0);
    let mut rows: Vec<_> = counts.map(|(name, count, _)| (name, number::count(count))).collect();
    for (name, figure) in [("largest |x|", total.amax), ("smallest |x|", total.amin)] {
        rows.extend(figure.map(|figure| (name, scientific(figure.0))));
    }
    for (index, (name, figure)) in rows.iter().enumerate() {
        let y = TOP + 8.0 + 20.0 * index as f64;
        picture.text((MARGIN, y), name, NOTE.coloured(AXIS));
        picture.text((LEFT - 62.0, y), figure, NOTE.anchored(Anchor::End));
    }
}
