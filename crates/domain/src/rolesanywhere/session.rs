//! `CreateSession`: a certificate authenticates, and a role trusts the service on its behalf.
//!
//! In two steps, because they are recorded differently: before [`authenticate`] has succeeded anybody may have sent the request,
//! and after it a certificate of a CA that an account trusts.

use std::collections::BTreeMap;

use outlast_pki::certificate::Certificate;

use super::attribute::common_name;
use super::mapping::{self, is_tag_character};
use super::profile::find_profile;
use super::trust_anchor::{TrustAnchor, find_trust_anchor};
use super::{
    PROFILE, RolesAnywhereError, SERVICE_PRINCIPAL, SUBJECT, certificate, revocation, subject, told,
};
use crate::arn::{Arn, Scope};
use crate::identity::directory::is_name;
use crate::identity::session::{
    self, AssumeError, Issued, Link, NewSession, ServiceRequest, SessionCertificate,
};
use crate::identity::{Entry, IdentityError, PolicyCache, Role};
use crate::limits;
use crate::work::Work;

/// The certificates of a request, whose signature was verified with the key of the first.
pub struct Presented {
    /// The certificate that has signed.
    pub leaf: Certificate,
    /// CAs between it and the root, in any order.
    pub chain: Vec<Certificate>,
}

/// A certificate that a trust anchor trusts.
pub struct Trusted {
    anchor: TrustAnchor,
    leaf: Certificate,
    links: Vec<Link>,
}

/// What a request asks for.
#[derive(Debug, Default)]
pub struct Asked {
    /// ARN of the profile.
    pub profile_arn: String,
    /// ARN of the role.
    pub role_arn: String,
    /// Seconds.
    pub seconds: Option<i64>,
    /// `roleSessionName`
    pub session_name: Option<String>,
    /// `instanceProperties`
    pub instance_properties: Option<BTreeMap<String, String>>,
}

/// A session that has begun.
pub struct Begun {
    /// Its credentials.
    pub issued: Issued,
    /// The role.
    pub role: Role,
    /// Name of the session.
    pub session_name: String,
    /// Source identity.
    pub source_identity: String,
    /// Seconds.
    pub seconds: i64,
}

impl Trusted {
    /// Account and Region of the trust anchor.
    pub fn scope(&self) -> &Scope {
        self.anchor.scope()
    }

    /// ARN of the trust anchor.
    pub fn trust_anchor_arn(&self) -> String {
        self.anchor.arn()
    }

    /// The certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.leaf
    }

    /// ARN of its subject.
    pub fn subject_arn(&self) -> Result<String, crate::Fault> {
        Ok(SUBJECT.arn(self.scope(), &subject::id_of(&self.leaf)?))
    }

    /// Key of the record of its subject.
    pub fn subject_record_key(&self) -> Result<String, crate::Fault> {
        Ok(SUBJECT.record_key(self.scope(), &subject::id_of(&self.leaf)?))
    }
}

/// Finds the trust anchor, in the Region that the request is signed for, and validates the certificate.
pub fn authenticate(
    work: &mut Work<'_>,
    trust_anchor_arn: &str,
    region: &str,
    presented: Presented,
) -> Result<Trusted, RolesAnywhereError> {
    let missing = || super::TRUST_ANCHOR.missing(trust_anchor_arn);
    let arn = Arn::parse(trust_anchor_arn).filter(|arn| arn.region() == region);
    let arn = arn.ok_or_else(missing)?;
    super::TRUST_ANCHOR.id_in(&arn).ok_or_else(missing)?;
    let scope = Scope { account: arn.account().to_owned(), region: region.to_owned() };
    let anchor = find_trust_anchor(work, &scope, trust_anchor_arn)?;
    if !anchor.enabled() {
        return Err(RolesAnywhereError::refused("Trust anchor is disabled"));
    }
    let Presented { leaf, chain } = presented;
    let roots = anchor.roots(work)?;
    let path = certificate::path(&leaf, &chain, &roots, work.now())?;
    let links = revocation::links(work, &anchor, &path)?;
    Ok(Trusted { anchor, leaf, links })
}

