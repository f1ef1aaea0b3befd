//! Time-stamping authorities: makes tokens (RFC 3161) with a KMS key and the certificate that the key's tag names.
//!
//! The operator names the keys. A key signs only if its policy allows it to the service-linked role [`ROLE`] of its
//! account, which the default key policy does, and if its certificate is for time stamping and nothing else. So a key's
//! owner agrees by the tag, and can object by the key policy.

use outlast_crypto::random;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::ObjectIdentifier;
use outlast_pki::templates::TIME_STAMPING;
use outlast_pki::timestamp::{Accuracy, Failure, Grant, Request, RequestError};

use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::certified_key::{Identities, Unfit, quick};
use crate::identity::{Caller, PolicyCache, action};
use crate::keyring::KeyRing;
use crate::kms::{self, Access, Key, KmsError};
use crate::policy::ConditionKeys;
use crate::work::Work;

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

impl From<Unfit> for TsaError {
    fn from(error: Unfit) -> Self {
        match error {
            Unfit::Unusable(reason) => Self::Unusable(reason),
            Unfit::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// The key of an authority. The order of tokens is the key's, by whatever names it is asked.
///
/// # Errors
/// There is no such key.
pub fn key(work: &mut Work<'_>, authority: &Authority) -> Result<Key, TsaError> {
    Ok(kms::find(work, authority.scope(), &authority.key)?)
}

/// Prefix of the records with the times of last tokens.
pub(crate) const LAST_TIMES: &str = "tsa/last/";

fn last_time_key(key: &Key) -> String {
    format!("{LAST_TIMES}{}/{}/{}", key.scope().account, key.scope().region, key.id())
}

/// The time of the last token in strict order that is on disk, in milliseconds since 1970; `None` if there was none.
/// Tokens at the same time do not wait for each other, so that one of them may be a little later.
///
/// # Errors
/// The store failed.
pub fn last_time(work: &mut Work<'_>, key: &Key) -> Result<Option<i64>, Fault> {
    work.get(&last_time_key(key))
}

/// Notes the time of a token in its transaction, in milliseconds since 1970.
///
/// # Errors
/// The store failed.
pub fn note_time(work: &mut Work<'_>, key: &Key, time_ms: i64) -> Result<(), Fault> {
    work.put(&last_time_key(key), &time_ms)
}

/// Forgets a key that is erased.
pub(crate) fn forget(work: &mut Work<'_>, key: &Key) {
    work.delete(&last_time_key(key));
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
    /// The signature alone.
    pub signature: Vec<u8>,
}

/// Certificates of authorities.
pub fn identities() -> Identities {
    Identities::new(TIME_STAMPING)
}

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
    identity.require_valid(order.time_ms)?;
    let (algorithm, digest) = quick(&key)?;
    let serial = random::bytes::<SERIAL_LEN>().map_err(Fault::from)?;
    let unsigned = Grant {
        request: order.request,
        policy,
        serial: &serial,
        time_ms: order.time_ms,
        accuracy: order.accuracy,
        ordering: order.ordering,
        names_authority: true,
        signer: &identity.certificate,
        chain: &identity.chain,
        digest,
        algorithm,
    }
    .prepare()
    .map_err(Fault::from)?;
    let message = Message::Raw(unsigned.to_be_signed());
    let signature = kms::sign(work, ring, &key, algorithm.kms_name, message, &permit)?;
    let token = unsigned.assemble(&signature).map_err(Fault::from)?;
    Ok(Stamped { token, serial, policy, key, algorithm, signature })
}
