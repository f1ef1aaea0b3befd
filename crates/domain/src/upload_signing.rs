//! Signatures of files that users upload over SFTP: a detached CMS message (RFC 5652), with a KMS key and the certificate
//! that the key's tag names.
//!
//! The operator names the key. As for timestamps, it signs only if its policy allows it to the service-linked role
//! [`ROLE`] of its account, which the default key policy does, and if its certificate is for code signing and nothing else.

use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::templates::CODE_SIGNING;

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::certified_key::{Identities, Unfit, quick};
use crate::identity::{Caller, PolicyCache, action};
use crate::keyring::KeyRing;
use crate::kms::{self, Access, Key};
use crate::policy::ConditionKeys;
use crate::work::Work;

/// The role, with its path, that signs uploads in the account of the key.
pub const ROLE: &str = "aws-service-role/uploads.outlast/OutlastServiceRoleForUploads";

/// Its policy.
const ROLE_POLICY: &str = r#"{
    "Version": "2012-10-17",
    "Statement": [{ "Effect": "Allow", "Action": ["kms:Sign", "kms:GetPublicKey"], "Resource": "*" }]
}"#;

/// The key of the operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadKey {
    /// ARN of a KMS key or of its alias.
    arn: String,
    /// Account and Region in that ARN.
    scope: Scope,
}

impl UploadKey {
    /// The error is for the operator.
    pub fn new(key: &str) -> Result<Self, String> {
        let arn = Arn::parse(key)
            .filter(|arn| arn.service() == "kms" && !arn.account().is_empty())
            .ok_or_else(|| format!("{key} is not the ARN of a KMS key or alias"))?;
        let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
        Ok(Self { arn: key.to_owned(), scope })
    }

    /// The ARN, as the operator has written it.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// Account and Region of the key.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// Certificates of keys that sign uploads.
pub fn identities() -> Identities {
    Identities::new(CODE_SIGNING)
}

/// A session of [`ROLE`] in the account of a key.
pub fn signer(key: &UploadKey, policies: &PolicyCache) -> Result<Caller, Fault> {
    Caller::service_linked_role(&key.scope.account, ROLE, ROLE_POLICY, policies)
}

/// What signs: a key with its certificates, and the role.
#[derive(Clone, Copy)]
pub struct Signing<'a> {
    /// The operator's key.
    pub key: &'a UploadKey,
    /// [`identities`]
    pub identities: &'a Identities,
    /// [`signer`]
    pub signer: &'a Caller,
    /// Parsed policies.
    pub policies: &'a PolicyCache,
    /// Condition keys of the request, for key policies.
    pub conditions: &'a ConditionKeys,
}

/// A signature, which may be given away when its event is durable.
pub struct Signed {
    /// The message: DER, detached from the file.
    pub message: Vec<u8>,
    /// The key that has signed.
    pub key: Key,
    /// The algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
    /// The signature alone.
    pub signature: Vec<u8>,
}

/// The digest that files are to be signed with, if the key can sign now: what [`sign`] would refuse is refused before
/// a file is read.
///
/// # Errors
/// The key or its certificate cannot be used.
pub fn digest(
    work: &mut Work<'_>,
    ring: &KeyRing,
    signing: &Signing<'_>,
) -> Result<&'static Digest, Unfit> {
    let key = found(work, signing)?;
    kms::authorize(work, access(signing), action::kms::Sign, &key)?;
    let identity = signing.identities.of(work, ring, access(signing), &key)?;
    identity.require_valid(work.now_ms())?;
    Ok(quick(&key)?.1)
}

/// Signs a file with this digest. What was read must still hold when the event is committed.
///
/// # Errors
/// The key or its certificate cannot be used, or the key's algorithm needs another digest.
pub fn sign(
    work: &mut Work<'_>,
    ring: &KeyRing,
    signing: &Signing<'_>,
    (digest, value): (&'static Digest, &[u8]),
) -> Result<Signed, Unfit> {
    let key = found(work, signing)?;
    let permit = kms::authorize(work, access(signing), action::kms::Sign, &key)?;
    let identity = signing.identities.of(work, ring, access(signing), &key)?;
    identity.require_valid(work.now_ms())?;
    let (algorithm, needed) = quick(&key)?;
    if needed.name != digest.name {
        return Err(Unfit::Unusable(format!("{} was replaced by another key", key.arn())));
    }
    let request = Request {
        message_digest: value,
        digest,
        algorithm,
        signing_time: work.now_ms().div_euclid(1000),
        signer: &identity.certificate,
        chain: &identity.chain,
    };
    let unsigned = Unsigned::new(&[request]).map_err(Fault::from)?;
    // One request, and so one signature.
    let mut signature = Vec::new();
    for part in &unsigned.to_be_signed {
        let message = Message::Raw(part);
        signature = kms::sign(work, ring, &key, algorithm.kms_name, message, &permit)?;
    }
    let message = unsigned.assemble(std::slice::from_ref(&signature)).map_err(Fault::from)?;
    Ok(Signed { message, key, algorithm, signature })
}

fn found(work: &mut Work<'_>, signing: &Signing<'_>) -> Result<Key, Unfit> {
    let key = kms::find(work, &signing.key.scope, &signing.key.arn)?;
    if key.approval_rule().is_some() {
        // Nobody can have approved a file that has just arrived.
        return Err(Unfit::Unusable(format!(
            "{} has a rule of approvals, and uploads cannot be approved in advance: use a key without one",
            key.arn()
        )));
    }
    Ok(key)
}

fn access<'a>(signing: &Signing<'a>) -> Access<'a> {
    Access {
        caller: signing.signer,
        conditions: signing.conditions,
        policies: signing.policies,
        tokens: &[],
        context: None,
    }
}
