//! What reduced-precision number formats, and the loss scales that go with them, do to recorded tensors.
//!
//! Folders are the data flow, and a module imports only from its left:
//!
//! ```text
//! bytes ─▶ values ─▶ casts ─▶ statistics ─▶ report
//! error < format < tensor < {source, cast} < {stats, verify} < {scaler, training, check, gpu} < recommend
//!   < report < pipeline < cli
//! ```

pub mod cast;
pub mod check;
pub mod cli;
pub mod error;
pub mod format;
pub mod gpu;
pub mod pipeline;
pub mod recommend;
pub mod report;
pub mod scaler;
pub mod source;
pub mod stats;
pub mod tensor;
pub mod training;
pub mod verify;
