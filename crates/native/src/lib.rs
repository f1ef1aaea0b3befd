//! C libraries that the lab loads at run time, behind safe interfaces: the only crate with `unsafe`.
//!
//! They are not linked: without a library the lab gets [`Missing`] and goes on. s2n-tls is compiled in; it is in this
//! crate because its callbacks take raw pointers.

pub mod openssl;
pub mod s2n;

pub mod pqmagic;

/// A library that was not found or lacks a function.
#[derive(Debug, thiserror::Error)]
#[error("{library}: {reason}")]
pub struct Missing {
    /// File name of the library.
    pub library: String,
    /// Error of the loader or of the symbol lookup.
    pub reason: String,
}
