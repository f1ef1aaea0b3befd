//! The tests of the SFTP engine, in one program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
