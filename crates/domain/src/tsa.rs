//! Time-stamping authorities: makes tokens (RFC 3161) with a KMS key and the certificate that the key's tag names.
//!
//! The operator names the keys. A key signs only if its policy allows it to the service-linked role [`ROLE`] of its
//! account, which the default key policy does, and if its certificate is for time stamping and nothing else. So a key's
//! owner agrees by the tag, and can object by the key policy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_crypto::digests::Digest;
use outlast_crypto::random;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::ObjectIdentifier;
use outlast_pki::certificate::Certificate;
use outlast_pki::cms::sign::suitable;
use outlast_pki::path::check_leaf;
use outlast_pki::pem;
use outlast_pki::templates::TIME_STAMPING;
use outlast_pki::time::rfc3339;
use outlast_pki::timestamp::{Accuracy, Failure, Grant, Request, RequestError};

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::ca::{self, CaError};
use crate::identity::{Caller, PolicyCache, action};
use crate::keyring::KeyRing;
use crate::kms::{self, Access, Key, KmsError};
use crate::policy::ConditionKeys;
use crate::work::Work;

/// Tag of a KMS key that names its certificate.
pub const CERTIFICATE_TAG: &str = "outlast:certificate-arn";

/// The role, with its path, that signs tokens in the account of the key.
pub const ROLE: &str = "aws-service-role/timestamping.outlast/OutlastServiceRoleForTimestamping";

/// Its policy.
const ROLE_POLICY: &str = r#"{
    "Version": "2012-10-17",
    "Statement": [{ "Effect": "Allow", "Action": ["kms:Sign", "kms:GetPublicKey"], "Resource": "*" }]
}"#;

/// Length of serial numbers in bytes: random, so that authorities on several servers need no common counter. RFC 3161,
/// section 2.4.2, lets clients expect up to 20.
const SERIAL_LEN: usize = 16;

/// Authorities whose certificates are kept parsed.
const MAX_IDENTITIES: usize = 64;

/// A time-stamping authority of the operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its name in paths.
    pub name: String,
    /// ARN of a KMS key or of its alias.
    pub key: String,
    /// Account and Region in that ARN.
    scope: Scope,
    /// The policies that it supports; the first one is used if a request names none. At least one.
    policies: Vec<ObjectIdentifier>,
}

impl Authority {
    /// The error is for the operator.
    pub fn new(name: &str, key: &str, policies: Vec<ObjectIdentifier>) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Err(
                "a name consists of up to 64 letters, digits, hyphens and underscores".into()
            );
        }
        let arn = Arn::parse(key)
            .filter(|arn| arn.service() == "kms" && !arn.account().is_empty())
            .ok_or_else(|| format!("{key} is not the ARN of a KMS key or alias"))?;
        let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
        if policies.is_empty() {
            return Err("it needs a policy".into());
        }
        Ok(Self { name: name.to_owned(), key: key.to_owned(), scope, policies })
    }

    /// Account and Region of its key.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The policy for a request.
    pub fn policy(&self, request: &Request) -> Result<ObjectIdentifier, RequestError> {
        match request.policy {
            Some(wanted) if !self.policies.contains(&wanted) => {
                let text = format!("the policy {wanted} is not supported");
                Err(RequestError::new(Failure::UnacceptedPolicy, text))
            }
            Some(wanted) => Ok(wanted),
            None => self.policies.first().copied().ok_or_else(|| {
                RequestError::new(Failure::SystemFailure, "the authority has no policy")
            }),
        }
    }
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TsaError {
    /// The request is refused.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// The key or its certificate cannot be used; the reason is for the operator.
    #[error("{0}")]
    Unusable(String),
    /// This service failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<KmsError> for TsaError {
    fn from(error: KmsError) -> Self {
        match error {
            KmsError::Fault(fault) => Self::Fault(fault),
            other => Self::Unusable(other.to_string()),
        }
    }
}

impl From<CaError> for TsaError {
    fn from(error: CaError) -> Self {
        match error {
            CaError::Fault(fault) => Self::Fault(fault),
            other => Self::Unusable(other.to_string()),
        }
    }
}

/// A token to be made.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Who makes it.
    pub authority: &'a Authority,
    /// The request.
    pub request: &'a Request,
    /// The time of the token, milliseconds since 1970.
    pub time_ms: i64,
    /// How far that may be off.
    pub accuracy: Option<Accuracy>,
    /// Whether tokens can be ordered by their times.
    pub ordering: bool,
    /// Who signs: [`signer`] of the authority's account.
    pub signer: &'a Caller,
    /// Condition keys of the request, for key policies.
    pub conditions: &'a ConditionKeys,
}

/// A session of [`ROLE`] in the account of an authority.
pub fn signer(authority: &Authority, policies: &PolicyCache) -> Result<Caller, Fault> {
    Caller::service_linked_role(&authority.scope.account, ROLE, ROLE_POLICY, policies)
}

/// A token, which may be sent when its event is durable.
pub struct Stamped {
    /// DER.
    pub token: Vec<u8>,
    /// Serial number.
    pub serial: [u8; SERIAL_LEN],
    /// Policy.
    pub policy: ObjectIdentifier,
    /// The key that signed.
    pub key: Key,
    /// The algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
}

/// A certificate with its chain, parsed.
struct Identity {
    /// What was parsed, in PEM.
    certificate_pem: String,
    chain_pem: String,
    /// The key material that the certificate is for.
    material_id: String,
    certificate: Certificate,
    /// The CAs between the certificate and the root, in DER.
    chain: Vec<Vec<u8>>,
}

