//! Grants: permissions for one principal on one key, in addition to the key's policy.

mod index;

use std::collections::BTreeSet;

use outlast_crypto::keys::KeyUsage;
use serde::{Deserialize, Serialize};

use self::index::usable::{self, Constrained};
use super::asker::Access;
use super::record::Key;
use super::{EncryptionContext, KmsError};
use crate::arn::{self, Arn, Scope, is_account_id};
use crate::identity::unique::{self, Unresolved};
use crate::identity::{Caller, Denied, Permit, action};
use crate::quotas::{self, Reached};
use crate::work::{Page, Sweep, Work};
use crate::{Fault, ids, limits};

/// Moves the index entries of grants that earlier versions made to where this one looks for them.
pub const REFILE_GRANTS: Sweep = usable::REFILE;

/// What a grant can allow: AWS's `GrantOperation`.
pub const GRANT_OPERATIONS: &[&str] = &[
    "Decrypt",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
    "Sign",
    "Verify",
    "GetPublicKey",
    "CreateGrant",
    "RetireGrant",
    "DescribeKey",
    "GenerateDataKeyPair",
    "GenerateDataKeyPairWithoutPlaintext",
    "GenerateMac",
    "VerifyMac",
    "DeriveSharedSecret",
    "Encapsulate",
    "Decapsulate",
];

/// Grant operations that take no encryption context, so that its constraints do not apply to them.
const WITHOUT_CONTEXT: &[&str] = &["CreateGrant", "RetireGrant", "DescribeKey"];

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Account of the key.
    pub account: String,
    /// Id of the key.
    pub key_id: String,
    /// Name, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// ARN of the grantee.
    #[serde(default)]
    pub grantee: Option<String>,
    /// Unique id of the grantee; for a session, its role's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grantee_id: Option<String>,
    /// AWS service that may use it. No such service exists here; it is stored for display.
    #[serde(default)]
    pub grantee_service: Option<String>,
    /// ARN of the retiring principal.
    #[serde(default)]
    pub retiring: Option<String>,
    /// Unique id of the retiring principal; for a session, its role's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retiring_id: Option<String>,
    /// AWS service that may retire it.
    #[serde(default)]
    pub retiring_service: Option<String>,
    /// ARN of the root of the account that issued it.
    pub issuer: String,
    /// Operations that it allows.
    pub operations: BTreeSet<String>,
    /// Constraints.
    #[serde(default)]
    pub constraints: Constraints,
    /// Random part of its token: 32 bytes in hexadecimal.
    token: String,
}

/// When a grant applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraints {
    /// Pairs that the encryption context must contain.
    #[serde(default)]
    pub subset: Option<EncryptionContext>,
    /// The encryption context must equal this one.
    #[serde(default)]
    pub equals: Option<EncryptionContext>,
    /// ARN that `aws:SourceArn` must be.
    #[serde(default)]
    pub source_arn: Option<String>,
}

/// How a caller matches the grantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By its own ARN, or its role's.
    Direct,
    /// By its account, whose identity policies then decide.
    Account,
}

/// Properties of a new grant.
#[derive(Debug, Serialize)]
pub struct NewGrant {
    /// Name, which identifies a repeated request.
    pub name: Option<String>,
    /// ARN of the grantee, from [`principal_of`].
    pub grantee: Option<String>,
    /// AWS service that may use it.
    pub grantee_service: Option<String>,
    /// ARN of the retiring principal, from [`principal_of`].
    pub retiring: Option<String>,
    /// AWS service that may retire it.
    pub retiring_service: Option<String>,
    /// Operations that it allows.
    pub operations: BTreeSet<String>,
    /// Constraints.
    pub constraints: Constraints,
}

/// The canonical ARN of the principal in `member`, for decisions and records.
pub fn principal_of(member: &str, text: &str) -> Result<String, KmsError> {
    Arn::principal(text).map(|arn| arn.to_string()).ok_or_else(|| {
        KmsError::InvalidArn(format!("{member} is not the ARN of a user, role, session or account"))
    })
}

