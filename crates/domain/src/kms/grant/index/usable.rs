//! Finds the grants of a key by grantee, operation and constraint, so that a call reads only the grants that allow
//! it, and not all grants of its caller.
//!
//! A grant has a pointer for each of its operations. The pointer's record key expresses everything that
//! [`Grant::permits`] checks, except constraints on part of an encryption context: such a grant is filed under the
//! first of its pairs, and looked up with each pair of the request. Pointers decide nothing: the grant that one
//! points to is read and checked.
//!
//! Earlier versions had one pointer for each grant ([`OLD`]). Those are read, too, until [`REFILE`] has replaced
//! them.

use std::collections::BTreeSet;

use outlast_crypto::digests;

use super::{Grant, Pointer, record_key};
use crate::arn::{self, Scope};
use crate::kms::EncryptionContext;
use crate::kms::asker::Access;
use crate::kms::grant::WITHOUT_CONTEXT;
use crate::kms::record::Key;
use crate::work::{Sweep, Swept, Work};
use crate::{Fault, limits};

/// Prefix of the pointers. They are not part of the register ([`crate::register`]): a pointer gives nobody a
/// permission.
const POINTERS: &str = "kms/by-grantee/";
/// Prefix of earlier versions' pointers: by grantee only.
const OLD: &str = "kms/grant-to/";
/// Pointers that are read first; if those grants do not decide, more are read at a time.
const FIRST: usize = 4;

/// Replaces old pointers by new ones.
pub(in crate::kms) const REFILE: Sweep = Sweep {
    find: |work, after, limit| work.due(OLD, after, limit, |_: &Pointer, _| true),
    handle: refile,
};

fn refile(work: &mut Work<'_>, old: &str, _: &mut Swept) -> Result<(), Fault> {
    let Some(pointer) = work.get::<Pointer>(old)? else { return Ok(()) };
    let region = old.split('/').nth(3).ok_or_else(|| Fault::Damaged(old.to_owned()))?;
    let scope = Scope { account: pointer.account.clone(), region: region.to_owned() };
    let found = work.get::<Grant>(&record_key(&scope, &pointer.key_id, &pointer.grant_id))?;
    if let Some(grant) = found {
        for new in record_keys(&scope, &grant) {
            work.create(&new, &pointer)?;
        }
    }
    work.delete(old);
    Ok(())
}

/// Record keys of a grant's pointers.
pub(super) fn record_keys(scope: &Scope, grant: &Grant) -> Vec<String> {
    let Some(grantee) = &grant.grantee else { return Vec::new() };
    let record_key = |operation: &String| {
        let bucket = Bucket {
            grantee_id: grant.grantee_id.as_deref(),
            shape: shape_of(grant, operation),
            source: grant.constraints.source_arn.as_deref().filter(|_| asks_source(operation)),
        };
        let prefix = prefix(scope, &grant.key_id, grantee, operation);
        format!("{prefix}{}/{}", bucket.name(), grant.id)
    };
    grant.operations.iter().map(record_key).collect()
}

/// Record key of an earlier version's pointer.
pub(super) fn old_record_key(scope: &Scope, grant: &Grant) -> Option<String> {
    let grantee = grant.grantee.as_deref()?;
    Some(format!("{}{}", old_prefix(scope, &grant.key_id, grantee), grant.id))
}

/// Which grants to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kms) enum Constrained {
    /// Those whose constraints the request meets, as far as record keys tell.
    Met,
    /// All, whatever their constraints.
    Any,
}

