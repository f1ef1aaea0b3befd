//! Domain validations: proofs in DNS, made in advance, that an endpoint may issue for a domain.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::endpoint::{AcmeArn, in_scope, missing};
use super::token::Idempotency;
use super::{DnsName, Endpoint, is_id, new_id, queue};
use crate::acm::AcmError;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{Fault, ids, limits};

/// Suffix of the names that the CNAME records must point to. The names do not exist: the record itself is the proof.
const TARGET: &str = "acm-validations.outlast.internal";

/// Names that a validation covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainScope {
    /// The domain itself.
    pub exact: bool,
    /// Names below it, at any depth.
    pub subdomains: bool,
    /// Wildcards: of the domain, and with `subdomains` of names below it.
    pub wildcards: bool,
}

impl Default for DomainScope {
    fn default() -> Self {
        Self { exact: true, subdomains: false, wildcards: false }
    }
}

impl DomainScope {
    /// Whether a validation of `domain` with this scope covers `name`.
    fn covers(self, domain: &str, name: &DnsName) -> bool {
        let below = name.base() != domain;
        match name.is_wildcard() {
            true => self.wildcards && (!below || self.subdomains),
            false if below => self.subdomains,
            false => self.exact,
        }
    }
}

/// Status of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValidationStatus {
    /// `VALIDATING`
    Validating,
    /// `VALID`
    Valid,
    /// `INVALID`
    Invalid,
}

impl ValidationStatus {
    /// AWS's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validating => "VALIDATING",
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    domain: String,
    scope: DomainScope,
    record_name: String,
    record_value: String,
    status: ValidationStatus,
    /// Why it is invalid, or why the last attempt failed.
    message: Option<String>,
    /// Since when every attempt has failed, milliseconds since 1970.
    failing_since_ms: i64,
    created_ms: i64,
    updated_ms: i64,
    tags: BTreeMap<String, String>,
}

/// A domain validation.
#[derive(Debug, Clone)]
pub struct Validation {
    endpoint: Endpoint,
    record: Record,
}

impl Validation {
    /// Id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// The validation's endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// ARN.
    pub fn arn(&self) -> String {
        format!("{}/acme-domain-validation/{}", self.endpoint.arn(), self.record.id)
    }

    /// The domain.
    pub fn domain(&self) -> &str {
        &self.record.domain
    }

    /// The names that it covers.
    pub fn scope(&self) -> DomainScope {
        self.record.scope
    }

    /// Name and value of the CNAME record that proves it, as fully qualified names.
    pub fn resource_record(&self) -> (String, String) {
        (format!("{}.", self.record.record_name), format!("{}.", self.record.record_value))
    }

    /// Status.
    pub fn status(&self) -> ValidationStatus {
        self.record.status
    }

    /// Why it is invalid, or why the last attempt failed.
    pub fn message(&self) -> Option<&str> {
        self.record.message.as_deref()
    }

    /// Tags.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    pub(super) fn set_tags(
        mut self,
        work: &mut Work<'_>,
        tags: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.record.tags = tags;
        self.save(work)
    }

    fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(self.endpoint.id(), &self.record.id), &self.record)
    }
}

