//! The picture: the error of every way of reducing beside the bytes it takes, and, if other numbers of ranks were
//! asked for, error against ranks.

use super::findings::{error_pct, size};
use super::model::{CaseRow, ReduceReport};
use crate::report::number::{count, plural};
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};

const WIDTH: u32 = 1200;
const MARGIN: f64 = 40.0;
const TOP: f64 = 120.0;
/// Height of a row of the errors.
const ROW: f64 = 19.0;
/// Space above the rows of a format.
const GAP: f64 = 12.0;
const NAMES: f64 = 330.0;
const RIGHT: f64 = 940.0;
/// Height of the plot against ranks, and of what is above it.
const PLOT: f64 = 360.0;
const HEAD: f64 = 90.0;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const NOTE: TextStyle = TextStyle::new(12.0, INK);
/// Okabe and Ito's colours without yellow.
const COLOURS: [Colour; 6] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 128, 96),
    Colour(170, 68, 140),
    Colour(86, 160, 213),
    Colour(200, 140, 0),
];

/// Lays the picture out.
pub(super) fn picture(report: &ReduceReport) -> Picture {
    let formats = report.formats();
    let rows = ROW * report.total.len() as f64 + GAP * formats.len() as f64;
    let plot = if report.worlds.len() > 1 { HEAD + PLOT + 40.0 } else { 0.0 };
    let height = TOP + rows + 60.0 + plot;
    let mut picture = Picture::new(WIDTH, height as u32);
    head(&mut picture, report);
    let scale = Scale::new(report);
    let bottom = TOP + rows;
    scale.axis(&mut picture, TOP - 8.0, bottom);
    let mut y = TOP;
    let mut before = "";
    for row in &report.total {
        if row.format != before {
            y += GAP;
            before = row.format;
            picture.text((MARGIN, y + 13.0), row.format, NOTE.bold());
        }
        dot(&mut picture, &scale, row, colour(&formats, row.format), y);
        y += ROW;
    }
    picture.text((RIGHT + 40.0, TOP - 14.0), "error % · sent by a rank", NOTE.coloured(AXIS));
    if report.worlds.len() > 1 {
        against_ranks(&mut picture, report, &formats, bottom + 50.0 + HEAD);
    }
    picture
}

fn colour(formats: &[&str], format: &str) -> Colour {
    let number = formats.iter().position(|known| *known == format).unwrap_or(0);
    COLOURS[number % COLOURS.len()]
}

fn head(picture: &mut Picture, report: &ReduceReport) {
    let title = TextStyle::new(20.0, INK).bold();
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let first = report.inputs.first().map_or("", String::as_str);
    let more = format!(" and {} more", report.inputs.len().saturating_sub(1));
    picture.text((MARGIN, 48.0), &(title.fit(first, room - title.width(&more)) + &more), title);
    let facts = format!(
        "{} · {} · error of the mean of {} ranks against the exact one, of its norm",
        plural(report.tensors.len() as u64, "tensor"),
        plural(report.elements, "element"),
        report.ranks.len()
    );
    let style = TextStyle::new(14.0, AXIS);
    picture.text((MARGIN, 72.0), &style.fit(&facts, room), style);
}

/// Errors as powers of two.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn new(report: &ReduceReport) -> Self {
        let worlds = report.worlds.iter().flat_map(|world| &world.cases);
        let errors = report.total.iter().chain(worlds).filter_map(log_error);
        let (low, high) =
            errors.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        if low <= high {
            Self { low: low.floor() - 1.0, high: (high.ceil() + 1.0).max(low.floor() + 3.0) }
        } else {
            Self { low: -24.0, high: 0.0 }
        }
    }

    fn part(&self, log: f64) -> f64 {
        (log - self.low) / (self.high - self.low)
    }

    fn x(&self, log: f64) -> f64 {
        NAMES + (RIGHT - NAMES) * self.part(log)
    }

    fn ticks(&self) -> impl Iterator<Item = i32> + use<> {
        let span = self.high - self.low;
        let pitch = if span > 16.0 { 4 } else { 2 };
        (self.low.ceil() as i32..=self.high.floor() as i32).filter(move |tick| tick % pitch == 0)
    }

    fn axis(&self, picture: &mut Picture, top: f64, bottom: f64) {
        for tick in self.ticks() {
            let x = self.x(tick.into());
            picture.line(&[(x, top), (x, bottom + 6.0)], 0.5, FAINT);
            picture.text(
                (x, bottom + 22.0),
                &format!("2^{tick}"),
                NOTE.coloured(AXIS).anchored(Anchor::Middle),
            );
        }
    }
}

/// log2 of an error; `None` for none.
fn log_error(row: &CaseRow) -> Option<f64> {
    row.error.map(|error| error.0).filter(|error| *error > 0.0).map(libm::log2)
}

