//! The tests of `outlast-ssh` in one program, because linking each costs seconds. `cargo test -p outlast-ssh --test all
//! NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

mod libraries;
mod openssh;
mod served;
