//! Certificates that Certificate Manager obtains without a caller: renewals, and those whose requests name no CA. What a
//! CA permits Certificate Manager to do takes the place of the caller's rights.

use outlast_crypto::keys::KeySpec;
use outlast_pki::templates::Template;
use serde::{Deserialize, Serialize};

use super::certificate::{Certificate, RenewalSummary, due_record_key};
use super::details::{Details, requestable};
use super::failure_reason;
use super::leaf::{Issuers, default_key, private_template, public_template};
use super::told;
use crate::arn::Scope;
use crate::ca::{self, Authority, CaError, permission};
use crate::identity::access::by_permission;
use crate::identity::action::{self, Action};
use crate::identity::{Caller, Permit, PolicyCache};
use crate::keyring::KeyRing;
use crate::kms::Access;
use crate::policy::ConditionKeys;
use crate::work::Work;
use crate::{Fault, limits};

/// When a certificate is to be renewed: a small record, so that the search for due certificates reads little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RenewalDue {
    /// Milliseconds since 1970.
    pub at_ms: i64,
}

/// When to renew a certificate with this validity, seconds since 1970: 60 days before its end, or after two thirds of
/// a shorter lifetime.
pub fn renewal_time(not_before: i64, not_after: i64) -> i64 {
    let two_thirds = not_before + (not_after - not_before) / 3 * 2;
    two_thirds.max(not_after - limits::RENEW_BEFORE_SECONDS)
}

/// Notes when a certificate is to be renewed.
pub(super) fn schedule(work: &mut Work<'_>, certificate: &Certificate) -> Result<(), Fault> {
    let details = &certificate.record.details;
    let at_ms = renewal_time(details.not_before, details.not_after) * 1000;
    work.put(&due_record_key(&certificate.scope, &certificate.record.id), &RenewalDue { at_ms })
}

/// Why a CA did not issue.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(
        "The certificate authority does not permit acm.amazonaws.com to issue and get certificates; see \
         CreatePermission of Private CA, and PutPolicy if it belongs to another account."
    )]
    NotPermitted,
    #[error(transparent)]
    Authority(#[from] CaError),
}

impl Failed {
    /// `RenewalStatusReason` or `FailureReason`
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotPermitted => "PCA_ACCESS_DENIED",
            Self::Authority(error) => failure_reason(error),
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Authority(fault.into())
    }
}

/// Has a certificate issued, or renewed, by what its CA permits Certificate Manager to do for the account of the
/// certificate.
pub(super) fn attempt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    certificate: &mut Certificate,
) -> Result<(), Failed> {
    let scope = certificate.scope.clone();
    let record = &certificate.record;
    let is_public = record.public.is_some();
    let settings = work.settings();
    // A certificate whose request named no CA moves to the one that the operator names now: so an authority that ends
    // can be replaced.
    let configured = settings.public_certificates.authority(&scope).filter(|_| is_public);
    let arn = configured.or(record.authority.as_deref()).unwrap_or_default();
    let partner = record.paired.as_ref().map(|paired| paired.authority.clone());
    let template = if is_public { public_template()? } else { private_template() };
    let (authority, allowed) = permitted(work, &scope, arn, template)?;
    let partner = if is_public { partner_of(work, &authority)? } else { partner };
    let partner = partner.map(|arn| permitted(work, &scope, &arn, template)).transpose()?;
    let issuers = Issuers {
        authority: (&authority, &allowed),
        partner: partner.as_ref().map(|(partner, allowed)| (partner, allowed)),
        template,
    };
    Ok(replace(work, ring, certificate, &issuers)?)
}

/// The authority with this ARN, if a certificate whose request names no CA could be issued by it now.
pub(super) fn usable(work: &mut Work<'_>, scope: &Scope, arn: &str) -> Result<Authority, Failed> {
    let template = public_template()?;
    let (authority, allowed) = permitted(work, scope, arn, template)?;
    let partner = partner_of(work, &authority)?;
    let partner = partner.map(|arn| permitted(work, scope, &arn, template)).transpose()?;
    let issuers = Issuers {
        authority: (&authority, &allowed),
        partner: partner.as_ref().map(|(partner, allowed)| (partner, allowed)),
        template,
    };
    issuers.check_active()?;
    Ok(authority)
}

/// ARN of the partner of an authority, if its tag names one.
fn partner_of(work: &mut Work<'_>, authority: &Authority) -> Result<Option<String>, CaError> {
    if !authority.tags().contains_key(ca::PARTNER_TAG) {
        return Ok(None);
    }
    Ok(Some(ca::partner(work, authority)?.arn()))
}

