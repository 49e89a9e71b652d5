//! The accumulator of one tensor: sends each cast to the engine that can do it, and joins what they say.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::bins::{BinCast, Bins};
use super::block::{BLOCK, Block};
use super::element::{FormatStats, SourceStats};
use super::exponents::Exponents;
use super::wide::WideCast;
use super::{Accumulate, Merge};
use crate::cast::fast::Level;
use crate::cast::philox::stream;
use crate::cast::{CastPlan, Place};
use crate::tensor::Chunk;

/// Number of elements from which on bins pay: to make sums of them takes longer than to cast fewer.
const SMALL: u64 = 1 << 16;

/// The casts to make, prepared once for all tensors.
pub struct StatsPlan {
    casts: Vec<CastPlan>,
    /// Made when the first large tensor comes: tabulating a cast takes longer than to cast a few.
    engines: OnceLock<Vec<Engine>>,
    engines_for_small: Vec<Engine>,
    level: Level,
    /// Empty bins, for the next tensor: they are large.
    idle: Mutex<Vec<Bins>>,
}

/// How the elements of an f32 chunk reach the statistics of one cast.
enum Engine {
    Bins(BinCast),
    Wide(WideCast),
    Element,
}

impl StatsPlan {
    /// Prepares `casts`; results come in the same order.
    pub fn new(casts: Vec<CastPlan>) -> Self {
        let engine_for_small = |plan: &CastPlan| {
            let wide = WideCast::new(plan).map(Engine::Wide);
            wide.or_else(|| BinCast::new(plan).map(Engine::Bins)).unwrap_or(Engine::Element)
        };
        Self {
            engines: OnceLock::new(),
            engines_for_small: casts.iter().map(engine_for_small).collect(),
            casts,
            level: Level::best(),
            idle: Mutex::default(),
        }
    }

    /// The same with engines compiled for `level`.
    #[must_use]
    pub fn at_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same casts, but every element goes one by one through `cast::round`: the reference that the
    /// engines are tested against.
    pub fn element_by_element(casts: Vec<CastPlan>) -> Self {
        let engines = || casts.iter().map(|_| Engine::Element).collect();
        Self {
            engines: OnceLock::from(engines()),
            engines_for_small: engines(),
            casts,
            level: Level::Portable,
            idle: Mutex::default(),
        }
    }

    fn engines(&self) -> &[Engine] {
        let engine = |plan: &CastPlan| {
            let bins = BinCast::new(plan).map(Engine::Bins);
            bins.or_else(|| WideCast::new(plan).map(Engine::Wide)).unwrap_or(Engine::Element)
        };
        self.engines.get_or_init(|| self.casts.iter().map(engine).collect())
    }

    /// Bins without elements, which [`reuse`](Self::reuse) takes back.
    fn empty_bins(&self) -> Bins {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(Bins::new)
    }

    fn reuse(&self, mut bins: Bins) {
        bins.clear();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(bins);
    }

    /// The casts.
    pub fn casts(&self) -> &[CastPlan] {
        &self.casts
    }
}

/// Everything that is known of a tensor once it has been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorStats {
    /// The stored values.
    pub source: SourceStats,
    /// What each cast of the plan does, in its order.
    pub formats: Vec<FormatStats>,
}

impl TensorStats {
    /// Adds the statistics of another tensor, for the same plan.
    pub fn merge(&mut self, next: &Self) {
        self.source.merge(&next.source);
        self.formats.resize(next.formats.len(), FormatStats::default());
        for (sum, format) in self.formats.iter_mut().zip(&next.formats) {
            sum.merge(format);
        }
    }
}

/// Accumulates [`TensorStats`].
pub struct TensorAccumulator<'p> {
    plan: &'p StatsPlan,
    engines: &'p [Engine],
    /// Which random bits stochastic rounding takes.
    stream: u64,
    /// What did not go through the bins.
    stats: TensorStats,
    /// Made only for tensors that have f32 chunks, since they are large: bins if there are casts, else exponents.
    bins: Option<Bins>,
    exponents: Option<Exponents>,
}

impl<'p> TensorAccumulator<'p> {
    /// An accumulator that has seen nothing, for a tensor of `elements` elements called `name`.
    pub fn new(plan: &'p StatsPlan, name: &str, elements: u64) -> Self {
        let formats = vec![FormatStats::default(); plan.casts.len()];
        Self {
            plan,
            engines: if elements < SMALL { &plan.engines_for_small } else { plan.engines() },
            stream: stream(name),
            stats: TensorStats { source: SourceStats::default(), formats },
            bins: None,
            exponents: None,
        }
    }

