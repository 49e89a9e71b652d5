//! How the magnitudes move from step to step, or rank to rank: these across, powers of two upwards, and the formats' limits as
//! lines; below, what each format loses of each step.

use super::super::axis::Limits;
use super::super::{HistogramReport, Metric, Subject};
use super::axis::{Axis, label, step};
use super::{AXIS, FAINT, INK, MARGIN, NOTE, WIDTH, head};
use crate::report::number;
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};

const HEIGHT: u32 = 900;
const LEFT: f64 = 128.0;
/// Right end of the map; the names of the limits stand behind it.
const RIGHT: f64 = 948.0;
const TOP: f64 = 130.0;
/// Distance between the names of limits.
const LINE: f64 = 15.0;
/// Height of a row of figures.
const ROW: f64 = 20.0;
/// Least share that has a colour of its own, as a power of ten.
const FAINTEST: f64 = -6.0;

/// Colours of shares from the least to 100 %: light to dark, so that the order survives printing.
const RAMP: [Colour; 5] = [
    Colour(238, 240, 242),
    Colour(190, 204, 217),
    Colour(124, 158, 188),
    Colour(56, 99, 143),
    Colour(12, 37, 77),
];

/// Colours of formats: Okabe and Ito's, darkened to be read as text.
const FORMATS: [Colour; 7] = [
    Colour(180, 70, 0),
    Colour(0, 120, 88),
    Colour(160, 50, 120),
    Colour(140, 105, 0),
    Colour(190, 30, 30),
    Colour(90, 90, 90),
    Colour(0, 105, 160),
];

/// Lays the picture out.
pub(in super::super) fn heat_map(report: &HistogramReport) -> Picture {
    let limits: Vec<_> = report.formats.iter().map(Limits::of).collect();
    let axis = Axis::new(report, &limits);
    let rows = ROW * report.formats.len() as f64;
    let mut picture = Picture::new(WIDTH, HEIGHT + (rows - 7.0 * ROW).max(0.0) as u32);
    head(&mut picture, report);
    let bottom = f64::from(picture.size().1) - rows - 132.0;
    let map = Map { axis, bottom, columns: report.tensors.len().max(1) };
    picture.text(
        (LEFT, TOP - 14.0),
        &format!("share of the {}'s finite nonzero elements in each power of two of |x|", report.options.by),
        NOTE,
    );
    ramp(&mut picture);
    map.ticks(&mut picture, &report.tensors, report.options.by);
    for (column, subject) in report.tensors.iter().enumerate() {
        map.column(&mut picture, column, subject);
    }
    map.limits(&mut picture, report, &limits);
    map.losses(&mut picture, report);
    let y = f64::from(picture.size().1) - 22.0;
    let note = "Lines: up to where a format flushes to zero (dashes), below which its numbers are subnormal (dots), and \
                where it overflows (solid). Limits beyond the axis are left out.";
    picture.text((MARGIN, y), note, NOTE.coloured(AXIS));
    picture
}

/// Where things are.
struct Map {
    axis: Axis,
    bottom: f64,
    columns: usize,
}

impl Map {
    /// The height of a magnitude, given as log2.
    fn y(&self, log2: f64) -> f64 {
        let (low, high) = (self.axis.low(), self.axis.high());
        self.bottom - (log2.clamp(low, high) - low) / (high - low) * (self.bottom - TOP)
    }

    /// The left end of a column.
    fn x(&self, column: usize) -> f64 {
        LEFT + (RIGHT - LEFT) * column as f64 / self.columns as f64
    }

    fn width(&self) -> f64 {
        (RIGHT - LEFT) / self.columns as f64
    }

    fn ticks(&self, picture: &mut Picture, subjects: &[Subject], by: &str) {
        let binade = (self.bottom - TOP) / (self.axis.high() - self.axis.low());
        let pitch = step(&[1, 2, 4, 8, 16, 32, 64, 128, 256], binade, 30.0);
        let (low, high) = (self.axis.low() as i32, self.axis.high() as i32);
        for exponent in (low..=high).filter(|exponent| exponent.rem_euclid(pitch) == 0) {
            let y = self.y(exponent.into());
            picture.line(&[(LEFT, y), (RIGHT, y)], 1.0, FAINT);
            let text = label(crate::format::pow2(exponent));
            picture.text((LEFT - 8.0, y + 4.0), &text, NOTE.anchored(Anchor::End));
        }
        picture.line(&[(LEFT, TOP), (LEFT, self.bottom), (RIGHT, self.bottom)], 1.0, AXIS);
        let longest = subjects.iter().filter_map(|subject| subject.number(by)).max().unwrap_or(0).to_string();
        let every = ((NOTE.width(&longest) + 14.0) / self.width()).ceil().max(1.0) as usize;
        for (column, subject) in subjects.iter().enumerate().step_by(every) {
            let text = subject.number(by).map_or(String::new(), |number| number.to_string());
            let x = self.x(column) + self.width() / 2.0;
            picture.text((x, self.bottom + 20.0), &text, NOTE.anchored(Anchor::Middle));
        }
        picture.text((LEFT - 8.0, self.bottom + 20.0), by, NOTE.anchored(Anchor::End).coloured(AXIS));
    }

