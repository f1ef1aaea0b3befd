//! The tests of `outlast-net` in one program, because linking each costs seconds. `cargo test -p outlast-net --test
//! all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

#[path = "../../api/tests/acme_support/mod.rs"]
mod acme_support;
#[path = "../../api/tests/common/mod.rs"]
mod common;
#[path = "../../cli/tests/common/pki.rs"]
mod pki;
mod proxied;
mod quic_support;
mod raw;

mod acme;
mod bucket;
mod bucket_requests;
mod client_auth;
mod client_auth_policy;
mod door;
mod dual;
mod fetch;
mod flight;
mod garbage;
mod hostile;
mod http3;
mod metrics;
mod negotiation;
mod plain;
mod proxy;
mod proxy_http;
mod quic;
mod quic_clients;
mod s3;
mod second_hello;
mod sftp_door;
mod sftp_limits;
mod sftp_strangers;
mod tickets;
mod witness;
