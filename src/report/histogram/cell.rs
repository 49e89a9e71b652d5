//! What one format does to one subject.

use serde::Serialize;

use super::super::number::Num;
use crate::cast::Target;
use crate::stats::blocks::WorstBlock;
use crate::stats::{BlockStats, FormatStats, SourceStats};
use crate::tensor::grid::coordinates;

/// What one format does to one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The format's name.
    pub format: &'static str,
    /// Elements flushed to zero.
    pub underflow: u64,
    /// Elements that become subnormal.
    pub subnormal: u64,
    /// Elements that become normal numbers.
    pub normal: u64,
    /// Elements that overflow.
    pub overflow: u64,
    /// Finite elements with |x·scale| above the largest finite number, before rounding.
    pub exceeds_max: u64,
    /// Percent of the finite nonzero elements.
    pub underflow_pct: Option<Num>,
    /// Percent of all elements.
    pub underflow_pct_of_all: Option<Num>,
    /// Percent of the finite nonzero elements.
    pub subnormal_pct: Option<Num>,
    /// Percent of all elements.
    pub subnormal_pct_of_all: Option<Num>,
    /// Percent of the finite nonzero elements.
    pub overflow_pct: Option<Num>,
    /// Percent of all elements.
    pub overflow_pct_of_all: Option<Num>,
    /// Mean squared error.
    pub mse: Option<Num>,
    /// ‖x − q/s‖ / ‖x‖.
    pub rel_l2: Option<Num>,
    /// Signal to quantisation noise in dB.
    pub sqnr_db: Option<Num>,
    /// Largest absolute error.
    pub max_abs: Option<Num>,
    /// Largest relative error.
    pub max_rel: Option<Num>,
    /// Mean relative error.
    pub mean_rel: Option<Num>,
    /// Finite elements stored as Inf or NaN: they are no part of the error figures.
    pub left_out_of_errors: u64,
    /// log2(max_finite / (scale·amax)): bits that the largest element is away from the limit. Undefined for
    /// block formats, whose scales follow the values.
    pub headroom_log2: Option<Num>,
    /// What became of the scales; only for block formats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Box<Blocks>>,
}

/// What a block format does to the scales of one subject.
#[derive(Clone, Debug, Serialize)]
pub struct Blocks {
    /// Number of blocks: each is one of the seven kinds that follow.
    pub count: u64,
    /// All elements are zero.
    pub all_zero: u64,
    /// The scale is 0 although some element is not.
    pub scale_zero: u64,
    /// The scale is a subnormal number of its format.
    pub scale_subnormal: u64,
    /// The scale was set to the smallest that there is.
    pub scale_raised: u64,
    /// The scale is none of the others.
    pub scale_normal: u64,
    /// The scale was set to the largest that there is.
    pub scale_saturated: u64,
    /// The scale is NaN.
    pub scale_nan: u64,
    /// Elements with |x / scale| above the largest number, before rounding.
    pub clipped: u64,
    /// Percent of the finite nonzero elements.
    pub clipped_pct: Option<Num>,
    /// Smallest stored scale of a block with nonzero values.
    pub scale_min: Option<Num>,
    /// Largest stored scale of a block with nonzero values.
    pub scale_max: Option<Num>,
    /// Largest log2(amax / smallest nonzero magnitude) within a block.
    pub dynamic_range_log2_max: Option<Num>,
    /// Its mean over blocks with nonzero values.
    pub dynamic_range_log2_mean: Option<Num>,
    /// The blocks with the largest relative error, worst first.
    pub worst: Vec<Worst>,
}

/// A block and its error.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// Index into `inputs`; only in the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<usize>,
    /// The tensor's step, for its place in `tensors`.
    #[serde(skip)]
    pub step: Option<u64>,
    /// The tensor's name; only in the total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// Index, in each dimension, of the block's first element.
    pub index: Vec<u64>,
    /// ‖x − x̂‖ / ‖x‖ over the block.
    pub rel_l2: Num,
}

