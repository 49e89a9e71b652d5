//! One cast after the other, on the strip at hand: by the loops of [`Caster`] or, where they do not serve, by the
//! definition.

use super::cast::{Caster, Element, GroupScales, Outcome};
use super::segments::Segments;
use super::strip::{Extremes, Strip};
use super::{BlockCast, BlockStats, cast_each, single_scale, tensor_scale};
use crate::cast::block::{BlockPlan, BlockScale, TensorScale, block_scale, largest};
use crate::cast::fast::Level;
use crate::cast::fast::block_scales::Scales;
use crate::stats::{FormatStats, SourceStats};

/// A cast of the tensor, and what it has done so far.
pub(super) struct Cast<'p> {
    plan: &'p BlockPlan,
    /// Elements of a block where the blocks are runs.
    pub(super) run: Option<usize>,
    /// Number of the first cast to the same element format.
    like: usize,
    tensor: TensorScale,
    /// The scale of all elements, if there is just one; and the same for each group, unless the definition has to
    /// serve it.
    pub(super) single: Option<(BlockScale, Option<GroupScales>)>,
    element: Option<Element>,
    pub(super) stats: BlockStats,
}

impl<'p> Cast<'p> {
    /// `earlier`: the casts before it. `counts`: whether it counts the single scale, as one accumulator of a tensor
    /// does.
    pub(super) fn new(
        cast: &'p BlockCast,
        run: Option<u64>,
        earlier: &[Self],
        source: &SourceStats,
        counts: bool,
    ) -> Self {
        let plan = &cast.plan;
        let single = single_scale(cast, source);
        let mut stats = BlockStats::default();
        if let Some(scale) = single.filter(|_| counts && source.elements > 0) {
            stats.count(scale.class, scale.value);
            source.dynamic_range_log2().into_iter().for_each(|log2| stats.add_range(log2));
        }
        let is_like = |other: &Self| other.plan.spec.element == plan.spec.element;
        Self {
            plan,
            run: run.map(|run| run as usize),
            like: earlier.iter().position(is_like).unwrap_or(earlier.len()),
            tensor: tensor_scale(plan, source),
            single: single.map(|scale| (scale, GroupScales::one(plan, &scale))),
            element: Element::new(&plan.spec.element),
            stats,
        }
    }

    fn block_scale(&self, amax: f32) -> BlockScale {
        block_scale(&self.plan.spec, self.tensor, amax * self.plan.scale)
    }
}

/// A block that takes several strips.
pub(super) struct LargeBlock {
    pub(super) scale: BlockScale,
    scales: GroupScales,
    pub(super) stats: FormatStats,
}

impl LargeBlock {
    /// `None` if the definition has to serve it.
    pub(super) fn new(cast: &Cast<'_>, extremes: &Extremes) -> Option<Self> {
        cast.element?;
        let scale = cast.block_scale(extremes.amax()?);
        let scales = GroupScales::one(cast.plan, &scale)?;
        Some(Self { scale, scales, stats: FormatStats::default() })
    }
}

/// What casts strips, and remembers what it has made of the one at hand.
pub(super) struct Engine {
    pub(super) level: Level,
    caster: Caster,
    done: Vec<Done>,
    /// By cast, where it is the first to its element format: largest relative error that all casts to that have seen.
    max_rel: Vec<f64>,
    /// The scales of the cast at hand: by block, and by group.
    block_scales: Scales,
    scales: GroupScales,
    products: Vec<f32>,
    doubles: Vec<f64>,
}

/// What has been made of the strip.
struct Done {
    like: usize,
    scale: f32,
    scales: GroupScales,
    outcome: Outcome,
}

impl Engine {
    pub(super) fn new() -> Self {
        let level = Level::best();
        Self {
            level,
            caster: Caster::new(level),
            done: Vec::new(),
            max_rel: Vec::new(),
            block_scales: Scales::default(),
            scales: GroupScales::NONE,
            products: Vec::new(),
            doubles: Vec::new(),
        }
    }

