//! Key Management Service.

use outlast_api::model::kms as model;
use outlast_api::ops::KMS;
use outlast_api::ops::kms as ops;
use outlast_api::wire::fields::fields_of;
use outlast_crypto::keys::{KEY_SPECS, KeyUsage};
use outlast_crypto::signatures::SIGNATURES;
use outlast_crypto::wrap::WRAPPING;

use super::{Part, set};

pub(super) static PART: Part = Part {
    title: "Key Management Service",
    model: "kms",
    service: &KMS,
    refused: model::REFUSED,
    idle: &[],
    absent: ABSENT,
    values: VALUES,
    beyond: &[],
    // The operations of custom key stores: they answer with AWS's documented errors.
    answers_error: |name| {
        let custom = name.contains("CustomKeyStore") && name != "DescribeCustomKeyStores";
        custom.then_some("answers with AWS's documented error: there are no custom key stores")
    },
    elsewhere: &[
        ("CustomKeyStoresListEntry", "no custom key stores"),
        ("RecipientInfo", "of Recipient, which is refused"),
        ("XksKeyConfigurationType", "no custom key stores"),
        ("XksProxyAuthenticationCredentialType", "no custom key stores; read and forgotten"),
        ("XksProxyConfigurationType", "no custom key stores"),
    ],
    structures: || {
        vec![
            ("AliasListEntry", fields_of::<ops::list_aliases::AliasListEntry>()),
            ("GrantConstraints", fields_of::<model::GrantConstraints>()),
            ("GrantListEntry", fields_of::<model::GrantListEntry>()),
            ("KeyLastUsageData", fields_of::<ops::get_key_last_usage::KeyLastUsageData>()),
            ("KeyListEntry", fields_of::<ops::list_keys::KeyListEntry>()),
            ("KeyMetadata", fields_of::<model::KeyMetadata>()),
            ("MultiRegionConfiguration", fields_of::<model::MultiRegionConfiguration>()),
            ("MultiRegionKey", fields_of::<model::MultiRegionKey>()),
            ("RotationsListEntry", fields_of::<ops::list_key_rotations::RotationsListEntry>()),
            ("Tag", fields_of::<model::Tag>()),
        ]
    },
    enumerations: || {
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
    },
};

/// Members of answers that are never there, with the reason.
const ABSENT: &[(&str, &str, &str)] = &[
    ("*", "CiphertextForRecipient", "answers Recipient, which is refused"),
    ("KeyMetadata", "CustomKeyStoreId", "no custom key stores"),
    ("KeyMetadata", "CloudHsmClusterId", "no custom key stores"),
    ("KeyMetadata", "XksKeyConfiguration", "no custom key stores"),
    ("DescribeCustomKeyStores", "CustomKeyStores", "always empty: no custom key stores"),
];

/// Values of enumerations that are not served, with the reason.
const VALUES: &[(&str, &str, &str)] = &[
    ("KeySpec", "SM2", "for AWS's regions in China only; AWS-LC's Rust interface has no SM2"),
    ("SigningAlgorithmSpec", "SM2DSA", "as SM2"),
    ("EncryptionAlgorithmSpec", "SM2PKE", "as SM2"),
    ("AlgorithmSpec", "SM2PKE", "as SM2"),
    ("WrappingKeySpec", "SM2", "as SM2"),
    ("DataKeyPairSpec", "SM2", "as SM2"),
    ("OriginType", "AWS_CLOUDHSM", "no custom key stores"),
    ("OriginType", "EXTERNAL_KEY_STORE", "no custom key stores"),
];