/// Starts the validation of a domain and returns its ARN.
pub fn create_validation(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    domain: &str,
    scope: DomainScope,
    tags: BTreeMap<String, String>,
    token: &Idempotency,
    permit: &Permit<action::acm::CreateAcmeDomainValidation>,
) -> Result<String, AcmError> {
    permit.opens(&endpoint.arn())?;
    let invalid = |why: String| AcmError::Validation(format!("DomainName is not valid: {why}"));
    let name = DnsName::parse(domain).map_err(invalid)?;
    if name.is_wildcard() {
        return Err(invalid("leave out the wildcard and allow wildcards with DomainScope".into()));
    }
    check_scope(scope)?;
    let operation = format!("validation/{}", endpoint.id());
    if let Some(id) = token.earlier(work, endpoint.scope(), &operation)? {
        return Ok(format!("{}/acme-domain-validation/{id}", endpoint.arn()));
    }
    let index = index_record_key(endpoint.id(), name.base());
    if work.exists(&index)? {
        return Err(AcmError::Conflict(format!(
            "The ACME endpoint already has a domain validation of {}.",
            name.base()
        )));
    }
    let prefix = prefix(endpoint.id());
    let found = work.page::<Record>(&prefix, None, limits::MAX_ACME_VALIDATIONS)?;
    if found.items.len() >= limits::MAX_ACME_VALIDATIONS {
        return Err(AcmError::ServiceQuotaExceeded(format!(
            "An ACME endpoint has at most {} domain validations.",
            limits::MAX_ACME_VALIDATIONS
        )));
    }
    let now_ms = work.now_ms();
    let record = Record {
        id: new_id()?,
        domain: name.base().to_owned(),
        scope,
        record_name: format!("_{}.{}", ids::hex::<16>()?, name.base()),
        record_value: format!("_{}.{TARGET}", ids::hex::<16>()?),
        status: ValidationStatus::Validating,
        message: None,
        failing_since_ms: now_ms,
        created_ms: now_ms,
        updated_ms: now_ms,
        tags,
    };
    let validation = Validation { endpoint: endpoint.clone(), record };
    validation.save(work)?;
    work.put(&index, &validation.record.id)?;
    queue::begin_domain(work, endpoint.id(), validation.id(), now_ms)?;
    token.remember(work, endpoint.scope(), &operation, validation.id())?;
    Ok(validation.arn())
}

fn check_scope(scope: DomainScope) -> Result<(), AcmError> {
    if scope.exact || scope.subdomains || scope.wildcards {
        return Ok(());
    }
    Err(AcmError::Validation("DomainScope must enable at least one of its members.".into()))
}

/// Finds a validation by ARN.
pub fn find_validation(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
) -> Result<Validation, AcmError> {
    let parsed = AcmeArn::parse(scope, arn)?;
    let id = parsed.below().strip_prefix("acme-domain-validation/").ok_or_else(|| {
        AcmError::Validation(format!("{arn} is not the ARN of a domain validation"))
    })?;
    let endpoint = in_scope(work, scope, parsed.endpoint())?.ok_or_else(|| missing(arn))?;
    by_id(work, &endpoint, id)?.ok_or_else(|| missing(arn))
}

pub(super) fn by_id(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    id: &str,
) -> Result<Option<Validation>, Fault> {
    if !is_id(id) {
        return Ok(None);
    }
    let record = work.get::<Record>(&record_key(endpoint.id(), id))?;
    Ok(record.map(|record| Validation { endpoint: endpoint.clone(), record }))
}

/// Validations of an endpoint, after the marker of the previous page.
pub fn validations(
    work: &Work<'_>,
    endpoint: &Endpoint,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::acm::ListAcmeDomainValidations>,
) -> Result<Page<Validation>, AcmError> {
    permit.opens(&endpoint.arn())?;
    let page = work.page::<Record>(&prefix(endpoint.id()), marker, limit)?;
    let items = page.items.into_iter();
    let items = items.map(|record| Validation { endpoint: endpoint.clone(), record }).collect();
    Ok(Page { items, next: page.next })
}

/// Changes which names a validation covers. One that had failed starts again.
pub fn update_validation(
    work: &mut Work<'_>,
    mut validation: Validation,
    scope: Option<DomainScope>,
    permit: &Permit<action::acm::UpdateAcmeDomainValidation>,
) -> Result<(), AcmError> {
    permit.opens(&validation.arn())?;
    let now_ms = work.now_ms();
    if let Some(scope) = scope {
        check_scope(scope)?;
        validation.record.scope = scope;
    }
    validation.record.updated_ms = now_ms;
    if validation.record.status == ValidationStatus::Invalid {
        validation.record.status = ValidationStatus::Validating;
        validation.record.failing_since_ms = now_ms;
        validation.record.message = None;
        queue::begin_domain(work, validation.endpoint.id(), validation.id(), now_ms)?;
    }
    Ok(validation.save(work)?)
}

/// Deletes a validation: no certificate is issued for its domain any more.
pub fn delete_validation(
    work: &mut Work<'_>,
    validation: &Validation,
    permit: &Permit<action::acm::DeleteAcmeDomainValidation>,
) -> Result<(), AcmError> {
    permit.opens(&validation.arn())?;
    let endpoint = validation.endpoint.id();
    work.delete(&record_key(endpoint, validation.id()));
    work.delete(&index_record_key(endpoint, validation.domain()));
    queue::end_domain(work, endpoint, validation.id());
    Ok(())
}

