//! Private CA.

use std::collections::BTreeSet;

use outlast_api::model::acm_pca as model;
use outlast_crypto::keys::KEY_SPECS;
use outlast_crypto::signatures::SIGNATURES;
use outlast_domain::ca;
use outlast_domain::settings::KEY_STORAGE;
use outlast_pki::extensions::{ACCESS_METHODS, PURPOSES};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
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
        ("CrlType", set(["COMPLETE", "PARTITIONED"])),
        ("ExtendedKeyUsageType", set(PURPOSES.iter().map(|row| row.name))),
        ("FailureReason", set([])),
        ("KeyAlgorithm", set(KEY_SPECS.iter().filter_map(|row| row.pca_name))),
        ("KeyStorageSecurityStandard", set(KEY_STORAGE.iter().map(|row| row.name))),
        ("PolicyQualifierId", set(["CPS"])),
        ("ResourceOwner", set(model::RESOURCE_OWNERS.iter().copied())),
        ("RevocationReason", set(ca::REVOCATION_REASONS.iter().copied())),
        ("S3ObjectAcl", set(["PUBLIC_READ", "BUCKET_OWNER_FULL_CONTROL"])),
        ("SigningAlgorithm", set(SIGNATURES.iter().filter_map(|row| row.pca_name))),
        (
            "ValidityPeriodType",
            set(["END_DATE", "ABSOLUTE", "DAYS", "MONTHS", "YEARS"]
                .into_iter()
                .filter(|name| ca::ValidityType::by_name(name).is_some())),
        ),
    ]
}
