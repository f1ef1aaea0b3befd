//! Structures of Roles Anywhere that several operations share.

use std::collections::BTreeMap;

use outlast_domain::arn::{Arn, shown_in};
use outlast_domain::identity::action::{self, Action};
use outlast_domain::identity::{Permit, authorize};
use outlast_domain::rolesanywhere::{
    self, CRL, Crl, Kind, Notification, PROFILE, Profile, SERVICE_PRINCIPAL, SUBJECT, Source,
    Subject, TRUST_ANCHOR, Taggable, TrustAnchor,
};

use super::{marker, request_tags, unique_tags};
pub use crate::aws::rolesanywhere::{
    AttributeMapping, CredentialSummary, CrlDetail, InstanceProperty, MappingRule,
    NotificationSetting, NotificationSettingDetail, ProfileDetail, Source as GivenSource,
    SourceData, SubjectDetail, SubjectSummary, Tag, TrustAnchorDetail,
};
use crate::call::Call;
use crate::wire::{ApiError, Blob, Timestamp, validate};

/// Finds a trust anchor and notes it for the audit record.
pub fn find_trust_anchor(call: &mut Call<'_>, id: &str) -> Result<TrustAnchor, ApiError> {
    call.notes.parameter("trustAnchorId", id);
    let found = rolesanywhere::find_trust_anchor(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), TRUST_ANCHOR.cloudtrail);
    Ok(found)
}

/// Finds a profile and notes it for the audit record.
pub fn find_profile(call: &mut Call<'_>, id: &str) -> Result<Profile, ApiError> {
    call.notes.parameter("profileId", id);
    let found = rolesanywhere::find_profile(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), PROFILE.cloudtrail);
    Ok(found)
}

/// Finds an imported CRL and notes it for the audit record.
pub fn find_crl(call: &mut Call<'_>, id: &str) -> Result<Crl, ApiError> {
    call.notes.parameter("crlId", id);
    let found = rolesanywhere::find_crl(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), CRL.cloudtrail);
    Ok(found)
}

/// Finds a subject and notes it for the audit record.
pub fn find_subject(call: &mut Call<'_>, id: &str) -> Result<Subject, ApiError> {
    call.notes.parameter("subjectId", id);
    let found = rolesanywhere::find_subject(&mut call.work, &call.scope, id)?;
    call.notes.resource(found.arn(), SUBJECT.cloudtrail);
    Ok(found)
}

/// Finds a resource that has tags, and notes it for the audit record: its ARN and its tags.
pub fn find_taggable(
    call: &mut Call<'_>,
    arn: &str,
) -> Result<(String, BTreeMap<String, String>), ApiError> {
    call.notes.parameter("resourceArn", arn);
    let row = Taggable::of(arn)?;
    let (arn, tags) = (row.find)(&mut call.work, &call.scope, arn)?;
    call.notes.resource(arn.clone(), row.kind.cloudtrail);
    Ok((arn, tags))
}

/// Authorizes `action` on a resource with these tags.
pub fn authorize_tagged<A: Action>(
    call: &Call<'_>,
    action: A,
    arn: &str,
    tags: &BTreeMap<String, String>,
) -> Result<Permit<A>, ApiError> {
    let mut keys = call.conditions.clone();
    keys.set_tags("aws:ResourceTag", tags);
    Ok(authorize(&call.caller, &keys, action, arn)?)
}

/// Authorizes `action`, which makes a resource of this kind, and the tags that it gets.
pub fn authorize_new<A: Action>(
    call: &Call<'_>,
    action: A,
    kind: &Kind,
    tags: &BTreeMap<String, String>,
) -> Result<Permit<A>, ApiError> {
    let resource = kind.arn(&call.scope, "*");
    let allowed = call.authorize(action, &resource)?;
    if !tags.is_empty() {
        call.authorize(action::rolesanywhere::TagResource, &resource)?;
    }
    Ok(allowed)
}

/// Reads the tags of a request, for the decision and the audit record.
pub fn new_tags(
    call: &mut Call<'_>,
    list: Option<Vec<Tag>>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value));
    let tags = match unique_tags(pairs, "ValidationException") {
        Err(error) if error.message == "Too many tags" => {
            return Err(ApiError::new("TooManyTagsException", error.message));
        }
        other => other?,
    };
    request_tags(&mut call.conditions, &tags);
    // AWS's model calls keys and values sensitive.
    if !tags.is_empty() {
        call.notes.parameter("tags", "HIDDEN_DUE_TO_SECURITY_REASONS");
    }
    Ok(tags)
}

