//! Which ops of a recorded training step really ran in low precision, by the lists that autocast has.
//!
//! A trace of `torch.profiler` has every op with the types of its inputs. What autocast did shows in it: an op
//! that autocast handles is called again within itself, with the same number of inputs, after the casts. So a
//! call within a call of the same listed op went through autocast, and so does all that it calls; everything
//! else did not, because autocast was off, or outside its region, or does not know the op. Types are judged at
//! the innermost op that computes: an outer `aten::linear` shows the float32 inputs that it was given even if
//! the `aten::mm` in it ran in bfloat16.

mod audit;
mod casts;
pub mod policy;
mod row;
pub mod table;
pub mod trace;
mod walk;

pub use audit::{Audit, Finding, FindingKind, KINDS, Repeated};
pub use casts::{CastCause, CastRow};
pub use row::{Cause, OpRow, Verdict};
