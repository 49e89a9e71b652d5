//! What a block format is: an element format, a scale that the elements of a block share, the shape of a
//! block, and the recipe by which the scale follows from the block's values.
//!
//! The arithmetic is in `cast::block`; here are only names and numbers.

use std::mem::discriminant;

use super::table::BLOCK_FORMATS;
use super::{FormatSpec, find};
use crate::error::{Error, Result, escape};

/// Longest side of a block, so that a block always fits in a small buffer.
pub const MAX_SIDE: u32 = 1024;

/// A format whose elements are stored relative to a scale that they share with their block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSpec {
    /// Canonical name, such as `mxfp8_e4m3:rceil`: [`find_block`] reads it back as the same format.
    pub name: &'static str,
    /// Other spellings that [`find_block`] accepts, in lower case.
    pub aliases: &'static [&'static str],
    /// Format of an element divided by its scale.
    pub element: FormatSpec,
    /// Format in which a block's scale is stored.
    pub scale: FormatSpec,
    /// Which elements make a block.
    pub shape: BlockShape,
    /// How the scale follows from the values.
    pub recipe: Recipe,
    /// Where the format is defined.
    pub source: &'static str,
}

/// Which elements of a tensor share a scale. Blocks at the end of a dimension are shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockShape {
    /// `length` consecutive elements along an axis, counted from 0, or from the last axis, −1, backwards. A
    /// tensor that has no such axis cannot be cut so.
    Run {
        /// Elements in a block.
        length: u32,
        /// The axis.
        axis: i32,
    },
    /// A rectangle of the tensor seen as a matrix of its last dimension's rows (all other dimensions
    /// together count rows, as in Transformer Engine).
    Tile {
        /// Rows in a block.
        rows: u32,
        /// Columns in a block.
        columns: u32,
    },
}

/// How the scale follows from a block's largest magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A power of two (MX).
    Power(PowerRule),
    /// An e4m3 number, relative to a scale of the whole tensor except in [`Nvfp4::Single`].
    Nvfp4(Nvfp4),
    /// An f32 quotient of the element's largest number and the largest magnitude (FP8 blocks).
    Quotient {
        /// Whether the factor is cut to a power of two.
        power_of_two: bool,
    },
}

/// Rounding of an MX scale to a power of two; the names are those of torchao's `ScaleCalculationMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRule {
    /// Down: the default of OCP MX 1.0, section 6.3. Clips values just below the next power of two.
    Floor,
    /// Up, by the exponent of the largest magnitude. Never clips.
    Ceil,
    /// Down, after rounding the largest magnitude to the element's precision.
    Even,
    /// Up, by the quotient of the largest magnitude and the element's largest number, as cuBLAS and
    /// Transformer Engine do. Never clips, and wastes less than `Ceil`.
    Rceil,
}

/// Who forms an NVFP4 scale: the implementations differ in most scales of widely spread data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nvfp4 {
    /// Transformer Engine: a tensor scale, and block scales that may be subnormal or zero.
    Te,
    /// torchao with a tensor scale: block scales are at least 2^-6.
    Torchao,
    /// torchao without a tensor scale.
    Single,
}

/// The suffixes that choose a recipe.
const RECIPES: &[(&str, Recipe)] = &[
    ("floor", Recipe::Power(PowerRule::Floor)),
    ("ceil", Recipe::Power(PowerRule::Ceil)),
    ("even", Recipe::Power(PowerRule::Even)),
    ("rceil", Recipe::Power(PowerRule::Rceil)),
    ("te", Recipe::Nvfp4(Nvfp4::Te)),
    ("torchao", Recipe::Nvfp4(Nvfp4::Torchao)),
    ("single", Recipe::Nvfp4(Nvfp4::Single)),
    ("f32", Recipe::Quotient { power_of_two: false }),
    ("pow2", Recipe::Quotient { power_of_two: true }),
];

