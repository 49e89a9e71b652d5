//! The piece of the number line between a value's neighbours, drawn in characters.

use super::CastRow;
use crate::report::style::Paint;

/// What stands at the end of a line where the format has no more numbers.
const BEYOND: &str = "overflow";

/// What stands at the ends of the line, smaller first.
pub(super) fn ends(row: &CastRow, number: impl Fn(f64) -> String) -> [String; 2] {
    let end = |near: &Option<super::Near>| {
        near.as_ref().map_or_else(|| BEYOND.to_owned(), |near| number(near.value.0))
    };
    [end(&row.below), end(&row.above)]
}

/// `├──────┼──▼───●` in `length` characters: ▼ is the value, ┼ the tie, ● what is stored.
pub(super) fn draw(row: &CastRow, product: f64, length: usize, paint: Paint) -> String {
    let last = length.saturating_sub(1);
    let middle = last / 2;
    let mut marks = vec!['─'; length];
    let mut put = |at: usize, mark: char| {
        if let Some(place) = marks.get_mut(at) {
            *place = mark;
        }
    };
    put(0, '├');
    put(last, '┤');
    let value_at = if row.exact { middle } else { position(row, product, length) };
    if row.tie.is_some() {
        put(middle, '┼');
    }
    put(value_at, '▼');
    // Inf and NaN lie past the end at which the value overflows.
    let past = if product < 0.0 { 0 } else { last };
    let stored = row.stored.0;
    if stored.is_finite() {
        let at = |near: &Option<super::Near>| near.as_ref().is_some_and(|near| near.value.0 == stored);
        if row.exact && stored == product {
            put(middle, '●');
        } else if at(&row.below) {
            put(0, '●');
        } else if at(&row.above) {
            put(last, '●');
        }
    } else {
        put(past, '●');
    }
    let coloured = |mark: &char| match mark {
        '●' => paint.wrap("32;1", "●"),
        '▼' => paint.wrap("33;1", "▼"),
        mark => mark.to_string(),
    };
    marks.iter().map(coloured).collect()
}

/// Where the value goes: in proportion, but never on an end, and on the tie only if it is the tie.
fn position(row: &CastRow, product: f64, length: usize) -> usize {
    let last = length.saturating_sub(1);
    let middle = last / 2;
    let (Some(ulp), Some(tie)) = (row.ulp, row.tie) else { return middle };
    let half = middle as f64;
    let offset = ((product - tie.0) / ulp.0 * 2.0 * half).round().clamp(-half, half);
    let at = (half + offset) as usize;
    match row.side {
        Some("below") => at.min(middle.saturating_sub(1)).max(1),
        Some("above") => at.max(middle + 1).min(last.saturating_sub(1)),
        _ => middle,
    }
}
