//! Values of versions: encrypted with a data key of their own, which a KMS key encrypts.
//!
//! Source: "Secret encryption and decryption in AWS Secrets Manager" of the user guide. The encryption context is that
//! of AWS: `SecretARN` and `SecretVersionId`.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::{Secret as Plain, aead, random};
use serde::{Deserialize, Serialize};

use super::SecretError;
use super::secret::{Secret, Version, day};
use super::stages::CURRENT;
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::kms::{self, CiphertextRef, EncryptionContext, Key, PlaintextRef};
use crate::work::Work;

/// The value of a version. There is no `Debug`.
pub struct SecretValue {
    /// At most 65,536 bytes; UTF-8 if it is a text.
    pub bytes: Plain,
    /// Whether it is a `SecretString`; otherwise a `SecretBinary`.
    pub is_text: bool,
}

impl SecretValue {
    /// Whether both are the same, compared in constant time.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_text == other.is_text
            && outlast_crypto::hmac::equal(self.bytes.expose(), other.bytes.expose())
    }
}

/// An encrypted value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// ARN of the KMS key.
    #[serde(skip)]
    pub(super) key: String,
    /// KMS's `CiphertextBlob` of the data key, in base64.
    data_key: String,
    /// The value under the data key, in base64.
    sealed: String,
    is_text: bool,
}

impl Protected {
    /// KMS's `CiphertextBlob` of the data key.
    pub fn data_key(&self) -> Result<Vec<u8>, Fault> {
        STANDARD.decode(&self.data_key).map_err(|_| Fault::Damaged("a secret's data key".into()))
    }
}

/// The encryption context of a version's data key.
pub fn context(secret_arn: &str, version_id: &str) -> EncryptionContext {
    EncryptionContext::from([
        ("SecretARN".to_owned(), secret_arn.to_owned()),
        ("SecretVersionId".to_owned(), version_id.to_owned()),
    ])
}

/// The KMS key that a `KmsKeyId` names in `scope`; without one the key `alias/aws/secretsmanager`, which the first use
/// makes.
pub fn key(work: &mut Work<'_>, scope: &Scope, given: Option<&str>) -> Result<Key, SecretError> {
    let found = match given {
        Some(name) => kms::find(work, scope, name),
        None => kms::managed_key(work, scope, &kms::SECRETS_MANAGER),
    };
    found.map_err(SecretError::cannot_encrypt)
}

/// Encrypts a value for the version with this [`context`].
pub fn protect(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    context: &EncryptionContext,
    value: &SecretValue,
    permit: &Permit<action::kms::GenerateDataKey>,
) -> Result<Protected, SecretError> {
    let data_key = random::secret(aead::KEY_LEN)?;
    let plaintext = PlaintextRef { algorithm: SYMMETRIC, context, bytes: data_key.expose() };
    let blob = kms::encrypt(work, ring, key, "GenerateDataKey", plaintext, permit)
        .map_err(SecretError::cannot_encrypt)?;
    let sealed = aead::seal(data_key.expose(), kind(value.is_text), value.bytes.expose())?;
    Ok(Protected {
        key: key.arn(),
        data_key: STANDARD.encode(blob),
        sealed: STANDARD.encode(sealed),
        is_text: value.is_text,
    })
}

/// Decrypts what [`protect`] made for the version with this [`context`].
pub fn open(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    context: &EncryptionContext,
    protected: &Protected,
    permit: &Permit<action::kms::Decrypt>,
) -> Result<SecretValue, SecretError> {
    let damaged = || Fault::Damaged(format!("the value of {context:?}"));
    let blob = protected.data_key()?;
    let ciphertext = CiphertextRef { algorithm: SYMMETRIC, context, blob: &blob };
    let data_key = kms::decrypt(work, ring, key, "Decrypt", ciphertext, permit)
        .map_err(SecretError::cannot_decrypt)?;
    let sealed = STANDARD.decode(&protected.sealed).map_err(|_| damaged())?;
    let bytes = aead::open(data_key.bytes.expose(), kind(protected.is_text), &sealed)
        .map_err(|_| damaged())?;
    Ok(SecretValue { bytes, is_text: protected.is_text })
}

