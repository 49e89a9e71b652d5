//! The picture: over a series of steps, the scale of the tensor that delayed scaling serves worst; else the SQNR of
//! every tensor under every recipe.

mod strips;
mod trajectory;

use super::model::Fp8Report;
use crate::error::escape;
use crate::report::number::{count, plural};
use crate::report::picture::{Colour, Picture, TextStyle};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 800;
const MARGIN: f64 = 40.0;
const TOP: f64 = 116.0;
const INK: Colour = Colour(34, 34, 34);
const AXIS: Colour = Colour(96, 96, 96);
const FAINT: Colour = Colour(224, 224, 224);
const ALARM: Colour = Colour(176, 58, 0);
const NOTE: TextStyle = TextStyle::new(12.0, INK);
const BLUE: Colour = Colour(0, 114, 178);
const GREEN: Colour = Colour(0, 128, 96);

/// Lays the picture out.
pub(super) fn picture(report: &Fp8Report) -> Picture {
    match trajectory::worst(report) {
        Some(found) => trajectory::picture(report, &found),
        None => strips::picture(report),
    }
}

fn head(picture: &mut Picture, report: &Fp8Report, about: &str) {
    let title = TextStyle::new(20.0, INK).bold();
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    let subject = match report.inputs.as_slice() {
        [first, others @ ..] => {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            title.fit(&escape(&first.path), room - title.width(&more)) + &more
        }
        [] => "No input".to_owned(),
    };
    picture.text((MARGIN, 48.0), &subject, title);
    let elements: u64 = report.tensors.iter().map(|tensor| tensor.elements).sum();
    let elements = if report.has_magnitudes_only() {
        String::new()
    } else {
        format!(", {}", plural(elements, "element"))
    };
    let facts = format!("{}{elements} · {about}", count_of(report));
    let style = TextStyle::new(14.0, AXIS);
    picture.text((MARGIN, 72.0), &style.fit(&facts, room), style);
}

fn count_of(report: &Fp8Report) -> String {
    let all = report.tensors.len() as u64;
    if report.has_series() { format!("{} steps of tensors", count(all)) } else { plural(all, "tensor") }
}
