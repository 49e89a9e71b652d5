//! What precision does to a training step: which ops ran in which type, where the bytes go, what becomes of weight
//! updates and of gradients that are reduced.
//!
//! Nothing here reads files or starts threads. Arithmetic is that of the frameworks, float32 operation by float32
//! operation; casts are those of [`crate::cast`].

pub mod autocast;
mod extremes;
pub mod memory;
pub mod reduce;
mod stored;
pub mod updates;

use extremes::Extremes;
pub use stored::Stored;
