//! What reducing gradients in a low precision costs: the error of the mean over ranks against the exact one.
//!
//! [`order`] says in which order each algorithm adds the ranks; [`case`] what is rounded when; [`sum`] adds,
//! [`exact`] without rounding.

mod accumulate;
pub mod case;
pub mod exact;
pub mod order;
mod plan;
pub mod sum;
mod tally;
mod worlds;

pub use accumulate::{ReduceAccumulator, TensorReductions};
pub use case::{Accumulate, Case, Divide};
pub use order::Algorithm;
pub use plan::{FsdpPlan, ReducePlan};
pub use tally::ErrorTally;
pub use worlds::{Sample, WorldAccumulator, drawn_rank};
