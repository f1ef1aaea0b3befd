//! Making a secret.

use std::collections::BTreeMap;

use outlast_crypto::random;

use super::SecretError;
use super::lookup::{INVALID_NAME, is_name};
use super::secret::{Record, Secret, arn, record_key};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, limits, quotas};

/// Properties of a new secret.
pub struct NewSecret {
    /// Name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// `KmsKeyId`; `None` for `alias/aws/secretsmanager`.
    pub kms_key: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    suffix: String,
}

impl NewSecret {
    /// A secret with this name and a random suffix.
    pub fn named(name: String) -> Result<Self, SecretError> {
        if !is_name(&name) || name.len() > limits::MAX_SECRET_NAME {
            return Err(SecretError::Validation(INVALID_NAME.into()));
        }
        let suffix = suffix()?;
        Ok(Self { name, description: None, kms_key: None, tags: BTreeMap::new(), suffix })
    }

    /// ARN that it will have in `scope`.
    pub fn arn(&self, scope: &Scope) -> String {
        arn(scope, &self.name, &self.suffix)
    }
}

/// Makes a secret without a version.
pub fn create(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewSecret,
    permit: &Permit<action::secretsmanager::CreateSecret>,
) -> Result<Secret, SecretError> {
    permit.opens(&new.arn(scope))?;
    check_tags(&new.tags)?;
    check_free(work, scope, &new.name)?;
    work.admit::<SecretError>(&quotas::SECRETS, &[&scope.account, &scope.region])?;
    let mut secret = Secret::new(
        scope.clone(),
        Record {
            name: new.name,
            suffix: new.suffix,
            description: new.description,
            kms_key: new.kms_key,
            tags: new.tags,
            created_ms: work.now_ms(),
            changed_ms: 0,
            accessed_ms: None,
            erase_ms: None,
            versions: BTreeMap::new(),
            next_number: 0,
            rotation: None,
            rotated_ms: None,
            primary: None,
            replicas: BTreeMap::new(),
        },
    );
    secret.save(work)?;
    super::list::note_created(work, &secret)?;
    Ok(secret)
}

/// Checks that a name is free.
pub(super) fn check_free(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
) -> Result<(), SecretError> {
    let Some(record) = work.get::<Record>(&record_key(scope, name))? else { return Ok(()) };
    if record.erase_ms.is_some() {
        return Err(SecretError::InvalidRequest(
            "You can't create this secret because a secret with this name is already scheduled for deletion.".into(),
        ));
    }
    Err(SecretError::Exists(format!(
        "The operation failed because the secret {name} already exists."
    )))
}

pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), SecretError> {
    if tags.len() > limits::MAX_TAGS {
        return Err(SecretError::InvalidParameter(format!(
            "A secret has at most {} tags.",
            limits::MAX_TAGS
        )));
    }
    Ok(())
}

/// Six letters and digits.
fn suffix() -> Result<String, Fault> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut out = String::with_capacity(6);
    while out.len() < 6 {
        for byte in random::bytes::<16>()? {
            // 248 is four times 62: the rest would favour the first letters.
            if byte < 248 && out.len() < 6 {
                out.push(char::from(ALPHABET[usize::from(byte % 62)]));
            }
        }
    }
    Ok(out)
}
