//! The audit of profiler traces: real ones, judged by hand, and a made-up one for each finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod lists;
mod made;
mod real;
