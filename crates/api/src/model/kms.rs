//! KMS structures.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_crypto::keys::{KeySpec, KeyUsage};
use outlast_crypto::signatures::Message;
use outlast_domain::arn::{Scope, shown_in};
use outlast_domain::identity::Permit;
use outlast_domain::identity::action::{Action, Encrypts};
use outlast_domain::kms::{self, EncryptionContext, Grant, Key, KeyState};

pub use crate::aws::kms::{
    GrantConstraints, GrantListEntry, KeyMetadata, MultiRegionConfiguration, MultiRegionKey, Tag,
};
use crate::call::Call;
use crate::wire::{ApiError, Blob, Timestamp, validate};

fn names(names: &[&str]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect())
}

/// The algorithms that a key supports in its usage.
pub struct Algorithms {
    /// `SigningAlgorithms`
    pub signing: Option<Vec<String>>,
    /// `EncryptionAlgorithms`
    pub encryption: Option<Vec<String>>,
    /// `KeyAgreementAlgorithms`
    pub key_agreement: Option<Vec<String>>,
    /// `EncapsulationAlgorithms`
    pub encapsulation: Option<Vec<String>>,
    /// `MacAlgorithms`
    pub mac: Option<Vec<String>>,
}

impl From<&Key> for Algorithms {
    fn from(key: &Key) -> Self {
        let spec = key.spec();
        let signing: Vec<_> = spec.signing.iter().map(|row| row.kms_name).collect();
        let of = |usage, list: &[&str]| (key.usage() == usage).then(|| names(list)).flatten();
        Self {
            signing: of(KeyUsage::SignVerify, &signing),
            encryption: of(KeyUsage::EncryptDecrypt, spec.encryption),
            key_agreement: of(KeyUsage::KeyAgreement, spec.key_agreement),
            encapsulation: of(KeyUsage::EncapsulateDecapsulate, spec.encapsulation),
            mac: of(KeyUsage::GenerateVerifyMac, spec.mac),
        }
    }
}

impl From<&Key> for KeyMetadata {
    fn from(key: &Key) -> Self {
        let algorithms = Algorithms::from(key);
        let kept = key.materials().iter().filter(|material| !material.pending);
        let mut here = kept
            .filter_map(|material| material.import.as_ref())
            .filter(|import| import.present)
            .peekable();
        let has_import = here.peek().is_some();
        // "The earliest time at which any imported key material expires."
        let expires_ms = here.filter_map(|import| import.expires_ms).min();
        let region_key = |region: &String| MultiRegionKey {
            arn: Scope { account: key.account().to_owned(), region: region.clone() }
                .arn("kms", &format!("key/{}", key.id())),
            region: region.clone(),
        };
        let has_material = key.is_symmetric_encryption() && !key.material_id().is_empty();
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
            valid_to: expires_ms.map(Timestamp::from_ms),
            origin: key.origin().name().to_owned(),
            expiration_model: has_import.then(|| expiration_model(expires_ms).to_owned()),
            key_manager: if key.is_managed() { "AWS" } else { "CUSTOMER" }.to_owned(),
            customer_master_key_spec: key.spec().name.to_owned(),
            key_spec: key.spec().name.to_owned(),
            encryption_algorithms: algorithms.encryption,
            signing_algorithms: algorithms.signing,
            key_agreement_algorithms: algorithms.key_agreement,
            encapsulation_algorithms: algorithms.encapsulation,
            mac_algorithms: algorithms.mac,
            multi_region: key.regions().is_some(),
            multi_region_configuration: key.regions().map(|regions| MultiRegionConfiguration {
                multi_region_key_type: if key.is_replica() { "REPLICA" } else { "PRIMARY" }.into(),
                primary_key: region_key(&regions.primary),
                replica_keys: regions.replicas.iter().map(region_key).collect(),
            }),
            pending_deletion_window_in_days: key.after_replicas_days(),
            current_key_material_id: has_material.then(|| key.material_id().to_owned()),
        }
    }
}

