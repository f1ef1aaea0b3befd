//! ACME (RFC 8555): endpoints that issue from a private CA, who may use them, and what clients do there.
//!
//! What is asked comes in as values: JWS and JSON are the business of `outlast-api`, sockets of `outlast-net`. An
//! [`Endpoint`] belongs to an account and a region, and so does all below it. Errors of the protocol are
//! [`AcmeError`]; the operations of Certificate Manager have [`crate::acm::AcmError`].

mod account;
mod authorization;
mod binding;
mod certificate;
mod endpoint;
mod error;
mod name;
mod nonce;
mod order;
mod sweep;
mod task;
mod token;
mod validation;

pub use account::{
    Account, AccountKey, AccountStatus, NewAccount, account_by_key, accounts, change_key,
    create_account, deactivate_account, find_account, find_caller, principal_of, revoke_account,
    set_contacts,
};
pub use authorization::{
    Authorization, AuthorizationStatus, CHALLENGES, Challenge, ChallengeKind, ChallengeStatus,
    deactivate_authorization, find_authorization, respond,
};
pub use binding::{
    Binding, NewBinding, bindings, create_binding, credentials, delete_binding, find_binding,
    parse_binding_arn, prove, revoke_binding,
};
pub use certificate::{
    Certificate, Finalize, Holder, RenewalWindow, Revocation, finalize, find_certificate,
    find_certificate_by_der, may_revoke, renewal, revoke,
};
pub use endpoint::{
    AUTHORIZATION_BEHAVIORS, Authority, AuthorizationBehavior, CONTACTS, Contact, Endpoint,
    NewEndpoint, UpdateEndpoint, authority_of, create_endpoint, delete_endpoint, endpoint_by_id,
    endpoints, find_endpoint, update_endpoint,
};
pub use error::{AcmeError, KINDS, Kind, Problem, StoredProblem, Subproblem};
pub use name::DnsName;
pub use nonce::{consume as consume_nonce, fresh as fresh_nonce};
pub use order::{NewOrder, Order, OrderStatus, create_order, find_order, orders};
pub use sweep::{CLEAN_UP, EXPIRE_ORDERS, FORGET_NONCES, FORGET_TOKENS};
pub use task::{Job, Outcome, Queue, Target, claim, complete, due_tasks};
pub use token::Idempotency;
pub use validation::{
    DomainScope, Validation, ValidationStatus, create_validation, delete_validation,
    find_validation, update_validation, validations,
};

use crate::Fault;
use crate::ids;

/// An id that can be part of a place in the store: only what this service has made passes.
fn is_id(text: &str) -> bool {
    ids::uuid_bytes(text).is_some_and(|bytes| ids::uuid_text(bytes) == text)
}

/// A random id.
fn new_id() -> Result<String, Fault> {
    ids::uuid()
}
