//! Users of a server, with their SSH public keys.

use serde::{Deserialize, Serialize};

use super::home::Home;
use super::posix::Posix;
use super::server::{self, Server, check_role};
use super::ssh_key::KeyLine;
use super::tag_set::{self, Tags};
use super::{TransferError, USER, is_id, new_id};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::policy::{Kind, Policy};
use crate::work::{Page, Work};
use crate::{Fault, quotas};

/// A user as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    /// Canonical ARN.
    pub(super) role: String,
    pub(super) home: Home,
    pub(super) policy: Option<String>,
    pub(super) posix: Option<Posix>,
    pub(super) keys: Vec<AuthorizedKey>,
    pub(super) created_ms: i64,
    pub(super) tags: Tags,
}

/// A public key of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizedKey {
    /// Id, `key-` and 17 hexadecimal digits.
    pub id: String,
    /// Its line.
    pub line: String,
    /// Milliseconds since 1970.
    pub imported_ms: i64,
}

/// Properties of a new user.
pub struct NewUser {
    /// Name.
    pub name: String,
    /// Role.
    pub role: Arn,
    /// Home.
    pub home: Home,
    /// Session policy.
    pub policy: Option<String>,
    /// `PosixProfile`
    pub posix: Option<Posix>,
    /// Public key.
    pub key: Option<String>,
    /// Tags.
    pub tags: Tags,
}

/// Changes of a user.
#[derive(Default)]
pub struct UserChange {
    /// New role.
    pub role: Option<Arn>,
    /// `HomeDirectory`
    pub directory: Option<String>,
    /// `HomeDirectoryMappings` and `HomeDirectoryType`: `Some(None)` is `PATH`.
    pub mappings: Option<Option<Vec<super::Mapping>>>,
    /// New session policy; empty for none.
    pub policy: Option<String>,
    /// New `PosixProfile`.
    pub posix: Option<Posix>,
}

/// A user that was found.
#[derive(Debug, Clone)]
pub struct User {
    scope: Scope,
    server: String,
    pub(super) record: Record,
}

impl User {
    /// Name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// ARN.
    pub fn arn(&self) -> String {
        USER.arn(&self.scope, &self.path())
    }

    /// ARN of its role.
    pub fn role(&self) -> &str {
        &self.record.role
    }

    /// Home.
    pub fn home(&self) -> &Home {
        &self.record.home
    }

    /// Session policy.
    pub fn policy(&self) -> Option<&str> {
        self.record.policy.as_deref()
    }

    /// `PosixProfile`
    pub fn posix(&self) -> Option<&Posix> {
        self.record.posix.as_ref()
    }

    /// Public keys.
    pub fn keys(&self) -> &[AuthorizedKey] {
        &self.record.keys
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    fn path(&self) -> String {
        format!("{}/{}", self.server, self.record.name)
    }

    fn record_key(&self) -> String {
        USER.record_key(&self.scope, &self.path())
    }
}

/// Whether this can be the name of a user: 3 to 100 letters, digits, `_`, `@`, `.` and `-`, of which the first is one of the
/// first three. Of ASCII, as Java's `\w` is.
pub(super) fn is_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (3..=100).contains(&text.len())
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'@' | b'.' | b'-'))
}

/// What the ids of public keys begin with.
const KEY_PREFIX: &str = "key-";

fn check_policy(text: &str) -> Result<(), TransferError> {
    Policy::parse(text, Kind::Identity).map(|_| ()).map_err(|error| {
        TransferError::invalid(format!("Invalid session policy in request: {error}"))
    })
}

