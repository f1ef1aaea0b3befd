//! Libraries in C that are loaded when the lab runs, behind safe interfaces: the only crate with `unsafe`.
//!
//! Nothing that is loaded is linked: a machine without the library gets [`Missing`], and the lab goes on without it. s2n-tls is
//! compiled in; it is here because its callbacks take raw pointers.

pub mod openssl;
pub mod s2n;

pub mod pqmagic;

/// A library that was not found, or that lacks something.
#[derive(Debug, thiserror::Error)]
#[error("{library}: {reason}")]
pub struct Missing {
    /// File name of the library that was searched for.
    pub library: String,
    /// What the loader, or the look for a symbol, said.
    pub reason: String,
}
