//! The ledger: who connected how, who could do better, and what another policy would break.
//!
//! [`Handshake`] and [`End`] are what a listener reports of each connection through [`Observe`].

mod event;
pub mod limits;
pub mod line;
pub mod read;
pub mod segments;
mod writer;

pub use event::{End, Handshake, Observe, Observers, Outcome, Served};
pub use line::Line;
pub use writer::{Ledger, Options};
