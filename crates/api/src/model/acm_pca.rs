//! Private CA structures.

mod extensions;
mod revocation;

pub use extensions::{
    AccessDescription, AccessMethod, ApiPassthrough, CsrExtensions, CustomExtension, EdiPartyName,
    ExtendedKeyUsage, Extensions, GeneralName, KeyUsage, OtherName, PolicyInformation,
    PolicyQualifierInfo, Qualifier,
};
pub use revocation::{
    CrlConfiguration, CrlDistributionPointExtensionConfiguration, OcspConfiguration,
    RevocationConfiguration, check_bucket,
};

use std::collections::BTreeMap;

use outlast_domain::ca::{self, Authority};
use outlast_domain::settings::Settings;

pub use crate::aws::acm_pca::{
    ASN1Subject, CertificateAuthority, CertificateAuthorityConfiguration, CustomAttribute, Tag,
    Validity,
};
use crate::call::Call;
use crate::wire::{ApiError, Timestamp, validate};

/// Values of `CertificateAuthorityUsageMode`.
pub const USAGE_MODES: &[&str] = &["GENERAL_PURPOSE", "SHORT_LIVED_CERTIFICATE"];
/// Values of `ResourceOwner`.
pub const RESOURCE_OWNERS: &[&str] = &["SELF", "OTHER_ACCOUNTS"];
/// Values of `AuditReportResponseFormat`.
pub const REPORT_FORMATS: &[&str] = &["JSON", "CSV"];

impl From<ASN1Subject> for ca::Subject {
    fn from(mut subject: ASN1Subject) -> Self {
        let custom = subject.custom_attributes.take().unwrap_or_default();
        // All other members are text; the table of attribute types has their names.
        let fields = serde_json::to_value(&subject).and_then(serde_json::from_value);
        Self {
            fields: fields.unwrap_or_default(),
            custom: custom.into_iter().map(|a| (a.object_identifier, a.value)).collect(),
        }
    }
}

impl From<&ca::Subject> for ASN1Subject {
    fn from(subject: &ca::Subject) -> Self {
        let custom: Vec<_> = subject
            .custom
            .iter()
            .map(|(oid, value)| CustomAttribute {
                object_identifier: oid.clone(),
                value: value.clone(),
            })
            .collect();
        let fields = serde_json::to_value(&subject.fields).and_then(serde_json::from_value);
        Self {
            custom_attributes: (!custom.is_empty()).then_some(custom),
            ..fields.unwrap_or_default()
        }
    }
}

impl CertificateAuthority {
    /// Describes an authority. `KeyStorageSecurityStandard` is shown only while the operator claims the standard.
    pub fn new(authority: &Authority, settings: &Settings) -> Self {
        let claimed = |name: &&str| settings.key_storage.is_some_and(|kept| kept.meets(name));
        let certificate = authority.certificate();
        Self {
            arn: authority.arn(),
            owner_account: authority.scope().account.clone(),
            created_at: Timestamp::from_ms(authority.created_ms()),
            last_state_change_at: Timestamp::from_ms(authority.changed_ms()),
            kind: authority.kind().name().to_owned(),
            serial: certificate.map(|found| hex::encode(found.serial())),
            status: authority.status().name().to_owned(),
            not_before: certificate.map(|found| Timestamp::from_seconds(found.not_before())),
            not_after: certificate.map(|found| Timestamp::from_seconds(found.not_after())),
            certificate_authority_configuration: CertificateAuthorityConfiguration {
                key_algorithm: authority.spec().pca_name.unwrap_or_default().to_owned(),
                signing_algorithm: authority.algorithm().pca_name.unwrap_or_default().to_owned(),
                subject: ASN1Subject::from(authority.subject()),
                // Only if the extensions could be read when they were given.
                csr_extensions: authority
                    .csr_extensions()
                    .and_then(|shown| serde_json::from_value(shown.clone()).ok()),
            },
            revocation_configuration: authority.revocation().into(),
            restorable_until: authority.restorable_until_ms().map(Timestamp::from_ms),
            key_storage_security_standard: Some(authority.key_storage())
                .filter(claimed)
                .map(str::to_owned),
            usage_mode: authority.usage_mode().to_owned(),
        }
    }
}

impl TryFrom<&Validity> for ca::Validity {
    type Error = ApiError;

    fn try_from(validity: &Validity) -> Result<Self, ApiError> {
        let kind = ca::ValidityType::by_name(&validity.kind)
            .ok_or_else(|| ApiError::validation("Type is unknown"))?;
        Ok(Self { value: validity.value, kind })
    }
}

/// Converts tags to the domain's type.
pub fn tags(list: Vec<Tag>) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.into_iter().map(|tag| (tag.key, tag.value.unwrap_or_default()));
    super::unique_tags(pairs, "InvalidTagException")
}

/// Sets the condition keys about the tags of a request.
pub fn request_tags(call: &mut Call<'_>, tags: &BTreeMap<String, String>) {
    super::request_tags(&mut call.conditions, tags);
}

/// Finds an authority and notes it for the audit record. Another account's authority is found, too; its policy
/// decides then.
pub fn find_authority(call: &mut Call<'_>, arn: &str) -> Result<Authority, ApiError> {
    find_authority_as(call, "CertificateAuthorityArn", arn)
}

/// The same, for a member with another name.
pub fn find_authority_as(
    call: &mut Call<'_>,
    member: &str,
    arn: &str,
) -> Result<Authority, ApiError> {
    call.notes.parameter(&validate::member_name(member), arn);
    let authority = ca::find(&mut call.work, &call.scope, arn)?;
    call.notes.resource(authority.arn(), "AWS::ACMPCA::CertificateAuthority");
    Ok(authority)
}
