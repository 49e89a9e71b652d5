//! The rules of the scalers, one family a file. Rules that a maker has changed are variants of one state
//! machine, so that what differs stands side by side.
//!
//! Factors stay f64 until they meet the scale, as Python floats do. Where a framework rounds in between, its
//! policy does so too.

pub(super) mod als;
pub(super) mod apex;
pub(super) mod cerebras;
pub(super) mod chainer;
pub(super) mod colossalai;
pub(super) mod fairseq;
pub(super) mod flax;
pub(super) mod iteration;
pub(super) mod jmp;
pub(super) mod keras;
pub(super) mod megatron;
pub(super) mod mindspore;
pub(super) mod mxnet;
pub(super) mod openseq2seq;
pub(super) mod paddle;
pub(super) mod torch;