fn dot(picture: &mut Picture, scale: &Scale, row: &CaseRow, colour: Colour, y: f64) {
    let what = format!("{}, sums {}, {}", row.algorithm, row.accumulate, row.divide);
    picture.text((MARGIN + 70.0, y + 13.0), &what, NOTE.coloured(AXIS));
    picture.line(&[(NAMES, y + 9.0), (RIGHT, y + 9.0)], 0.5, FAINT);
    if let Some(log) = log_error(row) {
        let x = scale.x(log);
        picture.line(&[(NAMES, y + 9.0), (x, y + 9.0)], 2.0, colour);
        picture.rect((x - 4.0, y + 5.0), (8.0, 8.0), colour);
    }
    let overflow =
        if row.overflow > 0 { format!(" · {} overflow", count(row.overflow)) } else { String::new() };
    let text = format!("{} % · {}{overflow}", error_pct(row.error), size(row.sent_bytes));
    picture.text((RIGHT + 40.0, y + 13.0), &text, NOTE);
}

/// A line a case: continuous for the first of a format, dashed for the others.
fn against_ranks(picture: &mut Picture, report: &ReduceReport, formats: &[&str], top: f64) {
    let (left, bottom) = (100.0, top + PLOT);
    let scale = Scale::new(report);
    let title = TextStyle::new(15.0, INK).bold();
    picture.text((MARGIN, top - 44.0), "Error against the number of ranks", title);
    let note = format!(
        "estimate: {} recorded ranks drawn again (seed {}), {}",
        report.ranks.len(),
        report.options.seed,
        plural(report.sampled, "element")
    );
    picture.text((MARGIN, top - 24.0), &note, NOTE.coloured(AXIS));
    let ranks = |ranks: u64| libm::log2(ranks as f64);
    let (first, last) = match report.worlds.as_slice() {
        [first, .., last] => (ranks(first.ranks), ranks(last.ranks)),
        _ => return,
    };
    let x = |log: f64| left + (RIGHT - left) * (log - first) / (last - first);
    let y = |log: f64| bottom - PLOT * scale.part(log);
    for tick in scale.ticks() {
        let y = y(tick.into());
        picture.line(&[(left, y), (RIGHT, y)], 0.5, FAINT);
        picture.text((left - 8.0, y + 4.0), &format!("2^{tick}"), NOTE.coloured(AXIS).anchored(Anchor::End));
    }
    for world in &report.worlds {
        let x = x(ranks(world.ranks));
        picture.line(&[(x, bottom), (x, bottom + 5.0)], 1.0, AXIS);
        picture.text((x, bottom + 20.0), &count(world.ranks), NOTE.anchored(Anchor::Middle));
    }
    picture.line(&[(left, bottom), (RIGHT, bottom)], 1.0, AXIS);
    let cases = report.worlds.first().map_or(0, |world| world.cases.len());
    let mut labels: Vec<(f64, f64, String, Colour)> = Vec::new();
    let mut before = "";
    for case in 0..cases {
        let of = |world: usize| &report.worlds[world].cases[case];
        let points: Vec<(f64, f64)> = (0..report.worlds.len())
            .filter_map(|world| Some((x(ranks(report.worlds[world].ranks)), y(log_error(of(world))?))))
            .collect();
        let Some(&(_, end)) = points.last() else { continue };
        let row = of(report.worlds.len() - 1);
        // The flat order is near the ring's and the tree's near doubling's: their lines would cover these.
        let near = match row.algorithm {
            "flat" => "ring",
            "tree" => "doubling",
            _ => "",
        };
        if report.total.iter().any(|row| row.algorithm == near) {
            continue;
        }
        let colour = colour(formats, row.format);
        let is_base = row.format != before;
        before = row.format;
        if is_base {
            picture.line(&points, 2.5, colour);
        } else {
            let dash = match (row.accumulate, row.algorithm) {
                ("float32", _) => (2.0, 3.0),
                _ => (8.0, 4.0),
            };
            picture.dashes(&points, 1.2, colour, dash);
        }
        let sums = if row.accumulate == "float32" { ", f32 sums".to_owned() } else { String::new() };
        labels.push((end, end, format!("{} {}{sums}", row.format, row.algorithm), colour));
    }
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Names give way downwards, and then upwards from the bottom.
    let mut lowest = f64::NEG_INFINITY;
    for label in &mut labels {
        label.0 = label.0.max(lowest + 14.0);
        lowest = label.0;
    }
    let mut highest = bottom + 14.0;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(highest - 14.0);
        highest = label.0;
    }
    for (y, end, name, colour) in labels {
        picture.line(&[(RIGHT + 2.0, end), (RIGHT + 16.0, y)], 0.5, colour);
        picture.text((RIGHT + 20.0, y + 4.0), &name, NOTE.coloured(colour));
    }
}