impl NewGrant {
    /// The properties that a grant was created with.
    fn like(grant: &Grant) -> Self {
        Self {
            name: grant.name.clone(),
            grantee: grant.grantee.clone(),
            grantee_service: grant.grantee_service.clone(),
            retiring: grant.retiring.clone(),
            retiring_service: grant.retiring_service.clone(),
            operations: grant.operations.clone(),
            constraints: grant.constraints.clone(),
        }
    }
}

impl Grant {
    /// The grant's token, which identifies it and is not secret.
    pub fn token(&self) -> String {
        format!("{}.{}.{}.{}", self.account, self.key_id, self.id, self.token)
    }

    fn is_for(&self, caller: &Caller) -> Option<Way> {
        means(self.grantee.as_deref()?, self.grantee_id.as_deref(), caller)
    }

    /// In what way the caller may retire the grant, if at all.
    pub(super) fn retired_by(&self, caller: &Caller) -> Option<Way> {
        let uses = self.is_for(caller).filter(|_| self.operations.contains("RetireGrant"));
        let id = self.retiring_id.as_deref();
        let retires = self.retiring.as_deref().and_then(|name| means(name, id, caller));
        let issued = means(&self.issuer, None, caller);
        [uses, retires]
            .contains(&Some(Way::Direct))
            .then_some(Way::Direct)
            .or(uses.or(retires).or(issued))
    }

    fn permits(&self, access: Access<'_>, operation: &str) -> bool {
        if !self.operations.contains(operation) {
            return false;
        }
        if operation == "RetireGrant" {
            return true;
        }
        let empty = EncryptionContext::new();
        let context = access.context.unwrap_or(&empty);
        let Constraints { subset, equals, source_arn } = &self.constraints;
        let has = |pairs: &EncryptionContext| {
            pairs.iter().all(|(name, value)| context.get(name) == Some(value))
        };
        let fits = subset.as_ref().is_none_or(has)
            && equals.as_ref().is_none_or(|wanted| wanted == context);
        (fits || WITHOUT_CONTEXT.contains(&operation))
            && source_arn.as_ref().is_none_or(|wanted| {
                let found = access.conditions.get("aws:SourceArn");
                found.is_some_and(|values| values.contains(wanted))
            })
    }

    /// Whether this grant allows everything that the new one does.
    fn covers(&self, new: &NewGrant) -> bool {
        let contains = |outer: &EncryptionContext, inner: &EncryptionContext| {
            inner.iter().all(|(name, value)| outer.get(name) == Some(value))
        };
        let subset = self.constraints.subset.as_ref().is_none_or(|own| {
            let given = new.constraints.subset.as_ref().or(new.constraints.equals.as_ref());
            given.is_some_and(|given| contains(given, own))
        });
        let equals = self
            .constraints
            .equals
            .as_ref()
            .is_none_or(|own| new.constraints.equals.as_ref() == Some(own));
        let source = self
            .constraints
            .source_arn
            .as_ref()
            .is_none_or(|own| new.constraints.source_arn.as_ref() == Some(own));
        new.operations.is_subset(&self.operations) && subset && equals && source
    }
}

