//! Paints a [`Picture`] through any backend of plotters.

use std::convert::Infallible;

use ab_glyph::{Font, FontRef};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters_backend::text_anchor::{HPos, Pos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind, FontFamily,
    FontStyle,
};

use super::{Anchor, Colour, Item, Picture, TextStyle, Weight, font};
use crate::error::{Error, Result};

/// Pixels of a PNG per logical pixel: 1200 × 800 fills a printed page's width at 300 dpi.
const PNG_SCALE: u32 = 2;
/// Units of an SVG per logical pixel. plotters has whole coordinates only; this makes them fine enough.
const SVG_SCALE: u32 = 10;
/// Verdana has DejaVu's widths where DejaVu is not installed.
const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";
/// plotters-svg divides every font size by this.
const SVG_FONT_DIVISOR: f64 = 1.24;
/// How far plotters-svg puts the baseline below a point that is a text's top, in ems.
const TOP_TO_BASELINE: f64 = 0.76;

/// The picture as PNG, two pixels per logical pixel.
///
/// # Errors
/// The picture is too large to encode.
pub fn to_png(picture: &Picture) -> Result<Vec<u8>> {
    let (width, height) = (picture.width * PNG_SCALE, picture.height * PNG_SCALE);
    let mut pixels = vec![0; width as usize * height as usize * 3];
    let mut backend = BitMapBackend::with_buffer(&mut pixels, (width, height));
    paint(picture, &mut backend, PNG_SCALE.into()).map_err(failed)?;
    drop(backend);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Default);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    written.map_err(failed)?;
    Ok(bytes)
}

/// The picture as SVG, with text that can be selected.
///
/// # Errors
/// None that is known of: the backend's own errors are passed on.
pub fn to_svg(picture: &Picture) -> Result<Vec<u8>> {
    let (width, height) = (picture.width * SVG_SCALE, picture.height * SVG_SCALE);
    let mut svg = String::new();
    let mut backend = SVGBackend::with_string(&mut svg, (width, height));
    paint(picture, &mut backend, SVG_SCALE.into()).map_err(failed)?;
    drop(backend);
    let fine = format!("width=\"{width}\" height=\"{height}\" viewBox");
    let logical = format!("width=\"{}\" height=\"{}\" viewBox", picture.width, picture.height);
    Ok(svg.replacen(&fine, &logical, 1).into_bytes())
}

fn failed(error: impl std::error::Error) -> Error {
    Error::new(format!("the picture cannot be drawn: {error}"))
}

type Painted<B> = std::result::Result<(), DrawingErrorKind<<B as DrawingBackend>::ErrorType>>;

