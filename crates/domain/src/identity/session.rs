//! Sessions of roles, and the lookup of the principal that signed a request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_crypto::{Secret, digests};
use serde::{Deserialize, Serialize};

use super::access::{Caller, Denied, Permit, PolicyCache, ServicePermits};
use super::action::{self, Action};
use super::directory::{self, AccessKey, Entry, IdentityError, Role, User};
use super::{Identity, Principal, managed};
use crate::policy::{ConditionKeys, Kind, Policy};
use crate::quotas::{self, Reached};
use crate::work::{Sweep, Work};
use crate::{Fault, ids, tags};

/// A session as stored; its secret is a separate sealed record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Session {
    account: String,
    role: String,
    role_id: String,
    name: String,
    issued_ms: i64,
    expires_ms: i64,
    /// SHA-256 of the session token in hexadecimal: the token itself is never needed.
    token_sha256: String,
    policy: Option<String>,
    tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_identity: Option<String>,
    /// Unique id of the user or role that began the chain of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_by: Option<String>,
    /// Keys of those `tags` that further sessions inherit.
    #[serde(default)]
    transitive: BTreeSet<String>,
    /// Names of managed policies that limit it together with `policy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    managed: Vec<String>,
    /// The certificate that it began with, if it did with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<SessionCertificate>,
}

/// The certificate that a session of Roles Anywhere began with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCertificate {
    /// ARN of the trust anchor.
    pub trust_anchor: String,
    /// The certificate, and those of the CAs above it except the root.
    pub links: Vec<Link>,
}

/// What identifies a certificate to those who may have revoked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// DER of its issuer's name in hexadecimal.
    pub issuer: String,
    /// Content octets of its serial number in hexadecimal.
    pub serial: String,
    /// ARN of the private CA that has issued it, if that is one here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

/// Properties of a new session.
pub struct NewSession {
    /// `RoleSessionName`, a valid name.
    pub name: String,
    /// Duration in seconds.
    pub seconds: i64,
    /// Session policy.
    pub policy: Option<String>,
    /// Session tags.
    pub tags: BTreeMap<String, String>,
    /// Keys of those tags that sessions started from this one inherit.
    pub transitive: BTreeSet<String>,
    /// Source identity, if one was given.
    pub source_identity: Option<String>,
    /// Unique id of the user or role that began the chain of sessions, if a principal of this service did.
    pub started_by: Option<String>,
    /// Names of managed policies that limit it together with the session policy.
    pub managed: Vec<String>,
    /// The certificate that it begins with, if it does with one.
    pub certificate: Option<SessionCertificate>,
}

/// Temporary credentials.
pub struct Issued {
    /// `ASIA...`
    pub access_key_id: String,
    /// Secret access key.
    pub secret: Secret,
    /// Session token.
    pub token: Secret,
    /// Milliseconds since 1970.
    pub expires_ms: i64,
}

/// The owner of an access key.
pub struct Credential {
    /// The caller.
    pub caller: Caller,
    /// Secret access key.
    pub secret: Secret,
    token_sha256: Option<String>,
    /// When it ends, milliseconds since 1970, if it does.
    pub expires_ms: Option<i64>,
    /// The certificate that it began with, if it is a session that did with one.
    pub certificate: Option<SessionCertificate>,
}

impl Credential {
    /// Whether the session token of a request is this credential's; a long-term key has none.
    pub fn takes_token(&self, token: Option<&str>) -> bool {
        match (&self.token_sha256, token) {
            (None, None) => true,
            (Some(expected), Some(token)) => {
                let found = hex::encode(digests::sha256(token.as_bytes()));
                outlast_crypto::hmac::equal(found.as_bytes(), expected.as_bytes())
            }
            _ => false,
        }
    }
}

/// Authorizes `action` (`sts:AssumeRole`, `sts:TagSession` or `sts:SetSourceIdentity`) on `role`: its trust policy
/// must allow it, and for another account, or where it trusts a whole account, the caller's policies, too.
pub fn authorize_assume<A: Action>(
    caller: &Caller,
    conditions: &ConditionKeys,
    cache: &PolicyCache,
    action: A,
    role: &Role,
) -> Result<Permit<A>, AssumeError> {
    let trust = cache.bound(Kind::Trust, &role.trust, &role.trusted, &role.arn())?;
    Ok(caller.decide(Some(&trust), &role.account, false, conditions, action, &role.arn())?)
}

