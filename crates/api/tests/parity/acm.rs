//! Certificate Manager.

use std::collections::BTreeSet;

use outlast_api::model::{acm as model, acm_search};
use outlast_domain::acm::certificate::{Origin, PUBLIC, Status};
use outlast_domain::acm::details::{EXTENDED_KEY_USAGES, KEY_USAGES};
use outlast_domain::acm::proof::Method;
use outlast_domain::acm::revoke::REASONS;

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    let named = EXTENDED_KEY_USAGES.iter().map(|(name, _)| *name);
    let algorithms = outlast_crypto::keys::KEY_SPECS.iter().filter_map(|row| row.pca_name);
    // Private CA has names for these; Certificate Manager does not.
    let beyond = ["ML_DSA_65_ECDSA_P256", "SLH_DSA_SHA2_128S", "SLH_DSA_SHA2_256S"];
    let algorithms = algorithms.filter(|name| !beyond.contains(name));
    vec![
        ("CertificateExport", set([true, false].map(model::enabled).iter().map(String::as_str))),
        ("CertificateKeyPairOrigin", set(Origin::ALL.iter().map(|one| one.name()))),
        ("CertificateManagedBy", set([])),
        ("CertificateStatus", set(Status::ALL.iter().map(|one| one.name()))),
        ("CertificateType", set(Origin::ALL.iter().map(|one| one.kind()).chain([PUBLIC]))),
        ("ComparisonOperator", set(acm_search::OPERATORS.iter().copied())),
        ("ExtendedKeyUsageName", set(named.chain(["NONE", "CUSTOM"]))),
        ("FailureReason", set(outlast_domain::acm::FAILURE_REASONS.iter().copied())),
        ("KeyAlgorithm", set(algorithms)),
        ("KeyUsageName", set(KEY_USAGES.iter().copied().chain(["ANY", "CUSTOM"]))),
        (
            "PublicKeyAlgorithm",
            set(outlast_crypto::keys::KEY_SPECS.iter().filter_map(|row| row.pca_name)),
        ),
        ("RenewalStatus", set(["PENDING_VALIDATION", "SUCCESS", "FAILED"])),
        ("RevocationReason", set(REASONS.iter().map(|(name, _)| *name))),
        ("SearchCertificatesSortBy", set(acm_search::ORDERS.iter().map(|row| row.name))),
        ("SortOrder", set(model::SORT_ORDERS.iter().copied())),
        ("ValidationMethod", set(Method::ALL.iter().map(|one| one.name()))),
    ]
}
