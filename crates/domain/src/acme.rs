//! ACME (RFC 8555): endpoints that issue from a private CA, who may use them, and what clients do there.
//!
//! Inputs are values: `outlast-api` reads JWS and writes JSON, `outlast-net` has the sockets. An [`Endpoint`] and
//! everything below it belong to an account and a Region. Errors of the protocol are [`AcmeError`]; the operations of
//! Certificate Manager have [`crate::acm::AcmError`].

mod account;
mod authorization;
mod binding;
mod certificate;
mod challenge;
mod endpoint;
mod error;
mod name;
mod new_order;
mod nonce;
mod order;
pub(crate) mod queue;
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
    Authorization, AuthorizationStatus, deactivate_authorization, find_authorization, respond,
};
pub use binding::{
    Binding, NewBinding, SERVICE_PRINCIPAL, bindings, create_binding, credentials, delete_binding,
    find_binding, parse_role_arn, prove, revoke_binding,
};
pub use certificate::{
    Certificate, Finalize, Holder, RenewalWindow, Revocation, finalize, find_certificate,
    find_certificate_by_der, may_revoke, renewal, revoke,
};
pub use challenge::{CHALLENGES, Challenge, ChallengeKind, ChallengeStatus};
pub use endpoint::{
    AUTHORIZATION_BEHAVIORS, Authority, AuthorizationBehavior, CONTACTS, Contact, Endpoint,
    NewEndpoint, UpdateEndpoint, absent, authority_of, create_endpoint, delete_endpoint,
    endpoint_by_id, endpoints, find_endpoint, update_endpoint,
};
pub use error::{AcmeError, KINDS, Kind, Problem, StoredProblem, Subproblem};
pub use name::DnsName;
pub use new_order::{NewOrder, create_order};
pub use nonce::{consume as consume_nonce, fresh as fresh_nonce};
pub use order::{Order, OrderStatus, find_order, orders};
pub use queue::{Queue, due_tasks, owners};
pub use sweep::{
    CLEAN_UP, EXPIRE_ORDERS, FORGET_CERTIFICATES, FORGET_NONCES, FORGET_ORDERS, FORGET_TOKENS,
};
pub use task::{Job, Outcome, Target, claim, complete};
pub use token::Idempotency;
pub use validation::{
    DomainScope, Validation, ValidationStatus, create_validation, delete_validation,
    find_validation, update_validation, validations,
};

use std::collections::BTreeMap;

use crate::Fault;
use crate::acm::AcmError;
use crate::arn::Scope;
use crate::ids;
use crate::work::Work;

/// The tag of an endpoint that names the private CA which issues there.
pub const AUTHORITY_TAG: &str = "outlast:certificate-authority-arn";

/// The ARN and the tags of an endpoint, a binding or a domain validation.
pub fn tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
) -> Result<(String, BTreeMap<String, String>), AcmError> {
    let parsed = endpoint::AcmeArn::parse(scope, arn)?;
    if parsed.below().is_empty() {
        let found = find_endpoint(work, scope, arn)?;
        return Ok((found.arn(), found.tags().clone()));
    }
    if parsed.below().starts_with("acme-external-account-binding/") {
        let found = find_binding(work, scope, arn)?;
        return Ok((found.arn(), found.tags().clone()));
    }
    let found = find_validation(work, scope, arn)?;
    Ok((found.arn(), found.tags().clone()))
}

/// Replaces the tags of an endpoint, a binding or a domain validation.
pub fn set_tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    tags: BTreeMap<String, String>,
) -> Result<(), AcmError> {
    let parsed = endpoint::AcmeArn::parse(scope, arn)?;
    if parsed.below().is_empty() {
        let found = find_endpoint(work, scope, arn)?;
        // Choosing the CA takes permission to issue from it, which is not checked here.
        if tags.get(AUTHORITY_TAG) != found.tags().get(AUTHORITY_TAG) {
            return Err(AcmError::Validation(format!(
                "The tag {AUTHORITY_TAG} is read only when the endpoint is created; change the CA with \
                 UpdateAcmeEndpoint."
            )));
        }
        return Ok(found.set_tags(work, tags)?);
    }
    if parsed.below().starts_with("acme-external-account-binding/") {
        return Ok(find_binding(work, scope, arn)?.set_tags(work, tags)?);
    }
    Ok(find_validation(work, scope, arn)?.set_tags(work, tags)?)
}

/// Whether an id can be part of a record key: only ids that this service has made are accepted.
fn is_id(text: &str) -> bool {
    ids::uuid_bytes(text).is_some_and(|bytes| ids::uuid_text(bytes) == text)
}

/// A random id.
fn new_id() -> Result<String, Fault> {
    ids::uuid()
}