/// `ExpirationModel` for material that expires at this time, or never.
pub fn expiration_model(expires_ms: Option<i64>) -> &'static str {
    match expires_ms {
        Some(_) => "KEY_MATERIAL_EXPIRES",
        None => "KEY_MATERIAL_DOES_NOT_EXPIRE",
    }
}

impl GrantListEntry {
    /// The list entry of a grant on a key in `scope`.
    pub fn new(scope: &Scope, grant: Grant) -> Self {
        let limits = grant.constraints;
        let shown = |arn: &str| shown_in(&scope.region, arn);
        let has_limits =
            limits.subset.is_some() || limits.equals.is_some() || limits.source_arn.is_some();
        Self {
            key_id: scope.arn("kms", &format!("key/{}", grant.key_id)),
            grant_id: grant.id,
            name: grant.name,
            creation_date: Timestamp::from_ms(grant.created_ms),
            grantee_principal: grant.grantee.map(|arn| shown(&arn)),
            retiring_principal: grant.retiring.map(|arn| shown(&arn)),
            issuing_account: shown(&grant.issuer),
            operations: grant.operations.into_iter().collect(),
            constraints: has_limits.then_some(GrantConstraints {
                encryption_context_subset: limits.subset,
                encryption_context_equals: limits.equals,
                source_arn: limits.source_arn,
            }),
            grantee_service_principal: grant.grantee_service,
            retiring_service_principal: grant.retiring_service,
        }
    }
}

/// Converts tags to the domain's type.
pub fn tags(list: Vec<Tag>) -> Result<BTreeMap<String, String>, ApiError> {
    super::unique_tags(list.into_iter().map(|tag| (tag.tag_key, tag.tag_value)), "TagException")
}

/// Sets the condition keys about the tags of a request.
pub fn request_tags(call: &mut Call<'_>, tags: &BTreeMap<String, String>) {
    super::request_tags(&mut call.conditions, tags);
}

/// Finds a key by any of its names and notes it for the audit record. Another account's key is found, too; its policy
/// decides then.
pub fn find_key(call: &mut Call<'_>, name: &str) -> Result<Key, ApiError> {
    call.notes.parameter("keyId", name);
    let scope: &Scope = &call.scope;
    let key = kms::find(&mut call.work, scope, name)?;
    call.notes.resource(key.arn(), "AWS::KMS::Key");
    Ok(key)
}

/// Finds a key by its id or ARN, for the operations that accept no alias.
pub fn key_by_id(call: &mut Call<'_>, name: &str) -> Result<Key, ApiError> {
    if name.starts_with("alias/") || name.contains(":alias/") {
        return Err(kms::KmsError::NotFound(format!(
            "Invalid keyId '{}': this operation takes a key id or key ARN",
            validate::shorten(name)
        ))
        .into());
    }
    find_key(call, name)
}

/// Finds a key of the caller's own account by its id or ARN, for the operations that accept no other key.
pub fn own_key<A: Action>(call: &mut Call<'_>, _: A, name: &str) -> Result<Key, ApiError> {
    let key = key_by_id(call, name)?;
    if key.account() != call.scope.account {
        return Err(ApiError::new(
            "AccessDeniedException",
            format!(
                "User: {} is not authorized to perform: {} on resource: {} because the operation \
                 does not work across accounts",
                call.caller.principal.arn(),
                A::NAME,
                key.arn()
            ),
        ));
    }
    Ok(key)
}

/// Keeps `GrantTokens` for the authorization.
pub fn grant_tokens(call: &mut Call<'_>, given: Option<Vec<String>>) {
    let tokens = given.unwrap_or_default();
    call.tokens = tokens;
}

/// Checks a key policy that a caller wants to set: within the limits, readable, and no lock-out.
pub fn check_policy(
    call: &mut Call<'_>,
    text: &str,
    key_arn: &str,
    bypass: Option<bool>,
) -> Result<(), ApiError> {
    let bypass = bypass.unwrap_or(false);
    let account = call.scope.account.clone();
    // A condition that a policy for administrators is likely to use.
    call.conditions.set("kms:CallerAccount", account.as_str());
    call.conditions.set("aws:ResourceAccount", account.as_str());
    let (_, access) = call.split();
    let policy = kms::check_policy(access, &account, key_arn, text, bypass)?;
    call.notes.policy_findings(&policy);
    Ok(())
}

