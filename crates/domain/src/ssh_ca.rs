//! SSH certificate authorities: issues OpenSSH certificates with a KMS key.
//!
//! A key is an authority if its tag [`KINDS_TAG`] says so, and it signs only if its policy allows it to the service-linked
//! role [`ROLE`] of its account, which the default key policy does. So a key's owner agrees by the tag and can object by
//! the key policy, and who gets certificates needs no permission to sign with the key: what a certificate may say is decided
//! by the policies of the caller, whose condition keys are set from the certificate itself ([`describe`]).

mod order;

use outlast_crypto::keys::ml_dsa;
use outlast_crypto::signatures::{
    ECDSA_SHA_256, ECDSA_SHA_384, ECDSA_SHA_512, ED25519, Family, ML_DSA_44, Message,
    RSA_PKCS1_SHA_512, SignatureAlgorithm,
};
use outlast_ssh::{Certificate, CertificateKind, KeyError, PublicKey, ToSign, Unsigned};

use crate::identity::{Caller, Permit, PolicyCache, action};
use crate::keyring::KeyRing;
use crate::kms::{self, Access, Key, KmsError};
use crate::policy::ConditionKeys;
use crate::work::Work;

pub use order::{Order, Said, describe, principal_of};

/// Tag of a KMS key that makes it an authority: `user`, `host`, or both with a space between them.
pub const KINDS_TAG: &str = "outlast:ssh-ca";

/// Tag of an authority's ML-DSA-44 key that names its Ed25519 key, by its ARN: together they are one `ssh-mldsa44-ed25519`
/// key.
pub const SECOND_KEY_TAG: &str = "outlast:second-key-arn";

/// The role, with its path, that signs certificates in the account of the key.
pub const ROLE: &str = "aws-service-role/ssh.outlast/OutlastServiceRoleForSshCertificates";

/// Its policy.
const ROLE_POLICY: &str = r#"{
    "Version": "2012-10-17",
    "Statement": [{ "Effect": "Allow", "Action": ["kms:Sign", "kms:GetPublicKey"], "Resource": "*" }]
}"#;

/// CloudTrail's and the tag's name of a kind.
pub fn kind_name(kind: CertificateKind) -> &'static str {
    match kind {
        CertificateKind::User => "user",
        CertificateKind::Host => "host",
    }
}

/// The authority of a key as the resource of policies.
pub fn authority_arn(key: &Key) -> String {
    key.scope().arn("outlast", &format!("ssh-ca/{}", key.id()))
}

/// A signature of a KMS key, for its event.
pub struct Signed {
    /// The key.
    pub key: Key,
    /// The algorithm.
    pub algorithm: &'static SignatureAlgorithm,
    /// The signature.
    pub signature: Vec<u8>,
}

/// A certificate, which may be given away when its event is durable.
pub struct Issued {
    /// The certificate.
    pub certificate: Certificate,
    /// The signatures in it: one, or two of a composite authority.
    pub signatures: Vec<Signed>,
}

/// The signature algorithm of an authority's key, or of one half of it; `None` if SSH has no such keys.
fn algorithm(key: &Key) -> Option<&'static SignatureAlgorithm> {
    // RFC 5656, section 6.2.1: each curve has one hash. RFC 8332: SHA-512 for RSA.
    const SUITABLE: [&SignatureAlgorithm; 6] =
        [&ECDSA_SHA_256, &ECDSA_SHA_384, &ECDSA_SHA_512, &ED25519, &RSA_PKCS1_SHA_512, &ML_DSA_44];
    let suits =
        |row: &&SignatureAlgorithm| row.family != Family::MlDsa || key.spec().name == "ML_DSA_44";
    SUITABLE.into_iter().filter(suits).find(|row| key.spec().signing.contains(row))
}

/// Refuses a key that is not an authority for these certificates.
fn require_authority(key: &Key, kind: CertificateKind) -> Result<(), KmsError> {
    let kind = kind_name(kind);
    let said = key.tags().get(KINDS_TAG).map(String::as_str).unwrap_or_default();
    if !said.split_ascii_whitespace().any(|word| word == kind) {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is not an SSH certificate authority for {kind} certificates: its owner makes it one with the tag \
             {KINDS_TAG} and the value user, host, or both with a space between them.",
            key.arn()
        )));
    }
    if key.approval_rule().is_some() {
        // A certificate has a random part, so that nobody can have approved it before.
        return Err(KmsError::UnsupportedOperation(format!(
            "{} has a rule of approvals, and certificates cannot be approved in advance: use a key without one.",
            key.arn()
        )));
    }
    Ok(())
}

/// The role that signs, with the condition keys of its requests.
struct Signer<'a> {
    caller: Caller,
    policies: &'a PolicyCache,
    conditions: ConditionKeys,
}

impl<'a> Signer<'a> {
    fn new(key: &Key, policies: &'a PolicyCache, now_ms: i64) -> Result<Self, KmsError> {
        let caller = Caller::service_linked_role(key.account(), ROLE, ROLE_POLICY, policies)?;
        let mut conditions = ConditionKeys::new();
        conditions.set_time(now_ms);
        conditions.set("aws:RequestedRegion", key.scope().region.as_str());
        conditions.set("aws:PrincipalAccount", key.account());
        let role = caller.principal.role_arn().unwrap_or_else(|| caller.principal.arn());
        conditions.set("aws:PrincipalArn", role);
        Ok(Self { caller, policies, conditions })
    }

