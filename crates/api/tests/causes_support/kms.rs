//! Key Management Service.

use super::{Cause, Text};

const API: &str = "https://docs.aws.amazon.com/kms/latest/APIReference/";
const SEEN: &str = "answers of AWS KMS";

pub static CAUSES: &[Cause] = &[
    (
        "Decrypt",
        r#"{"CiphertextBlob":"YWJj"}"#,
        "InvalidCiphertextException",
        400,
        Text::None,
        SEEN,
    ),
    (
        "Verify",
        r#"{"KeyId":"{ec}","Message":"YQ==","Signature":"YQ==","SigningAlgorithm":"ECDSA_SHA_256"}"#,
        "KMSInvalidSignatureException",
        400,
        Text::None,
        SEEN,
    ),
    (
        "VerifyMac",
        r#"{"KeyId":"{mac}","Message":"YQ==","Mac":"YQ==","MacAlgorithm":"HMAC_SHA_256"}"#,
        "KMSInvalidMacException",
        400,
        Text::None,
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{plain}","Plaintext":"YQ==","DryRun":true}"#,
        "DryRunOperationException",
        400,
        Text::Aws("The request would have succeeded, but the DryRun option is set."),
        API,
    ),
    // A disabled key gives DisabledException, whatever its type.
    (
        "Sign",
        r#"{"KeyId":"{disabled}","Message":"YQ==","SigningAlgorithm":"ECDSA_SHA_256"}"#,
        "DisabledException",
        400,
        Text::Aws("{disabled} is disabled."),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{disabled}","Plaintext":"YQ=="}"#,
        "DisabledException",
        400,
        Text::Aws("{disabled} is disabled."),
        SEEN,
    ),
    (
        "GetPublicKey",
        r#"{"KeyId":"{disabled}"}"#,
        "DisabledException",
        400,
        Text::Aws("{disabled} is disabled."),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{going}","Plaintext":"YQ=="}"#,
        "KMSInvalidStateException",
        400,
        Text::Aws("{going} is pending deletion."),
        SEEN,
    ),
    (
        "Decrypt",
        r#"{"KeyId":"{other}","CiphertextBlob":"{sealed}"}"#,
        "IncorrectKeyException",
        400,
        Text::Aws(
            "The key ID in the request does not identify a CMK that can perform this operation.",
        ),
        SEEN,
    ),
    (
        "ReEncrypt",
        r#"{"SourceKeyId":"{other}","DestinationKeyId":"{plain}","CiphertextBlob":"{sealed}"}"#,
        "IncorrectKeyException",
        400,
        Text::Aws(
            "The key ID in the request does not identify a CMK that can perform this operation.",
        ),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{rsa}","Plaintext":"{large}","EncryptionAlgorithm":"RSAES_OAEP_SHA_256"}"#,
        "ValidationException",
        400,
        Text::Aws(
            "Algorithm RSAES_OAEP_SHA_256 and key spec RSA_2048 cannot encrypt data larger than 190 bytes.",
        ),
        SEEN,
    ),
    (
        "GenerateDataKey",
        r#"{"KeyId":"{plain}","NumberOfBytes":1025}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value '1025' at 'numberOfBytes' failed to satisfy constraint: Member must have value less than or equal to 1024",
        ),
        SEEN,
    ),
    (
        "GenerateDataKey",
        r#"{"KeyId":"{plain}","NumberOfBytes":16,"KeySpec":"AES_128"}"#,
        "ValidationException",
        400,
        Text::Aws("Please specify either number of bytes or key spec, and not both."),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{"TagKey":"a","TagValue":""},{"TagKey":"a","TagValue":""}]}"#,
        "TagException",
        400,
        Text::Aws("Duplicate tag keys"),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{many}]}"#,
        "TagException",
        400,
        Text::Aws("Too many tags"),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{"TagKey":"aws:a","TagValue":""}]}"#,
        "TagException",
        400,
        Text::Aws("Tags beginning with aws: are reserved"),
        SEEN,
    ),
    (
        "DescribeKey",
        r#"{"KeyId":"{missing}"}"#,
        "NotFoundException",
        400,
        Text::Aws("Key '{missing}' does not exist"),
        SEEN,
    ),
    (
        "ScheduleKeyDeletion",
        r#"{"KeyId":"{plain}","PendingWindowInDays":0}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value '0' at 'pendingWindowInDays' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        SEEN,
    ),
    (
        "GenerateRandom",
        r#"{"NumberOfBytes":8,"Recipient":{}}"#,
        "UnsupportedOperationException",
        400,
        Text::Ours(
            "Recipient is not supported: attestation documents are those of AWS Nitro Enclaves, which run on AWS only",
        ),
        "docs/aws-parity.md",
    ),
];
