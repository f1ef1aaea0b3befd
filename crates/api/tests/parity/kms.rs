//! Key Management Service.

use std::collections::BTreeSet;

use outlast_api::ops::kms as ops;
use outlast_crypto::keys::{KEY_SPECS, KeyUsage};
use outlast_crypto::signatures::SIGNATURES;
use outlast_crypto::wrap::WRAPPING;

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    let specs = || set(KEY_SPECS.iter().map(|row| row.name));
    vec![
        ("KeySpec", specs()),
        ("KeyUsageType", set(KeyUsage::ALL.iter().map(|usage| usage.name()))),
        ("SigningAlgorithmSpec", set(SIGNATURES.iter().map(|row| row.kms_name))),
        (
            "EncryptionAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.encryption.iter().copied())),
        ),
        ("MacAlgorithmSpec", set(KEY_SPECS.iter().flat_map(|row| row.mac.iter().copied()))),
        (
            "KeyAgreementAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.key_agreement.iter().copied())),
        ),
        (
            "EncapsulationAlgorithmSpec",
            set(KEY_SPECS.iter().flat_map(|row| row.encapsulation.iter().copied())),
        ),
        (
            "DataKeyPairSpec",
            set(KEY_SPECS.iter().filter(|row| row.data_key_pair).map(|row| row.name)),
        ),
        ("AlgorithmSpec", set(WRAPPING.iter().map(|row| row.name))),
        ("WrappingKeySpec", set(ops::get_parameters_for_import::WRAPPING_KEYS.iter().copied())),
        ("GrantOperation", set(outlast_domain::kms::GRANT_OPERATIONS.iter().copied())),
        ("OriginType", set(["AWS_KMS", "EXTERNAL"])),
    ]
}