/// Begins a session of the role, if the certificate is not revoked and profile and role allow it.
pub fn begin(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    trusted: &Trusted,
    asked: &Asked,
) -> Result<Begun, RolesAnywhereError> {
    if let Some(objection) = revocation::objection(work, &trusted.anchor, &trusted.links)? {
        return Err(RolesAnywhereError::refused(objection));
    }
    let scope = trusted.scope();
    let profile_arn = Arn::parse(&asked.profile_arn).filter(|arn| arn.is_in(scope));
    let id = profile_arn.and_then(|arn| PROFILE.id_in(&arn));
    let id = id.ok_or_else(|| PROFILE.missing(&asked.profile_arn))?;
    let profile = find_profile(work, scope, &id)?;
    if !profile.enabled() {
        return Err(RolesAnywhereError::refused("Profile is disabled"));
    }
    if profile.requires_instance_properties() && asked.instance_properties.is_none() {
        return Err(RolesAnywhereError::refused("Profile requires instance properties"));
    }
    let role = role(work, scope, &asked.role_arn, profile.role_arns())?;
    let managed = profile.managed_policies()?;
    let session_name = match &asked.session_name {
        None => serial(&trusted.leaf),
        Some(_) if !profile.accepts_session_name() => {
            return Err(RolesAnywhereError::refused("Profile does not accept a role session name"));
        }
        Some(name) if name.len() < 2 || !is_name(name) => {
            let text = "roleSessionName may have 2 to 64 letters, digits and +=,.@_- only";
            return Err(RolesAnywhereError::validation(text));
        }
        Some(name) => name.clone(),
    };
    // "finalDurationSeconds = min(profileDurationSeconds, createSessionDurationSeconds)"; with more than the role's maximum
    // "you will receive an error response".
    let seconds = asked.seconds.map_or(profile.seconds(), |given| given.min(profile.seconds()));
    if seconds > role.max_session_seconds {
        return Err(RolesAnywhereError::validation(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
        ));
    }
    let source_identity = source_identity(&trusted.leaf)?;
    let tags = mapping::tags(profile.mappings(), &trusted.leaf);
    if tags.len() > limits::MAX_TAGS {
        return Err(RolesAnywhereError::refused("The certificate has too many attributes"));
    }
    let asked_of_role = ServiceRequest {
        service: SERVICE_PRINCIPAL,
        source_arn: &trusted.anchor.arn(),
        source_identity: &source_identity,
        session_name: Some(&session_name),
        tags: Some(&tags),
        now_ms: work.now_ms(),
    };
    let may = session::authorize_service(policies, &role, &asked_of_role)?;
    let may = may.ok_or_else(|| unable(&role.arn()))?;
    let new = NewSession {
        name: session_name.clone(),
        seconds,
        policy: profile.session_policy().map(str::to_owned),
        managed,
        tags,
        transitive: std::collections::BTreeSet::new(),
        started_by: None,
        source_identity: Some(source_identity.clone()),
        certificate: Some(SessionCertificate {
            trust_anchor: trusted.anchor.arn(),
            links: trusted.links.clone(),
        }),
    };
    let issued = session::assume(work, &role, new, &may).map_err(|error| match error {
        AssumeError::Denied(denied) => denied.into(),
        AssumeError::TooMany(reached) => RolesAnywhereError::Throttled(reached.to_string()),
        AssumeError::Fault(fault) => fault.into(),
    })?;
    subject::saw(work, scope, &trusted.leaf, asked.instance_properties.as_ref(), false)?;
    told::tell_workload(work, &trusted.anchor, &trusted.leaf)?;
    Ok(Begun { issued, role, session_name, source_identity, seconds })
}

/// Notes with the subject that its request was refused.
pub fn note_refusal(
    work: &mut Work<'_>,
    trusted: &Trusted,
    asked: &Asked,
) -> Result<(), RolesAnywhereError> {
    let properties = asked.instance_properties.as_ref();
    subject::saw(work, trusted.scope(), &trusted.leaf, properties, true)
}

/// The role, which must be one of the profile's. That it does not exist is told in the same words as that it does not trust the
/// service.
fn role(
    work: &mut Work<'_>,
    scope: &Scope,
    text: &str,
    allowed: &[String],
) -> Result<Role, RolesAnywhereError> {
    let arn = Arn::principal(text).filter(|arn| arn.account() == scope.account);
    let name = arn.as_ref().and_then(|arn| Some((arn.to_string(), arn.of("iam", "role/")?)));
    let Some((arn, name)) = name.filter(|(arn, _)| allowed.contains(arn)) else {
        let text: String = text.chars().take(256).collect();
        return Err(RolesAnywhereError::Refused(format!("Profile does not allow the role {text}")));
    };
    match Role::find(work, &scope.account, name) {
        Ok(role) => Ok(role),
        Err(IdentityError::Fault(fault)) => Err(fault.into()),
        Err(_) => Err(unable(&arn)),
    }
}

fn unable(role: &str) -> RolesAnywhereError {
    RolesAnywhereError::Refused(format!("Unable to assume role for {role}"))
}

/// The serial number in hexadecimal, of an even length.
fn serial(certificate: &Certificate) -> String {
    hex::encode(certificate.serial())
}

/// The source identity ("Source identity rules" of the user guide): the common name, with a prefix if that fits into the 64
/// characters that a source identity may have; or the serial number. A name that already looks as if it had the prefix is
/// refused where the prefix does not fit: it would be the source identity of another name.
fn source_identity(certificate: &Certificate) -> Result<String, RolesAnywhereError> {
    let Some(name) = common_name(certificate.subject()) else {
        return Ok(format!("ID={}", serial(certificate)));
    };
    let fits = name.chars().all(is_tag_character);
    // Policies may compare it without regard to case.
    let has_prefix = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("CN="));
    match name.chars().count() {
        1..=61 if fits => Ok(format!("CN={name}")),
        62..=64 if fits && !has_prefix => Ok(name),
        _ => Err(RolesAnywhereError::refused(
            "The common name of the certificate cannot be a source identity",
        )),
    }
}
