//! Aliases: second names of keys.

use serde::{Deserialize, Serialize};

use super::KmsError;
use super::record::Key;
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::quotas::{self, Reached};
use crate::work::{Page, Work};

/// An alias.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Alias {
    /// Name with its prefix `alias/`.
    pub name: String,
    /// Id of the alias's key.
    pub target: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Milliseconds since 1970.
    pub updated_ms: i64,
}

impl Alias {
    /// ARN of the alias.
    pub fn arn(&self, scope: &Scope) -> String {
        scope.arn("kms", &self.name)
    }
}

/// Checks the name of a new alias.
pub fn check_new_name(name: &str) -> Result<(), KmsError> {
    let rest = after_prefix(name)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-".contains(&byte);
    if rest.is_empty() || name.len() > 256 || !rest.bytes().all(allowed) {
        return Err(KmsError::InvalidAliasName(format!(
            "{name} is not a valid alias name: 1 to 250 letters, digits and /_- after the prefix"
        )));
    }
    if rest.starts_with("aws/") {
        return Err(KmsError::NotAuthorized(
            "The alias prefix alias/aws/ is reserved for keys that AWS manages.".into(),
        ));
    }
    Ok(())
}

/// Makes an alias for a key.
pub fn create_alias(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
    key: &Key,
    (for_alias, for_key): (&Permit<action::kms::CreateAlias>, &Permit<action::kms::CreateAlias>),
) -> Result<(), KmsError> {
    for_alias.opens(&scope.arn("kms", name))?;
    for_key.opens(&key.arn())?;
    check_new_name(name)?;
    key.require_kept()?;
    let record_key = record_key(scope, name);
    if work.exists(&record_key)? {
        return Err(KmsError::AlreadyExists(format!(
            "An alias with the name {} already exists",
            scope.arn("kms", name)
        )));
    }
    attach(work, scope, name, key.id())
}

/// Makes an alias, whatever its name.
pub(super) fn attach(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
    key_id: &str,
) -> Result<(), KmsError> {
    join(work, scope, key_id)?;
    let now = work.now_ms();
    let alias = Alias {
        name: name.to_owned(),
        target: key_id.to_owned(),
        created_ms: now,
        updated_ms: now,
    };
    work.put(&record_key(scope, name), &alias)?;
    Ok(work.put(&by_key_record_key(scope, key_id, name), &alias.name)?)
}

/// The part of an alias name after `alias/`.
pub fn after_prefix(name: &str) -> Result<&str, KmsError> {
    name.strip_prefix("alias/").ok_or_else(|| {
        KmsError::Validation(
            "Alias must start with the prefix \"alias/\". Please see \
             https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html"
                .into(),
        )
    })
}

/// The permits to point an alias at another key.
pub struct MayUpdate<'a> {
    /// For the alias.
    pub alias: &'a Permit<action::kms::UpdateAlias>,
    /// For the key that it pointed to.
    pub current: &'a Permit<action::kms::UpdateAlias>,
    /// For the key that it will point to.
    pub key: &'a Permit<action::kms::UpdateAlias>,
}

/// Points an alias at another key of the same kind and use.
pub fn update_alias(
    work: &mut Work<'_>,
    name: &str,
    key: &Key,
    current: &Key,
    may: &MayUpdate<'_>,
) -> Result<(), KmsError> {
    let scope = key.scope();
    may.alias.opens(&scope.arn("kms", name))?;
    may.key.opens(&key.arn())?;
    let mut alias = get(work, scope, name)?;
    may.current.opens(&scope.arn("kms", &format!("key/{}", alias.target)))?;
    key.require_kept()?;
    if key.spec().is_symmetric() != current.spec().is_symmetric() || key.usage() != current.usage()
    {
        return Err(KmsError::InvalidState(format!(
            "{} and {} are not of the same type and usage.",
            current.arn(),
            key.arn()
        )));
    }
    if alias.target != key.id() {
        leave(work, scope, &alias.target)?;
        join(work, scope, key.id())?;
    }
    work.delete(&by_key_record_key(scope, &alias.target, name));
    key.id().clone_into(&mut alias.target);
    alias.updated_ms = work.now_ms();
    work.put(&record_key(scope, name), &alias)?;
    Ok(work.put(&by_key_record_key(scope, key.id(), name), &alias.name)?)
}

