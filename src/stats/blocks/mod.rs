//! Statistics of block casts: those of every cast, element by element, and those of the scales.
//!
//! [`BlockStats::observe`] is the definition, through `cast::block`; the module `cast` is the same for blocks of
//! ordinary numbers, a strip of elements at a time.

mod accumulator;
mod cast;
mod engine;
mod segments;
mod strip;

pub use accumulator::BlockAccumulator;

use super::{ErrorSums, FormatStats, SourceStats};
use crate::cast::block::{BlockPlan, BlockScale, ScaleClass, TensorScale, block_scale, passes_over_nan};
use crate::cast::fast::block_scales::Scales;
use crate::format::block::BlockShape;
use crate::tensor::grid::LONGEST_ROW;

/// Number of blocks that are named for their error.
pub const WORST: usize = 5;

/// How many blocks have each class of scale. The counts add up to the number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaleCounts {
    /// All elements are zero.
    pub all_zero: u64,
    /// The scale is 0 although some element is not.
    pub zero: u64,
    /// The scale is a nonzero subnormal number of its format.
    pub subnormal: u64,
    /// The scale was set to the smallest that there is.
    pub raised: u64,
    /// None of the others.
    pub normal: u64,
    /// The scale was set to the largest that there is.
    pub saturated: u64,
    /// The scale is NaN.
    pub nan: u64,
}

impl ScaleCounts {
    fn add(&mut self, class: ScaleClass) {
        *(match class {
            ScaleClass::AllZero => &mut self.all_zero,
            ScaleClass::Zero => &mut self.zero,
            ScaleClass::Subnormal => &mut self.subnormal,
            ScaleClass::Raised => &mut self.raised,
            ScaleClass::Normal => &mut self.normal,
            ScaleClass::Saturated => &mut self.saturated,
            ScaleClass::Nan => &mut self.nan,
        }) += 1;
    }

    fn merge(&mut self, next: &Self) {
        self.all_zero += next.all_zero;
        self.zero += next.zero;
        self.subnormal += next.subnormal;
        self.raised += next.raised;
        self.normal += next.normal;
        self.saturated += next.saturated;
        self.nan += next.nan;
    }

    /// All blocks.
    pub fn total(&self) -> u64 {
        self.all_zero + self.zero + self.subnormal + self.raised + self.normal + self.saturated + self.nan
    }
}

/// A block, and how wrong it comes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstBlock {
    /// Position in the tensor, in row-major order, of the block's first element.
    pub first: u64,
    /// ‖x − x̂‖ / ‖x‖ over the block's elements.
    pub rel_l2: f64,
}

/// What one block cast does to a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockStats {
    /// Elements by class, and errors. `exceeds_max` counts clipped elements: |x / scale| above the element's
    /// largest number before rounding.
    pub format: FormatStats,
    /// Blocks by class of their scale.
    pub scales: ScaleCounts,
    /// Smallest stored scale of a block with nonzero values, Inf without one.
    pub scale_min: f64,
    /// Largest stored scale of a block with nonzero values, 0 without one.
    pub scale_max: f64,
    /// Blocks with a finite nonzero value: the dynamic ranges are theirs.
    pub ranged: u64,
    /// Largest log2(amax / smallest nonzero magnitude) of a block (Transformer Engine's
    /// `max_blockwise_dynamic_range`).
    pub range_max: f64,
    /// Sum of log2(amax / smallest nonzero magnitude) over blocks.
    pub range_sum: f64,
    /// The blocks with the largest relative error that is not 0, worst first, at most [`WORST`].
    pub worst: Vec<WorstBlock>,
}

impl Default for BlockStats {
    fn default() -> Self {
        Self {
            format: FormatStats::default(),
            scales: ScaleCounts::default(),
            scale_min: f64::INFINITY,
            scale_max: 0.0,
            ranged: 0,
            range_max: 0.0,
            range_sum: 0.0,
            worst: Vec::new(),
        }
    }
}

impl BlockStats {
    /// Casts one block, whose first element lies at `first`, one element after the other. THE definition:
    /// faster code must count and sum as this does. The cast is of f32, so `x` is rounded to it first.
    pub fn observe(&mut self, plan: &BlockPlan, scale: &BlockScale, first: u64, values: &[f64]) {
        self.add(scale, first, &cast_each(plan, scale, values));
    }

    /// Takes in one block's scale and the statistics of its elements.
    fn add(&mut self, scale: &BlockScale, first: u64, block: &FormatStats) {
        self.format.merge(block);
        self.count(scale.class, scale.value);
        self.rank_block(first, block.errors.noise, block.errors.signal);
    }

    /// What the squared relative error of a block must exceed to be among the worst.
    fn least_ranked(&self) -> f64 {
        let least = if self.worst.len() == WORST { self.worst.last() } else { None };
        least.map_or(0.0, |least| least.rel_l2 * least.rel_l2)
    }

    /// Takes in the squares of a block's errors and of its elements.
    fn rank_block(&mut self, first: u64, noise: f64, signal: f64) {
        // Most blocks are none of the worst, and need no root.
        if noise <= signal * self.least_ranked() {
            return;
        }
        let errors = ErrorSums { noise, signal, ..ErrorSums::default() };
        if let Some(rel_l2) = errors.rel_l2().filter(|&error| error > 0.0) {
            self.rank(WorstBlock { first, rel_l2 });
        }
    }

