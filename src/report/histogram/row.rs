//! The formats of a report: what they are and where their limits lie.

use serde::Serialize;

use super::super::number::Num;
use crate::cast::block::BlockPlan;
use crate::cast::{CastPlan, Overflow, Target};
use crate::format::FormatSpec;
use crate::format::block::BlockShape;

/// A format and its limits. With `options.scale` other than 1 the limits apply to x·scale.
#[derive(Clone, Debug, Serialize)]
pub struct FormatRow {
    /// Canonical name.
    pub name: &'static str,
    /// Width in bits.
    pub bits: u32,
    /// Significand bits including the implicit one.
    pub precision_bits: u32,
    /// Exponent bias.
    pub exponent_bias: i32,
    /// Overflow policy in force.
    pub overflow: &'static str,
    /// Largest finite number.
    pub max_finite: Num,
    /// Smallest normal number.
    pub min_normal: Num,
    /// Smallest subnormal number.
    pub min_subnormal: Option<Num>,
    /// Magnitudes up to and including this become zero.
    pub flush_threshold: Option<Num>,
    /// Magnitudes above this, or from it on, overflow.
    pub overflow_threshold: Num,
    /// Whether the threshold itself overflows.
    pub overflow_includes_threshold: bool,
    /// Where the format is defined.
    pub source: &'static str,
    /// How blocks share scales; only for block formats. All the other fields then are those of an element,
    /// and its limits apply to |x·scale| divided by the block's scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockRow>,
    /// The cast itself, for renderers.
    #[serde(skip)]
    pub target: Target,
}

/// How the blocks of a format share scales.
#[derive(Clone, Debug, Serialize)]
pub struct BlockRow {
    /// Format of an element.
    pub element: &'static str,
    /// Format of a scale.
    pub scale: &'static str,
    /// How a scale follows from its block.
    pub recipe: &'static str,
    /// Elements in a block, along one axis, or rows x columns.
    pub shape: String,
    /// The axis that blocks lie along, counted from 0, or backwards from -1; `null` for tiles.
    pub axis: Option<i32>,
    /// Bits that an element takes together with its share of the block's scale; without that share where the
    /// tensor's shape decides how large it is.
    pub bits_per_element: Num,
}

impl FormatRow {
    pub(super) fn new(target: &Target) -> Self {
        match target {
            Target::Plain(plan) => {
                let CastPlan { target: format, overflow, .. } = plan;
                Self::of(format, *overflow, format.name, format.source, None, *target)
            }
            Target::Block(plan) => {
                let (spec, row) = (&plan.spec, BlockRow::new(plan));
                Self::of(&spec.element, Overflow::Saturate, spec.name, spec.source, Some(row), *target)
            }
        }
    }

    fn of(
        format: &FormatSpec,
        overflow: Overflow,
        name: &'static str,
        source: &'static str,
        block: Option<BlockRow>,
        target: Target,
    ) -> Self {
        Self {
            name,
            bits: format.bits,
            precision_bits: format.precision,
            exponent_bias: format.bias,
            overflow: overflow.name(),
            max_finite: Num(format.max_finite()),
            min_normal: Num(format.min_normal()),
            min_subnormal: format.min_subnormal().map(Num),
            flush_threshold: format.flush_threshold().map(Num),
            overflow_threshold: Num(format.overflow_threshold()),
            overflow_includes_threshold: format.overflow_includes_tie(),
            source,
            block,
            target,
        }
    }
}

impl BlockRow {
    fn new(plan: &BlockPlan) -> Self {
        let spec = &plan.spec;
        let share = spec.shape.elements().map_or(0.0, |n| f64::from(spec.scale.bits) / f64::from(n));
        Self {
            element: spec.element.name,
            scale: spec.scale.name,
            recipe: spec.recipe.name(),
            shape: spec.shape.text(),
            axis: match spec.shape {
                BlockShape::Run { axis, .. } => Some(axis),
                BlockShape::Tile { .. } | BlockShape::Row | BlockShape::Tensor => None,
            },
            bits_per_element: Num(f64::from(spec.element.bits) + share),
        }
    }
}
