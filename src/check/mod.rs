//! Whether tensors are as they should be: rules and baselines over finished figures, and which tensors of two
//! dumps belong together.
//!
//! Judges figures only; reads no tensors and writes no reports.

pub mod baseline;
pub mod figures;
pub mod judge;
pub mod limit;
pub mod metric;
pub mod pairing;
pub mod predicate;
pub mod rules;
