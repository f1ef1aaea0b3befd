//! Who calls, and what they may do.
//!
//! There is one kind of principal so far, the administrator of an account, who may do everything in it.

use outlast_crypto::Secret;
use serde::{Deserialize, Serialize};

use crate::arn::Arn;
use crate::work::Work;
use crate::{Fault, ids};

/// An access key as stored; its secret is a record of its own, sealed.
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
}

/// A caller whose signature has been verified.
#[derive(Debug, Clone)]
pub struct Principal {
    /// Account that it belongs to.
    pub account: String,
    /// Name of the user.
    pub user: String,
    /// Unique id of the user.
    pub user_id: String,
    /// Access key that signed.
    pub access_key_id: String,
}

impl Principal {
    /// `arn:aws:iam::account:user/name`
    pub fn arn(&self) -> String {
        format!("arn:aws:iam::{}:user/{}", self.account, self.user)
    }
}

/// Proof that a principal may do one action on one resource. Only [`authorize`] makes it.
#[derive(Debug)]
pub struct Allowed(());

/// The refusal, with what an operator needs to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("User: {principal} is not authorized to perform: {action} on resource: {resource}")]
pub struct Denied {
    /// ARN of the caller.
    pub principal: String,
    /// Action such as `kms:Sign`.
    pub action: &'static str,
    /// ARN of the resource.
    pub resource: String,
}

/// Decides whether `principal` may do `action` on the resource with the ARN `resource`.
pub fn authorize(
    principal: &Principal,
    action: &'static str,
    resource: &str,
) -> Result<Allowed, Denied> {
    let same_account = Arn::parse(resource).is_some_and(|arn| arn.account == principal.account);
    if same_account {
        return Ok(Allowed(()));
    }
    Err(Denied { principal: principal.arn(), action, resource: resource.to_owned() })
}

/// Makes an access key for the administrator of `account`. `id` is generated when absent.
pub fn create_access_key(
    work: &mut Work<'_>,
    account: &str,
    user: &str,
    id: Option<String>,
    secret: &Secret,
) -> Result<AccessKey, Fault> {
    let id = match id {
        Some(id) => id,
        None => ids::base32("AKIA", 16)?,
    };
    let key = AccessKey {
        account: account.to_owned(),
        user: user.to_owned(),
        user_id: ids::base32("AIDA", 17)?,
        created_ms: work.now_ms(),
        id,
    };
    work.put(&record_key(&key.id), &key)?;
    work.put_secret(&secret_key(&key.id), secret)?;
    Ok(key)
}

/// The access key with this id and its secret.
pub fn find_access_key(
    work: &mut Work<'_>,
    id: &str,
) -> Result<Option<(Principal, Secret)>, Fault> {
    if !is_access_key_id(id) {
        return Ok(None);
    }
    let Some(key) = work.get::<AccessKey>(&record_key(id))? else { return Ok(None) };
    let secret_record = secret_key(id);
    let secret =
        work.secret(&secret_record)?.ok_or_else(|| Fault::Damaged(secret_record.clone()))?;
    let principal = Principal {
        account: key.account,
        user: key.user,
        user_id: key.user_id,
        access_key_id: key.id,
    };
    Ok(Some((principal, secret)))
}

/// Whether `text` can be an access key id: 3 to 128 letters, digits and underscores. AWS's have 20; shorter
/// ones exist in the wild.
pub fn is_access_key_id(text: &str) -> bool {
    (3..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn record_key(id: &str) -> String {
    format!("iam/access-key/{id}")
}

fn secret_key(id: &str) -> String {
    format!("iam/access-key-secret/{id}")
}
