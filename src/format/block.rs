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
    /// A row of that matrix, however long: a scale for each output of a layer, or each token. A scalar and a
    /// tensor of one dimension are one row.
    Row,
    /// The whole tensor.
    Tensor,
}

/// How the scale follows from a block's largest magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A power of two (MX).
    Power(PowerRule),
    /// An e4m3 number, relative to a scale of the whole tensor except in [`Nvfp4::Single`].
    Nvfp4(Nvfp4),
    /// An f32 quotient of the element's largest number and the largest magnitude (FP8 tensors, rows, blocks).
    Quotient(Quotient),
}

/// Who forms the quotient of FP8 scaling: they differ in the guards at both ends of the range, and in what they
/// do to get a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotient {
    /// Transformer Engine `compute_scale_from_amax`: max / amax, 1 if amax is 0, Inf or NaN, and never more
    /// than the largest f32.
    F32,
    /// The same with the significand cut off: a power of two, rounded down. `Float8BlockScaling`'s default.
    Pow2,
    /// torchao `amax_to_scale`: the quotient in f64, amax at least 1e-12, then rounded to f32.
    Torchao,
    /// The same through exp2(floor(log2)) in f32, which can round up.
    TorchaoPow2,
    /// DeepGEMM `per_token_cast_to_fp8`: amax at least 1e-4, amax / max stored, its reciprocal multiplied by.
    DeepGemm,
    /// The same with the stored scale rounded up to a power of two.
    DeepGemmUe8m0,
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
    ("f32", Recipe::Quotient(Quotient::F32)),
    ("pow2", Recipe::Quotient(Quotient::Pow2)),
    ("torchao", Recipe::Quotient(Quotient::Torchao)),
    ("torchao-pow2", Recipe::Quotient(Quotient::TorchaoPow2)),
    ("deepgemm", Recipe::Quotient(Quotient::DeepGemm)),
    ("deepgemm-ue8m0", Recipe::Quotient(Quotient::DeepGemmUe8m0)),
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
    /// As people write it: `32`, `128x128`, `row` or `tensor`.
    pub fn text(self) -> String {
        match self {
            Self::Run { length, .. } => length.to_string(),
            Self::Tile { rows, columns } => format!("{rows}x{columns}"),
            Self::Row => "row".into(),
            Self::Tensor => "tensor".into(),
        }
    }

    /// Elements in a whole block; `None` where the tensor's shape decides.
    pub fn elements(self) -> Option<u32> {
        match self {
            Self::Run { length, .. } => Some(length),
            Self::Tile { rows, columns } => Some(rows * columns),
            Self::Row | Self::Tensor => None,
        }
    }
}

/// Whether `text` can only be meant as a block format: it has suffixes, or a row of [`BLOCK_FORMATS`] is
/// called so.
pub(super) fn is_block(text: &str) -> bool {
    text.contains(':') || row(&head_of(text)).is_some()
}

/// Finds a block format: a row's name or alias, or `FORMAT:RxC` for FP8 blocks of R rows and C columns,
/// `FORMAT:row` and `FORMAT:tensor` for a scale of each row or of the tensor; then any of these suffixes, in any
/// order:
///
/// * `:floor`, `:ceil`, `:even`, `:rceil` (MX), `:te`, `:torchao`, `:single` (NVFP4), `:f32`, `:pow2`, `:torchao`,
///   `:torchao-pow2`, `:deepgemm`, `:deepgemm-ue8m0` (FP8 tensors, rows and blocks): the scale's recipe;
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
    let mut spec = match (row(&head), parts.clone().next().and_then(extent)) {
        (Some(row), None) => *row,
        (None, Some(extent)) => {
            parts.next();
            fp8(&head, extent).map_err(|error| refuse(error.what().to_owned()))?
        }
        (Some(row), Some(_)) => {
            return Err(refuse(format!("the blocks of {} are runs: say block=N and axis=A", row.name)));
        }
        (None, None) => {
            let names: Vec<_> = BLOCK_FORMATS.iter().map(|row| row.name).collect();
            let others = "FORMAT:RxC for other tiles, FORMAT:row and FORMAT:tensor";
            return Err(refuse(format!("known are {}; {others}", names.join(", "))));
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
                return Err("its blocks are tiles: the shape is given as RxC, row or tensor alone".into());
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
        let same = |recipe: &Recipe| discriminant(recipe) == discriminant(&self.recipe);
        match RECIPES.iter().find(|(name, recipe)| *name == part && same(recipe)) {
            Some((_, recipe)) => self.recipe = *recipe,
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

/// How far the scale of an FP8 format reaches, as typed.
enum Extent<'a> {
    Tile(&'a str, &'a str),
    Row,
    Tensor,
}

/// `RxC`, without judging the sides, `row` or `tensor`.
fn extent(text: &str) -> Option<Extent<'_>> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.trim() {
        text if text.eq_ignore_ascii_case("row") => Some(Extent::Row),
        text if text.eq_ignore_ascii_case("tensor") => Some(Extent::Tensor),
        text => {
            let sides = text.split_once(['x', 'X']).filter(|(rows, columns)| number(rows) && number(columns));
            sides.map(|(rows, columns)| Extent::Tile(rows, columns))
        }
    }
}

/// A format whose values share f32 scales so far.
fn fp8(head: &str, extent: Extent<'_>) -> Result<BlockSpec> {
    let element = find(head)?;
    let shape = match extent {
        Extent::Row => BlockShape::Row,
        Extent::Tensor => BlockShape::Tensor,
        Extent::Tile(rows, columns) => match (side(rows), side(columns)) {
            (Some(rows), Some(columns)) => BlockShape::Tile { rows, columns },
            _ => {
                return Err(Error::new(format!("a block has 1 to {MAX_SIDE} rows and as many columns")));
            }
        },
    };
    let small = element.emin() >= -64 && element.max_finite() <= super::pow2(64);
    if element.bits > 8 || !element.signed || !element.subnormals || !small {
        return Err(Error::new(format!(
            "{} cannot be the element: it must be signed, of at most 8 bits, with a zero and a moderate bias",
            element.name
        )));
    }
    let name = format!("{}:{}", element.name, shape.text());
    let named = BLOCK_FORMATS.iter().find(|row| row.name == name);
    let pattern = BLOCK_FORMATS.iter().find(|row| matches!(row.recipe, Recipe::Quotient(_)));
    match (named, pattern) {
        (Some(row), _) => Ok(*row),
        (None, Some(pattern)) => Ok(BlockSpec { name: String::leak(name), element, shape, ..*pattern }),
        (None, None) => Err(Error::new("no row of BLOCK_FORMATS has tiles")),
    }
}
