//! Path validation.
pub mod names;
