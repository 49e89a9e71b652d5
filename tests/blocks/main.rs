//! Block formats: against torchao's results, against figures worked out by hand, and the statistics against
//! a whole-tensor implementation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod by_hand;
mod golden;
mod names;
mod scales;
mod slices;
mod tensors;
