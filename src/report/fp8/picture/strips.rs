//! The SQNR of every tensor, a strip a recipe.

use super::super::model::Fp8Report;
use super::super::terminal::unless;
use super::{ALARM, AXIS, BLUE, FAINT, HEIGHT, INK, MARGIN, NOTE, TOP, WIDTH, head};
use crate::report::number::{count, percent, short};
use crate::report::picture::{Anchor, Picture};

const LEFT: f64 = 190.0;
const RIGHT: f64 = 930.0;
/// Height of a recipe.
const STRIP: f64 = 42.0;

pub(super) fn picture(report: &Fp8Report) -> Picture {
    let strips = STRIP * report.recipes.len() as f64;
    let height = (TOP + strips + 110.0).max(f64::from(HEIGHT) / 2.0);
    let mut picture = Picture::new(WIDTH, height as u32);
    head(&mut picture, report, "a dot a tensor: how well each recipe keeps it");
    let finite = |number: usize| {
        let cells = report.tensors.iter().filter_map(move |tensor| tensor.recipes.get(number)?.sqnr_db);
        cells.map(|sqnr| sqnr.0).filter(|sqnr| sqnr.is_finite()).collect::<Vec<f64>>()
    };
    let all: Vec<f64> = (0..report.recipes.len()).flat_map(finite).collect();
    let low = all.iter().fold(f64::INFINITY, |low, &x| low.min(x)).clamp(-20.0, 70.0);
    let high = all.iter().fold(f64::NEG_INFINITY, |high, &x| high.max(x)).clamp(low, 80.0);
    let (low, high) = ((low / 5.0 - 0.2).floor() * 5.0, (high / 5.0 + 0.2).ceil() * 5.0);
    let x = |sqnr: f64| LEFT + (RIGHT - LEFT) * (sqnr.clamp(low, high) - low) / (high - low);
    let bottom = TOP + strips;
    let mut tick = low;
    while tick <= high {
        picture.line(&[(x(tick), TOP - 4.0), (x(tick), bottom)], 0.5, FAINT);
        picture.text((x(tick), bottom + 18.0), &short(tick, 2), NOTE.anchored(Anchor::Middle));
        tick += if high - low > 45.0 { 10.0 } else { 5.0 };
    }
    picture.text(
        ((LEFT + RIGHT) / 2.0, bottom + 40.0),
        "SQNR in dB",
        NOTE.anchored(Anchor::Middle).coloured(AXIS),
    );
    for (at, title) in [(990.0, "all dB"), (1080.0, "underflow %"), (1160.0, "saturated")] {
        picture.text((at, TOP - 12.0), title, NOTE.anchored(Anchor::End).coloured(AXIS));
    }
    for (number, row) in report.recipes.iter().enumerate() {
        let y = TOP + STRIP * (number as f64 + 0.5);
        picture.line(&[(LEFT, y), (RIGHT, y)], 0.5, FAINT);
        picture.text((LEFT - 14.0, y + 1.0), row.recipe, NOTE.bold().anchored(Anchor::End));
        let formats = NOTE.fit(&row.formats.join(", "), LEFT - 14.0 - MARGIN / 2.0);
        picture.text((LEFT - 14.0, y + 16.0), &formats, NOTE.coloured(AXIS).anchored(Anchor::End));
        let mut values = finite(number);
        values.sort_by(f64::total_cmp);
        for (index, &sqnr) in values.iter().enumerate() {
            // Spread over the height, so that equal ones can be told apart.
            let shift = f64::from((index as u32).wrapping_mul(2_654_435_769) >> 16) / 65536.0 - 0.5;
            picture.rect((x(sqnr) - 2.0, y + shift * (STRIP - 22.0) - 2.0), (4.0, 4.0), BLUE);
        }
        if let Some(&median) = values.get(values.len() / 2) {
            picture.line(&[(x(median), y - STRIP / 2.0 + 6.0), (x(median), y + STRIP / 2.0 - 6.0)], 2.0, INK);
        }
        let sqnr = row.sqnr_db.map_or("–".into(), |sqnr| short(sqnr.0, 3));
        let saturated = if row.saturated > 0 { NOTE.coloured(ALARM) } else { NOTE };
        picture.text((990.0, y + 5.0), &sqnr, NOTE.anchored(Anchor::End));
        let underflow = unless(row.is_spoiled(), percent(row.underflow, row.nonzero_finite));
        picture.text((1080.0, y + 5.0), &underflow, NOTE.anchored(Anchor::End));
        let beyond = unless(row.is_spoiled(), count(row.saturated));
        picture.text((1160.0, y + 5.0), &beyond, saturated.anchored(Anchor::End));
    }
    let note = "bar: the median tensor; on the right all tensors together: SQNR, share of the nonzero values stored as zero, \
                values beyond the largest number";
    picture.text(
        (MARGIN, height - 18.0),
        &NOTE.fit(note, f64::from(WIDTH) - 2.0 * MARGIN),
        NOTE.coloured(AXIS),
    );
    picture
}
