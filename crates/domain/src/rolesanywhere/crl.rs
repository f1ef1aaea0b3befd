//! Imported CRLs. Each belongs to a trust anchor and is signed by one of its CAs.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_pki::crl::Crl as Parsed;
use serde::{Deserialize, Serialize};

use super::alias::Alias;
use super::tag_set::{self, Tags};
use super::trust_anchor::{self, TrustAnchor};
use super::{CRL, RolesAnywhereError, TRUST_ANCHOR};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::quotas::Reached;
use crate::work::{Page, Work};
use crate::{Fault, ids, quotas};

/// A CRL as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    id: String,
    name: String,
    enabled: bool,
    /// As it came, DER or PEM, in base64.
    data: String,
    /// Id of its anchor.
    anchor: String,
    created_ms: i64,
    updated_ms: i64,
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    alias: Alias,
}

/// A CRL that was found.
#[derive(Debug, Clone)]
pub struct Crl {
    scope: Scope,
    pub(super) record: Record,
}

/// Properties of a new CRL.
pub struct NewCrl {
    /// Name.
    pub name: String,
    /// DER or PEM.
    pub data: Vec<u8>,
    /// Whether it counts at once.
    pub enabled: bool,
    /// Tags.
    pub tags: Tags,
    /// Alias.
    pub alias: Option<String>,
}

/// Changes of a CRL.
#[derive(Default)]
pub struct CrlUpdate {
    /// New name.
    pub name: Option<String>,
    /// A newer CRL.
    pub data: Option<Vec<u8>>,
    /// New alias; empty for none.
    pub alias: Option<String>,
}

impl Crl {
    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        CRL.arn(&self.scope, &self.record.id)
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Whether it counts.
    pub fn enabled(&self) -> bool {
        self.record.enabled
    }

    /// The CRL as it came.
    pub fn data(&self) -> Result<Vec<u8>, Fault> {
        let damaged = |_| Fault::Damaged(CRL.record_key(&self.scope, self.id()));
        STANDARD.decode(&self.record.data).map_err(damaged)
    }

