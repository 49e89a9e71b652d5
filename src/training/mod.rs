//! What precision does to a training step: which ops ran in which type, and where the bytes go.

pub mod autocast;
pub mod memory;
