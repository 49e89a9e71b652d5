//! What precision does to a step of training, computed from what a run recorded.
//!
//! Nothing here reads files or starts threads. Arithmetic is that of the frameworks, float32 operation by float32
//! operation; casts are those of [`crate::cast`].

mod extremes;
pub mod reduce;
mod stored;
pub mod updates;

use extremes::Extremes;
pub use stored::Stored;
