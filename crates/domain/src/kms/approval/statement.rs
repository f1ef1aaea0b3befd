//! What approvers approve: a text that says everything about a request, its digest, and what an approver signs.
//!
//! A client makes the same text from what it shows, so that its user approves what was on the screen, whatever the server says.

use outlast_crypto::digests;

use super::files::File;

/// Everything that approvers judge.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// ARN of the request.
    pub request: &'a str,
    /// ARN of the key.
    pub key: &'a str,
    /// ARN of the principal who made the request.
    pub requester: &'a str,
    /// When the request ends, seconds since 1970.
    pub expires: i64,
    /// The requester's reason; empty if there is none.
    pub reason: &'a str,
    /// What is to be done: a line for each file ([`Statement::file`]).
    pub lines: &'a [String],
}

impl Statement<'_> {
    /// The line for a file. The name is quoted as JSON quotes it, so that it cannot contain a line.
    pub fn file(file: &File) -> String {
        let name = serde_json::Value::from(file.name.as_str());
        format!(
            "sign {} sha256:{} as {} {}:{}",
            file.algorithm,
            hex::encode(digests::sha256(&file.message)),
            name,
            file.digest_algorithm,
            hex::encode(&file.digest),
        )
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