/// Makes a grant; a repeated request with the same name returns the existing grant.
pub fn create_grant(
    work: &mut Work<'_>,
    access: Access<'_>,
    key: &Key,
    new: NewGrant,
    permit: &Permit<action::kms::CreateGrant>,
) -> Result<Grant, KmsError> {
    permit.opens(&key.arn())?;
    key.require_enabled()?;
    check(key, &new)?;
    if permit.by_grant() && !is_covered(work, access, key, &new)? {
        return Err(KmsError::Denied(Denied {
            principal: access.caller.principal.arn(),
            action: "kms:CreateGrant".to_owned(),
            resource: key.arn(),
            because: "because every grant that allows it allows less than the new one".to_owned(),
            explicit: false,
        }));
    }
    let grantee_id = resolve(work, new.grantee.as_deref())?;
    let retiring_id = resolve(work, new.retiring.as_deref())?;
    // A grant for other principals of the same names is another one.
    let is_same = |same: &Grant| {
        let ids = [(&same.grantee_id, &grantee_id), (&same.retiring_id, &retiring_id)];
        ids.iter().all(|(then, now)| then.is_none() || then == now)
    };
    if let Some(same) = index::same(work, key, &new)?.filter(is_same) {
        return Ok(same);
    }
    let most = work.quota(&quotas::GRANTS_PER_KMS_KEY);
    if index::count(work, key)? as u64 >= most {
        return Err(Reached::new(&quotas::GRANTS_PER_KMS_KEY, most).into());
    }
    let grant = Grant {
        id: ids::hex::<32>()?,
        account: key.account().to_owned(),
        key_id: key.id().to_owned(),
        name: new.name,
        created_ms: work.now_ms(),
        grantee: new.grantee,
        grantee_id,
        grantee_service: new.grantee_service,
        retiring: new.retiring,
        retiring_id,
        retiring_service: new.retiring_service,
        issuer: arn::iam(&access.caller.principal.account, "root"),
        operations: new.operations,
        constraints: new.constraints,
        token: ids::hex::<32>()?,
    };
    index::write(work, key, &grant)?;
    Ok(grant)
}

/// Finds the principal of an ARN in a grant, which must exist.
fn resolve(work: &mut Work<'_>, arn: Option<&str>) -> Result<Option<String>, KmsError> {
    let Some(arn) = arn else { return Ok(None) };
    unique::resolve_one(work, arn).map_err(|error| match error {
        Unresolved::Fault(fault) => fault.into(),
        Unresolved::Unknown(_) => {
            KmsError::InvalidArn(format!("ARN does not refer to a valid principal: {arn}"))
        }
    })
}

/// A grant for display: principals that no longer exist appear by their unique ids.
pub fn shown_grant(work: &mut Work<'_>, mut grant: Grant) -> Result<Grant, Fault> {
    for (name, id) in
        [(&mut grant.grantee, &grant.grantee_id), (&mut grant.retiring, &grant.retiring_id)]
    {
        if let Some(arn) = name {
            *arn = unique::shown_principal(work, arn, id.as_deref())?;
        }
    }
    Ok(grant)
}

/// Whether a grant that lets the caller create grants allows as much as a new one. A grant for the caller's whole
/// account counts as far as identity policies allow it.
fn is_covered(
    work: &mut Work<'_>,
    access: Access<'_>,
    key: &Key,
    new: &NewGrant,
) -> Result<bool, KmsError> {
    let (caller, action) = (access.caller, "kms:CreateGrant");
    let account = caller.principal.account.as_str();
    let by_identity = caller.judge(None, account, false, access.conditions, action, &key.arn());
    let covers = |grant: &Grant| {
        let may = match grant.is_for(caller) {
            Some(Way::Direct) => true,
            Some(Way::Account) => by_identity.is_ok(),
            None => false,
        };
        may && grant.permits(access, "CreateGrant") && grant.covers(new)
    };
    let all = ("CreateGrant", Constrained::Any);
    Ok(usable::find(work, key, access, all, covers)?.is_some())
}

/// Lists the grants of a key, in order of id, after the marker of the previous page.
pub fn grants(
    work: &mut Work<'_>,
    key: &Key,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::kms::ListGrants>,
) -> Result<Page<Grant>, KmsError> {
    permit.opens(&key.arn())?;
    let page = index::page(work, key, marker, limit)?;
    let items = page.items.into_iter().map(|grant| shown_grant(work, grant));
    Ok(Page { items: items.collect::<Result<_, _>>()?, next: page.next })
}

/// A grant of a key by its id.
pub fn find_grant(work: &mut Work<'_>, key: &Key, id: &str) -> Result<Grant, KmsError> {
    let missing = || KmsError::InvalidGrantId(format!("Grant {} does not exist", shorten(id)));
    if !is_grant_id(id) {
        return Err(missing());
    }
    work.get(&index::record_key(key.scope(), key.id(), id))?.ok_or_else(missing)
}

