//! External account bindings (RFC 8555, section 7.3.4): a key that lets clients make ACME accounts which act as a
//! role.
//!
//! As at AWS, a binding can serve several accounts until it expires, is revoked or deleted; accounts made with it
//! stay.

use std::collections::BTreeMap;

use outlast_crypto::{Secret, hmac, random};
use serde::{Deserialize, Serialize};

use super::endpoint::{AcmeArn, in_scope, missing};
use super::token::Idempotency;
use super::{AcmeError, Endpoint, Kind, is_id, new_id};
use crate::acm::AcmError;
use crate::arn::{Arn, Scope, iam};
use crate::identity::session::{ServiceRequest, trusts_service};
use crate::identity::{Entry, IdentityError, Permit, PolicyCache, Role, action};
use crate::limits;
use crate::work::{Page, Work};

/// Length of a MAC key in bytes: HS256 requires at least 32 (RFC 7518, section 3.2).
const KEY_LEN: usize = 32;

/// The service principal that assumes the roles of ACME accounts (ACM user guide, "IAM for ACME certificate
/// automation").
pub const SERVICE_PRINCIPAL: &str = "acm-acme.amazonaws.com";

/// Properties of a new binding.
pub struct NewBinding<'a> {
    /// ARN of the role that its accounts act as.
    pub role_arn: &'a Arn,
    /// When it expires, milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Idempotency token.
    pub token: Idempotency,
    /// Parsed policies.
    pub policies: &'a PolicyCache,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    role: String,
    role_id: String,
    expires_ms: Option<i64>,
    revoked_ms: Option<i64>,
    last_used_ms: Option<i64>,
    created_ms: i64,
    updated_ms: i64,
    tags: BTreeMap<String, String>,
}

/// A binding.
#[derive(Debug, Clone)]
pub struct Binding {
    endpoint: Endpoint,
    record: Record,
}

impl Binding {
    /// Id, which is the key id that clients send.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// The binding's endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// ARN.
    pub fn arn(&self) -> String {
        binding_arn(&self.endpoint, &self.record.id)
    }

    /// Name and unique id of the role.
    pub(super) fn role(&self) -> (&str, &str) {
        (&self.record.role, &self.record.role_id)
    }

    /// ARN of the role.
    pub fn role_arn(&self) -> String {
        iam(&self.endpoint.scope().account, &format!("role/{}", self.record.role))
    }

    /// When it expires, milliseconds since 1970.
    pub fn expires_ms(&self) -> Option<i64> {
        self.record.expires_ms
    }

    /// When it was revoked, milliseconds since 1970.
    pub fn revoked_ms(&self) -> Option<i64> {
        self.record.revoked_ms
    }

    /// When an account was last made with it, milliseconds since 1970.
    pub fn last_used_ms(&self) -> Option<i64> {
        self.record.last_used_ms
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    /// Tags.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    pub(super) fn set_tags(
        mut self,
        work: &mut Work<'_>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), crate::Fault> {
        self.record.tags = tags;
        self.save(work)
    }

    fn save(&self, work: &mut Work<'_>) -> Result<(), crate::Fault> {
        work.put(&record_key(self.endpoint.id(), &self.record.id), &self.record)
    }
}

/// The ARN of a binding.
pub(super) fn binding_arn(endpoint: &Endpoint, id: &str) -> String {
    format!("{}/acme-external-account-binding/{id}", endpoint.arn())
}

