//! An entry of the artifact log: who signed which digest, by the hashes of signature, certificate and key.
//!
//! It is JSON with these members in this order, without spaces, so that it can be spelled in one way only. It tells
//! strangers nothing about the file but its digest, unless the signer wants its name to be there.

use outlast_crypto::digests::{Digest, sha256};
use outlast_pki::cms::verify::{Claim, SignedMessage};
use outlast_pki::describe::algorithm_name;
use outlast_pki::time::{from_rfc3339, rfc3339};
use serde::{Deserialize, Serialize};

use crate::Fault;

/// Value of `type`. Another form of entry gets another number.
const TYPE: &str = "outlast-artifact/1";
/// Longest entry, in bytes: that of a bundle (C2SP tlog-tiles).
pub const MAX_ENTRY: usize = outlast_tlog::tile::MAX_ENTRY;
/// Most signers of an entry: of a message, and of its classical copy.
pub const MAX_SIGNERS: usize = 32;
/// Longest file name, in bytes.
pub const MAX_NAME: usize = 255;

/// Why bytes are no entry, or none can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The bytes are not JSON of this form.
    #[error("it is not an entry of an artifact log that this version knows")]
    Form,
    /// The number of signers.
    #[error("an entry has 1 to {MAX_SIGNERS} signers")]
    Signers,
    /// The name of the file.
    #[error("a file name has 1 to {MAX_NAME} bytes, and neither a slash nor control characters")]
    Name,
    /// A signer without certificate or digest.
    #[error("a signer's certificate or digest is missing or unknown")]
    Signer,
    /// Two messages are about different files.
    #[error("the signatures of one entry are over different files")]
    Files,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogEntry {
    #[serde(rename = "type")]
    kind: String,
    time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    signers: Vec<LoggedSigner>,
}

/// A signer in an entry. Hashes and digests are in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoggedSigner {
    /// Digest algorithm, by its name in `outlast sign --digest`.
    pub digest_algorithm: String,
    /// Digest of the file.
    pub digest: String,
    /// Signature algorithm, for people.
    pub signature_algorithm: String,
    /// SHA-256 of the signature value.
    pub signature_sha256: String,
    /// SHA-256 of the certificate (DER).
    pub certificate_sha256: String,
    /// SHA-256 of the public key (DER of `SubjectPublicKeyInfo`).
    pub public_key_sha256: String,
}

impl LogEntry {
    /// The entry of one file's messages, entered at `time`, seconds since 1970. Nothing is verified here.
    pub fn new(
        messages: &[SignedMessage],
        name: Option<&str>,
        time: i64,
    ) -> Result<Self, EntryError> {
        let mut signers: Vec<LoggedSigner> = Vec::new();
        for claim in messages.iter().flat_map(SignedMessage::claims) {
            let signer = LoggedSigner::of(&claim).ok_or(EntryError::Signer)?;
            let differs = |other: &LoggedSigner| {
                other.digest_algorithm == signer.digest_algorithm && other.digest != signer.digest
            };
            if signers.iter().any(differs) {
                return Err(EntryError::Files);
            }
            if !signers.contains(&signer) {
                signers.push(signer);
            }
        }
        let name = name.map(str::to_owned);
        let entry = Self { kind: TYPE.to_owned(), time: rfc3339(time), name, signers };
        entry.check().map(|()| entry)
    }

    /// Parses an entry, which must be spelled as [`LogEntry::to_text`] does it.
    pub fn parse(bytes: &[u8]) -> Result<Self, EntryError> {
        if bytes.len() > MAX_ENTRY {
            return Err(EntryError::Form);
        }
        let entry: Self = serde_json::from_slice(bytes).map_err(|_| EntryError::Form)?;
        entry.check()?;
        match entry.to_text() {
            Ok(text) if text.as_bytes() == bytes => Ok(entry),
            _ => Err(EntryError::Form),
        }
    }

    fn check(&self) -> Result<(), EntryError> {
        let time = from_rfc3339(&self.time).map(rfc3339);
        if self.kind != TYPE || time.as_ref() != Some(&self.time) {
            return Err(EntryError::Form);
        }
        if !(1..=MAX_SIGNERS).contains(&self.signers.len()) {
            return Err(EntryError::Signers);
        }
        let is_odd = |name: &String| {
            !(1..=MAX_NAME).contains(&name.len())
                || name.contains(|c: char| c == '/' || c.is_control())
        };
        if self.name.as_ref().is_some_and(is_odd) {
            return Err(EntryError::Name);
        }
        if self.signers.iter().all(LoggedSigner::is_well_formed) {
            Ok(())
        } else {
            Err(EntryError::Form)
        }
    }

    /// The entry's text, which is what the log hashes.
    pub fn to_text(&self) -> Result<String, Fault> {
        serde_json::to_string(self).map_err(|error| Fault::Encoding(error.to_string()))
    }

