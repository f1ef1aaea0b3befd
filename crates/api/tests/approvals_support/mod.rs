//! Outlast's own operations, untyped, and what the tests of approvals ask for.

use http::HeaderMap;
use outlast_crypto::digests::Digest;
use serde_json::{Value, json};

use crate::common::{Answer, Fixture, Who, answer, b64};

impl Fixture {
    /// An operation of Outlast's own.
    pub fn outlast_as(&self, who: &Who, operation: &str, body: &Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        let prefix = outlast_api::ops::OUTLAST.model.target_prefix;
        headers.insert("x-amz-target", format!("{prefix}.{operation}").parse().unwrap());
        answer(&self.request(who, "outlast", headers, body.to_string().as_bytes()))
    }

    /// The same by the administrator.
    pub fn outlast(&self, operation: &str, body: &Value) -> Answer {
        self.outlast_as(&Who::admin(), operation, body)
    }
}

/// A file of a request that is itself the message, to be signed with this algorithm.
pub fn file(name: &str, contents: &[u8], algorithm: &str) -> Value {
    let digest = Digest::by_name("sha512").unwrap().digest(contents);
    json!({
        "Name": name, "DigestAlgorithm": "sha512", "Digest": b64(&digest),
        "SigningAlgorithm": algorithm, "Message": b64(contents),
    })
}
