//! The picture: for each device and format three bars, in percent of the device's copy.

use super::model::{BenchReport, ThroughputEntry};
use crate::report::number::{count, short};
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};

const WIDTH: u32 = 1200;
const MARGIN: f64 = 40.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 1080.0;
const TOP: f64 = 100.0;
const BAR: f64 = 12.0;
const GROUP: f64 = 48.0;
/// Heading of a device.
const HEADING: f64 = 46.0;

const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const NOTE: TextStyle = TextStyle::new(12.0, INK);
/// What the bars of a format are: of Okabe and Ito's colours.
const WORKS: [(&str, &str, Colour); 3] = [
    ("encode", "float32 to the format", Colour(0, 114, 178)),
    ("decode", "back", Colour(213, 94, 0)),
    ("roundtrip", "both, codes not stored", Colour(0, 128, 96)),
];

/// Lays the picture out.
pub(super) fn picture(report: &BenchReport) -> Picture {
    let devices: Vec<Device> =
        ["gpu", "cpu"].into_iter().filter_map(|name| Device::of(report, name)).collect();
    if devices.is_empty() {
        return nothing(report);
    }
    let height: f64 = devices.iter().map(Device::height).sum();
    let mut picture = Picture::new(WIDTH, (TOP + height + 30.0) as u32);
    picture.text((MARGIN, 44.0), "Casts of buffers, in percent of a copy", TextStyle::new(20.0, INK).bold());
    let mut x = MARGIN;
    for (name, about, colour) in WORKS {
        picture.rect((x, 62.0), (14.0, BAR), colour);
        let text = format!("{name}: {about}");
        picture.text((x + 20.0, 72.0), &text, NOTE);
        x += NOTE.width(&text) + 48.0;
    }
    let mut top = TOP;
    for device in &devices {
        device.draw(&mut picture, report, top);
        top += device.height();
    }
    picture
}

/// Without times: what there is to say in their place.
fn nothing(report: &BenchReport) -> Picture {
    let mut picture = Picture::new(WIDTH, 160);
    picture.text((MARGIN, 44.0), "Nothing was timed", TextStyle::new(20.0, INK).bold());
    for (index, line) in report.head().into_iter().chain(report.verdict()).enumerate() {
        let line = NOTE.fit(&line, f64::from(WIDTH) - 2.0 * MARGIN);
        picture.text((MARGIN, 76.0 + 22.0 * index as f64), &line, NOTE);
    }
    picture
}

struct Device<'a> {
    copy: &'a ThroughputEntry,
    entries: Vec<&'a ThroughputEntry>,
    formats: Vec<&'a str>,
    /// The end of the axis in percent.
    most: f64,
}

impl<'a> Device<'a> {
    fn of(report: &'a BenchReport, name: &str) -> Option<Self> {
        let entries: Vec<&ThroughputEntry> =
            report.throughput.iter().filter(|entry| entry.device == name).collect();
        let copy = *entries.iter().find(|entry| entry.format.is_none())?;
        let mut formats: Vec<&str> = entries.iter().filter_map(|entry| entry.format).collect();
        formats.dedup();
        let shares = entries.iter().filter_map(|entry| entry.pct_of_copy);
        let most = shares.map(|share| share.0).fold(100.0, f64::max);
        Some(Self { copy, entries, formats, most })
    }

    fn height(&self) -> f64 {
        HEADING + GROUP * self.formats.len() as f64 + 30.0
    }

    fn draw(&self, picture: &mut Picture, report: &BenchReport, top: f64) {
        let card = report.environment.as_ref().map(|card| card.name.clone());
        let name = match (self.copy.device, card) {
            ("gpu", Some(name)) => name,
            (device, _) => device.to_uppercase(),
        };
        let about = format!(
            "{name}: a copy of {} float32 moves {} GB/s, read and written",
            count(self.copy.values),
            short(self.copy.gb_per_s.0, 3)
        );
        picture.text((MARGIN, top + 22.0), &about, TextStyle::new(14.0, INK).bold());
        let (first, last) = (top + HEADING, top + self.height() - 30.0);
        let x = |share: f64| LEFT + (RIGHT - LEFT) * share / self.most;
        let step = if self.most > 300.0 { 100 } else { 20 };
        for tick in (0..=self.most as u32).step_by(step) {
            let at = x(tick.into());
            let colour = if tick == 100 { AXIS } else { FAINT };
            picture.line(&[(at, first - 6.0), (at, last)], 1.0, colour);
            let style = NOTE.coloured(AXIS).anchored(Anchor::Middle);
            picture.text((at, last + 16.0), &format!("{tick} %"), style);
        }
        for (index, format) in self.formats.iter().enumerate() {
            let y = first + GROUP * index as f64;
            picture.text((LEFT - 10.0, y + 22.0), format, NOTE.anchored(Anchor::End));
            for (bar, (work, _, colour)) in WORKS.into_iter().enumerate() {
                let found =
                    self.entries.iter().find(|entry| entry.format == Some(*format) && entry.work == work);
                let Some((entry, share)) = found.and_then(|entry| Some((entry, entry.pct_of_copy?.0))) else {
                    continue;
                };
                let y = y + (BAR + 1.0) * bar as f64;
                picture.rect((LEFT, y), (x(share) - LEFT, BAR), colour);
                let text = format!("{} GB/s", short(entry.gb_per_s.0, 3));
                picture.text((x(share) + 6.0, y + 10.0), &text, TextStyle::new(10.0, AXIS));
            }
        }
    }
}
