//! Blocks of many values at once: the scales and the codes that are stored, in order.
//!
//! A matrix is taken band by band, a band being as many rows as a block is tall: first the scales of its blocks,
//! then its rows, each brought to its scales and cast in one go.

use super::block_scales::Scales;
use super::slice::SliceCast;
use super::{Kernel, Level, run};
use crate::cast::block::{BlockPlan, TensorScale, largest, passes_over_nan};
use crate::cast::{CastPlan, Overflow};
use crate::format::block::BlockShape;

const MAGNITUDE: u32 = !(1 << 31);
const INFINITY: u32 = f32::INFINITY.to_bits();

/// A block cast of float32 matrices that equals [`cast_block`](crate::cast::block::cast_block) for every block
/// (but for the sign of a NaN in a block whose scale is NaN, which processors leave open).
#[derive(Clone, Copy, Debug)]
pub struct SliceBlocks {
    plan: BlockPlan,
    element: SliceCast,
    tall: usize,
    wide: usize,
}

impl SliceBlocks {
    /// `None` where these loops do not reproduce the cast: blocks along another axis than the last or as
    /// large as the tensor makes them, and elements that [`SliceCast`] lacks.
    pub fn new(plan: &BlockPlan) -> Option<Self> {
        let (tall, wide) = match plan.spec.shape {
            BlockShape::Run { length, axis: -1 } => (1, length as usize),
            BlockShape::Run { .. } | BlockShape::Row | BlockShape::Tensor => return None,
            BlockShape::Tile { rows, columns } => (rows as usize, columns as usize),
        };
        let cast = CastPlan { overflow: Overflow::Saturate, ..CastPlan::new(plan.spec.element) };
        Some(Self { plan: *plan, element: SliceCast::new(&cast)?, tall, wide })
    }

    /// Rows of a block.
    pub fn rows(&self) -> usize {
        self.tall
    }

    /// Bytes that the scales of so many values take, in rows of `columns`.
    pub fn scale_bytes(&self, columns: usize, values: usize) -> usize {
        let band = self.tall * columns;
        let last = (values % band).min(columns).div_ceil(self.wide);
        (values / band * columns.div_ceil(self.wide) + last) * self.bytes_of_scale()
    }

    fn bytes_of_scale(&self) -> usize {
        self.plan.spec.scale.bits.div_ceil(8) as usize
    }

    /// The largest magnitude of a tensor, or of a part of it, as [`TensorScale::new`] takes it.
    pub fn amax(&self, level: Level, values: &[f32]) -> f32 {
        let mut highest = [0];
        self.highest(level, values, values.len().max(1), values.len().max(1), &mut highest);
        self.largest(highest[0], values)
    }

    /// Casts the rows of `columns` values, the last of which may be shorter: a code of up to 8 bits in each byte of
    /// `codes`, and in `scales` the blocks' scales, band after band, the lowest byte first. There must be as many
    /// codes as values and [`scale_bytes`](Self::scale_bytes) scales; what has no room is left out.
    pub fn encode(
        &self,
        level: Level,
        tensor: TensorScale,
        columns: usize,
        values: &[f32],
        (codes, scales): (&mut [u8], &mut [u8]),
    ) {
        let band = self.tall * columns;
        let mut highest = vec![0; columns.div_ceil(self.wide)];
        let (mut amax, mut block_scales) = (Vec::with_capacity(highest.len()), Scales::default());
        let mut scaled = vec![0.0; columns];
        let mut scales = scales.chunks_exact_mut(self.bytes_of_scale());
        for (band, codes) in values.chunks(band).zip(codes.chunks_mut(band)) {
            let across = band.len().min(columns).div_ceil(self.wide);
            self.highest(level, band, columns, self.wide, &mut highest);
            amax.clear();
            amax.extend(highest[..across].iter().enumerate().map(|(block, &high)| {
                if high <= INFINITY {
                    return f32::from_bits(high);
                }
                let part = |row: &[f32]| {
                    row.iter().skip(block * self.wide).take(self.wide).copied().collect::<Vec<_>>()
                };
                self.largest(high, &band.chunks(columns).flat_map(part).collect::<Vec<_>>())
            }));
            block_scales.fill(level, &self.plan.spec, tensor, &amax);
            for (code, stored) in block_scales.codes.iter().zip(scales.by_ref()) {
                stored.copy_from_slice(&code.to_le_bytes()[..stored.len()]);
            }
            for (row, codes) in band.chunks(columns).zip(codes.chunks_mut(columns)) {
                let scaled = &mut scaled[..row.len()];
                let (wide, scale) = (self.wide, self.plan.scale);
                run(level, Scaled { row, wide, scale, scales: &block_scales, scaled });
                self.element.encode(level, scaled, codes);
            }
        }
    }

    fn highest(&self, level: Level, band: &[f32], columns: usize, wide: usize, highest: &mut [u32]) {
        run(level, Highest { band, columns, wide, scale: self.plan.scale, highest });
    }

    /// The largest magnitude of a block, as the definition has it; `high` is that of the bits.
    fn largest(&self, high: u32, block: &[f32]) -> f32 {
        if high <= INFINITY {
            return f32::from_bits(high);
        }
        if !passes_over_nan(self.plan.spec.recipe) {
            return f32::NAN;
        }
        let products: Vec<f32> = block.iter().map(|x| x * self.plan.scale).collect();
        largest(&self.plan.spec, &products)
    }
}

/// Bits of the largest magnitude of each block in a band.
struct Highest<'a> {
    band: &'a [f32],
    columns: usize,
    wide: usize,
    scale: f32,
    highest: &'a mut [u32],
}

impl Kernel for Highest<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        self.highest.fill(0);
        for row in self.band.chunks(self.columns) {
            for (part, highest) in row.chunks(self.wide).zip(self.highest.iter_mut()) {
                let higher = |high: u32, x: &f32| high.max((x * self.scale).to_bits() & MAGNITUDE);
                *highest = part.iter().fold(*highest, higher);
            }
        }
    }
}

/// The values of a row, each brought to its block's scale.
struct Scaled<'a> {
    row: &'a [f32],
    wide: usize,
    scale: f32,
    scales: &'a Scales,
    scaled: &'a mut [f32],
}

impl Kernel for Scaled<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { row, wide, scale, scales, scaled } = self;
        let parts = row.chunks(wide).zip(scaled.chunks_mut(wide)).zip(&scales.factors);
        if scales.divide {
            for ((part, scaled), divisor) in parts {
                part.iter().zip(scaled).for_each(|(x, y)| *y = (x * scale) / divisor);
            }
        } else {
            for ((part, scaled), factor) in parts {
                part.iter().zip(scaled).for_each(|(x, y)| *y = (x * scale) * factor);
            }
        }
    }
}