    fn access(&self) -> Access<'_> {
        Access {
            caller: &self.caller,
            conditions: &self.conditions,
            policies: self.policies,
            tokens: &[],
            context: None,
        }
    }

    fn public_key(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
        key: &Key,
    ) -> Result<Vec<u8>, KmsError> {
        let permit = kms::authorize(work, self.access(), action::kms::GetPublicKey, key)?;
        kms::public_key(work, ring, key, &permit)
    }

    fn sign(
        &mut self,
        work: &mut Work<'_>,
        ring: &KeyRing,
        key: &Key,
        message: Message<'_>,
    ) -> Result<Signed, KmsError> {
        let algorithm = algorithm(key).ok_or_else(|| unsuitable(key))?;
        let kind = if matches!(message, Message::ExternalMu(_)) { "EXTERNAL_MU" } else { "RAW" };
        self.conditions.set("kms:MessageType", kind);
        self.conditions.set("kms:SigningAlgorithm", algorithm.kms_name);
        let permit = kms::authorize(work, self.access(), action::kms::Sign, key)?;
        let signature = kms::sign(work, ring, key, algorithm.kms_name, message, &permit)?;
        Ok(Signed { key: key.clone(), algorithm, signature })
    }
}

fn unsuitable(key: &Key) -> KmsError {
    KmsError::InvalidKeyUsage(format!(
        "{} has the key spec {}, and SSH has no certificate authorities with such keys: use ECC_NIST_P256, ECC_NIST_P384, \
         ECC_NIST_P521, ECC_NIST_EDWARDS25519, an RSA key, or ML_DSA_44 with the tag {SECOND_KEY_TAG}.",
        key.arn(),
        key.spec().name
    ))
}

fn malformed(key: &Key, error: &KeyError) -> KmsError {
    KmsError::InvalidKeyUsage(format!(
        "{} cannot be the key of an SSH certificate authority: {error}",
        key.arn()
    ))
}

/// The Ed25519 key that belongs to an ML-DSA-44 key.
fn second_key(work: &mut Work<'_>, key: &Key) -> Result<Key, KmsError> {
    let arn = key.tags().get(SECOND_KEY_TAG).ok_or_else(|| {
        KmsError::InvalidKeyUsage(format!(
            "{} signs for SSH only together with an Ed25519 key: name one, by its ARN, in the tag {SECOND_KEY_TAG}.",
            key.arn()
        ))
    })?;
    let second = kms::find(work, key.scope(), arn)?;
    let is_ed25519 = algorithm(&second) == Some(&ED25519);
    if second.account() != key.account() || !is_ed25519 {
        return Err(KmsError::InvalidKeyUsage(format!(
            "The tag {SECOND_KEY_TAG} of {} does not name an Ed25519 key of the same account.",
            key.arn()
        )));
    }
    Ok(second)
}

/// Issues a certificate. What was read must still hold when its event is committed.
///
/// # Errors
/// KMS's, where the key cannot be used; nothing is signed then.
pub fn issue(
    work: &mut Work<'_>,
    ring: &KeyRing,
    policies: &PolicyCache,
    key: &Key,
    order: &Order,
    permit: &Permit<action::outlast::SignSshCertificate>,
) -> Result<Issued, KmsError> {
    permit.opens(&authority_arn(key))?;
    require_authority(key, order.fields.kind)?;
    let mut signer = Signer::new(key, policies, work.now_ms())?;
    let first = signer.public_key(work, ring, key)?;
    let is_half = algorithm(key).ok_or_else(|| unsuitable(key))?.family == Family::MlDsa;
    let second = match is_half {
        false => None,
        true => {
            let second = second_key(work, key)?;
            require_authority(&second, order.fields.kind)?;
            let spki = signer.public_key(work, ring, &second)?;
            Some((second, spki))
        }
    };
    let authority = match &second {
        None => PublicKey::from_spki(&first),
        Some((_, second)) => PublicKey::composite_from_spki(&first, second),
    };
    let authority = authority.map_err(|error| match error {
        KeyError::UnsupportedType(_) => unsuitable(key),
        other => malformed(key, &other),
    })?;
    let unsigned = Unsigned::new(&order.subject, &order.fields, &authority)
        .map_err(|error| KmsError::Validation(format!("PublicKey cannot be certified: {error}")))?;
    let mut signatures = Vec::new();
    match (unsigned.to_sign(), second) {
        (ToSign::Message(message), None) => {
            signatures.push(signer.sign(work, ring, key, Message::Raw(&message))?);
        }
        (ToSign::Composite { context, message }, Some((second, _))) => {
            let mu = ml_dsa::external_mu_in_context(&first, context, &message)
                .map_err(KmsError::from)?;
            signatures.push(signer.sign(work, ring, key, Message::ExternalMu(&mu))?);
            signatures.push(signer.sign(work, ring, &second, Message::Raw(&message))?);
        }
        _ => return Err(unsuitable(key)),
    }
    let whole: Vec<u8> = signatures.iter().flat_map(|signed| &signed.signature).copied().collect();
    // It is verified here, so that nobody gets what no server takes.
    let certificate = unsigned.assemble(&whole).map_err(|error| malformed(key, &error))?;
    Ok(Issued { certificate, signatures })
}
