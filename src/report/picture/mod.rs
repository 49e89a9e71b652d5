//! A drawing as a list of shapes in logical pixels, and its way to PNG and SVG.
//!
//! A report lays out its picture once; both files are painted from the same list, so they cannot differ
//! in content.

mod font;
mod paint;

pub use font::text_width;
pub use paint::{to_png, to_svg};

use crate::error::escape;

/// An opaque colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// Which point of its baseline a text is placed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Where the text starts.
    Start,
    /// Its middle.
    Middle,
    /// Where it ends.
    End,
}

/// Thickness of the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Book.
    Regular,
    /// Bold.
    Bold,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextStyle {
    /// Size of the em in logical pixels.
    pub size: f64,
    /// Thickness of the letters.
    pub weight: Weight,
    /// Which point is placed.
    pub anchor: Anchor,
    /// Colour of the letters.
    pub colour: Colour,
}

impl TextStyle {
    /// Regular letters that start at the point given.
    pub const fn new(size: f64, colour: Colour) -> Self {
        Self { size, weight: Weight::Regular, anchor: Anchor::Start, colour }
    }

    /// The same, placed by another point.
    #[must_use]
    pub const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// The same in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        Self { weight: Weight::Bold, ..self }
    }

    /// The same in another colour.
    #[must_use]
    pub const fn coloured(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    /// Width of `text` in logical pixels.
    pub fn width(&self, text: &str) -> f64 {
        text_width(text, self.size, self.weight)
    }

    /// `text`, or as much of its two ends as `width` logical pixels hold, with an ellipsis between. More
    /// is kept of the end, where a path has its file name.
    pub fn fit(&self, text: &str, width: f64) -> String {
        let text = printable(text);
        if self.width(&text) <= width {
            return text;
        }
        let chars: Vec<char> = text.chars().collect();
        let shortened = |kept: usize| {
            let head = kept / 3;
            let tail = chars.len() - (kept - head);
            let ends = chars[..head].iter().chain(['…'].iter()).chain(&chars[tail..]);
            ends.collect::<String>()
        };
        let (mut fits, mut too_long) = (0, chars.len());
        while too_long - fits > 1 {
            let middle = usize::midpoint(fits, too_long);
            let short_enough = self.width(&shortened(middle)) <= width;
            *(if short_enough { &mut fits } else { &mut too_long }) = middle;
        }
        shortened(fits)
    }
}

/// One shape. Coordinates are logical pixels from the top left corner.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A filled rectangle.
    Rect {
        /// Left edge.
        x: f64,
        /// Top edge.
        y: f64,
        /// Extent to the right.
        width: f64,
        /// Extent downwards.
        height: f64,
        /// Colour of its inside.
        fill: Colour,
    },
    /// Straight lines from point to point.
    Line {
        /// The points.
        points: Vec<(f64, f64)>,
        /// Thickness.
        width: f64,
        /// Colour.
        colour: Colour,
        /// Lengths of a dash and of the gap after it; `None` for a continuous line.
        dash: Option<(f64, f64)>,
    },
    /// One line of text.
    Text {
        /// Where the anchor is.
        x: f64,
        /// The baseline.
        y: f64,
        /// What it says; free of control characters.
        text: String,
        /// How it looks.
        style: TextStyle,
    },
}

impl Item {
    /// The box of a text, from the height of its capitals to the depth of its descenders:
    /// left, top, right, bottom. `None` for other shapes.
    pub fn text_bounds(&self) -> Option<[f64; 4]> {
        let Self::Text { x, y, text, style } = self else { return None };
        let width = style.width(text);
        let left = match style.anchor {
            Anchor::Start => *x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        Some([left, y - 0.76 * style.size, left + width, y + 0.24 * style.size])
    }
}

/// A drawing on a white ground.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: u32,
    height: u32,
    items: Vec<Item>,
}

impl Picture {
    /// An empty picture of this many logical pixels.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height, items: Vec::new() }
    }

    /// Width and height in logical pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The shapes, those at the back first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Adds a filled rectangle.
    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: Colour) {
        self.items.push(Item::Rect { x, y, width, height, fill });
    }

    /// Adds a continuous line.
    pub fn line(&mut self, points: &[(f64, f64)], width: f64, colour: Colour) {
        self.items.push(Item::Line { points: points.to_vec(), width, colour, dash: None });
    }

    /// Adds a line of dashes, each `dash.0` long and `dash.1` apart.
    pub fn dashes(&mut self, points: &[(f64, f64)], width: f64, colour: Colour, dash: (f64, f64)) {
        self.items.push(Item::Line { points: points.to_vec(), width, colour, dash: Some(dash) });
    }

    /// Adds a text, which need not be trusted.
    pub fn text(&mut self, (x, y): (f64, f64), text: &str, style: TextStyle) {
        self.items.push(Item::Text { x, y, text: printable(text), style });
    }
}

/// Text that can stand in a picture: control characters as escapes, nothing that XML forbids, and no spaces
/// in a row, of which SVG would show one.
pub fn printable(text: &str) -> String {
    escape(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}").replace("  ", " \u{a0}")
}