/// Converts tags to AWS's list.
pub fn tag_list(tags: BTreeMap<String, String>) -> Vec<Tag> {
    tags.into_iter().map(|(key, value)| Tag { key, value }).collect()
}

/// Reads the marker of a list.
pub fn next_token(given: Option<&str>) -> Result<Option<String>, ApiError> {
    marker::unwrap(given, "ValidationException")
}

/// Items on a page. The model has no bounds.
pub fn page_size(given: Option<i64>) -> Result<usize, ApiError> {
    validate::page_limit("pageSize", given)
}

/// Reads the ARNs of roles.
pub fn role_arns(call: &mut Call<'_>, given: &[String]) -> Result<Vec<Arn>, ApiError> {
    call.notes.parameter("roleArns", given.to_vec());
    let mut arns: Vec<Arn> = Vec::new();
    for text in given {
        let arn = Arn::principal(text).filter(|arn| arn.of("iam", "role/").is_some());
        let Some(arn) = arn else {
            let text = validate::shorten(text);
            return Err(ApiError::validation(format!("{text} is not the ARN of a role")));
        };
        if !arns.contains(&arn) {
            arns.push(arn);
        }
    }
    Ok(arns)
}

/// Authorizes passing roles to the service, as "Grant a user permissions to pass a role to an AWS service" demands.
pub fn may_pass(
    call: &mut Call<'_>,
    role_arns: &[Arn],
) -> Result<Vec<Permit<action::iam::PassRole>>, ApiError> {
    call.conditions.set("iam:PassedToService", SERVICE_PRINCIPAL);
    let permit = |arn: &Arn| call.authorize(action::iam::PassRole, &arn.to_string());
    role_arns.iter().map(permit).collect()
}

/// Reads the union of a trust anchor's source.
pub fn source(call: &mut Call<'_>, given: GivenSource) -> Result<Source, ApiError> {
    let data = given.source_data.unwrap_or_default();
    let kind = given.source_type.as_deref();
    call.notes.parameter("sourceType", kind.unwrap_or_default());
    match (kind, data.x509_certificate_data, data.acm_pca_arn) {
        (Some("CERTIFICATE_BUNDLE"), Some(text), None) => Ok(Source::Bundle(text)),
        (Some("AWS_ACM_PCA"), None, Some(arn)) => {
            call.notes.parameter("acmPcaArn", arn.as_str());
            // The one spelling, by which the CA is found later.
            let arn = Arn::parse(&arn).map_or(arn, |parsed| parsed.to_string());
            Ok(Source::PrivateCa(arn))
        }
        (Some("SELF_SIGNED_REPOSITORY"), ..) => Err(ApiError::validation(
            "The source type SELF_SIGNED_REPOSITORY is not served; use CERTIFICATE_BUNDLE or AWS_ACM_PCA",
        )),
        _ => Err(ApiError::validation(
            "A source has the type CERTIFICATE_BUNDLE and x509CertificateData, or the type AWS_ACM_PCA and acmPcaArn",
        )),
    }
}

/// Refuses what would make the server fetch CRLs from where a certificate says.
pub fn no_fetching(enabled: Option<bool>) -> Result<(), ApiError> {
    match enabled {
        Some(true) => Err(ApiError::validation(
            "crlDpRevocationEnabled is not served: CRLs are imported (ImportCrl), and the revocations of a private CA of this \
             service count at once",
        )),
        _ => Ok(()),
    }
}

/// Reads notification settings.
pub fn notifications(call: &Call<'_>, given: Vec<NotificationSetting>) -> Vec<Notification> {
    let account = &call.scope.account;
    let read = |one: NotificationSetting| {
        Notification::new(account, one.enabled, one.event, one.threshold, one.channel)
    };
    given.into_iter().map(read).collect()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(ms)
}

impl From<&TrustAnchor> for TrustAnchorDetail {
    fn from(anchor: &TrustAnchor) -> Self {
        let (kind, source_data) = match anchor.source() {
            Source::Bundle(text) => (
                "CERTIFICATE_BUNDLE",
                SourceData { x509_certificate_data: Some(text.clone()), acm_pca_arn: None },
            ),
            Source::PrivateCa(arn) => (
                "AWS_ACM_PCA",
                SourceData { x509_certificate_data: None, acm_pca_arn: Some(arn.clone()) },
            ),
        };
        let alias = anchor.alias();
        let alias_arn = |name: &String| TRUST_ANCHOR.alias_arn(anchor.scope(), name);
        Self {
            trust_anchor_id: anchor.id().to_owned(),
            trust_anchor_arn: anchor.arn(),
            name: anchor.name().to_owned(),
            source: GivenSource {
                source_type: Some(kind.to_owned()),
                source_data: Some(source_data),
            },
            enabled: anchor.enabled(),
            crl_dp_revocation_enabled: false,
            created_at: at(anchor.created_ms()),
            updated_at: at(anchor.updated_ms()),
            notification_settings: anchor.notifications().iter().map(Into::into).collect(),
            alias_arn: alias.name.as_ref().map(alias_arn),
            alias_name: alias.name.clone(),
            previous_alias_name: alias.previous.clone(),
        }
    }
}

