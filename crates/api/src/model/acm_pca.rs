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
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::ops::Call;
use crate::wire::{ApiError, Timestamp, validate};

/// `CertificateAuthorityUsageMode`
pub const USAGE_MODES: &[&str] = &["GENERAL_PURPOSE", "SHORT_LIVED_CERTIFICATE"];
/// `ValidityPeriodType`
pub const VALIDITY_TYPES: &[&str] = &["END_DATE", "ABSOLUTE", "DAYS", "MONTHS", "YEARS"];
/// `CrlType`
pub const CRL_TYPES: &[&str] = &["COMPLETE", "PARTITIONED"];
/// `S3ObjectAcl`: kept for display.
pub const OBJECT_ACLS: &[&str] = &["PUBLIC_READ", "BUCKET_OWNER_FULL_CONTROL"];
/// `ResourceOwner`
pub const RESOURCE_OWNERS: &[&str] = &["SELF", "OTHER_ACCOUNTS"];
/// `AuditReportResponseFormat`
pub const REPORT_FORMATS: &[&str] = &["JSON", "CSV"];

/// `ASN1Subject`
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Subject {
    /// AWS's named fields; see [`outlast_pki::name::FIELDS`].
    #[serde(flatten, with = "named_fields")]
    pub fields: BTreeMap<String, String>,
    /// Attributes by object identifier, instead of named fields.
    #[serde(rename = "CustomAttributes", default, skip_serializing_if = "Option::is_none")]
    pub custom_attributes: Option<Vec<CustomAttribute>>,
}

/// Reads exactly the fields that the table of names has.
mod named_fields {
    use std::collections::BTreeMap;

    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        fields: &BTreeMap<String, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        fields.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, String>, D::Error> {
        let fields = BTreeMap::<String, String>::deserialize(deserializer)?;
        for name in fields.keys() {
            if !outlast_pki::name::FIELDS.iter().any(|row| row.name == name) {
                let known: Vec<_> = outlast_pki::name::FIELDS.iter().map(|row| row.name).collect();
                return Err(D::Error::custom(format!(
                    "unknown field `{}`, expected one of {}",
                    name.chars().take(64).collect::<String>(),
                    known.join(", ")
                )));
            }
        }
        Ok(fields)
    }
}

/// `CustomAttribute`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct CustomAttribute {
    /// Dotted object identifier.
    pub object_identifier: String,
    /// Value.
    pub value: String,
}

impl From<Subject> for ca::Subject {
    fn from(subject: Subject) -> Self {
        let custom = subject.custom_attributes.unwrap_or_default();
        Self {
            fields: subject.fields,
            custom: custom.into_iter().map(|a| (a.object_identifier, a.value)).collect(),
        }
    }
}

impl From<&ca::Subject> for Subject {
    fn from(subject: &ca::Subject) -> Self {
        let custom: Vec<_> = subject
            .custom
            .iter()
            .map(|(oid, value)| CustomAttribute {
                object_identifier: oid.clone(),
                value: value.clone(),
            })
            .collect();
        Self {
            fields: subject.fields.clone(),
            custom_attributes: (!custom.is_empty()).then_some(custom),
        }
    }
}

/// `CertificateAuthorityConfiguration`
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Configuration {
    /// Key type.
    pub key_algorithm: String,
    /// Algorithm that the authority signs with.
    pub signing_algorithm: String,
    /// Name.
    pub subject: Subject,
    /// Extensions for the request.
    pub csr_extensions: Option<CsrExtensions>,
}

/// `CertificateAuthority`
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct CertificateAuthority {
    pub arn: String,
    pub owner_account: String,
    pub created_at: Timestamp,
    pub last_state_change_at: Timestamp,
    #[serde(rename = "Type")]
    pub kind: String,
    pub serial: Option<String>,
    pub status: String,
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    pub certificate_authority_configuration: Configuration,
    pub revocation_configuration: RevocationConfiguration,
    pub restorable_until: Option<Timestamp>,
    pub key_storage_security_standard: Option<String>,
    pub usage_mode: String,
}

impl CertificateAuthority {
    /// What is shown of an authority. The standard that it was made for is shown while the operator claims it.
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
            certificate_authority_configuration: Configuration {
                key_algorithm: authority.spec().pca_name.unwrap_or_default().to_owned(),
                signing_algorithm: authority.algorithm().pca_name.unwrap_or_default().to_owned(),
                subject: Subject::from(authority.subject()),
                // What was given, and could be read when it was.
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

/// `Validity`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Validity {
    /// At least 1.
    pub value: i64,
    /// `END_DATE`, `ABSOLUTE`, `DAYS`, `MONTHS` or `YEARS`.
    #[serde(rename = "Type")]
    pub kind: String,
}

impl TryFrom<&Validity> for ca::Validity {
    type Error = ApiError;

    fn try_from(validity: &Validity) -> Result<Self, ApiError> {
        validate::one_of("Type", &validity.kind, VALIDITY_TYPES)?;
        let kind = ca::ValidityType::by_name(&validity.kind)
            .ok_or_else(|| ApiError::validation("Type is not known"))?;
        Ok(Self { value: validity.value, kind })
    }
}

/// `Tag`
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Tag {
    /// 1 to 128 characters.
    pub key: String,
    /// 0 to 256 characters.
    pub value: Option<String>,
}

/// Tags as the domain has them.
pub fn tags(list: Vec<Tag>) -> Result<BTreeMap<String, String>, ApiError> {
    let pairs = list.into_iter().map(|tag| (tag.key, tag.value.unwrap_or_default()));
    super::unique_tags(pairs, "InvalidTagException")
}

/// What policies can ask about the tags of a request.
pub fn request_tags(call: &mut Call<'_>, tags: &BTreeMap<String, String>) {
    super::request_tags(&mut call.conditions, tags);
}

/// Finds an authority and notes it for the audit record. It may be another account's: then its policy decides.
pub fn find_authority(call: &mut Call<'_>, arn: &str) -> Result<Authority, ApiError> {
    find_authority_as(call, "CertificateAuthorityArn", arn)
}

/// The same for a member with another name.
pub fn find_authority_as(
    call: &mut Call<'_>,
    member: &str,
    arn: &str,
) -> Result<Authority, ApiError> {
    validate::length(member, arn.chars().count(), 5, 200)?;
    call.notes.parameter(&validate::member(member), arn);
    let authority = ca::find(&mut call.work, &call.scope, arn)?;
    call.notes.resource(authority.arn(), "AWS::ACMPCA::CertificateAuthority");
    Ok(authority)
}

/// An idempotency token has 1 to 36 characters.
pub fn check_token(token: Option<&str>) -> Result<(), ApiError> {
    token.map_or(Ok(()), |token| validate::length("IdempotencyToken", token.chars().count(), 1, 36))
}