impl Cell {
    /// One cell for each target, from the statistics of the plain and of the block casts, each in order.
    pub(super) fn row(
        targets: impl IntoIterator<Item = Target>,
        shape: &[u64],
        source: &SourceStats,
        formats: &[FormatStats],
        blocks: &[BlockStats],
    ) -> Vec<Self> {
        let (mut formats, mut blocks) = (formats.iter(), blocks.iter());
        let cell = |target: Target| match target {
            Target::Plain(plan) => {
                // Not the logarithm of the quotient, which may leave the range of f64.
                let limit = libm::log2(plan.target.max_finite()) - libm::log2(plan.scale.into());
                let headroom =
                    source.amax().filter(|&amax| amax > 0.0).map(|amax| Num(limit - libm::log2(amax)));
                let stats = formats.next()?;
                Some(Self::new(plan.target.name, source, stats, headroom, None))
            }
            Target::Block(plan) => {
                let stats = blocks.next()?;
                let blocks = Some(Box::new(Blocks::new(shape, source, stats)));
                Some(Self::new(plan.spec.name, source, &stats.format, None, blocks))
            }
        };
        targets.into_iter().filter_map(cell).collect()
    }

    fn new(
        format: &'static str,
        source: &SourceStats,
        stats: &FormatStats,
        headroom_log2: Option<Num>,
        blocks: Option<Box<Blocks>>,
    ) -> Self {
        let classes = &stats.classes;
        // Where the blocks of a tensor could not be read, no share is known.
        let complete = classes.total() == source.elements;
        let of_nonzero = |part| pct(part, source.nonzero_finite()).filter(|_| complete);
        let of_all = |part| pct(part, source.elements).filter(|_| complete);
        Self {
            format,
            underflow: classes.underflow,
            subnormal: classes.subnormal,
            normal: classes.normal,
            overflow: classes.overflow,
            exceeds_max: stats.exceeds_max,
            underflow_pct: of_nonzero(classes.underflow),
            underflow_pct_of_all: of_all(classes.underflow),
            subnormal_pct: of_nonzero(classes.subnormal),
            subnormal_pct_of_all: of_all(classes.subnormal),
            overflow_pct: of_nonzero(classes.overflow),
            overflow_pct_of_all: of_all(classes.overflow),
            mse: stats.errors.mse().map(Num),
            rel_l2: stats.errors.rel_l2().map(Num),
            sqnr_db: stats.errors.sqnr_db().map(Num),
            max_abs: stats.errors.max_abs().map(Num),
            max_rel: stats.errors.max_rel().map(Num),
            mean_rel: stats.errors.mean_rel().map(Num),
            left_out_of_errors: stats.errors.left_out,
            headroom_log2,
            blocks,
        }
    }
}

impl Blocks {
    fn new(shape: &[u64], source: &SourceStats, stats: &BlockStats) -> Self {
        let scales = &stats.scales;
        let worst = |block: &WorstBlock| Worst {
            input: None,
            step: None,
            tensor: None,
            index: coordinates(shape, block.first),
            rel_l2: Num(block.rel_l2),
        };
        Self {
            count: scales.total(),
            all_zero: scales.all_zero,
            scale_zero: scales.zero,
            scale_subnormal: scales.subnormal,
            scale_raised: scales.raised,
            scale_normal: scales.normal,
            scale_saturated: scales.saturated,
            scale_nan: scales.nan,
            clipped: stats.format.exceeds_max,
            clipped_pct: pct(stats.format.exceeds_max, source.nonzero_finite()),
            scale_min: stats.scale_range().map(|(least, _)| Num(least)),
            scale_max: stats.scale_range().map(|(_, most)| Num(most)),
            dynamic_range_log2_max: stats.range_max().map(Num),
            dynamic_range_log2_mean: stats.range_mean().map(Num),
            worst: stats.worst.iter().map(worst).collect(),
        }
    }
}

fn pct(part: u64, whole: u64) -> Option<Num> {
    (whole > 0).then(|| Num(100.0 * part as f64 / whole as f64))
}
