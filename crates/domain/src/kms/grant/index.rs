//! How grants are stored and found: by key, by retiring principal, and by what a repeated request would create;
//! [`usable`] finds them by who may do what with them.
//!
//! Everything that a decision depends on is read with the work's `get`, or guarded by a record that is: if a grant is
//! made or ended in between, the operation runs again.

pub(super) mod usable;

use outlast_crypto::digests;
use serde::{Deserialize, Serialize};

use super::{Grant, NewGrant};
use crate::arn::{Arn, Scope};
use crate::kms::record::Key;
use crate::work::{Page, Work};
use crate::{Fault, limits};

/// Where a grant is, for the indexes that point to it.
#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    account: String,
    key_id: String,
    grant_id: String,
}

impl Pointer {
    fn of(grant: &Grant) -> Self {
        Self {
            account: grant.account.clone(),
            key_id: grant.key_id.clone(),
            grant_id: grant.id.clone(),
        }
    }
}

/// Number of grants of a key. Everything that makes or ends a grant reads and writes it.
pub(super) fn count(work: &mut Work<'_>, key: &Key) -> Result<usize, Fault> {
    Ok(work.get(&count_record_key(key.scope(), key.id()))?.unwrap_or(0))
}

/// Writes a new grant with all its index entries.
pub(super) fn write(work: &mut Work<'_>, key: &Key, grant: &Grant) -> Result<(), Fault> {
    let count = count(work, key)?;
    work.put(&count_record_key(key.scope(), key.id()), &(count + 1))?;
    work.create(&record_key(key.scope(), key.id(), &grant.id), grant)?;
    for pointer in pointers(key.scope(), grant) {
        work.create(&pointer, &Pointer::of(grant))?;
    }
    if let Some(named) = named_record_key(key.scope(), key.id(), &NewGrant::like(grant)) {
        work.put(&named, &Pointer::of(grant))?;
    }
    Ok(())
}

/// Erases a grant with all its index entries.
pub(super) fn erase(work: &mut Work<'_>, scope: &Scope, grant: &Grant) -> Result<(), Fault> {
    let counted = count_record_key(scope, &grant.key_id);
    let count = work.get::<usize>(&counted)?.unwrap_or(0);
    match count.saturating_sub(1) {
        0 => work.delete(&counted),
        left => work.put(&counted, &left)?,
    }
    work.delete(&record_key(scope, &grant.key_id, &grant.id));
    for pointer in pointers(scope, grant).into_iter().chain(usable::old_record_key(scope, grant)) {
        work.delete(&pointer);
    }
    if let Some(named) = named_record_key(scope, &grant.key_id, &NewGrant::like(grant)) {
        // A later grant for other principals of the same names may have its entry.
        let pointer = work.get::<Pointer>(&named)?;
        if pointer.is_some_and(|pointer| pointer.grant_id == grant.id) {
            work.delete(&named);
        }
    }
    Ok(())
}

/// The grant that the same request made before, if it had a name.
pub(super) fn same(work: &mut Work<'_>, key: &Key, new: &NewGrant) -> Result<Option<Grant>, Fault> {
    let Some(named) = named_record_key(key.scope(), key.id(), new) else { return Ok(None) };
    match work.get::<Pointer>(&named)? {
        Some(pointer) => work.get(&record_key(key.scope(), key.id(), &pointer.grant_id)),
        None => Ok(None),
    }
}

/// A page of the grants of a key.
pub(super) fn page(
    work: &Work<'_>,
    key: &Key,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<Grant>, Fault> {
    work.page(&record_key(key.scope(), key.id(), ""), marker, limit)
}

/// A page of the grants that `retiring` may retire, on keys of any account in the Region of `scope`.
pub(super) fn retirable(
    work: &mut Work<'_>,
    scope: &Scope,
    retiring: &str,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<Grant>, Fault> {
    let page = work.page::<Pointer>(&retire_prefix(scope, retiring), marker, limit)?;
    let mut items = Vec::with_capacity(page.items.len());
    for pointer in page.items {
        let of = Scope { account: pointer.account, region: scope.region.clone() };
        items.extend(work.get::<Grant>(&record_key(&of, &pointer.key_id, &pointer.grant_id))?);
    }
    Ok(Page { items, next: page.next })
}

/// Erases all grants of a key.
pub(super) fn erase_all(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    // Read first: if a grant is made in the meantime, this runs again.
    count(work, key)?;
    let mut marker: Option<String> = None;
    loop {
        let page = page(work, key, marker.as_deref(), limits::MAX_PAGE)?;
        for grant in page.items {
            erase(work, key.scope(), &grant)?;
        }
        marker = page.next;
        if marker.is_none() {
            break;
        }
    }
    work.delete(&count_record_key(key.scope(), key.id()));
    Ok(())
}

/// The index entries of a grant.
fn pointers(scope: &Scope, grant: &Grant) -> Vec<String> {
    let retiring = [&grant.retiring, &grant.retiring_service].into_iter().flatten();
    let retiring = retiring.map(|name| retire_record_key(scope, name, grant));
    retiring.chain(usable::record_keys(scope, grant)).collect()
}

pub(super) fn record_key(scope: &Scope, key_id: &str, grant_id: &str) -> String {
    format!("kms/grant/{}/{}/{key_id}/{grant_id}", scope.account, scope.region)
}

fn count_record_key(scope: &Scope, key_id: &str) -> String {
    format!("kms/grant-count/{}/{}/{key_id}", scope.account, scope.region)
}

/// Record key that identifies a grant by everything that its request says.
fn named_record_key(scope: &Scope, key_id: &str, new: &NewGrant) -> Option<String> {
    new.name.as_ref()?;
    let request = serde_json::to_vec(new).unwrap_or_default();
    let digest = hex::encode(digests::sha256(&request));
    Some(format!("kms/grant-named/{}/{}/{key_id}/{digest}", scope.account, scope.region))
}

fn retire_prefix(scope: &Scope, retiring: &str) -> String {
    let name = hex::encode(digests::sha256(retiring.as_bytes()));
    format!("kms/grant-of/{}/{}/{name}/", scope.account, scope.region)
}

/// Filed under the account of the retiring principal, whichever account owns the key.
fn retire_record_key(scope: &Scope, retiring: &str, grant: &Grant) -> String {
    let arn = Arn::parse(retiring);
    let account = arn.map_or_else(|| scope.account.clone(), |arn| arn.account().to_owned());
    let of = Scope { account, region: scope.region.clone() };
    format!("{}{}.{}.{}", retire_prefix(&of, retiring), grant.account, grant.key_id, grant.id)
}
