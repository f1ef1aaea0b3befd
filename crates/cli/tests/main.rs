//! The tests of `outlast` in one program, because linking each costs seconds. `cargo test -p outlast --test all
//! NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

#[path = "../../pki/tests/common/authority.rs"]
mod authority;
mod common;
#[path = "../../agent/tests/verify.rs"]
mod session_verify;

mod account_limits;
mod acm;
mod acme_clients;
mod agent;
mod agent_roles;
mod agent_service;
mod approvals;
mod approvals_dual;
mod artifact_log;
mod attest;
mod audit;
mod aws_agent;
mod backup;
mod book;
mod cert;
mod certificates;
mod check;
mod connectors;
mod cosign;
mod crash;
mod credentials;
mod crowd;
mod dumps;
mod endpoints;
mod enroll;
mod events;
mod file_names;
mod folder;
mod forged;
mod git;
mod http3;
mod identity_providers;
mod interop;
mod jws;
mod kms_sdks;
mod lab;
mod ledger;
mod limits;
mod metrics;
mod mistakes;
mod mutual_tls;
mod oci;
mod pki_peers;
mod policy;
mod principal;
mod proxy;
mod registry;
mod request_names;
mod revocation;
mod revocation_objects;
mod roles_anywhere;
mod root_key;
mod rotation;
mod secrets_sdks;
mod serve_echo;
mod settings;
mod sftp;
mod sftp_logins;
mod sftp_peers;
mod sftp_server;
mod sftp_signing;
mod sftp_users;
mod shared;
mod sign_before;
mod sign_dual;
mod sign_fetched;
mod sign_formats;
mod sign_matrix;
mod sign_policy;
mod sign_revocation;
mod sign_setup;
mod sign_time;
mod signing;
mod ssh;
mod steady;
mod tls_certificates;
mod tsa;
mod tsa_revoked;
mod witness;
mod witnessed;
mod workflow_steps;
mod workflows;