    /// ARN of its anchor.
    pub fn trust_anchor_arn(&self) -> String {
        TRUST_ANCHOR.arn(&self.scope, &self.record.anchor)
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// Alias.
    pub fn alias(&self) -> &Alias {
        &self.record.alias
    }

    /// Parsed.
    pub(super) fn parsed(&self) -> Result<Parsed, Fault> {
        Parsed::parse(&self.data()?)
            .map_err(|_| Fault::Damaged(CRL.record_key(&self.scope, self.id())))
    }
}

/// Checks that a CA of the anchor signed the CRL, and that it is one that can be used.
///
/// It may be expired: what it lists was revoked, and stays so until a newer CRL says otherwise.
fn check(work: &mut Work<'_>, anchor: &TrustAnchor, data: &[u8]) -> Result<(), RolesAnywhereError> {
    let invalid = |why: &str| RolesAnywhereError::Validation(format!("Invalid CRL: {why}"));
    let crl = Parsed::parse(data).map_err(|error| invalid(&error.to_string()))?;
    if let Some(why) = crl.unusable() {
        return Err(invalid(why));
    }
    let roots = anchor.roots(work)?;
    if roots.iter().any(|root| crl.signed_by(root)) {
        return Ok(());
    }
    Err(invalid("its signature is not one of the trust anchor"))
}

/// Imports a CRL for a trust anchor.
pub fn import_crl(
    work: &mut Work<'_>,
    mut anchor: TrustAnchor,
    new: NewCrl,
    permit: &Permit<action::rolesanywhere::ImportCrl>,
) -> Result<Crl, RolesAnywhereError> {
    let scope = anchor.scope().clone();
    permit.opens(&CRL.arn(&scope, "*"))?;
    tag_set::check(&new.tags)?;
    check(work, &anchor, &new.data)?;
    let most = work.quota(&quotas::CRLS_PER_TRUST_ANCHOR);
    if anchor.record.crls.len() as u64 >= most {
        return Err(Reached::new(&quotas::CRLS_PER_TRUST_ANCHOR, most).into());
    }
    let now_ms = work.now_ms();
    let mut record = Record {
        id: ids::uuid()?,
        name: new.name,
        enabled: new.enabled,
        data: STANDARD.encode(&new.data),
        anchor: anchor.id().to_owned(),
        created_ms: now_ms,
        updated_ms: now_ms,
        tags: new.tags,
        alias: Alias::default(),
    };
    record.alias.set(work, &scope, &CRL, &record.id, new.alias)?;
    work.put(&CRL.record_key(&scope, &record.id), &record)?;
    anchor.record.crls.push(record.id.clone());
    trust_anchor::save(work, &mut anchor)?;
    Ok(Crl { scope, record })
}

/// Finds a CRL by its id, its ARN or the ARN of its alias.
pub fn find_crl(work: &mut Work<'_>, scope: &Scope, text: &str) -> Result<Crl, RolesAnywhereError> {
    let id = CRL.id_of(work, scope, text)?;
    by_id(work, scope, &id)?.ok_or_else(|| CRL.missing(text))
}

/// The one with this id.
pub(super) fn by_id(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Option<Crl>, Fault> {
    let record = work.get::<Record>(&CRL.record_key(scope, id))?;
    Ok(record.map(|record| Crl { scope: scope.clone(), record }))
}

/// Lists CRLs, after the marker of the previous page.
pub fn crls(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::rolesanywhere::ListCrls>,
) -> Result<Page<Crl>, RolesAnywhereError> {
    permit.opens(&CRL.arn(scope, "*"))?;
    let page = work.page::<Record>(&CRL.prefix(scope), marker, limit)?;
    let of = |record| Crl { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Changes a CRL.
pub fn update_crl(
    work: &mut Work<'_>,
    mut crl: Crl,
    update: CrlUpdate,
    permit: &Permit<action::rolesanywhere::UpdateCrl>,
) -> Result<Crl, RolesAnywhereError> {
    permit.opens(&crl.arn())?;
    if let Some(data) = update.data {
        let anchor = trust_anchor::by_id(work, &crl.scope, &crl.record.anchor)?;
        let anchor = anchor.ok_or_else(|| TRUST_ANCHOR.missing(&crl.trust_anchor_arn()))?;
        check(work, &anchor, &data)?;
        crl.record.data = STANDARD.encode(&data);
    }
    if let Some(name) = update.name {
        crl.record.name = name;
    }
    let record = &mut crl.record;
    record.alias.set(work, &crl.scope, &CRL, &record.id, update.alias)?;
    save(work, &mut crl)?;
    Ok(crl)
}

/// Enables or disables a CRL.
pub fn set_crl_enabled(
    work: &mut Work<'_>,
    mut crl: Crl,
    enabled: bool,
    permit: &Permit<impl action::EnablesCrl>,
) -> Result<Crl, RolesAnywhereError> {
    permit.opens(&crl.arn())?;
    crl.record.enabled = enabled;
    save(work, &mut crl)?;
    Ok(crl)
}

/// Deletes a CRL: what it lists is not revoked any more, unless another one lists it.
pub fn delete_crl(
    work: &mut Work<'_>,
    crl: Crl,
    permit: &Permit<action::rolesanywhere::DeleteCrl>,
) -> Result<Crl, RolesAnywhereError> {
    permit.opens(&crl.arn())?;
    if let Some(mut anchor) = trust_anchor::by_id(work, &crl.scope, &crl.record.anchor)? {
        anchor.record.crls.retain(|id| id != crl.id());
        trust_anchor::save(work, &mut anchor)?;
    }
    forget(work, &crl.scope, crl.id())?;
    Ok(crl)
}

/// Removes the record of a CRL, and of its alias.
pub(super) fn forget(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    if let Some(crl) = by_id(work, scope, id)? {
        crl.record.alias.remove(work, scope, &CRL);
    }
    work.delete(&CRL.record_key(scope, id));
    Ok(())
}

/// Writes a CRL that was changed.
pub(super) fn save(work: &mut Work<'_>, crl: &mut Crl) -> Result<(), Fault> {
    crl.record.updated_ms = work.now_ms();
    work.put(&CRL.record_key(&crl.scope, &crl.record.id), &crl.record)
}
