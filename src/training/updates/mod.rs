//! What becomes of weight updates that are stored in a low precision: why master weights are float32.
//!
//! An optimizer's step is w ← c·w + d with a factor c for decoupled weight decay and an increment d for each
//! element. [`rule`] computes d as torch does; [`store`] takes the step with weights kept in each [`Way`];
//! [`tally`] compares the change with the one that was wanted.

mod accumulate;
pub mod checkpoint;
mod ratios;
pub mod rule;
pub mod store;
pub mod tally;

pub use accumulate::{FormatUpdates, TensorUpdates, UpdateAccumulator, UpdatePlan};
pub use ratios::Ratios;
pub use rule::{Rule, Step};
pub use store::{Way, step};
pub use tally::Tally;