/// A service that asks to act as a role.
pub struct ServiceRequest<'a> {
    /// Its name, such as `acm-acme.amazonaws.com`.
    pub service: &'a str,
    /// ARN of the resource that it acts for.
    pub source_arn: &'a str,
    /// Source identity of the session.
    pub source_identity: &'a str,
    /// Name of the session, where policies may see it.
    pub session_name: Option<&'a str>,
    /// Tags of the session, where it has any.
    pub tags: Option<&'a BTreeMap<String, String>>,
    /// Time of the request, milliseconds since 1970.
    pub now_ms: i64,
}

/// Whether a role trusts a service to act as it, which takes `sts:AssumeRole`, `sts:TagSession` and
/// `sts:SetSourceIdentity`.
pub fn trusts_service(
    cache: &PolicyCache,
    role: &Role,
    asked: &ServiceRequest<'_>,
) -> Result<bool, Fault> {
    Ok(authorize_service(cache, role, asked)?.is_some())
}

/// The permits to begin a session for a service, if the role's trust policy gives all of them. The role's own policies do not
/// matter: they say what the session may do.
pub fn authorize_service(
    cache: &PolicyCache,
    role: &Role,
    asked: &ServiceRequest<'_>,
) -> Result<Option<MayAssume>, Fault> {
    let arn = role.arn();
    let trust = cache.bound(Kind::Trust, &role.trust, &role.trusted, &arn)?;
    let mut keys = ConditionKeys::new();
    keys.set_time(asked.now_ms);
    keys.set("sts:SourceIdentity", asked.source_identity);
    keys.set("aws:SourceAccount", role.account.as_str());
    keys.set("aws:SourceArn", asked.source_arn);
    if let Some(name) = asked.session_name {
        keys.set("sts:RoleSessionName", name);
    }
    if let Some(tags) = asked.tags {
        keys.set_tags("aws:PrincipalTag", tags);
        keys.set_request_tags(tags);
    }
    let of = |permits: ServicePermits<'_>| {
        Some(MayAssume {
            role: permits.permit(action::sts::AssumeRole)?,
            tags: Some(permits.permit(action::sts::TagSession)?),
            source_identity: Some(permits.permit(action::sts::SetSourceIdentity)?),
        })
    };
    Ok(of(ServicePermits { trust: &trust, service: asked.service, keys: &keys, role: &arn }))
}

/// The permit to begin a session for a function that runs as the role, if the role's trust policy gives it to the service
/// that runs functions.
pub fn authorize_function(
    cache: &PolicyCache,
    role: &Role,
    source_arn: &str,
    now_ms: i64,
) -> Result<Option<MayAssume>, Fault> {
    authorize_source(cache, role, FUNCTIONS, source_arn, now_ms)
}

/// The permit to begin a session for the workflow with this ARN, if the role's trust policy gives it to the `service`.
pub fn authorize_workflow(
    cache: &PolicyCache,
    role: &Role,
    service: &str,
    workflow_arn: &str,
    now_ms: i64,
) -> Result<Option<MayAssume>, Fault> {
    authorize_source(cache, role, service, workflow_arn, now_ms)
}

fn authorize_source(
    cache: &PolicyCache,
    role: &Role,
    service: &str,
    source_arn: &str,
    now_ms: i64,
) -> Result<Option<MayAssume>, Fault> {
    let arn = role.arn();
    let trust = cache.bound(Kind::Trust, &role.trust, &role.trusted, &arn)?;
    let mut keys = ConditionKeys::new();
    keys.set_time(now_ms);
    keys.set("aws:SourceAccount", role.account.as_str());
    keys.set("aws:SourceArn", source_arn);
    let permits = ServicePermits { trust: &trust, service, keys: &keys, role: &arn };
    let role = permits.permit(action::sts::AssumeRole);
    Ok(role.map(|role| MayAssume { role, tags: None, source_identity: None }))
}

/// The permit to begin a session for a user of an SFTP server, if the role's trust policy gives it to the `service` for the
/// user's ARN and address.
pub fn authorize_transfer(
    cache: &PolicyCache,
    role: &Role,
    service: &str,
    user_arn: &str,
    source_ip: &str,
    now_ms: i64,
) -> Result<Option<MayAssume>, Fault> {
    let arn = role.arn();
    let trust = cache.bound(Kind::Trust, &role.trust, &role.trusted, &arn)?;
    let mut keys = ConditionKeys::new();
    keys.set_time(now_ms);
    keys.set("aws:SourceAccount", role.account.as_str());
    keys.set("aws:SourceArn", user_arn);
    keys.set("aws:SourceIp", source_ip);
    let permits = ServicePermits { trust: &trust, service, keys: &keys, role: &arn };
    let role = permits.permit(action::sts::AssumeRole);
    Ok(role.map(|role| MayAssume { role, tags: None, source_identity: None }))
}

