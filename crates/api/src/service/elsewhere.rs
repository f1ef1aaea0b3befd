//! Calls that are signed for services which Outlast does not have: the answer has the form that their clients read,
//! and says what to use instead. Such a call is neither authenticated nor recorded.
//!
//! IAM's errors: <https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html>. S3's:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.

use quick_xml::escape::escape;

use super::Response;

/// A service that clients may expect here.
struct Elsewhere {
    /// Its name in signatures.
    signing_name: &'static str,
    status: u16,
    /// Its name for the error.
    code: &'static str,
    /// What to use instead.
    message: &'static str,
    /// The body: code, message, path.
    body: fn(&str, &str, &str) -> String,
}

static SERVICES: &[Elsewhere] = &[
    Elsewhere {
        signing_name: "iam",
        status: 400,
        code: "InvalidAction",
        message: "outlast has no IAM API. The operator creates users, roles, their policies and access keys on the \
                  server: outlast principal --help.",
        body: |code, message, _| {
            format!(
                "<ErrorResponse xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><Error><Type>Sender</Type>\
                 <Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            )
        },
    },
    Elsewhere {
        signing_name: "s3",
        status: 501,
        code: "NotImplemented",
        message: "outlast has no S3. CRLs are served over plain HTTP; to write CRLs and audit reports to a bucket, \
                  name the bucket and its endpoint under buckets in outlast.toml.",
        body: |code, message, path| {
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>\
                 <Resource>{}</Resource></Error>",
                escape(path)
            )
        },
    },
];

/// The answer to a call that is signed for one of these services.
pub(super) fn answer(signing_name: &str, path: &str) -> Option<Response> {
    let row = SERVICES.iter().find(|row| row.signing_name == signing_name)?;
    Some(Response {
        status: row.status,
        content_type: "text/xml",
        is_cbor: false,
        error: Some(row.code),
        body: (row.body)(row.code, row.message, path).into_bytes(),
    })
}
