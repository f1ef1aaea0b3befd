//! Certificate Manager.

use super::{Cause, Text};

const ACM: &str = "https://docs.aws.amazon.com/acm/latest/APIReference/";

pub static CAUSES: &[Cause] = &[
    (
        "DescribeCertificate",
        r#"{"CertificateArn":"{missing}"}"#,
        "ResourceNotFoundException",
        400,
        Text::Aws("Could not find certificate {missing}."),
        "answers of AWS",
    ),
    (
        "DescribeCertificate",
        r#"{"CertificateArn":"{here}certificate/1"}"#,
        "InvalidArnException",
        400,
        Text::Ours("{here}certificate/1"),
        ACM,
    ),
    (
        "ImportCertificate",
        r#"{"Certificate":"{two}","PrivateKey":"{key}"}"#,
        "ValidationException",
        400,
        Text::Aws(
            "The certificate field contains more than one certificate. You can specify only one certificate in this field.",
        ),
        "answers of AWS in issue 19400 of terraform-provider-aws",
    ),
    (
        "ImportCertificate",
        r#"{"Certificate":"YWJj","PrivateKey":"{key}"}"#,
        "ValidationException",
        400,
        Text::Ours("PEM"),
        ACM,
    ),
    (
        "RenewCertificate",
        r#"{"CertificateArn":"{imported}"}"#,
        "ValidationException",
        400,
        Text::Ours("reimport it"),
        ACM,
    ),
    (
        "ExportCertificate",
        r#"{"CertificateArn":"{missing}","Passphrase":"{passphrase}"}"#,
        "ResourceNotFoundException",
        400,
        Text::Aws("Could not find certificate {missing}."),
        "answers of AWS",
    ),
    (
        "AddTagsToCertificate",
        r#"{"CertificateArn":"{imported}","Tags":[{"Key":"aws:a","Value":""}]}"#,
        "InvalidTagException",
        400,
        Text::Ours("aws:"),
        ACM,
    ),
    (
        "AddTagsToCertificate",
        r#"{"CertificateArn":"{imported}","Tags":[{"Key":"more","Value":""}]}"#,
        "TooManyTagsException",
        400,
        Text::Ours("50"),
        ACM,
    ),
    (
        "ListCertificates",
        r#"{"NextToken":"x"}"#,
        "ValidationException",
        400,
        Text::Ours("The marker was not issued"),
        ACM,
    ),
    (
        "RequestCertificate",
        r#"{"DomainName":"a.example.com","CertificateAuthorityArn":"{missing-ca}"}"#,
        "InvalidArnException",
        400,
        Text::Ours("{missing-ca}"),
        ACM,
    ),
    (
        "PutAccountConfiguration",
        r#"{"IdempotencyToken":"a","ExpiryEvents":{"DaysBeforeExpiry":0}}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value '0' at 'expiryEvents.daysBeforeExpiry' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        ACM,
    ),
];
