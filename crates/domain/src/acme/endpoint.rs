//! ACME endpoints: a directory URL, the CA that issues there, and how names are proved.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::token::Idempotency;
use super::{is_id, new_id, nonce};
use crate::acm::AcmError;
use crate::arn::{Arn, Scope};
use crate::ca;
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{Fault, limits};

/// How names are authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthorizationBehavior {
    /// `PRE_APPROVED`: only names that a domain validation covers, without a challenge.
    PreApproved,
    /// `CHALLENGE`, beyond AWS: other names are proved by the challenges of RFC 8555 and RFC 8737.
    Challenge,
}

/// Every authorization behaviour with its name.
pub static AUTHORIZATION_BEHAVIORS: &[(&str, AuthorizationBehavior)] = &[
    ("PRE_APPROVED", AuthorizationBehavior::PreApproved),
    ("CHALLENGE", AuthorizationBehavior::Challenge),
];

/// Whether accounts must have a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contact {
    /// `REQUIRED`
    Required,
    /// `NOT_REQUIRED`
    NotRequired,
}

/// Both with their names.
pub static CONTACTS: &[(&str, Contact)] =
    &[("REQUIRED", Contact::Required), ("NOT_REQUIRED", Contact::NotRequired)];

/// The CA of an endpoint, and the key types that it certifies there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// ARN of the private CA.
    #[serde(deserialize_with = "crate::arn::stored")]
    pub arn: String,
    /// Whether a tag names it, rather than the member `PrivateCertificateAuthority`.
    pub by_tag: bool,
    /// `AllowedKeyAlgorithms`; empty for all that the CA accepts.
    pub key_algorithms: Vec<String>,
}

/// Properties of a new endpoint.
pub struct NewEndpoint {
    /// How names are authorized.
    pub authorization: AuthorizationBehavior,
    /// Whether accounts must have a contact.
    pub contact: Contact,
    /// CA that issues.
    pub authority: Authority,
    /// Tags of the endpoint.
    pub tags: BTreeMap<String, String>,
    /// Tags of each certificate.
    pub certificate_tags: BTreeMap<String, String>,
    /// Idempotency token.
    pub token: Idempotency,
}

/// Changes of an endpoint.
#[derive(Default)]
pub struct UpdateEndpoint {
    /// How names are authorized.
    pub authorization: Option<AuthorizationBehavior>,
    /// Whether accounts must have a contact.
    pub contact: Option<Contact>,
    /// CA that issues.
    pub authority: Option<Authority>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    authorization: AuthorizationBehavior,
    contact: Contact,
    authority: Authority,
    tags: BTreeMap<String, String>,
    certificate_tags: BTreeMap<String, String>,
    created_ms: i64,
    updated_ms: i64,
}

/// Account and Region of an endpoint, whose URL has only its id.
#[derive(Serialize, Deserialize)]
struct Home {
    account: String,
    region: String,
}

/// An endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    scope: Scope,
    record: Record,
}

impl Endpoint {
    /// Id, which is part of its URLs.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// ARN.
    pub fn arn(&self) -> String {
        self.scope.arn("acm", &format!("acme-endpoint/{}", self.record.id))
    }

    /// How names are authorized.
    pub fn authorization(&self) -> AuthorizationBehavior {
        self.record.authorization
    }

    /// Whether accounts must have a contact.
    pub fn contact(&self) -> Contact {
        self.record.contact
    }

    /// CA that issues.
    pub fn authority(&self) -> &Authority {
        &self.record.authority
    }

    /// Tags.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    pub(super) fn set_tags(
        mut self,
        work: &mut Work<'_>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.record.tags = tags;
        work.put(&record_key(&self.scope, &self.record.id), &self.record)
    }

    /// Tags of each certificate.
    pub fn certificate_tags(&self) -> &BTreeMap<String, String> {
        &self.record.certificate_tags
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }
}

/// Finds the CA for an endpoint.
pub fn authority_of(
    work: &mut Work<'_>,
    scope: &Scope,
    authority: &Authority,
) -> Result<ca::Authority, AcmError> {
    ca::find(work, scope, &authority.arn).map_err(|error| match error {
        ca::CaError::Fault(fault) => AcmError::Fault(fault),
        other => AcmError::Validation(other.to_string()),
    })
}