impl Recipe {
    /// The suffix that chooses it.
    pub fn name(self) -> &'static str {
        RECIPES.iter().find(|(_, recipe)| *recipe == self).map_or("", |(name, _)| name)
    }

    /// The suffixes of all recipes for the same kind of scale.
    fn siblings(self) -> String {
        let same = RECIPES.iter().filter(|(_, recipe)| discriminant(recipe) == discriminant(&self));
        same.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

impl BlockShape {
    /// As people write it: `32` or `128x128`.
    pub fn text(self) -> String {
        match self {
            Self::Run { length, .. } => length.to_string(),
            Self::Tile { rows, columns } => format!("{rows}x{columns}"),
        }
    }

    /// Elements in a whole block.
    pub fn elements(self) -> u32 {
        match self {
            Self::Run { length, .. } => length,
            Self::Tile { rows, columns } => rows * columns,
        }
    }
}

/// Whether `text` can only be meant as a block format: it has suffixes, or a row of [`BLOCK_FORMATS`] is
/// called so.
pub(super) fn is_block(text: &str) -> bool {
    text.contains(':') || row(&head_of(text)).is_some()
}

/// Finds a block format: a row's name or alias, or `FORMAT:RxC` for FP8 blocks of R rows and C columns; then
/// any of these suffixes, in any order:
///
/// * `:floor`, `:ceil`, `:even`, `:rceil` (MX), `:te`, `:torchao`, `:single` (NVFP4), `:f32`, `:pow2` (FP8
///   blocks): the scale's recipe;
/// * `:block=N`: N elements share a scale (MX, NVFP4);
/// * `:axis=A`: they lie along axis A, from 0 or, backwards, from −1 (MX, NVFP4).
///
/// # Errors
/// An unknown name or suffix, one given twice or foreign to the format, a block side that is not 1 to
/// [`MAX_SIDE`], or a format of more than 8 bits in FP8 blocks.
///
/// ```
/// use amp_inspect::format::find_block;
/// assert_eq!(find_block("MXFP8:axis=0:rceil").unwrap().name, "mxfp8_e4m3:rceil:axis=0");
/// assert_eq!(find_block("e5m2:128x128:pow2").unwrap().shape.text(), "128x128");
/// assert!(find_block("mxfp4:te").is_err());
/// ```
pub fn find_block(text: &str) -> Result<BlockSpec> {
    let refuse = |why: String| Error::new(format!("block format '{}': {why}", escape(text)));
    let mut parts = text.trim().split(':');
    let head = head_of(parts.next().unwrap_or_default());
    let mut spec = match (row(&head), parts.clone().next().and_then(sides)) {
        (Some(row), None) => *row,
        (None, Some((rows, columns))) => {
            parts.next();
            tiles(&head, rows, columns).map_err(|error| refuse(error.what().to_owned()))?
        }
        (Some(row), Some(_)) => {
            return Err(refuse(format!("the blocks of {} are runs: say block=N and axis=A", row.name)));
        }
        (None, None) => {
            let names: Vec<_> = BLOCK_FORMATS.iter().map(|row| row.name).collect();
            return Err(refuse(format!("known are {}; FORMAT:RxC for other tiles", names.join(", "))));
        }
    };
    let plain = spec;
    let mut seen = Vec::new();
    for part in parts {
        let part = part.trim().to_ascii_lowercase();
        let key = spec.set(&part).map_err(refuse)?;
        if seen.contains(&key) {
            return Err(refuse(format!("the {key} is given twice")));
        }
        seen.push(key);
    }
    spec.name = plain.name_of(&spec);
    Ok(spec)
}

impl BlockSpec {
    /// Applies one suffix; says what it set.
    fn set(&mut self, part: &str) -> std::result::Result<&'static str, String> {
        if let Some((key, value)) = part.split_once('=') {
            let BlockShape::Run { length, axis } = &mut self.shape else {
                return Err("its blocks are tiles: the shape is given as RxC alone".into());
            };
            match key {
                "block" => {
                    *length = side(value)
                        .ok_or_else(|| format!("block={value}: a block has 1 to {MAX_SIDE} elements"))?;
                    return Ok("block length");
                }
                "axis" => {
                    *axis = value.parse().map_err(|_| {
                        format!("axis={value}: an axis is a whole number, 0 the first and -1 the last")
                    })?;
                    return Ok("axis");
                }
                _ => return Err(format!("'{key}' cannot be set; block=N and axis=A can")),
            }
        }
        let recipe = RECIPES.iter().find(|(name, _)| *name == part).map(|(_, recipe)| *recipe);
        match recipe.filter(|recipe| discriminant(recipe) == discriminant(&self.recipe)) {
            Some(recipe) => self.recipe = recipe,
            None => return Err(format!("'{part}' is none of its scale recipes {}", self.recipe.siblings())),
        }
        Ok("scale recipe")
    }

    /// The canonical name of `changed`, made from `self` by suffixes. NVFP4 always names its recipe: without
    /// it the result is not defined.
    fn name_of(&self, changed: &Self) -> &'static str {
        let mut name = self.name.to_owned();
        if changed.recipe != self.recipe || matches!(self.recipe, Recipe::Nvfp4(_)) {
            name += &format!(":{}", changed.recipe.name());
        }
        if let (BlockShape::Run { length, axis }, BlockShape::Run { length: usual, .. }) =
            (changed.shape, self.shape)
        {
            if length != usual {
                name += &format!(":block={length}");
            }
            if axis != -1 {
                name += &format!(":axis={axis}");
            }
        }
        // Leaked for the reason given in `find`: a command line names a handful.
        if name == self.name { self.name } else { String::leak(name) }
    }
}

fn head_of(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('-', "_")
}

fn row(head: &str) -> Option<&'static BlockSpec> {
    BLOCK_FORMATS.iter().find(|row| row.name == head || row.aliases.contains(&head))
}

fn side(text: &str) -> Option<u32> {
    text.parse().ok().filter(|side| (1..=MAX_SIDE).contains(side))
}

/// `RxC`, without judging the sides.
fn sides(text: &str) -> Option<(&str, &str)> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.trim().split_once(['x', 'X']).filter(|(rows, columns)| number(rows) && number(columns))
}

fn tiles(head: &str, rows: &str, columns: &str) -> Result<BlockSpec> {
    let element = find(head)?;
    let (Some(rows), Some(columns)) = (side(rows), side(columns)) else {
        return Err(Error::new(format!("a block has 1 to {MAX_SIDE} rows and as many columns")));
    };
    let small = element.emin() >= -64 && element.max_finite() <= super::pow2(64);
    if element.bits > 8 || !element.signed || !element.subnormals || !small {
        return Err(Error::new(format!(
            "{} cannot be the element: it must be signed, of at most 8 bits, with a zero and a moderate bias",
            element.name
        )));
    }
    let name = format!("{}:{rows}x{columns}", element.name);
    let named = BLOCK_FORMATS.iter().find(|row| row.name == name);
    let pattern = BLOCK_FORMATS.iter().find(|row| matches!(row.recipe, Recipe::Quotient { .. }));
    match (named, pattern) {
        (Some(row), _) => Ok(*row),
        (None, Some(pattern)) => Ok(BlockSpec {
            name: String::leak(name),
            element,
            shape: BlockShape::Tile { rows, columns },
            ..*pattern
        }),
        (None, None) => Err(Error::new("no row of BLOCK_FORMATS has tiles")),
    }
}
