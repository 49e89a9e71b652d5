//! The GPU layer without a GPU: every kernel assembled for every chip, its integer logic run here, the host's
//! path against a driver that is made up, and this tool's lists of steps against those of other makers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod host;
mod interpret;
mod lists;
mod machine_code;
