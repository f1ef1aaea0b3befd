//! The tests of what the agent decides, in one program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "../../pki/tests/common/authority.rs"]
mod authority;

mod acme;
mod cache;
mod callers;
mod imds;
mod interface;
mod session;
mod template;
mod upstream;
mod verify;