/// Checks the message of Sign and Verify.
pub fn message<'a>(call: &mut Call<'_>, message: &'a Blob, kind: Option<&str>) -> Message<'a> {
    let kind = kind.unwrap_or("RAW");
    call.notes.parameter("messageType", kind);
    call.conditions.set("kms:MessageType", kind);
    match kind {
        "DIGEST" => Message::Digest(&message.0),
        "EXTERNAL_MU" => Message::ExternalMu(&message.0),
        _ => Message::Raw(&message.0),
    }
}

/// Notes `SigningAlgorithm` for the audit record and sets its condition key.
pub fn signing_algorithm(call: &mut Call<'_>, name: &str) {
    call.notes.parameter("signingAlgorithm", name);
    call.conditions.set("kms:SigningAlgorithm", name);
}

/// Notes `MacAlgorithm` for the audit record and sets its condition key.
pub fn mac_algorithm(call: &mut Call<'_>, name: &str) {
    call.notes.parameter("macAlgorithm", name);
    call.conditions.set("kms:MacAlgorithm", name);
}

/// Notes `EncapsulationAlgorithm` for the audit record and sets its condition key.
pub fn encapsulation_algorithm(call: &mut Call<'_>, name: &str) {
    call.notes.parameter("encapsulationAlgorithm", name);
    call.conditions.set("kms:EncapsulationAlgorithm", name);
}

/// Notes `EncryptionAlgorithm`, `SYMMETRIC_DEFAULT` by default, for the audit record and sets its condition key.
pub fn encryption_algorithm<'a>(call: &mut Call<'_>, given: Option<&'a str>) -> &'a str {
    let name = given.unwrap_or("SYMMETRIC_DEFAULT");
    call.notes.parameter("encryptionAlgorithm", name);
    call.conditions.set("kms:EncryptionAlgorithm", name);
    name
}

/// Whether the call only checks permissions: `DryRun` with the modifier `IGNORE_CIPHERTEXT`.
pub fn ignores_ciphertext(
    dry_run: Option<bool>,
    modifiers: Option<&[String]>,
) -> Result<bool, ApiError> {
    let modifiers = modifiers.unwrap_or_default();
    if !modifiers.is_empty() && dry_run != Some(true) {
        return Err(ApiError::validation("DryRunModifiers is valid only with DryRun."));
    }
    Ok(!modifiers.is_empty())
}

/// The ciphertext of a request, which may be absent if the call ignores it.
pub fn ciphertext(blob: Option<&Blob>, may_be_absent: bool) -> Result<&[u8], ApiError> {
    match blob {
        Some(blob) => Ok(&blob.0),
        None if may_be_absent => Ok(&[]),
        None => Err(validate::missing("CiphertextBlob")),
    }
}

/// The key to decrypt with: the one that the request names, or the one that the ciphertext names. If both name a key,
/// it must be the same.
pub fn source_key(
    call: &mut Call<'_>,
    name: Option<&str>,
    algorithm: &str,
    blob: &[u8],
    ignores_ciphertext: bool,
) -> Result<Key, ApiError> {
    let symmetric = algorithm == "SYMMETRIC_DEFAULT";
    let Some(name) = name else {
        if !symmetric || ignores_ciphertext {
            return Err(ApiError::validation(
                "KeyId is required for an asymmetric key, and when the ciphertext is ignored.",
            ));
        }
        let key = kms::decryption_key(&mut call.work, &call.scope, blob)?;
        call.notes.resource(key.arn(), "AWS::KMS::Key");
        return Ok(key);
    };
    let key = find_key(call, name)?;
    if symmetric && key.is_symmetric_encryption() && !ignores_ciphertext {
        // A ciphertext of another key is refused before anything is decrypted; one that is unreadable is invalid.
        let scope = key.scope().clone();
        kms::decryption_key(&mut call.work, &scope, blob)?;
        if !kms::is_under(blob, &key) {
            return Err(kms::KmsError::IncorrectKey.into());
        }
    }
    Ok(key)
}

