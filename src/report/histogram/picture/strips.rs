//! One strip a format: what becomes of each magnitude, between the shares that this has in the data.

use super::super::axis::{Limits, Zone};
use super::super::{FormatRow, HistogramReport, Metric};
use super::axis::{Axis, label};
use super::{AXIS, INK, LEFT, MARGIN, NOTE, RIGHT};
use crate::report::number;
use crate::report::picture::{Anchor, Colour, Picture, TextStyle};

const WHITE: Colour = Colour(255, 255, 255);

/// How a zone is drawn. The colours follow Okabe and Ito, with blue made darker, so that all four also differ
/// when printed in grey.
impl Zone {
    const ALL: [Self; 4] = [Self::Flushed, Self::Subnormal, Self::Normal, Self::Overflow];

    fn title(self) -> &'static str {
        match self {
            Self::Flushed => "underflow: becomes zero",
            Self::Subnormal => "subnormal",
            Self::Normal => "normal",
            Self::Overflow => "overflow",
        }
    }

    fn fill(self) -> Colour {
        match self {
            Self::Flushed => Colour(0, 85, 135),
            Self::Subnormal => Colour(110, 190, 236),
            Self::Normal => Colour(231, 231, 228),
            Self::Overflow => Colour(222, 104, 15),
        }
    }

    fn ink(self) -> Colour {
        if self == Self::Flushed { WHITE } else { INK }
    }
}

/// Right edges of the columns of figures.
const UNDERFLOW: f64 = 232.0;
const SUBNORMAL: f64 = LEFT - 12.0;
const OVERFLOW: f64 = RIGHT + 80.0;
const SQNR: f64 = RIGHT + 148.0;

/// Height that a strip and its gap take, given the number of strips.
pub(super) fn pitch(strips: usize) -> f64 {
    (280.0 / strips.max(1) as f64).clamp(17.0, 34.0).floor()
}

/// Draws the legend with its baseline at `y`, and the heads of the columns.
pub(super) fn heads(picture: &mut Picture, y: f64) {
    let head = NOTE.coloured(AXIS);
    picture.text((MARGIN, y), "format", head);
    let right = head.anchored(Anchor::End);
    for (x, text) in
        [(UNDERFLOW, "underflow %"), (SUBNORMAL, "subnormal %"), (OVERFLOW, "overflow %"), (SQNR, "SQNR dB")]
    {
        picture.text((x, y), text, right);
    }
    let mut x = LEFT;
    for zone in Zone::ALL {
        picture.rect((x, y - 10.0), (16.0, 11.0), zone.fill());
        picture.text((x + 22.0, y), zone.title(), NOTE);
        x += 22.0 + NOTE.width(zone.title()) + 28.0;
    }
}

/// Draws the strip of format number `index` from `y` down.
pub(super) fn strip(
    picture: &mut Picture,
    report: &HistogramReport,
    index: usize,
    axis: &Axis,
    limits: Option<&Limits>,
    (y, pitch): (f64, f64),
) {
    let (Some(row), Some(cell)) = (report.formats.get(index), report.total.formats.get(index)) else {
        return;
    };
    let height = pitch - if pitch < 24.0 { 3.0 } else { 6.0 };
    let size = if pitch < 24.0 { 12.0 } else { 14.0 };
    let baseline = y + height / 2.0 + 0.36 * size;
    let text = TextStyle::new(size, INK);
    let whole = report.total.nonzero_finite;
    // The long names of block formats may use what the figure beside them leaves, and a smaller type.
    let taken = text.width(&number::percent(cell.underflow, whole)) + 8.0;
    let room = UNDERFLOW - MARGIN - if row.block.is_some() { taken } else { 70.0 };
    let name = if text.bold().width(row.name) > room { NOTE.bold() } else { text.bold() };
    picture.text((MARGIN, baseline), &name.fit(row.name, room), name);
    let figures = [
        (UNDERFLOW, number::percent(cell.underflow, whole)),
        (SUBNORMAL, number::percent(cell.subnormal, whole)),
        (OVERFLOW, number::percent(cell.overflow, whole)),
        (SQNR, Metric::Sqnr.text(cell)),
    ];
    for (x, figure) in figures {
        picture.text((x, baseline), &figure, text.anchored(Anchor::End));
    }
    let baseline = y + height / 2.0 + 0.36 * NOTE.size;
    match limits {
        Some(limits) => zones(picture, axis, limits, (y, height, baseline)),
        None => no_zones(picture, row, (y, height, baseline)),
    }
}

/// A block format has no limits on this axis: its strip says so.
fn no_zones(picture: &mut Picture, row: &FormatRow, (y, height, baseline): (f64, f64, f64)) {
    let (left, right) = (LEFT, RIGHT);
    let edge = [(left, y), (right, y), (right, y + height), (left, y + height), (left, y)];
    picture.dashes(&edge, 1.0, AXIS, (4.0, 4.0));
    let style = NOTE.anchored(Anchor::Middle).coloured(AXIS);
    picture.text(
        (f64::midpoint(left, right), baseline),
        &NOTE.fit(&row.no_limits(usize::MAX), right - left),
        style,
    );
}

fn zones(picture: &mut Picture, axis: &Axis, limits: &Limits, (y, height, baseline): (f64, f64, f64)) {
    let flush = limits.flush.map_or(f64::NEG_INFINITY, |limit| limit.log2);
    let normal = limits.normal.map_or(flush, |limit| limit.log2).max(flush);
    let overflow = limits.overflow.log2;
    let ends = [f64::NEG_INFINITY, flush, normal, overflow, f64::INFINITY];
    let span = |zone: usize| (axis.x(ends[zone]), axis.x(ends[zone + 1]));
    for (index, zone) in Zone::ALL.into_iter().enumerate() {
        let (x0, x1) = span(index);
        picture.rect((x0, y), (x1 - x0, height), zone.fill());
    }

    // Each limit is written on its outer side, where the loss begins; one beyond the axis at the axis' end.
    let write = |picture: &mut Picture, zone: usize, at_end: bool, label: &str, taken: f64| {
        let (x0, x1) = span(zone);
        let width = NOTE.width(label) + 8.0;
        if x1 - x0 < width + taken {
            return 0.0;
        }
        let (x, anchor) = if at_end { (x1 - 4.0, Anchor::End) } else { (x0 + 4.0, Anchor::Start) };
        let style = NOTE.anchored(anchor).coloured(Zone::ALL[zone].ink());
        picture.text((x, baseline), label, style);
        width
    };
    let mut taken = 0.0;
    let beyond_right = overflow >= axis.high();
    if beyond_right {
        taken = write(picture, 2, true, &format!("{} ▸", label(limits.overflow.value)), 0.0);
    } else if write(picture, 3, false, &label(limits.overflow.value), 0.0) == 0.0 {
        taken = write(picture, 2, true, &label(limits.overflow.value), 0.0);
    }
    if let Some(limit) = limits.normal {
        let label = label(limit.value);
        let label = if limit.log2 <= axis.low() { format!("◂ {label}") } else { label };
        taken += write(picture, 2, false, &label, taken);
    }
    if let Some(limit) = limits.flush {
        if limit.log2 > axis.low() {
            if write(picture, 0, true, &label(limit.value), 0.0) == 0.0 {
                write(picture, 1, false, &label(limit.value), 0.0);
            }
        } else if limits.normal.is_some() {
            write(picture, 1, false, &format!("◂ {}", label(limit.value)), 0.0);
        } else {
            write(picture, 2, false, &format!("◂ {}", label(limit.value)), taken);
        }
    }
}