    /// Takes up the next strip. Returns whether all its elements are finite.
    pub(super) fn begin(&mut self, strip: &mut Strip, casts: &[Cast<'_>]) -> bool {
        self.done.clear();
        self.max_rel.clear();
        self.max_rel.resize(casts.len(), 1.0);
        for cast in casts {
            let max_rel = &mut self.max_rel[cast.like];
            *max_rel = max_rel.min(cast.stats.format.errors.max_rel);
        }
        strip.survey(self.level)
    }

    /// Casts the strip, in which `segments` are the cast's blocks if it has no single scale.
    pub(super) fn observe(&mut self, strip: &Strip, finite: bool, segments: &Segments, cast: &mut Cast<'_>) {
        let element = cast.element.filter(|_| finite);
        if let Some((_, scales)) = &cast.single {
            match element.zip(scales.as_ref()) {
                Some((element, scales)) => {
                    self.scales = *scales;
                    let number = self.cast(strip, &element, cast);
                    cast.stats.format.merge(&self.done[number].outcome.stats);
                }
                None => self.define(cast, 0, strip.values()[..strip.elements].iter().map(|&x| x.into())),
            }
            return;
        }
        let Some(element) = element.filter(|_| self.scale_blocks(segments, cast)) else {
            for segment in segments.iter() {
                let values = &strip.values()[segment.start..segment.start + segment.len];
                self.define(cast, segment.first, values.iter().map(|&x| x.into()));
            }
            return;
        };
        let number = self.cast(strip, &element, cast);
        let outcome = &self.done[number].outcome;
        cast.stats.format.merge(&outcome.stats);
        cast.stats.count_all(&self.block_scales);
        segments.add_to(&mut cast.stats, &outcome.noise);
    }

    /// Finds the scales of the blocks. Returns whether the loops serve all of them.
    fn scale_blocks(&mut self, segments: &Segments, cast: &Cast<'_>) -> bool {
        let Self { level, block_scales, scales, products, .. } = self;
        products.clear();
        products.extend(segments.amax().iter().map(|amax| amax * cast.plan.scale));
        block_scales.fill(*level, &cast.plan.spec, cast.tensor, products);
        scales.set_all(cast.plan, block_scales, segments.groups())
    }

    /// Casts the strip with `scales`, unless that has been done. Returns the number of what has been done.
    fn cast(&mut self, strip: &Strip, element: &Element, cast: &Cast<'_>) -> usize {
        let Self { caster, done, scales, max_rel, .. } = self;
        let (like, scale) = (cast.like, cast.plan.scale);
        let is_same = |done: &Done| done.like == like && done.scale == scale && done.scales == *scales;
        // Rules that come to the same scales here do the same.
        done.iter().position(is_same).unwrap_or_else(|| {
            let outcome = caster.cast(strip, element, scale, scales, max_rel[like]);
            done.push(Done { like, scale, scales: *scales, outcome });
            done.len() - 1
        })
    }

    /// Casts the next part of large blocks.
    pub(super) fn observe_part(
        &mut self,
        strip: &mut Strip,
        casts: &[Cast<'_>],
        blocks: &mut [Option<LargeBlock>],
    ) {
        self.begin(strip, casts);
        for (cast, block) in casts.iter().zip(blocks) {
            if let (Some(element), Some(block)) = (&cast.element, block) {
                self.scales = block.scales;
                let number = self.cast(strip, element, cast);
                block.stats.merge(&self.done[number].outcome.stats);
            }
        }
    }

    /// Casts a block, or part of a tensor with a single scale, by the definition.
    pub(super) fn define(&mut self, cast: &mut Cast<'_>, first: u64, values: impl Iterator<Item = f64>) {
        self.doubles.clear();
        self.doubles.extend(values);
        let (plan, values) = (cast.plan, &self.doubles);
        if let Some((scale, _)) = &cast.single {
            cast.stats.format.merge(&cast_each(plan, scale, values));
            return;
        }
        let products: Vec<f32> = values.iter().map(|&x| x as f32 * plan.scale).collect();
        let scale = block_scale(&plan.spec, cast.tensor, largest(&plan.spec, &products));
        cast.stats.observe(plan, &scale, first, values);
        let magnitudes = values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
        let (smallest, largest) =
            magnitudes.fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        if largest > 0.0 {
            // Not the logarithm of the quotient, which may leave the range.
            cast.stats.add_range(libm::log2(largest) - libm::log2(smallest));
        }
    }
}