/// A session of a role that ends with a connection: it has no credentials, and no record.
///
/// # Errors
/// [`Fault::Damaged`] with the ARN of the role if the session policy is not valid.
pub fn without_credentials(
    cache: &PolicyCache,
    role: &Role,
    name: &str,
    policy: Option<&str>,
    may: &MayAssume,
    now_ms: i64,
) -> Result<Caller, Fault> {
    may.role.opens(&role.arn())?;
    let session = policy.map(|text| cache.parse(Kind::Identity, text, &role.arn())).transpose()?;
    let principal = Principal {
        account: role.account.clone(),
        access_key_id: String::new(),
        identity: Identity::Session {
            role: role.name.clone(),
            role_id: role.id.clone(),
            session: name.to_owned(),
            issued_ms: now_ms,
        },
    };
    Ok(Caller {
        principal,
        tags: role.tags.clone(),
        source_identity: None,
        started_by: None,
        transitive_tags: BTreeMap::new(),
        policies: parse_all(cache, &role.policies, &role.arn())?,
        session: session.into_iter().collect(),
    })
}

/// Principal of the service that runs functions.
const FUNCTIONS: &str = "lambda.amazonaws.com";

/// Why a role cannot be assumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssumeError {
    /// Policies do not allow it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The quota of sessions is reached.
    #[error(transparent)]
    TooMany(Reached),
    /// A record cannot be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Reached> for AssumeError {
    fn from(reached: Reached) -> Self {
        Self::TooMany(reached)
    }
}

/// The permits to start a session.
pub struct MayAssume {
    /// To start one at all.
    pub role: Permit<action::sts::AssumeRole>,
    /// To give it tags.
    pub tags: Option<Permit<action::sts::TagSession>>,
    /// To give it a source identity.
    pub source_identity: Option<Permit<action::sts::SetSourceIdentity>>,
}

/// Starts a session of a role.
pub fn assume(
    work: &mut Work<'_>,
    role: &Role,
    new: NewSession,
    may: &MayAssume,
) -> Result<Issued, AssumeError> {
    may.role.opens(&role.arn())?;
    if !new.tags.is_empty() {
        Permit::required(may.tags.as_ref(), &role.arn())?;
    }
    if new.source_identity.is_some() {
        Permit::required(may.source_identity.as_ref(), &role.arn())?;
    }
    work.admit::<AssumeError>(&quotas::SESSIONS, &[&role.account])?;
    let access_key_id = ids::base32("ASIA", 16)?;
    let secret = Secret::new(ids::base32("", 40)?.into_bytes());
    let token = ids::base32("", 344)?;
    let now_ms = work.now_ms();
    let session = Session {
        account: role.account.clone(),
        role: role.name.clone(),
        role_id: role.id.clone(),
        name: new.name,
        issued_ms: now_ms,
        expires_ms: now_ms + new.seconds * 1000,
        token_sha256: hex::encode(digests::sha256(token.as_bytes())),
        policy: new.policy,
        tags: new.tags,
        source_identity: new.source_identity,
        started_by: new.started_by,
        transitive: new.transitive,
        managed: new.managed,
        certificate: new.certificate,
    };
    work.create(&record_key(&access_key_id), &session)?;
    work.create(&counted_record_key(&session.account, &access_key_id), &Counted {})?;
    work.put_secret(&secret_record_key(&access_key_id), &secret)?;
    Ok(Issued {
        access_key_id,
        secret,
        token: Secret::new(token.into_bytes()),
        expires_ms: session.expires_ms,
    })
}

/// The caller with this access key id, with its policies; `None` if the key does not exist or is inactive, or its
/// user or role is gone.
pub fn find_credential(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    id: &str,
) -> Result<Option<Credential>, Fault> {
    if !directory::is_access_key_id(id) {
        return Ok(None);
    }
    if let Some(key) = work.get::<AccessKey>(&directory::key_record_key(id))? {
        return long_term(work, cache, key);
    }
    match work.get::<Session>(&record_key(id))? {
        Some(session) => temporary(work, cache, id, session),
        None => Ok(None),
    }
}