impl From<&Notification> for NotificationSettingDetail {
    fn from(one: &Notification) -> Self {
        Self {
            enabled: one.enabled,
            event: one.event.clone(),
            threshold: one.threshold,
            channel: one.channel.clone(),
            configured_by: one.configured_by.clone(),
        }
    }
}

/// Describes a profile to a caller in the call's Region.
pub fn shown(call: &Call<'_>, profile: &Profile) -> ProfileDetail {
    let mapping = |mapping: &rolesanywhere::Mapping| AttributeMapping {
        certificate_field: mapping.field.clone(),
        mapping_rules: mapping
            .rules
            .iter()
            .map(|rule| MappingRule { specifier: rule.clone() })
            .collect(),
    };
    let alias = profile.alias();
    let alias_arn = |name: &String| PROFILE.alias_arn(profile.scope(), name);
    let shown = |arn: &String| shown_in(&call.scope.region, arn);
    ProfileDetail {
        profile_id: profile.id().to_owned(),
        profile_arn: profile.arn(),
        name: profile.name().to_owned(),
        require_instance_properties: profile.requires_instance_properties(),
        enabled: profile.enabled(),
        created_by: shown_in(&call.scope.region, profile.created_by()),
        session_policy: profile.session_policy().map(str::to_owned),
        role_arns: profile.role_arns().iter().map(shown).collect(),
        managed_policy_arns: profile.managed_policy_arns().to_vec(),
        created_at: at(profile.created_ms()),
        updated_at: at(profile.updated_ms()),
        duration_seconds: profile.seconds(),
        accept_role_session_name: profile.accepts_session_name(),
        attribute_mappings: profile.mappings().iter().map(mapping).collect(),
        alias_arn: alias.name.as_ref().map(alias_arn),
        alias_name: alias.name.clone(),
        previous_alias_name: alias.previous.clone(),
    }
}

impl CrlDetail {
    /// Describes a CRL.
    pub fn new(crl: &Crl) -> Result<Self, ApiError> {
        let alias = crl.alias();
        let alias_arn = |name: &String| CRL.alias_arn(crl.scope(), name);
        Ok(Self {
            crl_id: crl.id().to_owned(),
            crl_arn: crl.arn(),
            name: crl.name().to_owned(),
            enabled: crl.enabled(),
            crl_data: Blob(crl.data().map_err(rolesanywhere::RolesAnywhereError::from)?),
            trust_anchor_arn: crl.trust_anchor_arn(),
            created_at: at(crl.created_ms()),
            updated_at: at(crl.updated_ms()),
            alias_arn: alias.name.as_ref().map(alias_arn),
            alias_name: alias.name.clone(),
            previous_alias_name: alias.previous.clone(),
        })
    }
}

impl From<&Subject> for SubjectSummary {
    fn from(subject: &Subject) -> Self {
        Self {
            subject_arn: subject.arn(),
            subject_id: subject.id().to_owned(),
            enabled: true,
            x509_subject: subject.x509_subject().to_owned(),
            last_seen_at: at(subject.last_seen_ms()),
            created_at: at(subject.created_ms()),
            updated_at: at(subject.updated_ms()),
        }
    }
}

impl From<&Subject> for SubjectDetail {
    fn from(subject: &Subject) -> Self {
        let summary = SubjectSummary::from(subject);
        let credential = |seen: &rolesanywhere::Seen| CredentialSummary {
            seen_at: at(seen.seen_ms),
            serial_number: seen.serial_number.clone(),
            issuer: seen.issuer.clone(),
            enabled: true,
            x509_certificate_data: seen.certificate.clone(),
            failed: seen.failed,
        };
        let instance = |instance: &rolesanywhere::Instance| InstanceProperty {
            seen_at: at(instance.seen_ms),
            properties: instance.properties.clone(),
            failed: instance.failed,
        };
        Self {
            subject_arn: summary.subject_arn,
            subject_id: summary.subject_id,
            enabled: summary.enabled,
            x509_subject: summary.x509_subject,
            last_seen_at: summary.last_seen_at,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            credentials: subject.credentials().iter().map(credential).collect(),
            instance_properties: subject.instances().iter().map(instance).collect(),
        }
    }
}
