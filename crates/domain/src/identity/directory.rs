//! Users, roles and access keys as stored.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::arn::{self, is_account_id};
use crate::policy::{Kind, Policy};
use crate::work::{Page, Work};
use crate::{Fault, ids, limits};

/// The policy of an administrator: allows everything.
pub const ADMINISTRATOR: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
/// Name of that policy.
pub const ADMINISTRATOR_ACCESS: &str = "AdministratorAccess";

/// Why an operation on users and roles fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The user, role, key or policy does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// It exists already.
    #[error("{0} already exists")]
    AlreadyExists(String),
    /// A name, account or document is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A quota is reached.
    #[error("{0}")]
    LimitExceeded(String),
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<outlast_crypto::CryptoError> for IdentityError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

/// Unique ids of the users and roles that a document names, by ARN. A session has its role's.
pub type UniqueIds = BTreeMap<String, String>;

/// An access key as stored; its secret is a separate sealed record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AccessKey {
    /// Access key id.
    pub id: String,
    /// Account that it belongs to.
    pub account: String,
    /// Name of the user.
    pub user: String,
    /// Unique id of the user.
    pub user_id: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Whether it is active.
    #[serde(default = "yes")]
    pub active: bool,
    /// Whether its user has a record. Stores of the first version have one administrator without a record.
    #[serde(default)]
    pub has_user: bool,
}

fn yes() -> bool {
    true
}

/// A user as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct User {
    /// Account.
    pub account: String,
    /// Name.
    pub name: String,
    /// Unique id, `AIDA...`.
    pub id: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Inline policies by name.
    pub policies: BTreeMap<String, String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Ids of its access keys.
    pub access_keys: Vec<String>,
}

/// A role as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Role {
    /// Account.
    pub account: String,
    /// Name.
    pub name: String,
    /// Unique id, `AROA...`.
    pub id: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Trust policy: the principals that may assume it.
    pub trust: String,
    /// Unique ids of the principals that it names.
    #[serde(default, skip_serializing_if = "UniqueIds::is_empty")]
    pub trusted: UniqueIds,
    /// Inline policies by name.
    pub policies: BTreeMap<String, String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Longest session in seconds.
    pub max_session_seconds: i64,
}

/// What users and roles share: a name in an account, and inline policies.
pub trait Entry: Serialize + DeserializeOwned {
    /// `user` or `role`, as in ARNs.
    const KIND: &'static str;

    /// Account and name.
    fn names(&self) -> (&str, &str);

    /// Inline policies by name.
    fn policies(&mut self) -> &mut BTreeMap<String, String>;

    /// ARN.
    fn arn(&self) -> String {
        let (account, name) = self.names();
        arn::iam(account, &format!("{}/{name}", Self::KIND))
    }

    /// Finds it by name.
    fn find(work: &mut Work<'_>, account: &str, name: &str) -> Result<Self, IdentityError> {
        check_record_key(account, name)?;
        work.get(&record_key::<Self>(account, name))?.ok_or_else(|| {
            IdentityError::NotFound(format!("{} {name} of account {account}", Self::KIND))
        })
    }

    /// Lists those of all accounts, in order of account and name.
    fn list(
        work: &Work<'_>,
        marker: Option<&str>,
        limit: usize,
    ) -> Result<Page<Self>, IdentityError> {
        Ok(work.page(&format!("iam/{}/", Self::KIND), marker, limit)?)
    }

    /// Adds or replaces an inline policy.
    fn put_policy(
        mut self,
        work: &mut Work<'_>,
        name: &str,
        text: &str,
    ) -> Result<Self, IdentityError> {
        check_name(name)?;
        check_document(text, Kind::Identity)?;
        let policies = self.policies();
        policies.insert(name.to_owned(), text.to_owned());
        if policies.len() > limits::MAX_POLICIES {
            return Err(IdentityError::LimitExceeded(format!(
                "a principal has at most {} policies",
                limits::MAX_POLICIES
            )));
        }
        self.save(work)?;
        Ok(self)
    }

    /// Removes an inline policy.
    fn delete_policy(mut self, work: &mut Work<'_>, name: &str) -> Result<Self, IdentityError> {
        if self.policies().remove(name).is_none() {
            return Err(IdentityError::NotFound(format!("policy {name}")));
        }
        self.save(work)?;
        Ok(self)
    }

    /// Its record key.
    fn record_key(&self) -> String {
        let (account, name) = self.names();
        record_key::<Self>(account, name)
    }

    /// Writes the record.
    fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&self.record_key(), self)
    }
}

impl Entry for User {
    const KIND: &'static str = "user";

    fn names(&self) -> (&str, &str) {
        (&self.account, &self.name)
    }

    fn policies(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.policies
    }
}

impl Entry for Role {
    const KIND: &'static str = "role";

    fn names(&self) -> (&str, &str) {
        (&self.account, &self.name)
    }

    fn policies(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.policies
    }
}

impl User {
    /// The user's access keys.
    pub fn access_keys(&self, work: &mut Work<'_>) -> Result<Vec<AccessKey>, IdentityError> {
        let mut keys = Vec::new();
        for id in &self.access_keys {
            keys.extend(work.get::<AccessKey>(&key_record_key(id))?);
        }
        Ok(keys)
    }

    /// Activates or deactivates an access key.
    pub fn set_access_key_active(
        &self,
        work: &mut Work<'_>,
        id: &str,
        active: bool,
    ) -> Result<(), IdentityError> {
        let mut key = self.own_key(work, id)?;
        key.active = active;
        Ok(work.put(&key_record_key(id), &key)?)
    }

