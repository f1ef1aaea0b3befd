//! Certificate Manager structures that several operations share.

use std::collections::BTreeMap;

use outlast_domain::acm::AcmError;
use outlast_domain::acm::certificate::{self, Certificate};
use outlast_domain::acm::conditions;
use outlast_domain::acm::tags::Taggable;
use outlast_domain::identity::action::{self, Action};
use outlast_domain::identity::{Permit, authorize};

pub use crate::aws::acm::{CertificateOptions, ExpiryEventsConfiguration, Tag};
use crate::call::Call;
use crate::wire::{ApiError, validate};

/// CloudTrail's type of certificates.
pub const CERTIFICATE: &str = "AWS::ACM::Certificate";
/// Values of `SortOrder`.
pub const SORT_ORDERS: &[&str] = &["ASCENDING", "DESCENDING"];

impl CertificateOptions {
    /// Converts to the domain's type.
    pub fn read(&self) -> certificate::Options {
        let flag = |value: Option<&String>| value.map(|value| value == "ENABLED");
        certificate::Options {
            transparency: flag(self.certificate_transparency_logging_preference.as_ref()),
            exportable: flag(self.export.as_ref()),
        }
    }
}

/// `ENABLED` for true, `DISABLED` for false.
pub fn enabled(value: bool) -> String {
    if value { "ENABLED" } else { "DISABLED" }.to_owned()
}

/// Converts tags to the domain's type. `code` names the operation's error for an invalid tag.
pub fn tags(list: Vec<Tag>, code: &'static str) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.into_iter().map(|tag| (tag.key, tag.value.unwrap_or_default()));
    super::unique_tags(pairs, code)
}

/// Converts tags to AWS's list.
pub fn tag_list(tags: BTreeMap<String, String>) -> Vec<Tag> {
    tags.into_iter().map(|(key, value)| Tag { key, value: Some(value) }).collect()
}

/// Finds a certificate and notes it for the audit record.
pub fn find_certificate(call: &mut Call<'_>, arn: &str) -> Result<Certificate, ApiError> {
    call.notes.parameter("certificateArn", arn);
    let found = certificate::find(&mut call.work, &call.scope, arn)?;
    call.notes.resource(found.arn(), CERTIFICATE);
    Ok(found)
}

/// Authorizes `action` on a certificate.
pub fn authorize_certificate<A: Action>(
    call: &Call<'_>,
    action: A,
    certificate: &Certificate,
) -> Result<Permit<A>, ApiError> {
    let mut keys = call.conditions.clone();
    conditions::of_certificate(&mut keys, certificate);
    Ok(authorize(&call.caller, &keys, action, &certificate.arn())?)
}

/// Authorizes `action` on a resource that has these tags.
pub fn authorize_tagged<A: Action>(
    call: &Call<'_>,
    action: A,
    arn: &str,
    tags: &BTreeMap<String, String>,
) -> Result<Permit<A>, ApiError> {
    let mut keys = call.conditions.clone();
    conditions::resource_tags(&mut keys, tags);
    Ok(authorize(&call.caller, &keys, action, arn)?)
}

/// Authorizes the tags that a certificate is created with: a policy that restricts tags must hold however a tag is
/// set. The condition keys of the request are set already.
pub fn authorize_new_tags(
    call: &Call<'_>,
    tags: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    if !tags.is_empty() {
        call.authorize(action::acm::AddTagsToCertificate, &call.scope.arn("acm", "certificate/*"))?;
    }
    Ok(())
}

/// A resource that has tags.
pub struct Tagged<A: Action> {
    /// Its ARN, by its record.
    pub arn: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Proof that the action was authorized.
    pub allowed: Permit<A>,
}

/// Finds a tagged resource of any kind, notes it for the audit record, and authorizes `action` on it; for a
/// certificate also `of_certificates`, the action that only certificates have.
pub fn authorize_resource<A: Action>(
    call: &mut Call<'_>,
    action: A,
    of_certificates: impl Action,
    arn: &str,
) -> Result<Tagged<A>, ApiError> {
    call.notes.parameter("resourceArn", arn);
    let row = Taggable::of(arn).map_err(resource_error)?;
    let (arn, tags) = (row.find)(&mut call.work, &call.scope, arn).map_err(resource_error)?;
    call.notes.resource(arn.clone(), row.kind);
    if row.kind != CERTIFICATE {
        let allowed = authorize_tagged(call, action, &arn, &tags)?;
        return Ok(Tagged { arn, tags, allowed });
    }
    let found = certificate::find(&mut call.work, &call.scope, &arn).map_err(resource_error)?;
    let allowed = authorize_certificate(call, action, &found)?;
    authorize_certificate(call, of_certificates, &found)?;
    Ok(Tagged { arn, tags, allowed })
}

/// An error of the operations on any resource, whose models list fewer errors than those on certificates.
pub fn resource_error(error: AcmError) -> ApiError {
    let error = match error {
        AcmError::InvalidArn(text) | AcmError::InvalidTag(text) => AcmError::Validation(text),
        AcmError::TooManyTags(text) => AcmError::ServiceQuotaExceeded(text),
        other => other,
    };
    error.into()
}

/// `DomainNameString`: at least two labels of letters, digits and hyphens; the last has at least two characters.
pub fn check_domain(name: &str, domain: &str) -> Result<(), ApiError> {
    let labels: Vec<_> = domain.strip_prefix("*.").unwrap_or(domain).split('.').collect();
    let is_label = |label: &&str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = labels.last().is_some_and(|label| label.len() >= 2);
    if labels.len() >= 2 && last && labels.iter().all(is_label) {
        return Ok(());
    }
    Err(ApiError::validation(format!(
        "1 validation error detected: Value '{}' at '{}' failed to satisfy constraint: Member must satisfy regular \
         expression pattern: (\\*\\.)?(((?!-)[A-Za-z0-9-]{{0,62}}[A-Za-z0-9])\\.)+((?!-)[A-Za-z0-9-]{{1,62}}[A-Za-z0-9])",
        validate::shorten(domain),
        validate::member_name(name)
    )))
}
