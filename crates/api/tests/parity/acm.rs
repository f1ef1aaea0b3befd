//! Certificate Manager.

use std::collections::BTreeSet;

use outlast_api::model::{acm as model, acm_search};
use outlast_domain::acm::certificate::{Origin, REASONS, Status};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    let key_algorithms = model::KEY_ALGORITHMS.iter().copied().filter(|name| *name != "RSA_1024");
    vec![
        ("CertificateExport", set(model::ENABLED_OR_DISABLED.iter().copied())),
        ("CertificateKeyPairOrigin", set(Origin::ALL.iter().map(|one| one.name()))),
        ("CertificateManagedBy", set([])),
        (
            "CertificateStatus",
            set([Status::Expired, Status::Issued, Status::Revoked].map(Status::name)),
        ),
        ("CertificateType", set(Origin::ALL.iter().map(|one| one.kind()))),
        ("ComparisonOperator", set(acm_search::OPERATORS.iter().copied())),
        ("ExtendedKeyUsageName", set(model::extended_key_usages())),
        ("FailureReason", set(outlast_domain::acm::FAILURE_REASONS.iter().copied())),
        ("KeyAlgorithm", set(key_algorithms)),
        ("KeyUsageName", set(model::key_usages())),
        (
            "PublicKeyAlgorithm",
            set(outlast_crypto::keys::KEY_SPECS.iter().filter_map(|row| row.pca_name)),
        ),
        ("RenewalStatus", set(["SUCCESS", "FAILED"])),
        ("RevocationReason", set(REASONS.iter().map(|(name, _)| *name))),
        ("SearchCertificatesSortBy", set(acm_search::ORDERS.iter().map(|row| row.name))),
        ("SortOrder", set(model::SORT_ORDERS.iter().copied())),
        ("ValidationMethod", set([])),
    ]
}
