//! The tests of `outlast-store` in one program, because linking each costs seconds. `cargo test -p outlast-store
//! --test all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

mod engines;
mod postgres;
mod postgres_silent;
mod throughput;