/// The permit of an authority that lets Certificate Manager issue for an account and retrieve what it issued. In the
/// CA's own account a permission of Private CA grants it; for other accounts its policy does, which is evaluated for
/// Certificate Manager's service-linked role there.
fn permitted(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    template: &Template,
) -> Result<(Authority, Permit<action::acm_pca::IssueCertificate>), Failed> {
    let authority = ca::find(work, scope, arn)?;
    let account = scope.account.as_str();
    let may_get = held(work, &authority, account, action::acm_pca::GetCertificate, template)?;
    let may_issue = held(work, &authority, account, action::acm_pca::IssueCertificate, template)?;
    may_issue
        .filter(|_| may_get.is_some())
        .map(|permit| (authority, permit))
        .ok_or(Failed::NotPermitted)
}

/// Whether Certificate Manager may do `action` on an authority for an account; to issue means to issue by this template.
fn held<A: Action>(
    work: &mut Work<'_>,
    authority: &Authority,
    account: &str,
    action: A,
    template: &Template,
) -> Result<Option<Permit<A>>, CaError> {
    if authority.scope().account != account {
        return shared(work, authority, account, action, template);
    }
    by_permission(work, authority, permission::CERTIFICATE_MANAGER, account, action)
}

/// Whether the policy of an authority lets Certificate Manager's service-linked role in another account do `action`.
fn shared<A: Action>(
    work: &mut Work<'_>,
    authority: &Authority,
    account: &str,
    action: A,
    template: &Template,
) -> Result<Option<Permit<A>>, CaError> {
    let mut conditions = ConditionKeys::new();
    conditions.set_time(work.now_ms());
    conditions.set("aws:RequestedRegion", authority.scope().region.as_str());
    if A::OPERATION == "IssueCertificate" {
        conditions.set("acm-pca:TemplateArn", ca::template_arn(template));
    }
    let policies = PolicyCache::default();
    let caller = Caller::service_linked_role(account, SERVICE_ROLE, ROLE_POLICY, &policies)?;
    let access = Access {
        caller: &caller,
        conditions: &conditions,
        policies: &policies,
        tokens: &[],
        context: None,
    };
    match ca::authorize(work, access, action, authority) {
        Ok(allowed) => Ok(Some(allowed)),
        Err(CaError::Denied(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// AWS's name of the role, with its path.
pub(crate) const SERVICE_ROLE: &str =
    "aws-service-role/acm.amazonaws.com/AWSServiceRoleForCertificateManager";
/// AWS's policy of the role (`CertificateManagerServiceRolePolicy`).
const ROLE_POLICY: &str = r#"{
    "Version": "2012-10-17",
    "Statement": [{
        "Effect": "Allow", "Action": ["acm-pca:IssueCertificate", "acm-pca:GetCertificate"], "Resource": "*"
    }]
}"#;

/// Replaces keys and certificates.
fn replace(
    work: &mut Work<'_>,
    ring: &KeyRing,
    certificate: &mut Certificate,
    issuers: &Issuers<'_>,
) -> Result<(), CaError> {
    let now_ms = work.now_ms();
    let record = &certificate.record;
    issuers.check_active()?;
    if issuers.end(work) <= record.details.not_after {
        return Err(CaError::Validation(
            "The certificate authority expires too soon for the certificate to be renewed.".into(),
        ));
    }
    let paired = match (&record.paired, issuers.partner) {
        (Some(paired), _) => Some(key_spec(&paired.details)?),
        (None, Some((partner, _))) => requestable(default_key(partner)),
        (None, None) => None,
    };
    let specs = (key_spec(&record.details)?, paired);
    let names: Vec<_> = record.names().into_iter().map(str::to_owned).collect();
    let leaves = issuers.certify(work, ring, specs, &names, &certificate.scope.account)?;
    let record = &mut certificate.record;
    let action = if record.is_issued() { "RENEWAL" } else { "ISSUANCE" };
    if record.is_issued() {
        record.renewal = Some(RenewalSummary {
            succeeded: true,
            validating: false,
            reason: None,
            updated_ms: now_ms,
        });
    }
    record.issued_ms = Some(now_ms);
    record.exported = false;
    certificate.take(work, leaves, issuers)?;
    schedule(work, certificate)?;
    Ok(told::tell_available(work, certificate, action)?)
}

fn key_spec(details: &Details) -> Result<&'static KeySpec, Fault> {
    requestable(&details.key_algorithm).ok_or_else(|| Fault::Damaged(details.serial.clone()))
}
