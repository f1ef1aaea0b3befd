//! The tests of `outlast-api` in one program, because linking each costs seconds. `cargo test -p outlast-api --test
//! all NAME::` runs those of one file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]
#![recursion_limit = "512"]

mod acme_support;
mod approvals_support;
mod causes_support;
#[path = "common/certificates.rs"]
mod certificates;
mod common;
mod condition_support;
#[path = "common/pki.rs"]
mod pki;
mod rolesanywhere_support;
mod spellings_support;
mod transfer_support;
mod workflow_support;

mod acm;
mod acm_access;
mod acm_conditions;
mod acm_import;
mod acm_pairs;
mod acm_public;
mod acm_renewal;
mod acm_rounds;
mod acm_search;
mod acme;
mod acme_access;
mod acme_bad_input;
mod acme_limits;
mod answers;
mod approvals;
mod approvals_attacks;
mod approvals_dual;
mod approvals_paths;
mod arns;
mod artifact_log;
mod cached;
mod causes;
mod clock;
mod condition_keys;
mod elsewhere;
mod events;
mod events_outbox;
mod forged;
mod haste;
mod housekeeping;
mod issue_cost;
mod kms;
mod kms_access;
mod kms_grants;
mod kms_import;
mod kms_model;
mod kms_regions;
mod kms_rotation;
mod kms_use;
mod members;
mod parity;
mod permits;
mod principals;
mod private_ca;
mod private_ca_access;
mod private_ca_check;
mod private_ca_issue;
mod private_ca_passthrough;
mod private_ca_revocation;
mod private_ca_sharing;
mod quotas;
mod records;
mod requests;
mod rest_json;
mod revocation;
mod revocation_ocsp;
mod revocation_strangers;
mod rolesanywhere;
mod rolesanywhere_attacks;
mod rolesanywhere_revocation;
mod rolesanywhere_session;
mod secrets;
mod secrets_batch;
mod secrets_replicas;
mod secrets_rotation;
mod spellings;
mod ssh_ca;
mod sts;
mod tags;
mod timestamps;
mod transfer;
mod transfer_attacks;
mod transfer_connector_jobs;
mod transfer_connector_secrets;
mod transfer_connectors;
mod transfer_executions;
mod transfer_logins;
mod transfer_outside;
mod transfer_workflows;