/// Lists the grants that `retiring` (an ARN or a service of the account) may retire, on keys of any account in the
/// Region of `scope`.
pub fn retirable_grants(
    work: &mut Work<'_>,
    scope: &Scope,
    retiring: &str,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::kms::ListRetirableGrants>,
) -> Result<Page<Grant>, KmsError> {
    permit.opens(retiring)?;
    let page = index::retirable(work, scope, retiring, marker, limit)?;
    // An earlier principal of that name may have been another.
    let id = unique::unique_id(work, retiring)?;
    let is_meant = |grant: &Grant| grant.retiring_id.is_none() || grant.retiring_id == id;
    let items = page.items.into_iter().filter(is_meant);
    let items = items.map(|grant| shown_grant(work, grant)).collect::<Result<_, _>>()?;
    Ok(Page { items, next: page.next })
}

/// Deletes a grant, and with it what it allowed.
pub fn delete_grant(
    work: &mut Work<'_>,
    scope: &Scope,
    grant: &Grant,
    permit: &Permit<impl action::EndsGrant>,
) -> Result<(), KmsError> {
    permit.opens(&scope.arn("kms", &format!("key/{}", grant.key_id)))?;
    Ok(index::erase(work, scope, grant)?)
}

/// The grant of a token, on a key of any account.
pub fn by_token(work: &mut Work<'_>, region: &str, token: &str) -> Result<Grant, KmsError> {
    let unknown =
        || KmsError::InvalidGrantToken("The grant token does not name a grant.".to_owned());
    let mut parts = token.splitn(4, '.');
    let (Some(account), Some(key_id), Some(id), Some(random)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(unknown());
    };
    if !is_account_id(account) || ids::key_bytes(key_id).is_none() || !is_grant_id(id) {
        return Err(unknown());
    }
    let scope = Scope { account: account.to_owned(), region: region.to_owned() };
    let grant = work.get::<Grant>(&index::record_key(&scope, key_id, id))?.ok_or_else(unknown)?;
    if grant.token != random {
        return Err(unknown());
    }
    Ok(grant)
}

/// The grants on a key that tokens name; a token of no grant, or of another key's, is an error.
pub(super) fn check_tokens(
    work: &mut Work<'_>,
    key: &Key,
    tokens: &[String],
) -> Result<Vec<Grant>, KmsError> {
    tokens
        .iter()
        .map(|token| match by_token(work, &key.scope().region, token)? {
            grant if grant.key_id == key.id() && grant.account == key.account() => Ok(grant),
            _ => Err(KmsError::InvalidGrantToken(
                "The grant token names a grant of another key.".to_owned(),
            )),
        })
        .collect()
}

/// Whether a token belongs to a grant on the key.
pub fn is_token_of(token: &str, key: &Key) -> bool {
    token.starts_with(&format!("{}.{}.", key.account(), key.id()))
}

/// Whether a grant allows the caller `operation`, and how. Grants from the request's tokens come first. The deciding
/// grant is read as part of the work, so that it cannot be revoked in between.
pub(super) fn allows(
    work: &mut Work<'_>,
    access: Access<'_>,
    operation: &str,
    key: &Key,
    named: &[Grant],
) -> Result<Option<Way>, KmsError> {
    if !GRANT_OPERATIONS.contains(&operation) {
        return Ok(None);
    }
    let way =
        |grant: &Grant| grant.is_for(access.caller).filter(|_| grant.permits(access, operation));
    let of_tokens = || named.iter().filter_map(way);
    if let Some(direct) = of_tokens().find(|way| *way == Way::Direct) {
        return Ok(Some(direct));
    }
    // Grants for the caller and its role are found before those for its account.
    let met = (operation, Constrained::Met);
    let found = usable::find(work, key, access, met, |grant| way(grant).is_some())?;
    Ok(found.as_ref().and_then(way).or_else(|| of_tokens().next()))
}