/// Creates a user of a server. The permits allow that, and passing its role.
pub fn create_user(
    work: &mut Work<'_>,
    server: &Server,
    new: NewUser,
    permit: &Permit<action::transfer::CreateUser>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<User, TransferError> {
    permit.opens(&server.arn())?;
    if !server.provider().is_service_managed() {
        return Err(TransferError::invalid(
            "The users of this server are those of its identity provider",
        ));
    }
    if !is_name(&new.name) {
        return Err(TransferError::invalid("Invalid user name"));
    }
    tag_set::check(&new.tags)?;
    new.home.check()?;
    let role = new.role.to_string();
    check_role(server.scope(), &role, may_pass)?;
    let policy = new.policy.filter(|text| !text.is_empty());
    policy.as_deref().map(check_policy).transpose()?;
    let scope = server.scope();
    let record_key = USER.record_key(scope, &server.within(&new.name));
    if work.exists(&record_key)? {
        return Err(TransferError::exists("User already exists", "User", &new.name));
    }
    work.admit::<TransferError>(
        &quotas::USERS_PER_SERVER,
        &[&scope.account, &scope.region, server.id()],
    )?;
    let record = Record {
        name: new.name,
        role,
        home: new.home,
        policy,
        posix: new.posix,
        keys: Vec::new(),
        created_ms: work.now_ms(),
        tags: new.tags,
    };
    let mut user = User { scope: scope.clone(), server: server.id().to_owned(), record };
    if let Some(line) = new.key.filter(|line| !line.trim().is_empty()) {
        authorize_key(work, &mut user, &line)?;
    }
    save(work, &user)?;
    // A deletion of the server at the same time must not miss this user.
    server::save(work, server)?;
    Ok(user)
}

/// Finds a user by its name.
pub fn find_user(work: &mut Work<'_>, server: &Server, name: &str) -> Result<User, TransferError> {
    let found = look_up(work, server, name)?;
    found.ok_or_else(|| TransferError::not_found("Unknown user", "User", name))
}

/// The same for a login.
pub(super) fn look_up(
    work: &mut Work<'_>,
    server: &Server,
    name: &str,
) -> Result<Option<User>, Fault> {
    if !is_name(name) {
        return Ok(None);
    }
    let record_key = USER.record_key(server.scope(), &server.within(name));
    let of =
        |record| User { scope: server.scope().clone(), server: server.id().to_owned(), record };
    Ok(work.get::<Record>(&record_key)?.map(of))
}

/// Lists users, after the marker of the previous page.
pub fn users(
    work: &Work<'_>,
    server: &Server,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListUsers>,
) -> Result<Page<User>, TransferError> {
    permit.opens(&server.arn())?;
    Ok(page(work, server, marker, limit)?)
}

/// The same for the service itself.
pub(super) fn page(
    work: &Work<'_>,
    server: &Server,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<User>, Fault> {
    let prefix = USER.record_key(server.scope(), &server.within(""));
    let page = work.page::<Record>(&prefix, marker, limit)?;
    let (scope, id) = (server.scope(), server.id());
    let of = |record| User { scope: scope.clone(), server: id.to_owned(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Changes a user. The permits allow that, and passing a new role.
pub fn update_user(
    work: &mut Work<'_>,
    mut user: User,
    change: UserChange,
    permit: &Permit<action::transfer::UpdateUser>,
    may_pass: &[Permit<action::iam::PassRole>],
) -> Result<User, TransferError> {
    permit.opens(&user.arn())?;
    let record = &mut user.record;
    if let Some(role) = change.role {
        let role = role.to_string();
        check_role(&user.scope, &role, may_pass)?;
        record.role = role;
    }
    if let Some(directory) = change.directory {
        record.home.directory = Some(directory);
    }
    if let Some(mappings) = change.mappings {
        record.home.mappings = mappings;
    }
    record.home.check()?;
    if let Some(text) = change.policy {
        if !text.is_empty() {
            check_policy(&text)?;
        }
        record.policy = Some(text).filter(|text| !text.is_empty());
    }
    record.posix = change.posix.or_else(|| record.posix.take());
    save(work, &user)?;
    Ok(user)
}

/// Deletes a user with its keys.
pub fn delete_user(
    work: &mut Work<'_>,
    user: &User,
    permit: &Permit<action::transfer::DeleteUser>,
) -> Result<(), TransferError> {
    permit.opens(&user.arn())?;
    forget(work, user);
    Ok(())
}

/// Removes the record of a user.
pub(super) fn forget(work: &mut Work<'_>, user: &User) {
    work.delete(&user.record_key());
}

/// Adds a public key to a user, and returns its id.
pub fn add_key(
    work: &mut Work<'_>,
    mut user: User,
    line: &str,
    permit: &Permit<action::transfer::ImportSshPublicKey>,
) -> Result<String, TransferError> {
    permit.opens(&user.arn())?;
    let id = authorize_key(work, &mut user, line)?;
    save(work, &user)?;
    Ok(id)
}

fn authorize_key(work: &Work<'_>, user: &mut User, line: &str) -> Result<String, TransferError> {
    let new = KeyLine::parse(line)?;
    let keys = &mut user.record.keys;
    let same =
        |known: &AuthorizedKey| KeyLine::parse(&known.line).is_ok_and(|known| known.key == new.key);
    if keys.iter().any(same) {
        return Err(TransferError::exists(
            "Duplicate SshPublicKeyBody",
            "SshPublicKey",
            &new.key.fingerprint(),
        ));
    }
    let (quota, there) = (&quotas::SSH_KEYS_PER_USER, keys.len() as u64);
    let most = work.quota(quota);
    if there >= most {
        return Err(quotas::Reached::new(quota, most).into());
    }
    let id = new_id(KEY_PREFIX)?;
    keys.push(AuthorizedKey { id: id.clone(), line: new.text(), imported_ms: work.now_ms() });
    Ok(id)
}

/// Removes a public key from a user.
pub fn remove_key(
    work: &mut Work<'_>,
    mut user: User,
    id: &str,
    permit: &Permit<action::transfer::DeleteSshPublicKey>,
) -> Result<(), TransferError> {
    permit.opens(&user.arn())?;
    let before = user.record.keys.len();
    user.record.keys.retain(|key| key.id != id);
    if user.record.keys.len() == before || !is_id(id, KEY_PREFIX) {
        return Err(TransferError::not_found("Unknown SSH public key", "SshPublicKey", id));
    }
    Ok(save(work, &user)?)
}

/// Writes a user that was changed.
pub(super) fn save(work: &mut Work<'_>, user: &User) -> Result<(), Fault> {
    work.put(&user.record_key(), &user.record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_plain() {
        for good in ["bob", "a.b@example.com", "_ab", "0ab", "a..", &"a".repeat(100)] {
            assert!(is_name(good), "{good}");
        }
        for wrong in [
            "",
            "ab",
            ".ab",
            "@ab",
            "-ab",
            "a/b",
            "a/../b",
            "...",
            "a b",
            "ab\0",
            "b\u{f6}b",
            "ab\n",
            &"a".repeat(101),
        ] {
            assert!(!is_name(wrong), "{wrong:?}");
        }
    }
}
