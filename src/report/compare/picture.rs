//! The picture: a point a tensor, its error over its magnitude. Where relative errors are alike, points lie along
//! the diagonals.

use super::{CompareReport, Row, Verdict};
use crate::report::number::{count, plural, short};
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 800;
const MARGIN: f64 = 40.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 900.0;
const TOP: f64 = 120.0;
const BOTTOM: f64 = 700.0;
/// Most tensors that are named beside the plot.
const NAMED: usize = 14;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const NOTE: TextStyle = TextStyle::new(12.0, INK);
const WITHIN: Colour = Colour(0, 114, 178);
const OUTSIDE: Colour = Colour(213, 94, 0);

/// A tensor with a magnitude and an error: log2 of the root mean square of both, and of the largest error.
struct Point<'a> {
    row: &'a Row,
    rms: f64,
    error: f64,
    largest: f64,
}

/// Lays the picture out.
pub(super) fn picture(report: &CompareReport) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT);
    head(&mut picture, report);
    let log2 = |figure: Option<crate::report::number::Num>| {
        figure.map(|num| libm::log2(num.0)).filter(|log| log.is_finite())
    };
    let points: Vec<Point<'_>> = report
        .sorted()
        .into_iter()
        .filter_map(|row| {
            let (rms, error) = log2(row.rms).zip(log2(row.rms_error))?;
            Some(Point { row, rms, error, largest: log2(row.max_abs)? })
        })
        .collect();
    let left_out = report.tensors.len() - points.len();
    if points.is_empty() {
        let style = TextStyle::new(16.0, AXIS).anchored(Anchor::Middle);
        let what = if report.outside == 0 { "no tensor differs" } else { "no finite error to draw" };
        picture.text((f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM)), what, style);
        return picture;
    }
    let plot = Plot::new(&points);
    plot.axes(&mut picture);
    // The worst are drawn last, on top.
    for point in points.iter().rev() {
        plot.point(&mut picture, point);
    }
    plot.numbers(&mut picture, &points);
    legend(&mut picture, report, &points, left_out);
    picture
}

fn head(picture: &mut Picture, report: &CompareReport) {
    let title = TextStyle::new(20.0, INK).bold();
    let subtitle = TextStyle::new(14.0, AXIS);
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let and = " against ";
    let half = (room - title.width(and)) / 2.0;
    let paths = [&report.other.path, &report.reference.path].map(|path| title.fit(path, half));
    picture.text((MARGIN, 48.0), &paths.join(and), title);
    let facts = format!(
        "{} compared · {} equal · {} within tolerance · {} outside · {} missing · {} extra · {} of another shape",
        plural(report.tensors.len() as u64, "tensor"),
        count(report.equal),
        count(report.within),
        count(report.outside),
        report.missing.len(),
        report.extra.len(),
        report.reshaped.len()
    );
    picture.text((MARGIN, 72.0), &subtitle.fit(&facts, room), subtitle);
}

/// log2 of the magnitude to the right, log2 of the error upwards.
struct Plot {
    x: (f64, f64),
    y: (f64, f64),
}

impl Plot {
    fn new(points: &[Point<'_>]) -> Self {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            let (low, high) = (low.floor() - 1.0, high.ceil() + 1.0);
            let widen = ((8.0 - (high - low)) / 2.0).max(0.0).ceil();
            (low - widen, high + widen)
        };
        Self {
            x: range(&mut points.iter().map(|point| point.rms)),
            y: range(&mut points.iter().flat_map(|point| [point.error, point.largest])),
        }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let part = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        (LEFT + (RIGHT - LEFT) * part(x, self.x), BOTTOM - (BOTTOM - TOP) * part(y, self.y))
    }

