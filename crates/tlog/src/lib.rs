//! Transparency logs by C2SP's specifications: Merkle trees in tiles, signed notes, checkpoints, proofs, witnesses
//! and policies.
//!
//! No file, no socket, no clock and no store: the caller passes bytes and times. Nothing here panics, whatever it
//! reads, and every parser has a limit.
//!
//! The arithmetic of the tree is written here rather than taken from `tlog_tiles` and `signed_note` 0.2: those need
//! SHA-2, Ed25519, `rand_core` and base64 in versions that the workspace no longer uses, hash with a library of their
//! own, and abort on assertions where numbers do not match
//! (`docs/decisions/0020-the-audit-trail-is-a-merkle-log.md`). The hash and the signatures are those of
//! `outlast-crypto`.

pub mod checkpoint;
pub mod hash;
pub mod key;
mod key_error;
pub mod note;
pub mod policy;
pub mod proof;
pub mod proof_file;
pub mod range;
mod text;
pub mod tile;
pub mod witness;

pub use checkpoint::{Checkpoint, SignedCheckpoint};
pub use key::{Signer, VerifierKey};
pub use key_error::KeyError;
pub use note::{NoteSignature, SignedNote};
pub use range::CompactRange;

/// A node of the tree: SHA-256.
pub type Hash = [u8; 32];

/// The largest size of a tree: the limit of the Go implementations and of SQLite's integers.
pub const MAX_SIZE: u64 = i64::MAX as u64;