    /// Counts the scales of several blocks.
    fn count_all(&mut self, scales: &Scales) {
        for (class, value) in scales.classes.iter().zip(&scales.values) {
            self.count(*class, f64::from(*value));
        }
    }

    /// Counts a scale.
    fn count(&mut self, class: ScaleClass, value: f64) {
        self.scales.add(class);
        if !matches!(class, ScaleClass::AllZero | ScaleClass::Nan) {
            self.scale_min = self.scale_min.min(value);
            self.scale_max = self.scale_max.max(value);
        }
    }

    /// Takes in the dynamic range of a block with nonzero values.
    fn add_range(&mut self, log2: f64) {
        self.ranged += 1;
        self.range_max = self.range_max.max(log2);
        self.range_sum += log2;
    }

    /// Keeps `block` if it is among the worst. Of equally bad ones the earlier is kept.
    fn rank(&mut self, block: WorstBlock) {
        if self.worst.len() == WORST && self.worst.last().is_some_and(|last| last.rel_l2 >= block.rel_l2) {
            return;
        }
        let place = self.worst.partition_point(|other| other.rel_l2 >= block.rel_l2);
        self.worst.insert(place, block);
        self.worst.truncate(WORST);
    }

    /// Adds the statistics of the blocks that follow in the same tensor.
    pub fn merge(&mut self, next: &Self) {
        self.format.merge(&next.format);
        self.scales.merge(&next.scales);
        self.scale_min = self.scale_min.min(next.scale_min);
        self.scale_max = self.scale_max.max(next.scale_max);
        self.ranged += next.ranged;
        self.range_max = self.range_max.max(next.range_max);
        self.range_sum += next.range_sum;
        next.worst.iter().for_each(|&block| self.rank(block));
    }

    /// Adds the statistics of another tensor, whose positions mean nothing here: no block is named any more.
    pub fn merge_tensor(&mut self, next: &Self) {
        self.merge(next);
        self.worst.clear();
    }

    /// Smallest and largest stored scale; `None` without a block that has nonzero values and a scale.
    pub fn scale_range(&self) -> Option<(f64, f64)> {
        (self.scale_min <= self.scale_max).then_some((self.scale_min, self.scale_max))
    }

    /// Largest dynamic range of a block in binades; `None` without nonzero values.
    pub fn range_max(&self) -> Option<f64> {
        (self.ranged > 0).then_some(self.range_max)
    }

    /// Mean dynamic range of the blocks in binades; `None` without nonzero values.
    pub fn range_mean(&self) -> Option<f64> {
        (self.ranged > 0).then(|| self.range_sum / self.ranged as f64)
    }
}

/// Casts the elements of a block one after the other.
fn cast_each(plan: &BlockPlan, scale: &BlockScale, values: &[f64]) -> FormatStats {
    let mut block = FormatStats::default();
    for &x in values {
        let element = scale.element(plan, x, x as f32 * plan.scale);
        block.classes.add(element.class, 1);
        if x.is_finite() {
            block.exceeds_max += u64::from(element.clipped);
            block.errors.observe(x, element.dequantised, 1);
        }
    }
    block
}

/// A block cast of one tensor.
#[derive(Clone, Copy, Debug)]
pub struct BlockCast {
    /// The cast.
    pub plan: BlockPlan,
    /// The factor of all elements of the tensor where it was fixed before they were seen, as delayed scaling does;
    /// the plan's blocks are then of the shape [`Tensor`](crate::format::block::BlockShape::Tensor). `None`: the
    /// scales follow from the values.
    pub factor: Option<f32>,
}

impl BlockCast {
    /// The same for a tensor of this shape. If it is one row that is too long to be held, as a tensor of one dimension
    /// may be, that row's scale is the tensor's.
    #[must_use]
    pub fn of_one_row(mut self, shape: &[u64]) -> Self {
        let spec = &mut self.plan.spec;
        let row = shape.last().copied().unwrap_or(1);
        if spec.shape == BlockShape::Row && row > LONGEST_ROW && shape.iter().product::<u64>() == row {
            spec.shape = BlockShape::Tensor;
        }
        self
    }
}

impl From<BlockPlan> for BlockCast {
    fn from(plan: BlockPlan) -> Self {
        Self { plan, factor: None }
    }
}

/// The largest magnitude of a tensor with these values, as `plan`'s recipe sees it.
fn tensor_amax(plan: &BlockPlan, source: &SourceStats) -> f32 {
    if source.nan > 0 && !passes_over_nan(plan.spec.recipe) {
        f32::NAN
    } else if source.inf() > 0 {
        f32::INFINITY
    } else {
        // Rounding is monotonic: the product of the largest is the largest product.
        source.amax as f32 * plan.scale
    }
}

/// The scale of a whole tensor with these values, as `plan`'s recipe forms it.
pub fn tensor_scale(plan: &BlockPlan, source: &SourceStats) -> TensorScale {
    TensorScale::new(&plan.spec, tensor_amax(plan, source))
}

/// The one scale of a tensor with these values; `None` if its blocks have scales of their own.
pub fn single_scale(cast: &BlockCast, source: &SourceStats) -> Option<BlockScale> {
    let BlockCast { plan, factor } = cast;
    let of_values = || block_scale(&plan.spec, TensorScale::ONE, tensor_amax(plan, source));
    (plan.spec.shape == BlockShape::Tensor)
        .then(|| factor.map_or_else(of_values, |factor| BlockScale::of_factor(factor, 1.0 / factor)))
}