    fn observe_f32(&mut self, first: u64, values: &[f32]) {
        let (blocks, tail) = values.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            self.observe_block(first + (number * BLOCK) as u64, block, BLOCK);
        }
        if !tail.is_empty() {
            let mut padded = [0.0; BLOCK];
            padded[..tail.len()].copy_from_slice(tail);
            self.observe_block(first + (values.len() - tail.len()) as u64, &padded, tail.len());
        }
    }

    fn observe_block(&mut self, first: u64, padded: &[f32; BLOCK], len: usize) {
        let level = self.plan.level;
        let place = Place { stream: self.stream, index: first };
        let block = if self.engines.is_empty() {
            let block = Block::without_inverses(level, padded, len);
            self.exponents.get_or_insert_with(Exponents::new).observe(level, &block);
            block
        } else {
            let block = Block::new(level, padded, len);
            self.bins.get_or_insert_with(|| self.plan.empty_bins()).observe(level, &block);
            block
        };
        let subnormals = block.has_subnormals();
        let casts = self.engines.iter().zip(&self.plan.casts);
        for ((engine, plan), stats) in casts.zip(&mut self.stats.formats) {
            match engine {
                Engine::Bins(_) if !subnormals => {}
                Engine::Bins(_) => observe_each(plan, stats, block.values(), place, f32::is_subnormal),
                Engine::Wide(cast) if cast.exact(&block) => cast.observe(level, &block, stats),
                Engine::Wide(_) | Engine::Element => {
                    observe_each(plan, stats, block.values(), place, |_| true);
                }
            }
        }
        if subnormals {
            for &x in block.values().iter().filter(|x| x.is_subnormal()) {
                self.stats.source.count(x.into(), 1);
            }
        }
    }

    fn observe_f64(&mut self, first: u64, values: &[f64]) {
        for (index, &x) in (first..).zip(values) {
            let place = Place { stream: self.stream, index };
            self.stats.source.observe(x, 1);
            for (plan, stats) in self.plan.casts.iter().zip(&mut self.stats.formats) {
                stats.observe_f64(plan, x, place);
            }
        }
    }
}

impl Accumulate for TensorAccumulator<'_> {
    fn observe(&mut self, first: u64, chunk: Chunk<'_>) {
        match chunk {
            Chunk::F32(values) => self.observe_f32(first, values),
            Chunk::F64(values) => self.observe_f64(first, values),
        }
    }
}

impl Merge for TensorAccumulator<'_> {
    type Out = TensorStats;

    fn merge(&mut self, next: Self) {
        self.stats.merge(&next.stats);
        match (&mut self.bins, next.bins) {
            (Some(bins), Some(next)) => {
                bins.merge(&next);
                self.plan.reuse(next);
            }
            (none, next) => *none = none.take().or(next),
        }
        match (&mut self.exponents, next.exponents) {
            (Some(exponents), Some(next)) => exponents.merge(next),
            (none, next) => *none = none.take().or(next),
        }
    }

    fn finish(mut self) -> TensorStats {
        if let Some(bins) = self.bins {
            let TensorStats { source, formats } = &mut self.stats;
            let casts = self.engines.iter().zip(formats);
            let mut in_bins: Vec<_> = casts
                .filter_map(|(engine, stats)| match engine {
                    Engine::Bins(cast) => Some((cast, stats)),
                    _ => None,
                })
                .collect();
            bins.add_to(source, &mut in_bins);
            self.plan.reuse(bins);
        }
        if let Some(exponents) = self.exponents {
            exponents.add_to(&mut self.stats.source);
        }
        self.stats.source.binades.shrink();
        self.stats
    }
}

/// Casts those of `values` that are `wanted`, one by one. `first` is the place of the first value.
fn observe_each(
    plan: &CastPlan,
    stats: &mut FormatStats,
    values: &[f32],
    first: Place,
    wanted: impl Fn(f32) -> bool,
) {
    for (index, &x) in (first.index..).zip(values).filter(|(_, x)| wanted(**x)) {
        stats.observe_f32(plan, x, Place { index, ..first });
    }
}