/// Domains of an endpoint's validations, to narrow a search. A domain that is not among them has no valid validation:
/// it is added with the validation, long before that can have succeeded.
pub(super) struct Domains(BTreeSet<String>);

impl Domains {
    /// Reads all domains of an endpoint.
    pub fn of(work: &Work<'_>, endpoint: &Endpoint) -> Result<Self, Fault> {
        let prefix = index_record_key(endpoint.id(), "");
        // Two validations that are made at once do not see each other: there may be a few more than the limit.
        let found = work.store().scan(&prefix, "", 2 * limits::MAX_ACME_VALIDATIONS)?;
        let domains = found.iter().filter_map(|(record_key, _)| record_key.strip_prefix(&prefix));
        Ok(Self(domains.map(str::to_owned).collect()))
    }
}

/// The valid validation that covers a name, if there is one. A name can have 127 parents, and an order 100 names, so
/// only those in `domains` are read.
pub(super) fn covering(
    work: &mut Work<'_>,
    endpoint: &Endpoint,
    domains: &Domains,
    name: &DnsName,
) -> Result<Option<Validation>, Fault> {
    for domain in name.ancestors().filter(|domain| domains.0.contains(*domain)) {
        let Some(id) = work.get::<String>(&index_record_key(endpoint.id(), domain))? else {
            continue;
        };
        let found = by_id(work, endpoint, &id)?.filter(|validation| {
            validation.status() == ValidationStatus::Valid
                && validation.scope().covers(domain, name)
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Interval between checks of a domain that is valid: one day.
const RECHECK_MS: i64 = 86_400_000;

/// Records the result of a DNS lookup; returns the event to log, if the status changed, and when to look again.
pub(super) fn looked(
    work: &mut Work<'_>,
    mut validation: Validation,
    found: Result<(), String>,
) -> Result<(Option<&'static str>, Option<i64>), Fault> {
    let now_ms = work.now_ms();
    let before = validation.record.status;
    let record = &mut validation.record;
    let mut again = None;
    match found {
        Ok(()) => {
            record.status = ValidationStatus::Valid;
            record.failing_since_ms = now_ms;
            record.message = None;
            again = Some(now_ms + RECHECK_MS);
        }
        Err(message) => {
            record.message = Some(message);
            let failing_ms = now_ms - record.failing_since_ms;
            if failing_ms >= limits::ACME_VALIDATION_MS {
                record.status = ValidationStatus::Invalid;
            } else {
                again = Some(now_ms + queue::pause_ms(failing_ms));
            }
        }
    }
    let event = match (before, record.status) {
        (before, after) if before == after => None,
        (_, ValidationStatus::Valid) => Some("AcmeDomainValidationSucceeded"),
        _ => Some("AcmeDomainValidationFailed"),
    };
    if event.is_some() {
        record.updated_ms = now_ms;
    }
    validation.save(work)?;
    Ok((event, again))
}

pub(super) fn record_of(validation: &Validation) -> (String, String) {
    (validation.record.record_name.clone(), validation.record.record_value.clone())
}

fn prefix(endpoint: &str) -> String {
    format!("acme/validation/{endpoint}/")
}

fn record_key(endpoint: &str, id: &str) -> String {
    format!("{}{id}", prefix(endpoint))
}

fn index_record_key(endpoint: &str, domain: &str) -> String {
    format!("acme/validation-of/{endpoint}/{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_cover_what_they_say() {
        let names = ["a.test", "b.a.test", "c.b.a.test", "*.a.test", "*.b.a.test"];
        for (exact, subdomains, wildcards, expected) in [
            (true, false, false, [true, false, false, false, false]),
            (false, true, false, [false, true, true, false, false]),
            (false, false, true, [false, false, false, true, false]),
            (true, true, true, [true, true, true, true, true]),
            (true, false, true, [true, false, false, true, false]),
        ] {
            let scope = DomainScope { exact, subdomains, wildcards };
            let found = names.map(|name| scope.covers("a.test", &DnsName::parse(name).unwrap()));
            assert_eq!(found, expected, "{scope:?}");
        }
    }
}
