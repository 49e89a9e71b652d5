//! Where the bytes of a training step go: what each recipe keeps for every parameter, how sharding divides it,
//! and what activations add.
//!
//! Everything is counted from terms that are shown. What a formula cannot know (the allocator, buffers of
//! communication, gathered weights) is said and not guessed.

pub mod activations;
pub mod count;
pub mod flow;
mod ledger;
pub mod recipe;

pub use activations::{Activations, Model, RECOMPUTATIONS, Recompute};
pub use ledger::{Ledger, Line, MAX_PARAMETERS, MAX_RANKS, SHARDINGS, Sharding};
pub use recipe::{Element, Part, RECIPES, Recipe, Term};
