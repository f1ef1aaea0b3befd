//! What approvers approve: a text that says everything about a request, its digest, and what an approver signs.
//!
//! A client makes the same text from what it shows, so that its user approves what was on the screen, whatever the server says.

use outlast_crypto::digests;

use super::rule::Rule;

/// Everything that approvers judge.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// ARN of the request.
    pub request: &'a str,
    /// ARN of the key, of several the first.
    pub key: &'a str,
    /// ARN of the principal who made the request.
    pub requester: &'a str,
    /// When the request ends, seconds since 1970.
    pub expires: i64,
    /// The requester's reason; empty if there is none.
    pub reason: &'a str,
    /// What is to be done: a line for each file ([`Statement::file`]), or the one of a change ([`Statement::rule`]).
    pub lines: &'a [String],
}

/// A file in a statement.
#[derive(Debug, Clone, Copy)]
pub struct StatedFile<'a> {
    /// Its name.
    pub name: &'a str,
    /// Algorithm of its digest, such as `sha512`.
    pub digest_algorithm: &'a str,
    /// Its digest.
    pub digest: &'a [u8],
    /// ARN of the key that signs it, if that is not the one that the statement names.
    pub key: Option<&'a str>,
    /// KMS `SigningAlgorithm`.
    pub algorithm: &'a str,
    /// The bytes to be signed.
    pub message: &'a [u8],
}

impl Statement<'_> {
    /// The line for a file.
    pub fn file(file: StatedFile<'_>) -> String {
        // Quoted as JSON quotes it, so that it cannot contain a line.
        let name = serde_json::Value::from(file.name);
        let key = file.key.map(|arn| format!(" with {arn}")).unwrap_or_default();
        format!(
            "sign {} sha256:{} as {} {}:{}{key}",
            file.algorithm,
            hex::encode(digests::sha256(file.message)),
            name,
            file.digest_algorithm,
            hex::encode(file.digest),
        )
    }

    /// The line for a new rule, or for none.
    pub fn rule(rule: Option<&Rule>) -> String {
        rule.map_or_else(|| "remove the rule".to_owned(), Rule::line)
    }

    /// The text.
    pub fn text(&self) -> String {
        let reason = serde_json::Value::from(self.reason);
        let mut text = format!(
            "outlast signing request, version 1\nrequest {}\nkey {}\nrequester {}\nexpires {}\nreason {reason}\n",
            self.request, self.key, self.requester, self.expires
        );
        for line in self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// SHA-256 of the text in hexadecimal: `RequestDigest`.
    pub fn digest(&self) -> String {
        hex::encode(digests::sha256(self.text().as_bytes()))
    }
}

/// The message that an approver signs, if the rule names a key for that approver: the request's ARN, and the digest of its
/// statement.
pub fn approval_message(request: &str, digest: &str) -> Vec<u8> {
    format!("outlast signing approval, version 1\nrequest {request}\ndigest {digest}\n")
        .into_bytes()
}