/// Makes a binding. The permits allow making one and passing the role.
pub fn create_binding(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    new: NewBinding<'_>,
    permit: &Permit<action::acm::CreateAcmeExternalAccountBinding>,
    may_pass: &Permit<action::iam::PassRole>,
) -> Result<Binding, AcmError> {
    permit.opens(&endpoint.arn())?;
    let scope = endpoint.scope();
    let operation = format!("binding/{}", endpoint.id());
    if let Some(id) = new.token.earlier(work, scope, &operation)?
        && let Some(record) = work.get::<Record>(&record_key(endpoint.id(), &id))?
    {
        return Ok(Binding { endpoint: endpoint.clone(), record });
    }
    let role = role(work, scope, new.role_arn)?;
    may_pass.opens(&role.arn())?;
    // The account is not known yet, so a condition on it must allow any.
    let asked = ServiceRequest {
        service: SERVICE_PRINCIPAL,
        source_arn: &endpoint.arn(),
        source_identity: "acm-acme-",
        session_name: None,
        tags: None,
        now_ms: work.now_ms(),
    };
    if !trusts_service(new.policies, &role, &asked)? {
        return Err(AcmError::Validation(format!(
            "The role {} does not trust {SERVICE_PRINCIPAL}: its trust policy must allow that service \
             sts:AssumeRole, sts:TagSession and sts:SetSourceIdentity.",
            new.role_arn
        )));
    }
    let now_ms = work.now_ms();
    if new.expires_ms.is_some_and(|at| at - now_ms > limits::MAX_ACME_BINDING_MS) {
        return Err(AcmError::Validation("The binding must expire within ten years.".into()));
    }
    let prefix = prefix(endpoint.id());
    let found = work.page::<Record>(&prefix, None, limits::MAX_ACME_BINDINGS)?;
    if found.items.len() >= limits::MAX_ACME_BINDINGS {
        return Err(AcmError::ServiceQuotaExceeded(format!(
            "An ACME endpoint has at most {} external account bindings.",
            limits::MAX_ACME_BINDINGS
        )));
    }
    let record = Record {
        id: new_id()?,
        role: role.name,
        role_id: role.id,
        expires_ms: new.expires_ms,
        revoked_ms: None,
        last_used_ms: None,
        created_ms: now_ms,
        updated_ms: now_ms,
        tags: new.tags,
    };
    let binding = Binding { endpoint: endpoint.clone(), record };
    binding.save(work)?;
    work.put_secret(&secret_record_key(endpoint.id(), binding.id()), &random::secret(KEY_LEN)?)?;
    new.token.remember(work, scope, &operation, binding.id())?;
    Ok(binding)
}

/// Reads the ARN of a role.
pub fn parse_role_arn(text: &str) -> Result<Arn, AcmError> {
    Arn::principal(text)
        .filter(|arn| arn.of("iam", "role/").is_some())
        .ok_or_else(|| AcmError::Validation(format!("{text} is not the ARN of a role")))
}

/// Finds the role with this ARN, in the account.
fn role(work: &mut Work<'_>, scope: &Scope, arn: &Arn) -> Result<Role, AcmError> {
    let name = arn.of("iam", "role/").unwrap_or_default();
    if arn.account() != scope.account {
        return Err(AcmError::Validation(format!("The role {arn} belongs to another account.")));
    }
    Role::find(work, &scope.account, name).map_err(|error| match error {
        IdentityError::Fault(fault) => AcmError::Fault(fault),
        _ => AcmError::Validation(format!("The role {arn} does not exist.")),
    })
}

/// Finds a binding by ARN.
pub fn find_binding(work: &mut Work<'_>, scope: &Scope, arn: &str) -> Result<Binding, AcmError> {
    let parsed = AcmeArn::parse(scope, arn)?;
    let id = parsed.below().strip_prefix("acme-external-account-binding/").ok_or_else(|| {
        AcmError::Validation(format!("{arn} is not the ARN of an external account binding"))
    })?;
    let endpoint = in_scope(work, scope, parsed.endpoint())?.ok_or_else(|| missing(arn))?;
    by_id(work, &endpoint, id)?.ok_or_else(|| missing(arn))
}

fn by_id(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
) -> Result<Option<Binding>, crate::Fault> {
    if !is_id(id) {
        return Ok(None);
    }
    let record = work.get::<Record>(&record_key(endpoint.id(), id))?;
    Ok(record.map(|record| Binding { endpoint: endpoint.clone(), record }))
}

