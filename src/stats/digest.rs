//! A digest of the exact values beside another statistic, to tell whether two tensors are the same.
//!
//! XXH3 with 128 bits (Yann Collet, xxHash 0.8): it tells accidents apart, not forgeries. Values are hashed, not
//! stored bytes, so that a container or a byte order changes nothing: f32 for types of up to 32 bits, else f64, with the
//! payload of a NaN as far as the value has one.

use xxhash_rust::xxh3::Xxh3;

use super::{Accumulate, Merge};
use crate::tensor::{Chunk, TensorInfo};

/// Values turned into bytes at a time.
const PIECE: usize = 1024;

/// Accumulates `A` and a digest of shape, type and values.
pub struct WithDigest<A> {
    inner: A,
    /// Shape and type.
    head: Vec<u8>,
    /// Digests of the runs before: accumulators merge in order.
    before: Vec<u8>,
    run: Xxh3,
}

impl<A> WithDigest<A> {
    /// A digest that has seen nothing, beside `inner`.
    pub fn new(inner: A, info: &TensorInfo) -> Self {
        let mut head = info.dtype.name().as_bytes().to_vec();
        head.push(0);
        head.extend(info.shape.iter().flat_map(|extent| extent.to_le_bytes()));
        Self { inner, head, before: Vec::new(), run: Xxh3::new() }
    }

    /// The digests of all runs.
    fn runs(mut self) -> (A, Vec<u8>, Vec<u8>) {
        self.before.extend(self.run.digest128().to_le_bytes());
        (self.inner, self.head, self.before)
    }
}

impl<A: Merge> Merge for WithDigest<A> {
    type Out = (A::Out, u128);

    fn merge(&mut self, next: Self) {
        self.before.extend(self.run.digest128().to_le_bytes());
        self.run = next.run;
        self.before.extend(next.before);
        self.inner.merge(next.inner);
    }

    fn finish(self) -> Self::Out {
        let (inner, mut head, runs) = self.runs();
        head.extend(runs);
        (inner.finish(), xxhash_rust::xxh3::xxh3_128(&head))
    }
}

impl<A: Accumulate> Accumulate for WithDigest<A> {
    fn observe(&mut self, first: u64, chunk: Chunk<'_>) {
        match chunk {
            Chunk::F32(values) => {
                let mut bytes = [0; 4 * PIECE];
                for piece in values.chunks(PIECE) {
                    for (bytes, x) in bytes.as_chunks_mut().0.iter_mut().zip(piece) {
                        *bytes = x.to_le_bytes();
                    }
                    self.run.update(&bytes[..4 * piece.len()]);
                }
            }
            Chunk::F64(values) => values.iter().for_each(|x| self.run.update(&x.to_le_bytes())),
        }
        self.inner.observe(first, chunk);
    }
}