/// Counts another alias of a key. Every change of a key's aliases reads and writes the count, so that two changes at
/// once conflict.
fn join(work: &mut Work<'_>, scope: &Scope, key_id: &str) -> Result<(), KmsError> {
    let count = names_of(work, scope, key_id)?.len();
    let most = work.quota(&quotas::ALIASES_PER_KMS_KEY);
    if count as u64 >= most {
        return Err(Reached::new(&quotas::ALIASES_PER_KMS_KEY, most).into());
    }
    Ok(work.put(&count_record_key(scope, key_id), &(count + 1))?)
}

/// Counts one alias less.
fn leave(work: &mut Work<'_>, scope: &Scope, key_id: &str) -> Result<(), Fault> {
    let count = names_of(work, scope, key_id)?.len();
    work.put(&count_record_key(scope, key_id), &count.saturating_sub(1))
}

/// Deletes an alias; the key stays.
pub fn delete_alias(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
    (for_alias, for_key): (&Permit<action::kms::DeleteAlias>, &Permit<action::kms::DeleteAlias>),
) -> Result<(), KmsError> {
    for_alias.opens(&scope.arn("kms", name))?;
    let alias = get(work, scope, name)?;
    for_key.opens(&scope.arn("kms", &format!("key/{}", alias.target)))?;
    leave(work, scope, &alias.target)?;
    work.delete(&record_key(scope, name));
    work.delete(&by_key_record_key(scope, &alias.target, name));
    Ok(())
}

/// Lists aliases in order of name, after the marker of the previous page; those of one key, if given.
pub fn aliases(
    work: &mut Work<'_>,
    scope: &Scope,
    key: Option<&Key>,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::kms::ListAliases>,
) -> Result<Page<Alias>, KmsError> {
    permit.opens(&scope.arn("kms", "alias/*"))?;
    let Some(key) = key else { return Ok(work.page(&prefix(scope), marker, limit)?) };
    let page = work.page::<String>(&by_key_record_key(scope, key.id(), ""), marker, limit)?;
    let mut items = Vec::with_capacity(page.items.len());
    for name in page.items {
        items.extend(work.get::<Alias>(&record_key(scope, &name))?);
    }
    Ok(Page { items, next: page.next })
}

/// Id of an alias's key.
pub(super) fn target(work: &mut Work<'_>, scope: &Scope, name: &str) -> Result<String, KmsError> {
    get(work, scope, name).map(|alias| alias.target)
}

pub(super) fn delete_all(work: &mut Work<'_>, scope: &Scope, key_id: &str) -> Result<(), Fault> {
    for name in names_of(work, scope, key_id)? {
        let found = work.get::<Alias>(&record_key(scope, &name))?;
        if found.is_some_and(|alias| alias.target == key_id) {
            work.delete(&record_key(scope, &name));
        }
        work.delete(&by_key_record_key(scope, key_id, &name));
    }
    work.delete(&count_record_key(scope, key_id));
    Ok(())
}

fn get(work: &mut Work<'_>, scope: &Scope, name: &str) -> Result<Alias, KmsError> {
    let missing = || KmsError::NotFound(format!("Alias {} is not found.", scope.arn("kms", name)));
    if !name.is_ascii() || name.len() > 256 {
        return Err(missing());
    }
    work.get(&record_key(scope, name))?.ok_or_else(missing)
}

/// The names of a key's aliases. If they change before the commit, decisions that depend on them are made again.
pub(super) fn names_of(
    work: &mut Work<'_>,
    scope: &Scope,
    key_id: &str,
) -> Result<Vec<String>, Fault> {
    work.get::<usize>(&count_record_key(scope, key_id))?;
    let prefix = by_key_record_key(scope, key_id, "");
    // All of them, whatever the quota is now: policies depend on them.
    let found = work.scan::<String>(&prefix, "", usize::MAX)?;
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

fn count_record_key(scope: &Scope, key_id: &str) -> String {
    format!("kms/alias-count/{}/{}/{key_id}", scope.account, scope.region)
}

fn prefix(scope: &Scope) -> String {
    format!("kms/alias/{}/{}/", scope.account, scope.region)
}

fn record_key(scope: &Scope, name: &str) -> String {
    format!("{}{name}", prefix(scope))
}

fn by_key_record_key(scope: &Scope, key_id: &str, name: &str) -> String {
    format!("kms/alias-of/{}/{}/{key_id}/{name}", scope.account, scope.region)
}