    fn axes(&self, picture: &mut Picture) {
        for (power, upright) in
            ticks(self.x).map(|power| (power, true)).chain(ticks(self.y).map(|power| (power, false)))
        {
            let label = format!("2^{power}");
            if upright {
                let (x, _) = self.at(power, 0.0);
                picture.line(&[(x, TOP), (x, BOTTOM)], 0.5, FAINT);
                picture.text((x, BOTTOM + 20.0), &label, NOTE.anchored(Anchor::Middle));
            } else {
                let (_, y) = self.at(0.0, power);
                picture.line(&[(LEFT, y), (RIGHT, y)], 0.5, FAINT);
                picture.text((LEFT - 8.0, y + 4.0), &label, NOTE.anchored(Anchor::End));
            }
        }
        picture.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], 1.0, AXIS);
        picture.line(&[(LEFT, TOP), (LEFT, BOTTOM)], 1.0, AXIS);
        picture.text(
            (LEFT - 70.0, TOP - 16.0),
            "error: root mean square (■), largest (top of the line)",
            NOTE,
        );
        let middle = NOTE.anchored(Anchor::Middle);
        let x = f64::midpoint(LEFT, RIGHT);
        picture.text((x, BOTTOM + 42.0), "root mean square of the reference", middle);
        self.diagonals(picture);
    }

    /// Where the error is 1, 10 %, 1 %, … of the magnitude.
    fn diagonals(&self, picture: &mut Picture) {
        for (exponent, name) in (-12..=1)
            .map(|exponent| (exponent, if exponent == 0 { "1".into() } else { format!("1e{exponent}") }))
        {
            let relative = f64::from(exponent) * std::f64::consts::LOG2_10;
            let (from, to) = (self.x.0.max(self.y.0 - relative), self.x.1.min(self.y.1 - relative));
            // Too short a piece says nothing.
            if to - from < 1.5 {
                continue;
            }
            let ends = [self.at(from, from + relative), self.at(to, to + relative)];
            picture.dashes(&ends, 0.75, AXIS, (3.0, 4.0));
            let (x, y) = ends[1];
            if to < self.x.1 {
                picture.text((x, y - 5.0), &name, NOTE.anchored(Anchor::Middle).coloured(AXIS));
            } else {
                picture.text((x + 5.0, y + 4.0), &name, NOTE.coloured(AXIS));
            }
        }
        picture.text((RIGHT + 5.0, BOTTOM + 42.0), "- - -  relative L2 error", NOTE.coloured(AXIS));
    }

    fn point(&self, picture: &mut Picture, point: &Point<'_>) {
        let colour = colour(point.row);
        let (x, y) = self.at(point.rms, point.error);
        let (_, top) = self.at(point.rms, point.largest);
        picture.line(&[(x, y), (x, top)], 1.0, colour);
        picture.rect((x - 3.5, y - 3.5), (7.0, 7.0), colour);
    }

    /// The numbers of those that are named beside the plot, where they do not hide each other.
    fn numbers(&self, picture: &mut Picture, points: &[Point<'_>]) {
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (number, point) in points.iter().take(NAMED).enumerate() {
            let (x, y) = self.at(point.rms, point.error);
            let hidden = |&(left, level): &(f64, f64)| (x - left).abs() < 18.0 && (y - level).abs() < 12.0;
            if !taken.iter().any(hidden) {
                taken.push((x, y));
                let style = NOTE.bold().coloured(colour(point.row));
                picture.text((x + 6.0, y + 4.0), &(number + 1).to_string(), style);
            }
        }
    }
}

fn colour(row: &Row) -> Colour {
    if row.verdict == Verdict::Outside { OUTSIDE } else { WITHIN }
}

/// Powers of two with labels, at most ten.
fn ticks((low, high): (f64, f64)) -> impl Iterator<Item = f64> {
    let pitch = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    let pitch = pitch.into_iter().find(|pitch| (high - low) / pitch <= 10.0).unwrap_or(256.0);
    let first = (low / pitch).ceil();
    (0..12).map(move |step| (first + f64::from(step)) * pitch).filter(move |&tick| tick <= high)
}

/// The names of the worst, and what the colours mean.
fn legend(picture: &mut Picture, report: &CompareReport, points: &[Point<'_>], left_out: usize) {
    let x = RIGHT + 60.0;
    let room = f64::from(WIDTH) - x - 20.0;
    let mut y = TOP + 8.0;
    for (colour, text) in [(OUTSIDE, "outside the tolerance"), (WITHIN, "within it")] {
        picture.rect((x, y - 8.0), (8.0, 8.0), colour);
        picture.text((x + 16.0, y), text, NOTE);
        y += 20.0;
    }
    y += 12.0;
    let sort = report.options.sort.name();
    picture.text((x, y), &format!("order: {sort}"), NOTE.coloured(AXIS));
    for (number, point) in points.iter().take(NAMED).enumerate() {
        y += 30.0;
        let name = format!("{}  {}", number + 1, report.full_name(point.row));
        picture.text((x, y), &NOTE.bold().fit(&name, room), NOTE.bold().coloured(colour(point.row)));
        let relative = point.row.rel_l2.map_or("–".into(), |error| short(error.0, 3));
        picture.text((x + 16.0, y + 14.0), &format!("rel L2 {relative}"), NOTE.coloured(AXIS));
    }
    if left_out > 0 {
        let text = format!("{} without error or all zero: not drawn", plural(left_out as u64, "tensor"));
        picture.text((LEFT, f64::from(HEIGHT) - 22.0), &text, NOTE.coloured(AXIS));
    }
}
