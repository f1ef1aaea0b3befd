//! The tests of `outlast-ledger` in one program, because linking each costs seconds. `cargo test -p outlast-ledger
//! --test all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

mod common;

mod cost;
mod export;
mod lines;
mod reports;
mod segments;
mod ssh;