    fn column(&self, picture: &mut Picture, column: usize, subject: &Subject) {
        let gap = if self.width() >= 12.0 { 2.0 } else { -0.5 };
        let (x, width) = (self.x(column) + f64::max(gap, 0.0) / 2.0, self.width() - gap);
        for (exponent, binade) in subject.binades.iter() {
            let (y0, y1) = (self.y(f64::from(exponent) + 1.0), self.y(exponent.into()));
            let share = binade.total() as f64 / subject.nonzero_finite as f64;
            // Edges overlap: browsers would show the seam between those that only touch.
            picture.rect((x, y0), (width, y1 - y0 + 0.5), shade(share));
        }
    }

    /// The formats' limits, with their names at the right.
    fn limits(&self, picture: &mut Picture, report: &HistogramReport, limits: &[Option<Limits>]) {
        let inside = |log2: f64| log2 > self.axis.low() && log2 < self.axis.high();
        let mut names: Vec<(f64, String, Colour)> = Vec::new();
        for (index, (row, limits)) in report.formats.iter().zip(limits).enumerate() {
            let Some(limits) = limits else { continue };
            let colour = FORMATS[index % FORMATS.len()];
            let kinds = [
                (limits.flush, "to zero", Some((7.0, 4.0))),
                (limits.normal, "subnormal", Some((1.5, 4.0))),
                (Some(limits.overflow), "overflow", None),
            ];
            for (limit, kind, dash) in kinds {
                let Some(limit) = limit.filter(|limit| inside(limit.log2)) else { continue };
                let y = self.y(limit.log2);
                // White below, so that it shows on dark cells.
                let across = [(LEFT, y), (RIGHT, y)];
                for (width, colour) in [(3.5, Colour(255, 255, 255)), (1.5, colour)] {
                    match dash {
                        Some(dash) => picture.dashes(&across, width, colour, dash),
                        None => picture.line(&across, width, colour),
                    }
                }
                names.push((y, format!("{} {kind} {}", row.name, label(limit.value)), colour));
            }
        }
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Apart from each other downwards, then up again from the lower end.
        let mut places: Vec<f64> = names.iter().map(|(y, ..)| *y).collect();
        for index in 1..places.len() {
            places[index] = places[index].max(places[index - 1] + LINE);
        }
        let mut floor = self.bottom + LINE;
        for place in places.iter_mut().rev() {
            *place = place.min(floor - LINE);
            floor = *place;
        }
        for ((y, name, colour), place) in names.iter().zip(places) {
            picture.line(&[(RIGHT, *y), (RIGHT + 8.0, *y), (RIGHT + 20.0, place)], 1.0, *colour);
            let style = NOTE.coloured(*colour);
            picture.text(
                (RIGHT + 24.0, place + 4.0),
                &style.fit(name, f64::from(WIDTH) - RIGHT - 32.0),
                style,
            );
        }
    }

    /// What each format loses of each step, as figures where there is room and as shades where not.
    fn losses(&self, picture: &mut Picture, report: &HistogramReport) {
        let metric = report.options.sort.metric();
        let top = self.bottom + 62.0;
        picture.text((MARGIN, top - 12.0), metric.meaning(), NOTE.coloured(AXIS));
        let every = (58.0 / self.width()).ceil().max(1.0) as usize;
        for (index, row) in report.formats.iter().enumerate() {
            let y = top + ROW * index as f64 + 13.0;
            let style = TextStyle::new(12.0, FORMATS[index % FORMATS.len()]).bold();
            picture.text((MARGIN, y), &style.fit(row.name, LEFT - MARGIN - 4.0), style);
            for (column, subject) in report.tensors.iter().enumerate() {
                let Some(cell) = subject.formats.get(index) else { continue };
                if every > 1 && metric == Metric::Lost && subject.nonzero_finite > 0 {
                    let lost = (cell.underflow + cell.overflow) as f64 / subject.nonzero_finite as f64;
                    picture.rect((self.x(column), y - 11.0), (self.width() + 0.5, 15.0), shade(lost));
                } else if column % every == 0 {
                    let x = self.x(column) + self.width() / 2.0;
                    picture.text((x, y), &metric.text(cell), NOTE.anchored(Anchor::Middle));
                }
            }
        }
    }
}

/// The colour of a share.
fn shade(share: f64) -> Colour {
    if share <= 0.0 {
        return Colour(255, 255, 255);
    }
    let place = (1.0 - share.log10() / FAINTEST).clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let (low, part) = (place.floor(), place.fract());
    let (Colour(r0, g0, b0), Colour(r1, g1, b1)) =
        (RAMP[low as usize], RAMP[(low as usize + 1).min(RAMP.len() - 1)]);
    let mix = |a: u8, b: u8| (f64::from(a) + part * (f64::from(b) - f64::from(a))).round() as u8;
    Colour(mix(r0, r1), mix(g0, g1), mix(b0, b1))
}

/// What the colours mean.
fn ramp(picture: &mut Picture) {
    const CELLS: usize = 48;
    let (left, width) = (RIGHT - 250.0, 250.0 / CELLS as f64);
    let top = TOP - 24.0;
    for cell in 0..CELLS {
        let power = FAINTEST * (1.0 - (cell as f64 + 0.5) / CELLS as f64);
        picture.rect((left + width * cell as f64, top), (width + 0.5, 10.0), shade(10_f64.powf(power)));
    }
    for power in [-6, -4, -2, 0] {
        let x = left + 250.0 * (1.0 - f64::from(power) / FAINTEST);
        let text = format!("{} %", number::short(100.0 * 10_f64.powi(power), 1));
        picture.text((x, top - 4.0), &text, NOTE.anchored(Anchor::Middle).coloured(INK));
    }
}
