//! The tests of `outlast-pki` in one program, because linking each costs seconds. `cargo test -p outlast-pki --test
//! all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

#[path = "common/authority.rs"]
mod authority;
mod common;

mod cms;
mod cms_attacks;
mod cms_dual;
mod cms_revocation;
mod crl;
mod extensions;
mod hierarchies;
mod lint;
mod new_names;
mod ocsp;
mod pinned_revocation;
mod pkits;
mod private_keys;
mod requests;
mod rule_dates;
mod signing_policy;
mod signing_policy_log;
mod strict;
mod timestamp;
mod timestamp_attacks;
mod trusted_time;
mod trusted_time_attacks;
mod validate;
mod vectors;
mod whatif;
