//! Walks the blocks of a tensor, rectangle by rectangle.

use super::fast::{Fast, Values};
use super::{BlockCast, BlockStats, cast_each, single_scale, tensor_scale};
use crate::cast::block::{BlockPlan, BlockScale, Factor, TensorScale, block_scale, largest};
use crate::cast::fast::Level;
use crate::stats::{Accumulate, FormatStats, Merge, SourceStats};
use crate::tensor::{Chunk, Grid};

/// Accumulates [`BlockStats`] of several casts whose blocks have the same shape. A chunk is the next
/// rectangle of the grid, row by row.
pub struct BlockAccumulator<'p> {
    casts: Vec<Cast<'p>>,
    grid: Grid,
    next: u64,
    level: Level,
    values: Values,
    doubles: Vec<f64>,
    /// What has been done with the block at hand.
    done: Vec<Done>,
}

/// What a cast has made of a block.
struct Done {
    like: usize,
    scale: f32,
    factor: Factor,
    unit: f64,
    block: FormatStats,
}

impl Done {
    /// Whether a cast to the element format number `like` would make the same of it.
    fn is_same(&self, like: usize, plan: &BlockPlan, scale: &BlockScale) -> bool {
        self.like == like
            && self.scale == plan.scale
            && self.factor == scale.factor
            && self.unit == scale.unit
    }
}

struct Cast<'p> {
    plan: &'p BlockPlan,
    /// The first cast to the same element format.
    like: usize,
    tensor: TensorScale,
    /// The scale of all elements, if there is just one.
    single: Option<BlockScale>,
    fast: Option<Fast>,
    stats: BlockStats,
}

impl<'p> BlockAccumulator<'p> {
    /// An accumulator that has seen nothing, for the rectangles of `grid` from number `next` on. `source`
    /// has the statistics of the whole tensor: some formats have a scale for it.
    pub fn new(
        casts: impl IntoIterator<Item = &'p BlockCast>,
        grid: Grid,
        next: u64,
        source: &SourceStats,
    ) -> Self {
        let all: Vec<&BlockCast> = casts.into_iter().collect();
        let cast = |cast: &&'p BlockCast| {
            let single = single_scale(cast, source);
            let mut stats = BlockStats::default();
            if let Some(scale) = single.filter(|_| next == 0 && source.elements > 0) {
                stats.count(&scale);
                source.dynamic_range_log2().into_iter().for_each(|log2| stats.add_range(log2));
            }
            let plan = &cast.plan;
            let element = &plan.spec.element;
            let like = all.iter().position(|other| other.plan.spec.element == *element).unwrap_or(0);
            Cast { plan, like, tensor: tensor_scale(plan, source), single, fast: Fast::new(element), stats }
        };
        let casts = all.iter().map(cast).collect();
        let level = Level::best();
        Self { casts, grid, next, level, values: Values::default(), doubles: Vec::new(), done: Vec::new() }
    }

    /// Calls `observe` with the position in the tensor of each block of the next rectangle, and the parts of
    /// its rows.
    fn each_block<T>(
        &mut self,
        elements: &[T],
        observe: impl Fn(&mut Self, u64, &mut dyn Iterator<Item = &[T]>),
    ) {
        let rectangle = self.grid.rectangle(self.next);
        self.next += 1;
        let (tall, wide) = self.grid.block();
        let (tall, wide, columns) = (tall as usize, wide as usize, rectangle.columns as usize);
        for (band_number, band) in elements.chunks(tall * columns).enumerate() {
            let row = (band_number * tall) as u64;
            for column in (0..columns).step_by(wide) {
                let end = columns.min(column + wide);
                let first = rectangle.first + row * rectangle.stride + column as u64;
                observe(self, first, &mut band.chunks(columns).map(|row| &row[column..end]));
            }
        }
    }

    fn observe_f32(&mut self, first: u64, rows: &mut dyn Iterator<Item = &[f32]>) {
        self.values.load(self.level, rows);
        self.done.clear();
        let range = self.values.range_log2();
        for number in 0..self.casts.len() {
            // What is found may serve all casts to the same element format.
            let like = self.casts[number].like;
            let alike = self.casts.iter().filter(|cast| cast.like == like);
            let max_rel = alike.map(|cast| cast.stats.format.errors.max_rel).fold(1.0, f64::min);
            let Cast { plan, tensor, single, fast, stats, .. } = &mut self.casts[number];
            let of_block = || block_scale(&plan.spec, *tensor, self.values.largest(&plan.spec) * plan.scale);
            let scale = single.unwrap_or_else(of_block);
            // Rules that come to the same scale for this block do the same to it.
            let known = self.done.iter().find(|done| done.is_same(like, plan, &scale));
            let block = known.map(|known| known.block).unwrap_or_else(|| {
                let fast = fast.as_ref();
                let block =
                    fast.and_then(|fast| fast.observe(self.level, &self.values, plan, &scale, max_rel));
                block.unwrap_or_else(|| {
                    self.doubles.clear();
                    self.doubles.extend(self.values.elements().iter().map(|&x| f64::from(x)));
                    cast_each(plan, &scale, &self.doubles)
                })
            });
            self.done.push(Done { like, scale: plan.scale, factor: scale.factor, unit: scale.unit, block });
            if single.is_some() {
                stats.format.merge(&block);
            } else {
                stats.add(&scale, first, &block);
                range.into_iter().for_each(|log2| stats.add_range(log2));
            }
        }
    }

    fn observe_f64(&mut self, first: u64, rows: &mut dyn Iterator<Item = &[f64]>) {
        self.doubles.clear();
        rows.for_each(|row| self.doubles.extend(row));
        let magnitudes = self.doubles.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
        let (smallest, largest_finite) =
            magnitudes.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        for Cast { plan, tensor, single, stats, .. } in &mut self.casts {
            if let Some(scale) = single {
                stats.format.merge(&cast_each(plan, scale, &self.doubles));
                continue;
            }
            let products: Vec<f32> = self.doubles.iter().map(|&x| x as f32 * plan.scale).collect();
            let scale = block_scale(&plan.spec, *tensor, largest(&plan.spec, &products));
            stats.observe(plan, &scale, first, &self.doubles);
            if largest_finite > 0.0 {
                // Not the logarithm of the quotient, which may leave the range.
                stats.add_range(libm::log2(largest_finite) - libm::log2(smallest));
            }
        }
    }
}

impl Accumulate for BlockAccumulator<'_> {
    fn observe(&mut self, _: u64, chunk: Chunk<'_>) {
        match chunk {
            Chunk::F32(values) => self.each_block(values, Self::observe_f32),
            Chunk::F64(values) => self.each_block(values, Self::observe_f64),
        }
    }
}

impl Merge for BlockAccumulator<'_> {
    type Out = Vec<BlockStats>;

    fn merge(&mut self, next: Self) {
        self.next = next.next;
        for (cast, next) in self.casts.iter_mut().zip(next.casts) {
            cast.stats.merge(&next.stats);
        }
    }

    fn finish(self) -> Vec<BlockStats> {
        self.casts.into_iter().map(|cast| cast.stats).collect()
    }
}
