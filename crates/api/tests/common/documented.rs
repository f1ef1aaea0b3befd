//! The errors that AWS documents for each operation: every answer in every test is compared with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use http::HeaderMap;
use outlast_api::ops::SERVICES;
use outlast_api::service::Response;
use serde_json::Value;

/// Errors that any operation may return: AWS's Common Errors, and those of its front ends, before an operation is
/// known.
const COMMON: &[&str] = &[
    "AccessDeniedException",
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InternalFailure",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "RequestEntityTooLargeException",
    "SerializationException",
    "Throttling",
    "ThrottlingException",
    "UnknownOperationException",
    "UnrecognizedClientException",
    "ValidationException",
];

/// Errors that we return although AWS's page of the operation does not list them, with the reason.
const BEYOND: &[(&str, &str, &str)] = &[
    ("CreateAlias", "NotAuthorizedException", "AWS's answer to names below alias/aws/"),
    ("Decrypt", "UnsupportedOperationException", "Recipient: see docs/aws-parity.md"),
    ("GenerateDataKey", "UnsupportedOperationException", "Recipient: see docs/aws-parity.md"),
];

fn table() -> &'static BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>> {
    static TABLE: OnceLock<BTreeMap<&str, BTreeMap<String, BTreeSet<String>>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let of = |row: &&outlast_api::table::ServiceRow| {
            let name = row.model.signing_name.replace('-', "_");
            let path = format!("{}/models/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let model: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let operations = model["operations"].as_object().unwrap().iter();
            let errors = |operation: &Value| {
                let names = operation["errors"].as_array().into_iter().flatten();
                names.map(|name| name.as_str().unwrap().to_owned()).collect()
            };
            let rows = operations.map(|(name, operation)| (name.clone(), errors(operation)));
            (row.model.signing_name, rows.collect())
        };
        SERVICES.iter().map(of).collect()
    })
}

/// Fails if AWS's operation never returns this error.
#[track_caller]
pub fn is_documented(headers: &HeaderMap, response: &Response) {
    let Some(code) = response.error.filter(|_| response.status != 200) else { return };
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let Some((prefix, name)) = target.and_then(|target| target.split_once('.')) else { return };
    let service = SERVICES.iter().find(|row| row.model.target_prefix == prefix);
    if let Some(service) = service {
        is_documented_of(service.model.signing_name, name, code);
    }
}

/// The same for an operation by its name.
#[track_caller]
pub fn is_documented_of(service: &str, name: &str, code: &str) {
    let Some(errors) = table().get(service).and_then(|operations| operations.get(name)) else {
        return;
    };
    let is_listed = errors.contains(code) || COMMON.contains(&code);
    let is_ours = BEYOND.iter().any(|row| row.0 == name && row.1 == code);
    assert!(is_listed || is_ours, "AWS's {name} never answers {code}");
}
