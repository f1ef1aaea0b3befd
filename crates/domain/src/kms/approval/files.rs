//! The files of a request, and the messages that a signature of each is made over.

use outlast_crypto::digests::{self, Digest};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::cms::attributes::{NotAttributes, SignedAttributes};
use serde::{Deserialize, Serialize};

use super::statement::StatedFile;
use crate::kms::KmsError;
use crate::kms::record::Key;

/// A file to be signed, as a requester describes it.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// Its name, for people.
    pub name: String,
    /// Algorithm of its digest, such as `sha512`.
    pub digest_algorithm: String,
    /// Its digest.
    pub digest: Vec<u8>,
    /// KMS `SigningAlgorithm`.
    pub algorithm: String,
    /// The bytes to be signed: CMS signed attributes with the digest, or the file itself if it is small.
    pub message: Vec<u8>,
}

/// A file of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its name, for people.
    pub name: String,
    /// Algorithm of its digest, such as `sha512`.
    pub digest_algorithm: String,
    /// Its digest.
    #[serde(with = "in_hex")]
    pub digest: Vec<u8>,
    /// ARN of the key that signs it, if that is not the request's first key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// KMS `SigningAlgorithm`.
    pub algorithm: String,
    /// The bytes to be signed.
    #[serde(with = "in_hex")]
    pub message: Vec<u8>,
    /// Identifies the message ([`message_id`]).
    pub(super) id: String,
    /// When it was signed, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_ms: Option<i64>,
}

impl File {
    /// As statements have it.
    pub(super) fn stated(&self) -> StatedFile<'_> {
        StatedFile {
            name: &self.name,
            digest_algorithm: &self.digest_algorithm,
            digest: &self.digest,
            key: self.key.as_deref(),
            algorithm: &self.algorithm,
            message: &self.message,
        }
    }

    /// ARN of the key that signs it; `first` is the request's first key.
    pub(super) fn signed_by<'a>(&'a self, first: &'a str) -> &'a str {
        self.key.as_deref().unwrap_or(first)
    }

    /// Checks that the message stands for the file: approvers see the file's digest, and must not approve anything else.
    pub(super) fn check(key: &Key, new: NewFile) -> Result<Self, KmsError> {
        let NewFile { name, digest_algorithm, digest, algorithm, message } = new;
        let wrong = |why: &str| {
            let shown: String = name.chars().take(256).collect();
            Err(KmsError::Validation(format!(
                "The message for {shown:?} cannot be approved: {why}."
            )))
        };
        let row = signing_algorithm(key, &algorithm)?;
        let id = message_id(row, Message::Raw(&message));
        let Some(row) = Digest::by_name(&digest_algorithm) else {
            return wrong("its digest algorithm is not known");
        };
        if digest.len() != row.output_len {
            return wrong("its digest has not the length of its algorithm");
        }
        if name.chars().any(is_deceptive) {
            return wrong("its name contains a control character, or one that is invisible");
        }
        match SignedAttributes::parse(&message) {
            Ok(signed) => {
                if signed.message_digest != digest
                    || signed.digest.is_some_and(|one| one.oid != row.oid)
                {
                    return wrong("its messageDigest is not the digest of the file");
                }
            }
            Err(NotAttributes::Other) => {
                if row.digest(&message) != digest {
                    return wrong(
                        "it is neither the file, by the digest, nor CMS signed attributes with that digest",
                    );
                }
            }
            Err(NotAttributes::Invalid(why)) => return wrong(why),
        }
        let (key, signed_ms) = (None, None);
        Ok(Self { name, digest_algorithm, digest, key, algorithm, message, id, signed_ms })
    }
}

/// Whether a character makes a text look like another one: control characters, those that are invisible, and those that change
/// the direction of writing (Unicode's UAX 9, section 2).
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Checks that all keys of a request sign the same files: approvers see each file once, with what each key is to sign for it.
/// `keys` are their ARNs with their files.
pub(super) fn check_together(keys: &[(String, Vec<File>)]) -> Result<(), KmsError> {
    if keys.len() < 2 {
        return Ok(());
    }
    for file in keys.iter().flat_map(|(_, files)| files) {
        for (key, files) in keys {
            let mut same = files.iter().filter(|one| one.name == file.name).peekable();
            if same.peek().is_none() {
                return Err(KmsError::Validation(format!(
                    "All keys of a request sign the same files: {:?} is missing for {key}.",
                    file.name
                )));
            }
            let differs = |one: &File| {
                one.digest_algorithm == file.digest_algorithm && one.digest != file.digest
            };
            if same.any(differs) {
                return Err(KmsError::Validation(format!(
                    "All keys of a request sign the same files: {:?} has two digests of {}.",
                    file.name, file.digest_algorithm
                )));
            }
        }
    }
    Ok(())
}

fn signing_algorithm(key: &Key, name: &str) -> Result<&'static SignatureAlgorithm, KmsError> {
    key.spec().signing_algorithm(name).ok_or_else(|| {
        let spec = key.spec().name;
        KmsError::InvalidKeyUsage(format!("Algorithm {name} is incompatible with key spec {spec}."))
    })
}

/// Identifies what is signed, in hexadecimal: messages whose signatures are interchangeable have the same, such as a message and
/// its digest for ECDSA.
pub(super) fn message_id(row: &SignatureAlgorithm, message: Message<'_>) -> String {
    let digest = row.digest.and_then(Digest::by_name);
    let (form, bytes) = match (message, digest) {
        (Message::Raw(bytes), Some(digest)) => ("digest", digest.digest(bytes)),
        (Message::Raw(bytes), None) => ("raw", digests::sha256(bytes).to_vec()),
        (Message::Digest(digest), _) => ("digest", digest.to_vec()),
        (Message::ExternalMu(mu), _) => ("mu", mu.to_vec()),
    };
    let text = format!("{} {form} {}", row.kms_name, hex::encode(bytes));
    hex::encode(digests::sha256(text.as_bytes()))
}

/// Bytes in hexadecimal, for records.
mod in_hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(from)?).map_err(de::Error::custom)
    }
}