/// The first matching grant of a key for the caller (itself, its role, or then its account) and this operation.
pub(in crate::kms) fn find(
    work: &mut Work<'_>,
    key: &Key,
    access: Access<'_>,
    (operation, constrained): (&str, Constrained),
    fits: impl Fn(&Grant) -> bool,
) -> Result<Option<Grant>, Fault> {
    let principal = &access.caller.principal;
    let root = arn::iam(&principal.account, "root");
    for name in [Some(principal.arn()), principal.role_arn(), Some(root)].into_iter().flatten() {
        let all = prefix(key.scope(), key.id(), &name, operation);
        let mut prefixes = BTreeSet::from([old_prefix(key.scope(), key.id(), &name)]);
        if constrained == Constrained::Any {
            prefixes.insert(all);
        } else if !work.scan::<Pointer>(&all, "", 1)?.is_empty() {
            // Usually there are no grants at all, and this line is not reached.
            let buckets = buckets(access, operation);
            prefixes.extend(buckets.iter().map(|bucket| format!("{all}{}/", bucket.name())));
        }
        for prefix in prefixes {
            if let Some(found) = first(work, key, &prefix, &fits)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The first matching grant among those that the pointers below a prefix point to. It is read as part of the work.
fn first(
    work: &mut Work<'_>,
    key: &Key,
    prefix: &str,
    fits: &impl Fn(&Grant) -> bool,
) -> Result<Option<Grant>, Fault> {
    let (mut after, mut limit) = (String::new(), FIRST);
    loop {
        let page = work.scan::<Pointer>(prefix, &after, limit)?;
        let last = page.last().map(|(last, _)| last.clone()).filter(|_| page.len() == limit);
        for (_, pointer) in page {
            let grant = work.get::<Grant>(&record_key(key.scope(), key.id(), &pointer.grant_id))?;
            if let Some(found) = grant.filter(fits) {
                return Ok(Some(found));
            }
        }
        let Some(last) = last else { return Ok(None) };
        (after, limit) = (last, limits::MAX_PAGE);
    }
}

/// Grants that allow the same caller the same.
struct Bucket<'a> {
    grantee_id: Option<&'a str>,
    shape: Shape<'a>,
    source: Option<&'a str>,
}

/// The constraint on the encryption context.
#[derive(Clone, Copy)]
enum Shape<'a> {
    /// Nothing.
    Any,
    /// Must equal this one; `None` is an empty one.
    Equals(Option<&'a EncryptionContext>),
    /// Must contain at least this pair.
    Has(&'a str, &'a str),
}

impl Bucket<'_> {
    fn name(&self) -> String {
        let Self { grantee_id, shape, source } = self;
        let shape = match shape {
            Shape::Any => serde_json::json!("any"),
            Shape::Equals(None) => serde_json::json!({ "equals": {} }),
            Shape::Equals(Some(context)) => serde_json::json!({ "equals": context }),
            Shape::Has(name, value) => serde_json::json!({ "has": [name, value] }),
        };
        short_digest(&serde_json::json!([grantee_id, shape, source]).to_string())
    }
}

fn shape_of<'a>(grant: &'a Grant, operation: &str) -> Shape<'a> {
    let (subset, equals) = (&grant.constraints.subset, &grant.constraints.equals);
    let first = subset.as_ref().and_then(|subset| subset.first_key_value());
    match (equals, first) {
        _ if WITHOUT_CONTEXT.contains(&operation) => Shape::Any,
        (Some(equals), _) => Shape::Equals(Some(equals)),
        (None, Some((name, value))) => Shape::Has(name, value),
        (None, None) => Shape::Any,
    }
}

/// Whether constraints on the source apply to the operation.
fn asks_source(operation: &str) -> bool {
    operation != "RetireGrant"
}

/// The buckets of the grants that allow the operation.
fn buckets<'a>(access: Access<'a>, operation: &str) -> Vec<Bucket<'a>> {
    let mut shapes = vec![Shape::Any];
    if !WITHOUT_CONTEXT.contains(&operation) {
        shapes.push(Shape::Equals(access.context));
        let pairs = access.context.into_iter().flatten();
        shapes.extend(pairs.map(|(name, value)| Shape::Has(name, value)));
    }
    let sources = access.conditions.get("aws:SourceArn").unwrap_or_default();
    // Grants for accounts, and those of earlier versions, have no unique id.
    let ids = [None, Some(access.caller.principal.principal_id())];
    let mut buckets = Vec::new();
    for shape in shapes {
        for grantee_id in ids {
            buckets.push(Bucket { grantee_id, shape, source: None });
            for source in sources {
                buckets.push(Bucket { grantee_id, shape, source: Some(source) });
            }
        }
    }
    buckets
}

fn prefix(scope: &Scope, key_id: &str, grantee: &str, operation: &str) -> String {
    let name = short_digest(grantee);
    format!("{POINTERS}{}/{}/{key_id}/{name}/{operation}/", scope.account, scope.region)
}

fn old_prefix(scope: &Scope, key_id: &str, grantee: &str) -> String {
    let name = hex::encode(digests::sha256(grantee.as_bytes()));
    format!("{OLD}{}/{}/{key_id}/{name}/", scope.account, scope.region)
}

/// A collision costs one read: the grant itself is checked.
fn short_digest(text: &str) -> String {
    let digest = digests::sha256(text.as_bytes());
    hex::encode(digest.split_at(16).0)
}
