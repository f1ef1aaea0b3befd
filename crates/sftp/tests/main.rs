//! The tests of the SFTP engine, in one program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod support;

mod arrivals;
mod client;
mod escapes;
mod long_names;
mod open_files;
mod requests;
mod sessions;
mod uploads;
mod views;
mod wire;
