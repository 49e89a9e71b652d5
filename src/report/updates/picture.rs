//! The picture: for each format how large the updates are beside an ulp of their weight, with the line of half an
//! ulp, below which rounding to nearest leaves the weight.

use super::findings::{pct, percent};
use super::model::{FormatRow, UpdatesReport};
use crate::report::number::{Num, brief, plural, short};
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};
use crate::training::updates::{Ratios, Way};

const WIDTH: u32 = 1200;
const MARGIN: f64 = 40.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 850.0;
const TOP: f64 = 110.0;
/// Height of a format's panel, and of the space below it.
const PANEL: f64 = 118.0;
const GAP: f64 = 34.0;
/// Bins an octave that are drawn.
const PER_OCTAVE: usize = 4;
/// Most octaves drawn.
const OCTAVES: i32 = 30;
/// Most formats drawn.
const MOST: usize = 8;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const LOST: Colour = Colour(213, 94, 0);
const KEPT: Colour = Colour(0, 114, 178);
const NOTE: TextStyle = TextStyle::new(12.0, INK);

/// Lays the picture out.
pub(super) fn picture(report: &UpdatesReport) -> Picture {
    let formats: Vec<(&FormatRow, &Ratios)> = report.ratios().skip(1).take(MOST).collect();
    let height = TOP + formats.len() as f64 * (PANEL + GAP) + 40.0;
    let mut picture = Picture::new(WIDTH, height as u32);
    head(&mut picture, report);
    let ends = formats.iter().flat_map(|(format, _)| format.octaves()).map(|(exponent, _)| exponent);
    let (low, high) = ends.fold((0, 0), |(low, high), e| (low.min(e), high.max(e + 1)));
    let span = (low.max(high - OCTAVES), high);
    for (number, (format, ratios)) in formats.iter().enumerate() {
        let base = TOP + number as f64 * (PANEL + GAP) + PANEL;
        panel(&mut picture, format, ratios, span, base);
    }
    let note = "log2 of |update| / ulp(weight); left of the line, at half an ulp, rounding to nearest leaves the weight \
                as it is";
    picture.text((MARGIN, height - 16.0), note, NOTE.coloured(AXIS));
    picture
}

fn head(picture: &mut Picture, report: &UpdatesReport) {
    let title = TextStyle::new(20.0, INK).bold();
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let (first, more) = match report.inputs.as_slice() {
        [first, others @ ..] if !others.is_empty() => (first.as_str(), format!(" and {} more", others.len())),
        [only] => (only.as_str(), String::new()),
        _ => ("", String::new()),
    };
    let subject = title.fit(first, room - title.width(&more)) + &more;
    picture.text((MARGIN, 48.0), &subject, title);
    let lr =
        report.total.lr.map_or("recorded learning rates".to_owned(), |lr| format!("lr {}", brief(lr, 8)));
    let facts = format!("{} · {lr} · {}", plural(report.total.elements, "weight"), report.rule);
    let style = TextStyle::new(14.0, AXIS);
    picture.text((MARGIN, 72.0), &style.fit(&facts, room), style);
}

fn panel(picture: &mut Picture, format: &FormatRow, ratios: &Ratios, (low, high): (i32, i32), base: f64) {
    let bins = ratios.bins(PER_OCTAVE, low, high);
    let x = |log2: f64| LEFT + (RIGHT - LEFT) * (log2 - f64::from(low)) / f64::from(high - low);
    // Bins divide an octave in equal steps of the value: their heights are densities, so that areas are counts.
    let edge = |number: usize| {
        let part = (number % PER_OCTAVE) as f64 / PER_OCTAVE as f64;
        f64::from(low) + (number / PER_OCTAVE) as f64 + libm::log2(1.0 + part)
    };
    let density = |number: usize| bins[number] as f64 / (edge(number + 1) - edge(number));
    let largest = (0..bins.len()).map(density).fold(0.0, f64::max).max(1e-300);
    let pitch = if high - low > 16 { 4 } else { 2 };
    for exponent in (low..=high).filter(|exponent| exponent % pitch == 0) {
        let at = x(exponent.into());
        picture.line(&[(at, base - PANEL + 14.0), (at, base)], 0.5, FAINT);
        let style = NOTE.coloured(AXIS).anchored(Anchor::Middle);
        picture.text((at, base + 15.0), &format!("2^{exponent}"), style);
    }
    for number in 0..bins.len() {
        let tall = (PANEL - 20.0) * density(number) / largest;
        let (start, end) = (edge(number), edge(number + 1));
        if tall > 0.0 {
            let colour = if start < -1.0 { LOST } else { KEPT };
            picture.rect((x(start), base - tall), ((x(end) - x(start) - 0.8).max(0.5), tall), colour);
        }
    }
    picture.line(&[(LEFT, base), (RIGHT, base)], 1.0, AXIS);
    let half = x(-1.0);
    picture.dashes(&[(half, base - PANEL + 6.0), (half, base)], 1.5, INK, (4.0, 3.0));
    picture.text((half + 4.0, base - PANEL + 14.0), "half an ulp", NOTE.coloured(AXIS));

    let (left, mut y) = (RIGHT + 24.0, base - PANEL + 18.0);
    picture.text((left, y), format.format, NOTE.bold());
    let nearest = format.nearest();
    let unmoved = nearest.and_then(|mark| mark.unmoved_pct).map_or("–".to_owned(), |share| pct(share.0));
    let along = nearest.map_or("–".to_owned(), |mark| percent(mark.along));
    let expected = format.way(Way::Expected).and_then(|way| way.after.first());
    let random = expected.and_then(|mark| mark.error).map_or("–".to_owned(), |error| short(error.0, 3));
    let kahan = format.way(Way::Kahan).and_then(|way| way.after.first());
    let half = format.lr_for_half.map_or("–".to_owned(), |Num(lr)| short(lr, 2));
    for (text, colour) in [
        (format!("{unmoved} % of the updates vanish"), LOST),
        (format!("{along} % of the step is made"), KEPT),
        (format!("half reach half an ulp from lr ≈ {half}"), INK),
        (format!("stochastic: all of it, with noise of {random} steps"), AXIS),
        (format!("Kahan: {} % of it", kahan.map_or("–".to_owned(), |mark| percent(mark.along))), AXIS),
    ] {
        y += 17.0;
        picture.text((left, y), &text, NOTE.coloured(colour));
    }
}