pub(super) fn delete_all(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    index::erase_all(work, key)
}

fn check(key: &Key, new: &NewGrant) -> Result<(), KmsError> {
    if new.grantee.is_some() == new.grantee_service.is_some() {
        return Err(KmsError::Validation(
            "Specify either GranteePrincipal or GranteeServicePrincipal, and not both.".into(),
        ));
    }
    if new.retiring.is_some() && new.retiring_service.is_some() {
        return Err(KmsError::Validation(
            "Specify either RetiringPrincipal or RetiringServicePrincipal, and not both.".into(),
        ));
    }
    let has_retiring = new.retiring.is_some() || new.retiring_service.is_some();
    if new.grantee_service.is_some() && (new.constraints.source_arn.is_none() || !has_retiring) {
        return Err(KmsError::Validation(
            "GranteeServicePrincipal requires a SourceArn constraint and a principal or service that can retire the \
             grant."
                .into(),
        ));
    }
    for name in [&new.grantee_service, &new.retiring_service].into_iter().flatten() {
        if !unique::is_service(name) {
            return Err(KmsError::Validation(format!(
                "{} is not the name of a service.",
                shorten(name)
            )));
        }
    }
    if let Some(name) = new.operations.iter().find(|name| !is_of(name, key)) {
        return Err(KmsError::Validation(format!(
            "The operation {name} is not supported by a key of type {} and usage {}.",
            key.spec().name,
            key.usage().name()
        )));
    }
    for context in [&new.constraints.subset, &new.constraints.equals].into_iter().flatten() {
        let chars: usize =
            context.iter().flat_map(|(a, b)| [a, b]).map(|t| t.chars().count()).sum();
        if context.len() > limits::MAX_CONSTRAINT_ENTRIES || chars > limits::MAX_CONSTRAINT_CHARS {
            return Err(KmsError::Validation(format!(
                "An encryption context constraint has at most {} pairs and {} characters.",
                limits::MAX_CONSTRAINT_ENTRIES,
                limits::MAX_CONSTRAINT_CHARS
            )));
        }
    }
    let has_context = new.constraints.subset.is_some() || new.constraints.equals.is_some();
    if has_context && !key.is_symmetric_encryption() {
        return Err(KmsError::Validation(
            "Encryption context constraints are valid only for symmetric encryption keys.".into(),
        ));
    }
    Ok(())
}

/// Whether a key of this type and usage supports the grant operation.
fn is_of(operation: &str, key: &Key) -> bool {
    let encrypts = ["Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo"];
    match operation {
        "CreateGrant" | "RetireGrant" | "DescribeKey" => true,
        "GetPublicKey" => !key.spec().is_symmetric(),
        "Sign" | "Verify" => key.usage() == KeyUsage::SignVerify,
        "GenerateMac" | "VerifyMac" => key.usage() == KeyUsage::GenerateVerifyMac,
        "DeriveSharedSecret" => key.usage() == KeyUsage::KeyAgreement,
        "Encapsulate" | "Decapsulate" => key.usage() == KeyUsage::EncapsulateDecapsulate,
        _ if encrypts.contains(&operation) => key.usage() == KeyUsage::EncryptDecrypt,
        // Data keys and data key pairs.
        _ => key.is_symmetric_encryption(),
    }
}

/// How the caller matches `name`: as itself, as its role, or as one of its account. A principal that was deleted and
/// created again does not match.
fn means(name: &str, id: Option<&str>, caller: &Caller) -> Option<Way> {
    let principal = &caller.principal;
    let has_name = name == principal.arn() || principal.role_arn().as_deref() == Some(name);
    if has_name && id.is_none_or(|id| id == principal.principal_id()) {
        return Some(Way::Direct);
    }
    (name == arn::iam(&principal.account, "root")).then_some(Way::Account)
}

fn is_grant_id(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn shorten(text: &str) -> String {
    text.chars().take(64).collect()
}