fn paint<B: DrawingBackend>(picture: &Picture, backend: &mut B, scale: f64) -> Painted<B> {
    let at = |(x, y): (f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
    let (width, height) = picture.size();
    backend.ensure_prepared()?;
    backend.draw_rect((0, 0), at((width.into(), height.into())), &colour(Colour(255, 255, 255)), true)?;
    for item in &picture.items {
        match item {
            Item::Rect { x, y, width, height, fill } => {
                backend.draw_rect(at((*x, *y)), at((x + width, y + height)), &colour(*fill), true)?;
            }
            Item::Line { points, width, colour: fill, dash } => {
                let pen = Pen { colour: colour(*fill), width: (width * scale).round().max(1.0) as u32 };
                match dash {
                    None => draw_line(backend, points, at, *width, pen)?,
                    Some(dash) => {
                        for piece in dashes(points, *dash) {
                            draw_line(backend, &piece, at, *width, pen)?;
                        }
                    }
                }
            }
            Item::Text { x, y, text, style } => {
                let Some(face) = font::face(style.weight) else { continue };
                let lettering = Lettering { face, style, size: style.size * scale };
                backend.draw_text(text, &lettering, at((*x, y - TOP_TO_BASELINE * style.size)))?;
            }
        }
    }
    backend.present()
}

/// Upright and level lines go through `draw_rect`, whose edges are sharp in a bitmap.
fn draw_line<B: DrawingBackend>(
    backend: &mut B,
    points: &[(f64, f64)],
    at: impl Fn((f64, f64)) -> BackendCoord,
    width: f64,
    pen: Pen,
) -> Painted<B> {
    let half = width / 2.0;
    match *points {
        [(x0, y0), (x1, y1)] if x0 == x1 => {
            backend.draw_rect(at((x0 - half, y0.min(y1))), at((x0 + half, y0.max(y1))), &pen.colour, true)
        }
        [(x0, y0), (x1, y1)] if y0 == y1 => {
            backend.draw_rect(at((x0.min(x1), y0 - half)), at((x0.max(x1), y0 + half)), &pen.colour, true)
        }
        _ => backend.draw_path(points.iter().map(|&point| at(point)), &pen),
    }
}

/// Cuts a line into dashes; the pattern runs on around corners.
fn dashes(points: &[(f64, f64)], (dash, gap): (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = Vec::new();
    let (mut drawing, mut left) = (true, dash.max(0.1));
    let mut piece: Vec<_> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let ((mut x, mut y), (x1, y1)) = (pair[0], pair[1]);
        let mut length = (x1 - x).hypot(y1 - y);
        while length > left {
            (x, y) = (x + (x1 - x) * left / length, y + (y1 - y) * left / length);
            length -= left;
            if drawing {
                piece.push((x, y));
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![(x, y)];
            }
            drawing = !drawing;
            left = if drawing { dash.max(0.1) } else { gap.max(0.1) };
        }
        left -= length;
        if drawing {
            piece.push((x1, y1));
        }
    }
    if drawing && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

fn colour(Colour(red, green, blue): Colour) -> BackendColor {
    BackendColor { alpha: 1.0, rgb: (red, green, blue) }
}

#[derive(Clone, Copy)]
struct Pen {
    colour: BackendColor,
    width: u32,
}

impl BackendStyle for Pen {
    fn color(&self) -> BackendColor {
        self.colour
    }

    fn stroke_width(&self) -> u32 {
        self.width
    }
}

/// A text style as plotters asks for it. The SVG backend reads the attributes, the bitmap backend the glyphs.
struct Lettering<'a> {
    face: &'static FontRef<'static>,
    style: &'a TextStyle,
    /// The em in the backend's units.
    size: f64,
}

impl BackendTextStyle for Lettering<'_> {
    type FontError = Infallible;

    fn color(&self) -> BackendColor {
        colour(self.style.colour)
    }

    fn size(&self) -> f64 {
        self.size * SVG_FONT_DIVISOR
    }

    fn style(&self) -> FontStyle {
        match self.style.weight {
            Weight::Regular => FontStyle::Normal,
            Weight::Bold => FontStyle::Bold,
        }
    }

    fn anchor(&self) -> Pos {
        let horizontal = match self.style.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        Pos::new(horizontal, VPos::Top)
    }

    fn family(&self) -> FontFamily<'_> {
        FontFamily::Name(FAMILY)
    }

    fn layout_box(&self, text: &str) -> std::result::Result<((i32, i32), (i32, i32)), Infallible> {
        let (_, width) = font::layout(self.face, text, self.size);
        Ok(((0, 0), (width.round() as i32, self.size.round() as i32)))
    }

    fn draw<E, D: FnMut(i32, i32, BackendColor) -> std::result::Result<(), E>>(
        &self,
        text: &str,
        (left, top): BackendCoord,
        mut draw: D,
    ) -> std::result::Result<std::result::Result<(), E>, Infallible> {
        let baseline = top + (TOP_TO_BASELINE * self.size).round() as i32;
        let mut outcome = Ok(());
        for glyph in font::layout(self.face, text, self.size).0 {
            let Some(outline) = self.face.outline_glyph(glyph) else { continue };
            let bounds = outline.px_bounds();
            let (x0, y0) = (left + bounds.min.x as i32, baseline + bounds.min.y as i32);
            outline.draw(|x, y, coverage| {
                if outcome.is_ok() {
                    let ink = self.color().mix(coverage.clamp(0.0, 1.0).into());
                    outcome = draw(x0 + x as i32, y0 + y as i32, ink);
                }
            });
        }
        Ok(outcome)
    }
}
