//! The tests of `outlast-lab` in one program, because linking each costs seconds. `cargo test -p outlast-lab --test
//! all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

mod common;

mod compare;
mod cpu;
mod handshakes;
mod legacy;
mod live;
mod pages;
mod plots;
mod program;
mod quic;
mod report;
mod requests;
mod run;
mod siege;
mod sizes;
