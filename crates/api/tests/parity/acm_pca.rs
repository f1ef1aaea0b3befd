//! Private CA.

use outlast_api::model::acm_pca as model;
use outlast_api::ops::ACM_PCA;
use outlast_api::ops::acm_pca as ops;
use outlast_api::wire::fields::fields_of;
use outlast_crypto::keys::KEY_SPECS;
use outlast_crypto::signatures::SIGNATURES;
use outlast_domain::ca;
use outlast_domain::settings::KEY_STORAGE;
use outlast_pki::extensions::{ACCESS_METHODS, PURPOSES};

use super::{Part, set};

pub(super) static PART: Part = Part {
    title: "Private CA",
    model: "acm-pca",
    service: &ACM_PCA,
    refused: &[],
    idle: &[],
    absent: &[(
        "CertificateAuthority",
        "FailureReason",
        "no CA fails: it is made in one step, or not at all",
    )],
    values: &[
        (
            "KeyAlgorithm",
            "SM2",
            "for AWS's regions in China only; AWS-LC's Rust interface has no SM2",
        ),
        ("SigningAlgorithm", "SM3WITHSM2", "as SM2; nor has it SM3"),
        ("CertificateAuthorityStatus", "CREATING", "a CA is made in one step"),
        ("CertificateAuthorityStatus", "FAILED", "a CA is made in one step, or not at all"),
        ("FailureReason", "REQUEST_TIMED_OUT", "no CA fails"),
        ("FailureReason", "UNSUPPORTED_ALGORITHM", "no CA fails: the call is refused"),
        ("FailureReason", "OTHER", "no CA fails"),
    ],
    // Paired issuance: one request, a classical and a post-quantum certificate.
    beyond: &[
        ("IssueCertificate", "PairedCsr"),
        ("IssueCertificate", "PairedCertificateArn"),
        ("GetCertificate", "PairedCertificate"),
        ("GetCertificate", "PairedCertificateArn"),
        ("GetCertificate", "PairedCertificateChain"),
    ],
    answers_error: |_| None,
    elsewhere: &[],
    structures: || {
        let mut subject: Vec<_> = outlast_pki::name::FIELDS.iter().map(|row| row.name).collect();
        subject.push("CustomAttributes");
        vec![
            ("ASN1Subject", subject.leak()),
            ("AccessDescription", fields_of::<model::AccessDescription>()),
            ("AccessMethod", fields_of::<model::AccessMethod>()),
            ("ApiPassthrough", fields_of::<model::ApiPassthrough>()),
            ("CertificateAuthority", fields_of::<model::CertificateAuthority>()),
            ("CertificateAuthorityConfiguration", fields_of::<model::Configuration>()),
            ("CrlConfiguration", fields_of::<model::CrlConfiguration>()),
            (
                "CrlDistributionPointExtensionConfiguration",
                fields_of::<model::CrlDistributionPointExtensionConfiguration>(),
            ),
            ("CsrExtensions", fields_of::<model::CsrExtensions>()),
            ("CustomAttribute", fields_of::<model::CustomAttribute>()),
            ("CustomExtension", fields_of::<model::CustomExtension>()),
            ("EdiPartyName", fields_of::<model::EdiPartyName>()),
            ("ExtendedKeyUsage", fields_of::<model::ExtendedKeyUsage>()),
            ("Extensions", fields_of::<model::Extensions>()),
            ("GeneralName", fields_of::<model::GeneralName>()),
            ("KeyUsage", fields_of::<model::KeyUsage>()),
            ("OcspConfiguration", fields_of::<model::OcspConfiguration>()),
            ("OtherName", fields_of::<model::OtherName>()),
            ("Permission", fields_of::<ops::list_permissions::Permission>()),
            ("PolicyInformation", fields_of::<model::PolicyInformation>()),
            ("PolicyQualifierInfo", fields_of::<model::PolicyQualifierInfo>()),
            ("Qualifier", fields_of::<model::Qualifier>()),
            ("RevocationConfiguration", fields_of::<model::RevocationConfiguration>()),
            ("Tag", fields_of::<model::Tag>()),
            ("Validity", fields_of::<model::Validity>()),
        ]
    },
    enumerations: || {
        vec![
            ("AccessMethodType", set(ACCESS_METHODS.iter().map(|(name, _)| *name))),
            ("ActionType", set(ca::permission::ACTIONS.iter().copied())),
            ("AuditReportResponseFormat", set(model::REPORT_FORMATS.iter().copied())),
            ("AuditReportStatus", set(ca::report::ReportStatus::ALL.iter().map(|one| one.name()))),
            ("CertificateAuthorityStatus", set(ca::Status::ALL.iter().map(|one| one.name()))),
            (
                "CertificateAuthorityType",
                set([ca::Kind::Root, ca::Kind::Subordinate].map(ca::Kind::name)),
            ),
            ("CertificateAuthorityUsageMode", set(model::USAGE_MODES.iter().copied())),
            ("CrlType", set(model::CRL_TYPES.iter().copied())),
            ("ExtendedKeyUsageType", set(PURPOSES.iter().map(|row| row.name))),
            ("FailureReason", set([])),
            ("KeyAlgorithm", set(KEY_SPECS.iter().filter_map(|row| row.pca_name))),
            ("KeyStorageSecurityStandard", set(KEY_STORAGE.iter().map(|row| row.name))),
            ("PolicyQualifierId", set(["CPS"])),
            ("ResourceOwner", set(model::RESOURCE_OWNERS.iter().copied())),
            ("RevocationReason", set(ca::REVOCATION_REASONS.iter().copied())),
            ("S3ObjectAcl", set(model::OBJECT_ACLS.iter().copied())),
            ("SigningAlgorithm", set(SIGNATURES.iter().filter_map(|row| row.pca_name))),
            ("ValidityPeriodType", set(model::VALIDITY_TYPES.iter().copied())),
        ]
    },
};
