//! The letters: DejaVu Sans from a crate, so that a picture looks the same on every machine.
//!
//! Glyphs are placed here and not by plotters, whose own text drawing drops side bearings and rounds each
//! advance to whole pixels.

use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};

use super::Weight;

/// The embedded font of a weight; `None` cannot happen unless the crate ships a broken file.
pub(super) fn face(weight: Weight) -> Option<&'static FontRef<'static>> {
    static REGULAR: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    static BOLD: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    let (cell, bytes): (_, fn() -> &'static [u8]) = match weight {
        Weight::Regular => (&REGULAR, dejavu::sans::regular),
        Weight::Bold => (&BOLD, dejavu::sans::bold),
    };
    cell.get_or_init(|| FontRef::try_from_slice(bytes()).ok()).as_ref()
}

/// The glyphs of `text` on the baseline y = 0 from x = 0 on, and the width of them all. `size` is the em.
pub(super) fn layout(face: &FontRef<'static>, text: &str, size: f64) -> (Vec<Glyph>, f32) {
    let units = face.units_per_em().unwrap_or(2048.0);
    // ab_glyph scales by ascent + descent, CSS and print by the em.
    let scale = PxScale::from(size as f32 * face.height_unscaled() / units);
    let font = face.as_scaled(scale);
    let mut x = 0.0;
    let mut before = None;
    let glyphs = text.chars().map(|c| {
        let id = font.glyph_id(c);
        x += before.map_or(0.0, |before| font.kern(before, id));
        before = Some(id);
        let glyph = id.with_scale_and_position(scale, point(x, 0.0));
        x += font.h_advance(id);
        glyph
    });
    let glyphs = glyphs.collect();
    (glyphs, x)
}

/// Width of `text` in the unit of `size`, the em.
pub fn text_width(text: &str, size: f64, weight: Weight) -> f64 {
    face(weight).map_or(0.0, |face| layout(face, text, size).1.into())
}