/// The version that a request asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selector<'a> {
    /// `VersionId`
    pub version_id: Option<&'a str>,
    /// `VersionStage`; [`CURRENT`] if neither is given.
    pub stage: Option<&'a str>,
}

/// A version that was found.
#[derive(Debug, Clone)]
pub struct Selected {
    /// Its id.
    pub id: String,
    /// Its properties.
    pub version: Version,
}

/// Finds a version by id, label or both, which must belong together.
pub fn select(secret: &Secret, selector: Selector<'_>) -> Result<Selected, SecretError> {
    secret.require_kept()?;
    let missing = |what: String| {
        SecretError::NotFound(format!(
            "Secrets Manager can't find the specified secret value for {what}"
        ))
    };
    let Some(id) = selector.version_id else {
        let stage = selector.stage.unwrap_or(CURRENT);
        let found = secret.staged(stage).filter(|(_, version)| !version.awaits_value());
        let (id, version) = found.ok_or_else(|| missing(format!("staging label: {stage}")))?;
        return Ok(Selected { id: id.clone(), version: version.clone() });
    };
    let found = secret.versions().get(id).filter(|version| !version.awaits_value());
    let version = found.ok_or_else(|| missing(format!("VersionId: {id}")))?.clone();
    if selector.stage.is_some_and(|stage| !version.stages.contains(stage)) {
        return Err(SecretError::InvalidRequest(
            "You provided a VersionStage that is not associated to the provided VersionId.".into(),
        ));
    }
    Ok(Selected { id: id.to_owned(), version })
}

/// The version that has the value of this one: itself, unless it shows another one's while a rotation function is
/// tested.
pub fn holder<'a>(
    secret: &Secret,
    selected: &'a Selected,
) -> Result<Cow<'a, Selected>, SecretError> {
    if selected.version.has_value() {
        return Ok(Cow::Borrowed(selected));
    }
    let shown = selected.version.shows.as_ref().and_then(|id| secret.versions().get_key_value(id));
    let shown = shown.filter(|(_, version)| version.has_value());
    let (id, version) = shown.ok_or_else(|| {
        SecretError::NotFound(format!(
            "Secrets Manager can't find the specified secret value for VersionId: {}",
            selected.id
        ))
    })?;
    Ok(Cow::Owned(Selected { id: id.clone(), version: version.clone() }))
}

/// The encrypted value of a version that has one of its own, and a note of the day of the retrieval.
pub fn read(
    work: &mut Work<'_>,
    secret: &mut Secret,
    selected: &Selected,
    permit: &Permit<impl action::ReadsSecretValue>,
) -> Result<Protected, SecretError> {
    permit.opens(&secret.arn())?;
    let number = selected.version.number.ok_or_else(|| {
        Fault::Damaged(format!("version {} of {} has no value", selected.id, secret.arn()))
    })?;
    let record_key = secret.value_record_key(number);
    let protected =
        work.get::<Protected>(&record_key)?.ok_or_else(|| Fault::Damaged(record_key.clone()))?;
    let today = Some(day(work.now_ms()));
    let is_noted = secret.record.accessed_ms == today && selected.version.accessed_ms == today;
    if !is_noted {
        secret.record.accessed_ms = today;
        if let Some(version) = secret.record.versions.get_mut(&selected.id) {
            version.accessed_ms = today;
        }
        secret.save_unchanged(work)?;
    }
    Ok(protected)
}

/// Writes the value of a version.
pub(super) fn write(
    work: &mut Work<'_>,
    secret: &Secret,
    number: u64,
    protected: &Protected,
) -> Result<(), Fault> {
    work.put(&secret.value_record_key(number), protected)
}

/// Associated data of a value: a text is never returned as a binary.
fn kind(is_text: bool) -> &'static [u8] {
    if is_text { b"SecretString" } else { b"SecretBinary" }
}

const SYMMETRIC: &str = "SYMMETRIC_DEFAULT";
