//! Statistics of a tensor and of what each cast would do to it.
//!
//! An accumulator sees chunks of exact values, merges with the accumulator of the chunks that follow,
//! and finishes into plain numbers. It reads no files and starts no threads. Counts are exact; sums of
//! squares are those of an f64 evaluation to 1e-9 or better, whatever engine made them:
//!
//! * `bins`: one histogram serves every format of up to five significand bits;
//! * `exponents`: where only the stored values are asked for;
//! * `wide`: a pass of its own for each wider format;
//! * [`blocks`]: formats whose elements share a scale with their block;
//! * [`pair`]: two tensors side by side;
//! * [`FormatStats::observe_f32`]: one element at a time through `cast::round`, for all else.

pub mod binades;
mod bins;
mod block;
pub mod blocks;
pub mod digest;
pub mod element;
pub mod errors;
mod exponents;
pub mod pair;
pub mod scales;
mod tensor;
mod wide;

pub use binades::Binades;
pub use blocks::{BlockAccumulator, BlockCast, BlockStats};
pub use digest::WithDigest;
pub use element::{ClassCounts, FormatStats, SourceStats};
pub use errors::ErrorSums;
pub use pair::{PairAccumulator, PairPlan, PairStats};
pub use tensor::{StatsPlan, TensorAccumulator, TensorStats};

use crate::tensor::Chunk;

/// Something that is computed piece by piece and put together in order.
pub trait Merge: Send {
    /// The finished result.
    type Out: Send;

    /// Takes in what `next` has seen: the elements that follow those of `self`.
    fn merge(&mut self, next: Self);

    /// Turns what was accumulated into the result.
    fn finish(self) -> Self::Out;
}

/// Something that is computed from all elements of a tensor, chunk by chunk.
pub trait Accumulate: Merge {
    /// Takes in the next elements, the first of which has index `first` in the tensor.
    fn observe(&mut self, first: u64, chunk: Chunk<'_>);
}

/// Something that is computed from all elements of several tensors of one shape, side by side.
pub trait AccumulateTogether: Merge {
    /// Takes in the next elements of each tensor: equally many, the first of which have index `first`.
    fn observe(&mut self, first: u64, chunks: &[Chunk<'_>]);
}