fn long_term(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    key: AccessKey,
) -> Result<Option<Credential>, Fault> {
    if !key.active {
        return Ok(None);
    }
    let record_key = directory::secret_record_key(&key.id);
    let secret = work.secret(&record_key)?.ok_or_else(|| Fault::Damaged(record_key.clone()))?;
    let (policies, tags) = if key.has_user {
        let Some(user) = present(User::find(work, &key.account, &key.user))? else {
            return Ok(None);
        };
        // A user that was deleted and created again is another user.
        if user.id != key.user_id {
            return Ok(None);
        }
        (parse_all(cache, &user.policies, &user.arn())?, user.tags)
    } else {
        let text = directory::ADMINISTRATOR;
        (vec![cache.parse(Kind::Identity, text, "administrator")?], BTreeMap::new())
    };
    let principal = Principal {
        account: key.account,
        access_key_id: key.id,
        identity: Identity::User { name: key.user, id: key.user_id },
    };
    let caller = Caller {
        principal,
        tags,
        source_identity: None,
        started_by: None,
        transitive_tags: BTreeMap::new(),
        policies,
        session: Vec::new(),
    };
    Ok(Some(Credential { caller, secret, token_sha256: None, expires_ms: None, certificate: None }))
}

fn temporary(
    work: &mut Work<'_>,
    cache: &PolicyCache,
    id: &str,
    session: Session,
) -> Result<Option<Credential>, Fault> {
    let Some(role) = present(Role::find(work, &session.account, &session.role))? else {
        return Ok(None);
    };
    // A role that was deleted and created again is another role.
    if role.id != session.role_id {
        return Ok(None);
    }
    let sealed = secret_record_key(id);
    let secret = work.secret(&sealed)?.ok_or_else(|| Fault::Damaged(sealed.clone()))?;
    let policies = parse_all(cache, &role.policies, &role.arn())?;
    let mut limits = Vec::new();
    if let Some(text) = &session.policy {
        limits.push(cache.parse(Kind::Identity, text, &record_key(id))?);
    }
    for name in &session.managed {
        limits.push(managed::parsed(cache, name)?);
    }
    let mut transitive_tags = session.tags.clone();
    transitive_tags.retain(|name, _| session.transitive.contains(name));
    let mut tags = role.tags;
    tags::replace(&mut tags, session.tags);
    let principal = Principal {
        account: session.account,
        access_key_id: id.to_owned(),
        identity: Identity::Session {
            role: session.role,
            role_id: session.role_id,
            session: session.name,
            issued_ms: session.issued_ms,
        },
    };
    let caller = Caller {
        principal,
        tags,
        source_identity: session.source_identity,
        started_by: session.started_by,
        transitive_tags,
        policies,
        session: limits,
    };
    Ok(Some(Credential {
        caller,
        secret,
        token_sha256: Some(session.token_sha256),
        expires_ms: Some(session.expires_ms),
        certificate: session.certificate,
    }))
}

/// Turns `NotFound` into `None`; a fault stays a fault.
fn present<T>(found: Result<T, IdentityError>) -> Result<Option<T>, Fault> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(IdentityError::Fault(fault)) => Err(fault),
        Err(_) => Ok(None),
    }
}

fn parse_all(
    cache: &PolicyCache,
    policies: &BTreeMap<String, String>,
    record_key: &str,
) -> Result<Vec<Arc<Policy>>, Fault> {
    policies.values().map(|text| cache.parse(Kind::Identity, text, record_key)).collect()
}

/// Forgets sessions that have ended.
pub const FORGET_ENDED: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("iam/session/", after, limit, |session: &Session, now_ms| {
            session.expires_ms <= now_ms
        })
    },
    handle: |work, record_key, _| {
        let id = record_key.trim_start_matches("iam/session/");
        // Another server may have been first.
        let Some(session) = work.get::<Session>(record_key)? else { return Ok(()) };
        work.delete(&counted_record_key(&session.account, id));
        work.delete(&secret_record_key(id));
        work.delete(record_key);
        Ok(())
    },
};

/// Marks a session as counted against its account's quota.
#[derive(Serialize, Deserialize)]
struct Counted {}

fn counted_record_key(account: &str, id: &str) -> String {
    format!("iam/session-of/{account}/{id}")
}

fn record_key(id: &str) -> String {
    format!("iam/session/{id}")
}

fn secret_record_key(id: &str) -> String {
    format!("iam/session-secret/{id}")
}
