//! Roles Anywhere.

use super::{Cause, Text};

const MODEL: &str = "https://docs.aws.amazon.com/rolesanywhere/latest/APIReference/";
const SEEN: &str = "answers of AWS that users have published";

/// An id is in the path; here it is a member as any other.
pub static CAUSES: &[Cause] = &[
    (
        "GetTrustAnchor",
        r#"{"trustAnchorId":"x"}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value 'x' at 'trustAnchorId' failed to satisfy constraint: Member must satisfy regular expression pattern: ([a-f0-9]{8}-([a-z0-9]{4}-){3}[a-z0-9]{12}|arn:aws(-[^:]+)?:rolesanywhere(:.*){2}:(trust-anchor|alias/trust-anchor)/.*)",
        ),
        MODEL,
    ),
    (
        "GetTrustAnchor",
        r#"{"trustAnchorId":"{missing}"}"#,
        "ResourceNotFoundException",
        404,
        Text::Ours("{missing} not found"),
        MODEL,
    ),
    (
        "GetProfile",
        r#"{"profileId":"{missing}"}"#,
        "ResourceNotFoundException",
        404,
        Text::Ours("{missing} not found"),
        MODEL,
    ),
    (
        "DeleteCrl",
        r#"{"crlId":"{missing}"}"#,
        "ResourceNotFoundException",
        404,
        Text::Ours("{missing} not found"),
        MODEL,
    ),
    (
        "GetSubject",
        r#"{"subjectId":"{missing}"}"#,
        "ResourceNotFoundException",
        404,
        Text::Ours("{missing} not found"),
        MODEL,
    ),
    (
        "CreateTrustAnchor",
        r#"{"name":"a","source":{"sourceType":"CERTIFICATE_BUNDLE","sourceData":{"x509CertificateData":"{leaf}"}}}"#,
        "ValidationException",
        400,
        Text::Aws("Incorrect basic constraints for CA certificate"),
        SEEN,
    ),
    (
        "CreateTrustAnchor",
        r#"{"name":"a/b","source":{}}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value 'a/b' at 'name' failed to satisfy constraint: Member must satisfy regular expression pattern: [ a-zA-Z0-9-_]*",
        ),
        MODEL,
    ),
    (
        "CreateProfile",
        r#"{"name":"p","roleArns":[],"durationSeconds":899}"#,
        "ValidationException",
        400,
        Text::Aws(
            "1 validation error detected: Value '899' at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900",
        ),
        MODEL,
    ),
    (
        "ImportCrl",
        r#"{"name":"c","crlData":"AAAA","trustAnchorArn":"{anchor}"}"#,
        "ValidationException",
        400,
        Text::Ours("Invalid CRL"),
        MODEL,
    ),
    (
        "TagResource",
        r#"{"resourceArn":"{anchor}","tags":[{many}]}"#,
        "TooManyTagsException",
        400,
        Text::Ours("Too many tags"),
        MODEL,
    ),
    (
        "ListTagsForResource",
        r#"{"resourceArn":"x"}"#,
        "ValidationException",
        400,
        Text::Ours("is not the ARN of a resource with tags"),
        MODEL,
    ),
];