    /// Deletes an access key and its secret.
    pub fn delete_access_key(
        mut self,
        work: &mut Work<'_>,
        id: &str,
    ) -> Result<Self, IdentityError> {
        self.own_key(work, id)?;
        work.delete(&key_record_key(id));
        work.delete(&secret_record_key(id));
        self.access_keys.retain(|known| known != id);
        self.save(work)?;
        Ok(self)
    }

    /// Deletes the user with its access keys.
    pub fn delete(self, work: &mut Work<'_>) {
        for id in &self.access_keys {
            work.delete(&key_record_key(id));
            work.delete(&secret_record_key(id));
        }
        work.delete(&self.record_key());
    }

    fn own_key(&self, work: &mut Work<'_>, id: &str) -> Result<AccessKey, IdentityError> {
        let missing = || IdentityError::NotFound(format!("access key {id} of user {}", self.name));
        if !self.access_keys.iter().any(|known| known == id) {
            return Err(missing());
        }
        work.get(&key_record_key(id))?.ok_or_else(missing)
    }
}

impl Role {
    /// Deletes the role; its sessions end at once, because each request reads the role.
    pub fn delete(self, work: &mut Work<'_>) {
        work.delete(&self.record_key());
    }
}

/// Makes a user without permissions.
pub fn create_user(
    work: &mut Work<'_>,
    account: &str,
    name: &str,
    tags: BTreeMap<String, String>,
) -> Result<User, IdentityError> {
    check_record_key(account, name)?;
    if work.exists(&record_key::<User>(account, name))? {
        return Err(IdentityError::AlreadyExists(format!("user {name} of account {account}")));
    }
    let user = User {
        account: account.to_owned(),
        name: name.to_owned(),
        id: ids::base32("AIDA", 17)?,
        created_ms: work.now_ms(),
        policies: BTreeMap::new(),
        tags,
        access_keys: Vec::new(),
    };
    user.save(work)?;
    Ok(user)
}

/// Makes an access key for a user. If `id` is absent, one is generated.
pub fn add_access_key(
    work: &mut Work<'_>,
    mut user: User,
    id: Option<String>,
    secret: &Secret,
) -> Result<AccessKey, IdentityError> {
    if user.access_keys.len() >= limits::MAX_ACCESS_KEYS_PER_USER {
        return Err(IdentityError::LimitExceeded(format!(
            "a user has at most {} access keys: delete one first",
            limits::MAX_ACCESS_KEYS_PER_USER
        )));
    }
    let id = match id {
        Some(id) if !is_access_key_id(&id) => {
            return Err(IdentityError::Invalid(format!("{id} is not an access key id")));
        }
        Some(id) => id,
        None => ids::base32("AKIA", 16)?,
    };
    if work.exists(&key_record_key(&id))? {
        return Err(IdentityError::AlreadyExists(format!("access key {id}")));
    }
    let key = AccessKey {
        account: user.account.clone(),
        user: user.name.clone(),
        user_id: user.id.clone(),
        created_ms: work.now_ms(),
        active: true,
        has_user: true,
        id,
    };
    work.put(&key_record_key(&key.id), &key)?;
    work.put_secret(&secret_record_key(&key.id), secret)?;
    user.access_keys.push(key.id.clone());
    user.save(work)?;
    Ok(key)
}

/// Makes a user with every permission in its account, and an access key.
pub fn create_administrator(
    work: &mut Work<'_>,
    account: &str,
    name: &str,
    id: Option<String>,
    secret: &Secret,
) -> Result<AccessKey, IdentityError> {
    let user = create_user(work, account, name, BTreeMap::new())?;
    let user = user.put_policy(work, ADMINISTRATOR_ACCESS, ADMINISTRATOR)?;
    add_access_key(work, user, id, secret)
}

/// The secret of an access key.
pub fn access_key_secret(work: &mut Work<'_>, id: &str) -> Result<Option<Secret>, Fault> {
    if is_access_key_id(id) { work.secret(&secret_record_key(id)) } else { Ok(None) }
}

/// Whether `text` can be an access key id: 3 to 128 letters, digits and underscores. AWS's have 20 characters;
/// shorter ones are in use elsewhere.
pub fn is_access_key_id(text: &str) -> bool {
    (3..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether `text` can be the name of a user, role, policy or session: 1 to 64 letters, digits and `+=,.@_-`.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+=,.@_-".contains(&byte))
}

pub(super) fn check_record_key(account: &str, name: &str) -> Result<(), IdentityError> {
    if !is_account_id(account) {
        return Err(IdentityError::Invalid(format!(
            "{account} is not an account id: it needs 12 digits"
        )));
    }
    check_name(name)
}

fn check_name(name: &str) -> Result<(), IdentityError> {
    if is_name(name) {
        return Ok(());
    }
    Err(IdentityError::Invalid(format!(
        "{name} is not a valid name: 1 to 64 letters, digits and +=,.@_-"
    )))
}

pub(super) fn check_document(text: &str, kind: Kind) -> Result<Policy, IdentityError> {
    Policy::parse(text, kind)
        .map_err(|error| IdentityError::Invalid(format!("the policy is not valid: {error}")))
}

pub(super) fn record_key<P: Entry>(account: &str, name: &str) -> String {
    format!("iam/{}/{account}/{name}", P::KIND)
}

pub(super) fn key_record_key(id: &str) -> String {
    format!("iam/access-key/{id}")
}

pub(super) fn secret_record_key(id: &str) -> String {
    format!("iam/access-key-secret/{id}")
}