/// Parsed certificates by the ARN of their key. Only what was parsed is remembered: the records are read for each token.
#[derive(Default)]
pub struct Identities(Mutex<HashMap<String, Arc<Identity>>>);

/// Makes a token. What was read must still hold when its event is committed.
pub fn stamp(
    work: &mut Work<'_>,
    ring: &KeyRing,
    policies: &PolicyCache,
    identities: &Identities,
    order: &Order<'_>,
) -> Result<Stamped, TsaError> {
    let policy = order.authority.policy(order.request)?;
    let key = kms::find(work, order.authority.scope(), &order.authority.key)?;
    let access = Access {
        caller: order.signer,
        conditions: order.conditions,
        policies,
        tokens: &[],
        context: None,
    };
    let permit = kms::authorize(work, access, action::kms::Sign, &key)?;
    let identity = identities.of(work, ring, access, &key)?;
    let at = order.time_ms.div_euclid(1000);
    let certificate = &identity.certificate;
    if at < certificate.not_before() || at > certificate.not_after() {
        return Err(TsaError::Unusable(format!(
            "the certificate \"{}\" is valid from {} to {}",
            certificate.subject(),
            rfc3339(certificate.not_before()),
            rfc3339(certificate.not_after()),
        )));
    }
    let (algorithm, digest) = suits(&key)?;
    let serial = random::bytes::<SERIAL_LEN>().map_err(Fault::from)?;
    let unsigned = Grant {
        request: order.request,
        policy,
        serial: &serial,
        time_ms: order.time_ms,
        accuracy: order.accuracy,
        ordering: order.ordering,
        names_authority: true,
        signer: certificate,
        chain: &identity.chain,
        digest,
        algorithm,
    }
    .prepare()
    .map_err(Fault::from)?;
    let message = Message::Raw(unsigned.to_be_signed());
    let signature = kms::sign(work, ring, &key, algorithm.kms_name, message, &permit)?;
    let token = unsigned.assemble(&signature).map_err(Fault::from)?;
    Ok(Stamped { token, serial, policy, key, algorithm })
}

/// What a key signs tokens with.
fn suits(key: &Key) -> Result<(&'static SignatureAlgorithm, &'static Digest), TsaError> {
    let found = suitable(key.spec(), None)
        .ok_or_else(|| TsaError::Unusable(format!("{} is a key that cannot sign", key.arn())))?;
    if found.0.slow {
        // Each request would occupy a core for long, and anybody may ask.
        return Err(TsaError::Unusable(format!(
            "the signatures of {} take too long for timestamps",
            key.arn()
        )));
    }
    Ok(found)
}

impl Identities {
    /// The certificate of a key, as it is now.
    fn of(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
        access: Access<'_>,
        key: &Key,
    ) -> Result<Arc<Identity>, TsaError> {
        let arn = key.tags().get(CERTIFICATE_TAG).ok_or_else(|| {
            TsaError::Unusable(format!("{} has no tag {CERTIFICATE_TAG}", key.arn()))
        })?;
        let (owner, serial) = arn
            .split_once("/certificate/")
            .ok_or_else(|| TsaError::Unusable(format!("{arn} is not the ARN of a certificate")))?;
        let region = Arn::parse(owner).map(|arn| arn.region().to_owned()).unwrap_or_default();
        let scope = Scope { account: key.account().to_owned(), region };
        let authority = ca::find(work, &scope, owner)?;
        if let Some(revoked) = ca::revoked(work, &authority, serial)? {
            let at = rfc3339(revoked.revoked_ms.div_euclid(1000));
            return Err(TsaError::Unusable(format!("the certificate {arn} was revoked at {at}")));
        }
        let issued = ca::issued(work, &authority, arn)?;
        let chain_pem = issued.chain.unwrap_or_default();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key.arn()).cloned();
        let is_it = |known: &Arc<Identity>| {
            known.certificate_pem == issued.certificate
                && known.chain_pem == chain_pem
                && known.material_id == key.material_id()
        };
        if let Some(known) = known.filter(is_it) {
            return Ok(known);
        }
        let certificate = Certificate::parse_one(issued.certificate.as_bytes())
            .map_err(|_| Fault::Damaged(arn.clone()))?;
        check_leaf(&certificate, TIME_STAMPING)
            .map_err(|error| TsaError::Unusable(error.to_string()))?;
        let permit = kms::authorize(work, access, action::kms::GetPublicKey, key)?;
        let public_key = kms::public_key(work, ring, key, &permit)?;
        if certificate.public_key().map_err(Fault::from)? != public_key {
            return Err(TsaError::Unusable(format!(
                "the certificate {arn} is not for the key {}",
                key.arn()
            )));
        }
        let mut chain = Vec::new();
        if !chain_pem.is_empty() {
            for der in pem::read_certificates(chain_pem.as_bytes())
                .map_err(|_| Fault::Damaged(arn.clone()))?
            {
                let above = Certificate::parse(&der).map_err(Fault::from)?;
                // A verifier has the root, and would not trust one in a token.
                if above.issuer() != above.subject() {
                    chain.push(der);
                }
            }
        }
        let identity = Arc::new(Identity {
            certificate_pem: issued.certificate,
            chain_pem,
            material_id: key.material_id().to_owned(),
            certificate,
            chain,
        });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_IDENTITIES {
            kept.clear();
        }
        kept.insert(key.arn(), identity.clone());
        Ok(identity)
    }
}
