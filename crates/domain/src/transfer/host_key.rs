//! Host keys. The private key is a sealed record of its own, which no operation returns.

use outlast_ssh::PublicKey;
use serde::{Deserialize, Serialize};

use super::material::Material;
use super::server::{self, Server};
use super::tag_set::{self, Tags};
use super::{HOST_KEY, TransferError, is_id, new_id};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::limits::MAX_PAGE;
use crate::work::{Page, Work};
use crate::{Fault, quotas};

/// A host key as stored, without the private key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) kind: String,
    /// The public key in the form in which SSH sends it, in hexadecimal.
    pub(super) public: String,
    pub(super) description: Option<String>,
    pub(super) imported_ms: i64,
    pub(super) tags: Tags,
}

/// A host key that was found.
#[derive(Debug, Clone)]
pub struct HostKey {
    scope: Scope,
    server: String,
    pub(super) record: Record,
}

/// Properties of a host key that is imported.
#[derive(Default)]
pub struct NewHostKey {
    /// Description.
    pub description: Option<String>,
    /// Tags.
    pub tags: Tags,
}

impl HostKey {
    /// Id, `hostkey-` and 17 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        HOST_KEY.arn(&self.scope, &self.path())
    }

    /// Name of its algorithm, such as `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        &self.record.kind
    }

    /// `SHA256:` and the digest of the public key.
    pub fn fingerprint(&self) -> Result<String, Fault> {
        let damaged = || Fault::Damaged(HOST_KEY.record_key(&self.scope, &self.path()));
        let blob = hex::decode(&self.record.public).map_err(|_| damaged())?;
        Ok(PublicKey::parse(&blob).map_err(|_| damaged())?.fingerprint())
    }

    /// Description.
    pub fn description(&self) -> Option<&str> {
        self.record.description.as_deref()
    }

    /// Milliseconds since 1970.
    pub fn imported_ms(&self) -> i64 {
        self.record.imported_ms
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    fn path(&self) -> String {
        format!("{}/{}", self.server, self.record.id)
    }

    /// Key of the sealed record with the private key.
    pub(super) fn secret_record_key(&self) -> String {
        secret_record_key(&self.scope, &self.path())
    }
}

fn secret_record_key(scope: &Scope, path: &str) -> String {
    format!("transfer/host-key-secret/{}/{}/{path}", scope.account, scope.region)
}

/// What the ids of host keys begin with.
const PREFIX: &str = "hostkey-";

/// Stores a host key of a server. The caller has checked that it may.
pub(super) fn store(
    work: &mut Work<'_>,
    server: &Server,
    material: &Material,
    new: NewHostKey,
) -> Result<HostKey, TransferError> {
    tag_set::check(&new.tags)?;
    let scope = server.scope();
    work.admit::<TransferError>(
        &quotas::HOST_KEYS_PER_SERVER,
        &[&scope.account, &scope.region, server.id()],
    )?;
    let record = Record {
        id: new_id(PREFIX)?,
        kind: material.public.key_type().to_owned(),
        public: hex::encode(material.public.blob()),
        description: new.description,
        imported_ms: work.now_ms(),
        tags: new.tags,
    };
    let key = HostKey { scope: scope.clone(), server: server.id().to_owned(), record };
    work.put(&HOST_KEY.record_key(scope, &key.path()), &key.record)?;
    work.put_secret(&key.secret_record_key(), &material.private)?;
    // A deletion of the server, or an import, at the same time must not miss this key.
    server::save(work, server)?;
    Ok(key)
}

/// Finds a host key by its id.
pub fn find_host_key(
    work: &mut Work<'_>,
    server: &Server,
    id: &str,
) -> Result<HostKey, TransferError> {
    let missing = || TransferError::not_found("Unknown host key", "HostKey", id);
    if !is_id(id, PREFIX) {
        return Err(missing());
    }
    let record_key = HOST_KEY.record_key(server.scope(), &server.within(id));
    let record = work.get::<Record>(&record_key)?.ok_or_else(missing)?;
    Ok(HostKey { scope: server.scope().clone(), server: server.id().to_owned(), record })
}

/// Lists host keys, after the marker of the previous page.
pub fn host_keys(
    work: &Work<'_>,
    server: &Server,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListHostKeys>,
) -> Result<Page<HostKey>, TransferError> {
    permit.opens(&server.arn())?;
    Ok(page(work, server, marker, limit)?)
}

/// The same for the service itself.
pub(super) fn page(
    work: &Work<'_>,
    server: &Server,
    marker: Option<&str>,
    limit: usize,
) -> Result<Page<HostKey>, Fault> {
    let prefix = HOST_KEY.record_key(server.scope(), &server.within(""));
    let page = work.page::<Record>(&prefix, marker, limit)?;
    let (scope, id) = (server.scope(), server.id());
    let of = |record| HostKey { scope: scope.clone(), server: id.to_owned(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Fingerprint of the oldest host key, if the server has one; among those of one moment that of `ssh-ed25519`, which most
/// clients show.
pub fn oldest_fingerprint(work: &Work<'_>, server: &Server) -> Result<Option<String>, Fault> {
    let keys = page(work, server, None, MAX_PAGE)?.items;
    let oldest =
        keys.iter().min_by_key(|key| (key.imported_ms(), key.kind() != "ssh-ed25519", key.id()));
    oldest.map(HostKey::fingerprint).transpose()
}

/// Changes the description of a host key.
pub fn update_host_key(
    work: &mut Work<'_>,
    mut key: HostKey,
    description: Option<String>,
    permit: &Permit<action::transfer::UpdateHostKey>,
) -> Result<HostKey, TransferError> {
    permit.opens(&key.arn())?;
    key.record.description = description.or(key.record.description);
    save(work, &key)?;
    Ok(key)
}

/// Deletes a host key with its private key.
pub fn delete_host_key(
    work: &mut Work<'_>,
    key: &HostKey,
    permit: &Permit<action::transfer::DeleteHostKey>,
) -> Result<(), TransferError> {
    permit.opens(&key.arn())?;
    forget(work, key);
    Ok(())
}

/// Removes the records of a host key.
pub(super) fn forget(work: &mut Work<'_>, key: &HostKey) {
    work.delete(&HOST_KEY.record_key(&key.scope, &key.path()));
    work.delete(&key.secret_record_key());
}

/// Writes a host key that was changed.
pub(super) fn save(work: &mut Work<'_>, key: &HostKey) -> Result<(), Fault> {
    work.put(&HOST_KEY.record_key(&key.scope, &key.path()), &key.record)
}
