//! Whether tensors are as they should be: which tensors of two dumps belong together.
//!
//! Judges finished figures only; reads no tensors and writes no reports.

pub mod pairing;