/// Bindings of an endpoint, after the marker of the previous page.
pub fn bindings(
    work: &Work<'_>,
    endpoint: &Endpoint,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm::ListAcmeExternalAccountBindings>,
) -> Result<Page<Binding>, AcmError> {
    permit.opens(&endpoint.arn())?;
    let page = work.page::<Record>(&prefix(endpoint.id()), marker, limit)?;
    let items = page.items.into_iter();
    let items = items.map(|record| Binding { endpoint: endpoint.clone(), record }).collect();
    Ok(Page { items, next: page.next })
}

/// The MAC key of a binding.
pub fn credentials(
    work: &mut Work<'_>,
    binding: &Binding,
    permit: &Permit<action::acm::GetAcmeExternalAccountBindingCredentials>,
) -> Result<Secret, AcmError> {
    permit.opens(&binding.arn())?;
    let record_key = secret_record_key(binding.endpoint.id(), binding.id());
    Ok(work.secret(&record_key)?.ok_or(crate::Fault::Damaged(record_key))?)
}

/// Revokes a binding: no account can be made with it any more.
pub fn revoke_binding(
    work: &mut Work<'_>,
    mut binding: Binding,
    permit: &Permit<action::acm::RevokeAcmeExternalAccountBinding>,
) -> Result<(), AcmError> {
    permit.opens(&binding.arn())?;
    if binding.record.revoked_ms.is_none() {
        binding.record.revoked_ms = Some(work.now_ms());
        binding.record.updated_ms = work.now_ms();
        binding.save(work)?;
    }
    Ok(())
}

/// Deletes a binding with its key.
pub fn delete_binding(
    work: &mut Work<'_>,
    binding: &Binding,
    permit: &Permit<action::acm::DeleteAcmeExternalAccountBinding>,
) -> Result<(), AcmError> {
    permit.opens(&binding.arn())?;
    work.delete(&record_key(binding.endpoint.id(), binding.id()));
    work.delete(&secret_record_key(binding.endpoint.id(), binding.id()));
    work.delete(&binding_count_record_key(binding.endpoint.id(), binding.id()));
    Ok(())
}

/// Checks that a client has the MAC key of the binding with this id: `mac` is HS256 over `signed`.
pub fn prove(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
    signed: &[u8],
    mac: &[u8],
) -> Result<Binding, AcmeError> {
    let refuse = |why: &str| AcmeError::new(Kind::UNAUTHORIZED, why);
    let unknown = "The external account binding is unknown, or its MAC is wrong.";
    let binding = by_id(work, endpoint, id)?.ok_or_else(|| refuse(unknown))?;
    let record_key = secret_record_key(endpoint.id(), id);
    let key = work.secret(&record_key)?.ok_or(crate::Fault::Damaged(record_key))?;
    if !hmac::equal(&hmac::sha256(key.expose(), signed), mac) {
        return Err(refuse(unknown));
    }
    if binding.record.revoked_ms.is_some() {
        return Err(refuse("The external account binding was revoked."));
    }
    if binding.record.expires_ms.is_some_and(|at| at <= work.now_ms()) {
        return Err(refuse("The external account binding has expired."));
    }
    Ok(binding)
}

/// Notes that an account was made with a binding.
pub(super) fn used(work: &mut Work<'_>, mut binding: Binding) -> Result<(), crate::Fault> {
    binding.record.last_used_ms = Some(work.now_ms());
    binding.save(work)
}

fn prefix(endpoint: &str) -> String {
    format!("acme/binding/{endpoint}/")
}

fn record_key(endpoint: &str, id: &str) -> String {
    format!("{}{id}", prefix(endpoint))
}

fn secret_record_key(endpoint: &str, id: &str) -> String {
    format!("acme/binding-secret/{endpoint}/{id}")
}

/// Record key of the number of accounts made with a binding.
pub(super) fn binding_count_record_key(endpoint: &str, binding: &str) -> String {
    format!("acme/binding-accounts/{endpoint}/{binding}")
}
