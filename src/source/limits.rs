//! Caps and checked arithmetic that the readers share.
