//! The tests of `outlast-negotiate` in one program, because linking each costs seconds. `cargo test -p
//! outlast-negotiate --test all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

mod agreement;
mod catalogue;
mod decide;
mod explain;
mod ja4;
mod properties;
mod ssh;
mod transfer;
