//! The definition of a cast against everything else that knows the answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod classes;
mod crates;
mod lists;
mod midpoints;
mod options;