/// The length of a data key, from `NumberOfBytes` or `KeySpec`.
pub fn data_key_length(
    number_of_bytes: Option<i64>,
    key_spec: Option<&str>,
) -> Result<usize, ApiError> {
    match (number_of_bytes, key_spec) {
        (None, Some(spec)) => Ok(if spec == "AES_128" { 16 } else { 32 }),
        (Some(number), None) => usize::try_from(number)
            .ok()
            .filter(|number| (1..=1024).contains(number))
            .ok_or_else(|| ApiError::validation("NumberOfBytes must be between 1 and 1024.")),
        _ => Err(ApiError::validation(
            "Please specify either number of bytes or key spec, and not both.",
        )),
    }
}

/// Makes a data key of `length` bytes for an operation: plaintext, and ciphertext under the key.
pub fn data_key<A: Encrypts>(
    call: &mut Call<'_>,
    action: A,
    key: &Key,
    context: &EncryptionContext,
    plaintext: &Secret,
) -> Result<Vec<u8>, ApiError> {
    let allowed = may_make(call, action, key, context)?;
    under_key(call, key, context, plaintext, &allowed)
}

fn may_make<A: Encrypts>(
    call: &mut Call<'_>,
    action: A,
    key: &Key,
    context: &EncryptionContext,
) -> Result<Permit<A>, ApiError> {
    call.conditions.set("kms:EncryptionAlgorithm", "SYMMETRIC_DEFAULT");
    call.authorize_key(action, key, Some(context))
}

fn under_key<A: Encrypts>(
    call: &mut Call<'_>,
    key: &Key,
    context: &EncryptionContext,
    plaintext: &Secret,
    allowed: &Permit<A>,
) -> Result<Vec<u8>, ApiError> {
    let plaintext =
        kms::PlaintextRef { algorithm: "SYMMETRIC_DEFAULT", context, bytes: plaintext.expose() };
    Ok(kms::encrypt(&mut call.work, call.ring, key, A::OPERATION, plaintext, allowed)?)
}

/// A data key pair, as both operations that make one need it.
pub struct DataKeyPair {
    /// Private key in PKCS #8.
    pub private: Secret,
    /// The private key, encrypted.
    pub ciphertext: Vec<u8>,
    /// Public key in DER, a `SubjectPublicKeyInfo`.
    pub public: Vec<u8>,
}

/// Makes a data key pair for an operation.
pub fn data_key_pair<A: Encrypts>(
    call: &mut Call<'_>,
    action: A,
    key: &Key,
    context: &EncryptionContext,
    spec: &str,
) -> Result<DataKeyPair, ApiError> {
    call.notes.parameter("keyPairSpec", spec);
    call.conditions.set("kms:DataKeyPairSpec", spec);
    let row = KeySpec::by_name(spec).ok_or_else(|| {
        ApiError::new(
            "UnsupportedOperationException",
            format!("KeyPairSpec {spec} is not supported."),
        )
    })?;
    // Authorize first: making a key pair is work that only an authorized caller may cause.
    let allowed = may_make(call, action, key, context)?;
    let stored = row.generate().map_err(kms::KmsError::from)?;
    let private = row.to_pkcs8(&stored).map_err(kms::KmsError::from)?;
    let loaded = row.load(&stored).map_err(kms::KmsError::from)?;
    let public = loaded.public_key().map(<[u8]>::to_vec).unwrap_or_default();
    let ciphertext = under_key(call, key, context, &private, &allowed)?;
    Ok(DataKeyPair { private, ciphertext, public })
}

/// Checks an encryption context against its limits and notes it for the audit record.
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

/// The error of the six operations on custom key stores when they name one: none exists here.
pub fn no_custom_key_store(name: &str) -> ApiError {
    ApiError::new(
        "CustomKeyStoreNotFoundException",
        format!("The custom key store {} does not exist.", validate::shorten(name)),
    )
}

/// `DryRun`: every check has passed, and nothing is done.
pub fn dry_run(requested: Option<bool>) -> Result<(), ApiError> {
    if requested == Some(true) {
        return Err(ApiError::new(
            "DryRunOperationException",
            "The request would have succeeded, but the DryRun option is set.",
        ));
    }
    Ok(())
}