    /// When it was entered, seconds since 1970, by the clock of the log.
    pub fn time(&self) -> i64 {
        from_rfc3339(&self.time).unwrap_or_default()
    }

    /// Name of the file, if the signer gave one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The signers.
    pub fn signers(&self) -> &[LoggedSigner] {
        &self.signers
    }

    /// The first signer of a message that is not in this entry, by its algorithm; `None` if all are. The entry may have
    /// more.
    pub fn lacks(&self, message: &SignedMessage) -> Option<String> {
        message.claims().into_iter().find_map(|claim| {
            let is_here = LoggedSigner::of(&claim)
                .is_some_and(|signer| self.signers.iter().any(|logged| logged.is_same(&signer)));
            (!is_here).then(|| algorithm_name(claim.signature))
        })
    }
}

impl LoggedSigner {
    fn of(claim: &Claim) -> Option<Self> {
        let certificate = claim.certificate.as_ref()?;
        let hash = |bytes: &[u8]| hex::encode(sha256(bytes));
        Some(Self {
            digest_algorithm: Digest::by_oid(claim.digest)?.name.to_owned(),
            digest: hex::encode(claim.message_digest.as_ref()?),
            signature_algorithm: algorithm_name(claim.signature),
            signature_sha256: hash(&claim.value),
            certificate_sha256: hash(certificate.der()),
            public_key_sha256: hash(&certificate.public_key().ok()?),
        })
    }

    /// Whether both are the same signature; the algorithm's name may have changed between versions.
    fn is_same(&self, other: &Self) -> bool {
        let of = |signer: &Self| {
            [
                signer.digest_algorithm.clone(),
                signer.digest.clone(),
                signer.signature_sha256.clone(),
                signer.certificate_sha256.clone(),
                signer.public_key_sha256.clone(),
            ]
        };
        of(self) == of(other)
    }

    fn is_well_formed(&self) -> bool {
        let is_hex = |text: &str, len: usize| {
            text.len() == 2 * len
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let digest = Digest::by_name(&self.digest_algorithm).map(|row| row.digest(&[]).len());
        let hashes = [&self.signature_sha256, &self.certificate_sha256, &self.public_key_sha256];
        digest.is_some_and(|len| is_hex(&self.digest, len))
            && hashes.iter().all(|text| is_hex(text, 32))
            && (1..=64).contains(&self.signature_algorithm.len())
            && !self.signature_algorithm.contains(char::is_control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = concat!(
        r#"{"type":"outlast-artifact/1","time":"2026-11-24T12:00:00Z","name":"app.tar.gz","signers":[{"#,
        r#""digestAlgorithm":"sha512","digest":"D","signatureAlgorithm":"ML-DSA-65","signatureSha256":"H","#,
        r#""certificateSha256":"H","publicKeySha256":"H"}]}"#
    );

    fn entry() -> String {
        ENTRY.replace("\"D\"", &format!("\"{}\"", "ab".repeat(64))).replace("\"H\"", &hash())
    }

    fn hash() -> String {
        format!("\"{}\"", "0a".repeat(32))
    }

    #[test]
    fn an_entry_has_one_spelling() {
        let text = entry();
        let found = LogEntry::parse(text.as_bytes()).unwrap();
        assert_eq!(found.to_text().unwrap(), text);
        assert_eq!((found.time(), found.name()), (1_795_521_600, Some("app.tar.gz")));
        for (odd, reason) in [
            (text.replace("outlast-artifact/1", "outlast-artifact/2"), EntryError::Form),
            (text.replace("\"type\"", " \"type\""), EntryError::Form),
            (text.replace("12:00:00Z", "13:00:00+01:00"), EntryError::Form),
            (text.replace("0a0a", "0A0A"), EntryError::Form),
            (text.replace("abab", "ab"), EntryError::Form),
            (text.replace("sha512", "md5"), EntryError::Form),
            (text.replace("}]}", "}],\"more\":1}"), EntryError::Form),
            (text.replace("app.tar.gz", "a/../b"), EntryError::Name),
            (text.replace("app.tar.gz", "a\\u0007b"), EntryError::Name),
            (text.replace("app.tar.gz", ""), EntryError::Name),
            (text.replace("app.tar.gz", "\\u0061pp.tar.gz"), EntryError::Form),
            (text.replace(":[{", ":[],\"x\":[{"), EntryError::Form),
            (text.clone() + "\n", EntryError::Form),
            (String::new(), EntryError::Form),
            ("x".repeat(MAX_ENTRY + 1), EntryError::Form),
        ] {
            assert_eq!(LogEntry::parse(odd.as_bytes()), Err(reason), "{odd}");
        }
        let (head, _) = text.split_once(":[{").unwrap();
        let none = format!("{head}:[]}}");
        assert_eq!(LogEntry::parse(none.as_bytes()), Err(EntryError::Signers));
    }
}
