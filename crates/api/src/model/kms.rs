//! KMS structures.

use std::collections::BTreeMap;

use outlast_crypto::keys::KeyUsage;
use outlast_crypto::signatures::Message;
use outlast_domain::arn::Scope;
use outlast_domain::kms::{self, EncryptionContext, Key, KeyState};
use serde::{Deserialize, Serialize};

use crate::ops::Call;
use crate::wire::{ApiError, Blob, Timestamp, validate};

/// `KeyMetadata`
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "AWS's model documents each member")]
pub struct KeyMetadata {
    #[serde(rename = "AWSAccountId")]
    pub aws_account_id: String,
    pub key_id: String,
    pub arn: String,
    pub creation_date: Timestamp,
    pub enabled: bool,
    pub description: String,
    pub key_usage: String,
    pub key_state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_date: Option<Timestamp>,
    pub origin: String,
    pub key_manager: String,
    pub customer_master_key_spec: String,
    pub key_spec: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_algorithms: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_algorithms: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_algorithms: Option<Vec<String>>,
    pub multi_region: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_key_material_id: Option<String>,
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect())
}

/// `SigningAlgorithms` of a key, if it signs.
pub fn signing_algorithms(key: &Key) -> Option<Vec<String>> {
    let rows: Vec<_> = key.spec().signing.iter().map(|row| row.kms_name).collect();
    (key.usage() == KeyUsage::SignVerify).then(|| names(&rows)).flatten()
}

/// `EncryptionAlgorithms` of a key, if it encrypts.
pub fn encryption_algorithms(key: &Key) -> Option<Vec<String>> {
    (key.usage() == KeyUsage::EncryptDecrypt).then(|| names(key.spec().encryption)).flatten()
}

impl From<&Key> for KeyMetadata {
    fn from(key: &Key) -> Self {
        let symmetric = key.spec().name == "SYMMETRIC_DEFAULT";
        Self {
            aws_account_id: key.account().to_owned(),
            key_id: key.id().to_owned(),
            arn: key.arn(),
            creation_date: Timestamp::from_ms(key.created_ms()),
            enabled: key.state() == KeyState::Enabled,
            description: key.description().to_owned(),
            key_usage: key.usage().name().to_owned(),
            key_state: key.state().name().to_owned(),
            deletion_date: key.deletion().map(|deletion| Timestamp::from_ms(deletion.at_ms)),
            origin: "AWS_KMS".to_owned(),
            key_manager: "CUSTOMER".to_owned(),
            customer_master_key_spec: key.spec().name.to_owned(),
            key_spec: key.spec().name.to_owned(),
            encryption_algorithms: encryption_algorithms(key),
            signing_algorithms: signing_algorithms(key),
            mac_algorithms: names(key.spec().mac),
            multi_region: false,
            current_key_material_id: symmetric.then(|| key.material_id().to_owned()),
        }
    }
}

/// `Tag`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Tag {
    /// 1 to 128 characters.
    pub tag_key: String,
    /// 0 to 256 characters.
    pub tag_value: String,
}

/// Tags as the domain has them.
pub fn tags(list: Vec<Tag>) -> Result<BTreeMap<String, String>, ApiError> {
    super::unique_tags(list.into_iter().map(|tag| (tag.tag_key, tag.tag_value)), "TagException")
}

/// Finds a key by any of its names and notes it for the audit record.
pub fn find_key(call: &mut Call<'_>, name: &str) -> Result<Key, ApiError> {
    validate::length("KeyId", name.chars().count(), 1, 2048)?;
    call.notes.parameter("keyId", name);
    let scope: &Scope = &call.scope;
    let key = kms::find(&mut call.work, scope, name)?;
    call.notes.resource(key.arn(), "AWS::KMS::Key");
    Ok(key)
}

/// The message of Sign and Verify.
pub fn message<'a>(message: &'a Blob, kind: Option<&str>) -> Result<Message<'a>, ApiError> {
    validate::length("Message", message.0.len(), 1, 4096)?;
    let kind = kind.unwrap_or("RAW");
    validate::one_of("MessageType", kind, &["RAW", "DIGEST", "EXTERNAL_MU"])?;
    Ok(match kind {
        "DIGEST" => Message::Digest(&message.0),
        "EXTERNAL_MU" => Message::ExternalMu(&message.0),
        _ => Message::Raw(&message.0),
    })
}

/// `SigningAlgorithm` must be one that KMS knows.
pub fn check_signing_algorithm(name: &str) -> Result<(), ApiError> {
    let mut known: Vec<_> =
        outlast_crypto::signatures::SIGNATURES.iter().map(|row| row.kms_name).collect();
    known.dedup();
    validate::one_of("SigningAlgorithm", name, &known)
}

/// `EncryptionAlgorithm`, `SYMMETRIC_DEFAULT` if not given.
pub fn encryption_algorithm(given: Option<&str>) -> Result<&str, ApiError> {
    let name = given.unwrap_or("SYMMETRIC_DEFAULT");
    let known = ["SYMMETRIC_DEFAULT", "RSAES_OAEP_SHA_1", "RSAES_OAEP_SHA_256"];
    validate::one_of("EncryptionAlgorithm", name, &known)?;
    Ok(name)
}

/// An encryption context within its limits, noted for the audit record.
pub fn encryption_context(
    call: &mut Call<'_>,
    given: Option<EncryptionContext>,
) -> Result<EncryptionContext, ApiError> {
    use outlast_domain::limits::{MAX_CONTEXT_CHARS, MAX_CONTEXT_ENTRIES};
    let context = given.unwrap_or_default();
    let chars: usize =
        context.iter().map(|(key, value)| key.chars().count() + value.chars().count()).sum();
    validate::length("EncryptionContext", context.len(), 0, MAX_CONTEXT_ENTRIES)?;
    validate::length("EncryptionContext", chars, 0, MAX_CONTEXT_CHARS)?;
    call.notes.parameter("encryptionContext", serde_json::json!(context));
    Ok(context)
}

/// Members that KMS has and this service does not serve yet are refused, never ignored.
pub fn refuse<T>(name: &str, given: Option<&T>) -> Result<(), ApiError> {
    if given.is_some() {
        return Err(ApiError::new(
            "UnsupportedOperationException",
            format!("{name} is not supported by this version of outlast"),
        ));
    }
    Ok(())
}

/// Grant tokens name grants, and there are none: any token is invalid. An empty list is fine.
pub fn refuse_grant_tokens(given: Option<&Vec<String>>) -> Result<(), ApiError> {
    if given.is_some_and(|list| !list.is_empty()) {
        return Err(ApiError::new(
            "InvalidGrantTokenException",
            "The grant token does not name a grant: this version of outlast has no grants.",
        ));
    }
    Ok(())
}

/// `DryRun`: everything was checked, and nothing is done.
pub fn dry_run(requested: Option<bool>) -> Result<(), ApiError> {
    if requested == Some(true) {
        return Err(ApiError {
            status: 412,
            ..ApiError::new(
                "DryRunOperationException",
                "The request would have succeeded, but the DryRun option is set.",
            )
        });
    }
    Ok(())
}