/// Makes an endpoint and returns its ARN. The permits allow making one and issuing from its CA.
pub fn create_endpoint(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewEndpoint,
    permit: &Permit<action::acm::CreateAcmeEndpoint>,
    may_issue: &Permit<action::acm_pca::IssueCertificate>,
) -> Result<String, AcmError> {
    permit.opens(&scope.arn("acm", "acme-endpoint/*"))?;
    may_issue.opens(&new.authority.arn)?;
    if let Some(id) = new.token.earlier(work, scope, "endpoint")? {
        return Ok(scope.arn("acm", &format!("acme-endpoint/{id}")));
    }
    let found = work.page::<Record>(&prefix(scope), None, limits::MAX_ACME_ENDPOINTS)?;
    if found.items.len() >= limits::MAX_ACME_ENDPOINTS {
        return Err(AcmError::ServiceQuotaExceeded(format!(
            "An account has at most {} ACME endpoints in a region.",
            limits::MAX_ACME_ENDPOINTS
        )));
    }
    nonce::prepare(work)?;
    let id = new_id()?;
    let now_ms = work.now_ms();
    let record = Record {
        id: id.clone(),
        authorization: new.authorization,
        contact: new.contact,
        authority: new.authority,
        tags: new.tags,
        certificate_tags: new.certificate_tags,
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    work.put(&record_key(scope, &id), &record)?;
    let home = Home { account: scope.account.clone(), region: scope.region.clone() };
    work.put(&home_record_key(&id), &home)?;
    new.token.remember(work, scope, "endpoint", &id)?;
    Ok(Endpoint { scope: scope.clone(), record }.arn())
}

/// The ARN of an endpoint, or of a resource below it.
pub(super) struct AcmeArn(Arn);

impl AcmeArn {
    /// Reads an ARN of this scope.
    pub fn parse(scope: &Scope, text: &str) -> Result<Self, AcmError> {
        let arn =
            Arn::parse(text).filter(|arn| arn.of("acm", PREFIX).is_some()).ok_or_else(|| {
                AcmError::Validation(format!("{text} is not the ARN of an ACME resource"))
            })?;
        if !arn.is_in(scope) {
            return Err(missing(text));
        }
        Ok(Self(arn))
    }

    /// The id of the endpoint.
    pub fn endpoint(&self) -> &str {
        self.parts().0
    }

    /// The part after the endpoint; empty for an endpoint itself.
    pub fn below(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        let rest = self.0.of("acm", PREFIX).unwrap_or_default();
        rest.split_once('/').unwrap_or((rest, ""))
    }
}

/// Prefix of the resource part of these ARNs.
const PREFIX: &str = "acme-endpoint/";

/// The canonical ARN of an ACME resource of this scope that was not found, for policies to be evaluated with.
pub fn absent(scope: &Scope, text: &str) -> Result<String, AcmError> {
    let wrong = || AcmError::Validation(format!("{text} is not the ARN of an ACME resource here"));
    let arn = AcmeArn::parse(scope, text).map_err(|_| wrong())?;
    let id = arn.below().split_once('/').map(|(_, id)| id);
    if !is_id(arn.endpoint()) || !id.is_none_or(is_id) {
        return Err(wrong());
    }
    Ok(arn.0.to_string())
}

/// The error for an ACME resource that does not exist.
pub(super) fn missing(arn: &str) -> AcmError {
    AcmError::NotFound(format!("Could not find the ACME resource with ARN {arn}"))
}

/// Finds an endpoint by ARN.
pub fn find_endpoint(work: &mut Work<'_>, scope: &Scope, arn: &str) -> Result<Endpoint, AcmError> {
    let parsed = AcmeArn::parse(scope, arn)?;
    // With a trailing slash it is another name.
    if parsed.0.of("acm", PREFIX) != Some(parsed.endpoint()) {
        return Err(AcmError::Validation(format!("{arn} is not the ARN of an ACME endpoint")));
    }
    in_scope(work, scope, parsed.endpoint())?.ok_or_else(|| missing(arn))
}

/// The endpoint with this id in an account and region.
pub(super) fn in_scope(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<Endpoint>, Fault> {
    if !is_id(id) {
        return Ok(None);
    }
    let record = work.get::<Record>(&record_key(scope, id))?;
    Ok(record.map(|record| Endpoint { scope: scope.clone(), record }))
}

/// The endpoint with this id, in any account and Region.
pub fn endpoint_by_id(work: &mut Work<'_>, id: &str) -> Result<Option<Endpoint>, Fault> {
    if !is_id(id) {
        return Ok(None);
    }
    let Some(home) = work.get::<Home>(&home_record_key(id))? else { return Ok(None) };
    in_scope(work, &Scope { account: home.account, region: home.region }, id)
}

/// Endpoints, after the marker of the previous page.
pub fn endpoints(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm::ListAcmeEndpoints>,
) -> Result<Page<Endpoint>, AcmError> {
    permit.opens(&scope.arn("acm", "*"))?;
    let page = work.page::<Record>(&prefix(scope), marker, limit)?;
    let items = page.items.into_iter().map(|record| Endpoint { scope: scope.clone(), record });
    Ok(Page { items: items.collect(), next: page.next })
}

/// Changes an endpoint. Choosing another CA takes the permit to issue from it.
pub fn update_endpoint(
    work: &mut Work<'_>,
    mut endpoint: Endpoint,
    update: UpdateEndpoint,
    permit: &Permit<action::acm::UpdateAcmeEndpoint>,
    may_issue: Option<&Permit<action::acm_pca::IssueCertificate>>,
) -> Result<(), AcmError> {
    permit.opens(&endpoint.arn())?;
    let record = &mut endpoint.record;
    record.authorization = update.authorization.unwrap_or(record.authorization);
    record.contact = update.contact.unwrap_or(record.contact);
    if let Some(authority) = update.authority {
        if authority.arn != record.authority.arn {
            Permit::required(may_issue, &authority.arn)?;
        }
        record.authority = authority;
    }
    record.updated_ms = work.now_ms();
    Ok(work.put(&record_key(&endpoint.scope, &endpoint.record.id), &endpoint.record)?)
}

/// Deletes an endpoint. Resources below it become unreachable, and a sweep deletes them bit by bit.
pub fn delete_endpoint(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    permit: &Permit<action::acm::DeleteAcmeEndpoint>,
) -> Result<(), AcmError> {
    permit.opens(&endpoint.arn())?;
    let id = endpoint.id();
    work.delete(&record_key(&endpoint.scope, id));
    work.delete(&home_record_key(id));
    let deleted_ms = work.now_ms();
    Ok(work.put(&format!("acme/deleted/{id}"), &Deleted { deleted_ms })?)
}

/// A deleted endpoint with resources left below it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Deleted {
    deleted_ms: i64,
}

impl Deleted {
    /// Always due.
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.deleted_ms <= now_ms
    }
}

fn prefix(scope: &Scope) -> String {
    format!("acme/endpoint/{}/{}/", scope.account, scope.region)
}

fn record_key(scope: &Scope, id: &str) -> String {
    format!("{}{id}", prefix(scope))
}

fn home_record_key(id: &str) -> String {
    format!("acme/home/{id}")
}
