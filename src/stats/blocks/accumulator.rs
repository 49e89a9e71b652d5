//! Walks the blocks of a tensor, rectangle by rectangle, strip by strip.

use super::engine::{Cast, Engine, LargeBlock};
use super::segments::{Segment, Segments};
use super::strip::{Extremes, GROUP, STRIP, Strip};
use super::{BlockCast, BlockStats};
use crate::stats::{Accumulate, Merge, SourceStats};
use crate::tensor::{Chunk, Grid};

/// Accumulates [`BlockStats`] of several casts. A chunk is the next rectangle of the grid, row by row.
pub struct BlockAccumulator<'p> {
    casts: Vec<Cast<'p>>,
    grid: Grid,
    next: u64,
    strip: Box<Strip>,
    segments: Segments,
    engine: Box<Engine>,
}

impl<'p> BlockAccumulator<'p> {
    /// Whether blocks that are runs of this length can be cut from a tensor in one piece: then one accumulator serves
    /// several lengths.
    pub fn takes_run(run: u64) -> bool {
        run >= GROUP as u64 && (STRIP as u64).is_multiple_of(run)
    }

    /// An accumulator that has seen nothing, for the rectangles of `grid` from number `next` on. With each cast comes
    /// the length of its blocks where they are [runs](Grid::run) and `grid` is the tensor in one piece; `None` where
    /// they are the blocks of `grid`. `source` has the statistics of the whole tensor: some formats have a scale for
    /// it.
    pub fn new(
        casts: impl IntoIterator<Item = (&'p BlockCast, Option<u64>)>,
        grid: Grid,
        next: u64,
        source: &SourceStats,
    ) -> Self {
        let mut all: Vec<Cast<'p>> = Vec::new();
        for (cast, run) in casts {
            all.push(Cast::new(cast, run, &all, source, next == 0));
        }
        let casts = all;
        let (strip, engine) = (Box::new(Strip::new()), Box::new(Engine::new()));
        let (tall, wide) = grid.block();
        let stride = ((tall * wide) as usize).next_multiple_of(GROUP);
        Self { casts, grid, next, strip, segments: Segments::new(stride), engine }
    }
}

/// The rows of a block within a rectangle.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    band: &'a [T],
    columns: usize,
    start: usize,
    end: usize,
}

impl<'a, T> Rows<'a, T> {
    fn iter(self) -> impl Iterator<Item = &'a [T]> {
        self.band.chunks(self.columns).map(move |row| &row[self.start..self.end])
    }
}

impl BlockAccumulator<'_> {
    /// Calls `observe` with the position in the tensor of each block of the next rectangle, and its rows.
    fn each_block<T>(&mut self, elements: &[T], mut observe: impl FnMut(&mut Self, u64, Rows<'_, T>)) {
        let rectangle = self.grid.rectangle(self.next);
        self.next += 1;
        let (tall, wide) = self.grid.block();
        let (tall, wide, columns) = (tall as usize, wide as usize, rectangle.columns as usize);
        for (band_number, band) in elements.chunks(tall * columns).enumerate() {
            let row = (band_number * tall) as u64;
            for start in (0..columns).step_by(wide) {
                let end = columns.min(start + wide);
                let first = rectangle.first + row * rectangle.stride + start as u64;
                observe(self, first, Rows { band, columns, start, end });
            }
        }
    }

    fn observe_f32(&mut self, elements: &[f32]) {
        let (tall, wide) = self.grid.block();
        let block = (tall * wide) as usize;
        if self.in_one_piece() {
            self.each_block(elements, |this, first, rows| {
                this.strip.clear();
                rows.iter().for_each(|row| this.strip.push(row));
                this.segments.clear();
                this.observe_strip(first);
            });
        } else if block > STRIP {
            self.each_block(elements, Self::observe_large);
        } else {
            // As many blocks as a strip has room for.
            let stride = block.next_multiple_of(GROUP);
            self.each_block(elements, |this, first, rows| {
                if this.strip.room() < stride {
                    this.observe_staged();
                }
                let start = this.strip.len();
                rows.iter().for_each(|row| this.strip.push(row));
                let len = this.strip.len() - start;
                this.segments.push(Segment { first, start, len });
                this.strip.pad(stride);
            });
            self.observe_staged();
        }
    }

    /// Whether the grid is the tensor in one piece, and each cast has its own runs.
    fn in_one_piece(&self) -> bool {
        self.casts.iter().all(|cast| cast.run.is_some() || cast.single.is_some())
    }

    fn observe_staged(&mut self) {
        if !self.segments.is_empty() {
            self.observe_strip(0);
            self.segments.clear();
        }
        self.strip.clear();
    }

    /// Casts what is in the strip: runs from position `first` on, or the blocks that `segments` tells.
    fn observe_strip(&mut self, first: u64) {
        let Self { casts, strip, segments, engine, .. } = self;
        let finite = engine.begin(strip, casts);
        segments.survey(strip);
        let mut run = None;
        for cast in casts {
            if let Some(length) = cast.run.filter(|_| cast.single.is_none() && cast.run != run) {
                run = cast.run;
                segments.cut(first, strip.elements, length);
                segments.survey(strip);
            }
            engine.observe(strip, finite, segments, cast);
        }
    }

    /// A block larger than a strip: first its scales, then its elements.
    fn observe_large(&mut self, first: u64, rows: Rows<'_, f32>) {
        let Self { casts, strip, engine, .. } = self;
        let mut extremes = Extremes::default();
        rows.iter().for_each(|row| extremes.merge(&Extremes::of(engine.level, row)));
        let mut blocks: Vec<_> = casts.iter().map(|cast| LargeBlock::new(cast, &extremes)).collect();
        strip.clear();
        for mut row in rows.iter() {
            while !row.is_empty() {
                let (part, rest) = row.split_at(row.len().min(strip.room()));
                strip.push(part);
                row = rest;
                if strip.room() == 0 {
                    engine.observe_part(strip, casts, &mut blocks);
                    strip.clear();
                }
            }
        }
        engine.observe_part(strip, casts, &mut blocks);
        let ratio = |(largest, smallest): (f64, f64)| largest / smallest;
        let range = extremes.magnitudes().map(ratio).map(libm::log2);
        for (cast, block) in casts.iter_mut().zip(blocks) {
            match block {
                Some(LargeBlock { scale, stats, .. }) => {
                    cast.stats.add(&scale, first, &stats);
                    range.into_iter().for_each(|log2| cast.stats.add_range(log2));
                }
                None => {
                    let elements = rows.iter().flatten().map(|&x| f64::from(x));
                    engine.define(cast, first, elements);
                }
            }
        }
    }

    fn observe_f64(&mut self, elements: &[f64]) {
        self.each_block(elements, |this, first, rows| {
            let Self { casts, engine, .. } = this;
            for cast in casts {
                match cast.run {
                    Some(run) => {
                        // Runs lie in one row.
                        let parts = rows.iter().flat_map(|row| row.chunks(run));
                        for (part, first) in parts.zip((first..).step_by(run)) {
                            engine.define(cast, first, part.iter().copied());
                        }
                    }
                    None => engine.define(cast, first, rows.iter().flatten().copied()),
                }
            }
        });
    }
}

impl Accumulate for BlockAccumulator<'_> {
    fn observe(&mut self, _: u64, chunk: Chunk<'_>) {
        match chunk {
            Chunk::F32(values) => self.observe_f32(values),
            Chunk::F64(values) => self.observe_f64(values),
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
