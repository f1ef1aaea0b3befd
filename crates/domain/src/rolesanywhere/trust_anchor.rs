//! Trust anchors: the CAs whose certificates authenticate.

use std::collections::BTreeMap;

use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use serde::{Deserialize, Serialize};

use super::alias::Alias;
use super::notification::{self, Notification};
use super::tag_set::{self, Tags};
use super::{RolesAnywhereError, TRUST_ANCHOR, certificate};
use crate::arn::{Arn, Scope};
use crate::ca::{self, CaError, Status};
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{Fault, ids, limits, quotas};

/// `TrustAnchorType`: the sources that are served.
pub const SOURCES: &[&str] = &["AWS_ACM_PCA", "CERTIFICATE_BUNDLE"];

/// The CAs of an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Certificates in PEM, as they were given.
    Bundle(String),
    /// ARN of a private CA of this service, whose certificate and revocations are always the current ones.
    PrivateCa(String),
}

/// An anchor as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    id: String,
    name: String,
    source: Source,
    pub(super) enabled: bool,
    created_ms: i64,
    updated_ms: i64,
    pub(super) notifications: Vec<Notification>,
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) alias: Alias,
    /// Ids of its CRLs. Here, so that a session reads them together with the anchor and conflicts with an import.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) crls: Vec<String>,
}

/// An anchor that was found.
#[derive(Debug, Clone)]
pub struct TrustAnchor {
    scope: Scope,
    pub(super) record: Record,
}

/// Properties of a new anchor.
pub struct NewTrustAnchor {
    /// Name.
    pub name: String,
    /// Its CAs.
    pub source: Source,
    /// Whether it can be used at once.
    pub enabled: bool,
    /// Tags.
    pub tags: Tags,
    /// Notification settings instead of the defaults.
    pub notifications: Vec<Notification>,
    /// Alias.
    pub alias: Option<String>,
}

/// Changes of an anchor.
#[derive(Default)]
pub struct TrustAnchorUpdate {
    /// New name.
    pub name: Option<String>,
    /// New CAs.
    pub source: Option<Source>,
    /// New alias; empty for none.
    pub alias: Option<String>,
}

impl TrustAnchor {
    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// ARN.
    pub fn arn(&self) -> String {
        TRUST_ANCHOR.arn(&self.scope, &self.record.id)
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Its CAs.
    pub fn source(&self) -> &Source {
        &self.record.source
    }

    /// Whether it can be used.
    pub fn enabled(&self) -> bool {
        self.record.enabled
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Milliseconds since 1970.
    pub fn updated_ms(&self) -> i64 {
        self.record.updated_ms
    }

    /// Notification settings.
    pub fn notifications(&self) -> &[Notification] {
        &self.record.notifications
    }

    /// Tags.
    pub fn tags(&self) -> &Tags {
        &self.record.tags
    }

    /// Alias.
    pub fn alias(&self) -> &Alias {
        &self.record.alias
    }

    /// The certificates of its CAs as they are now; none if its private CA is deleted.
    pub(super) fn roots(&self, work: &mut Work<'_>) -> Result<Vec<Certificate>, Fault> {
        match &self.record.source {
            Source::Bundle(text) => {
                let damaged = |_| Fault::Damaged(TRUST_ANCHOR.record_key(&self.scope, self.id()));
                let found = pem::read_certificates(text.as_bytes()).map_err(damaged)?;
                found.iter().map(|der| Certificate::parse(der).map_err(damaged)).collect()
            }
            Source::PrivateCa(arn) => {
                let authority = match ca::find(work, &self.scope, arn) {
                    Ok(authority) if authority.status() != Status::Deleted => authority,
                    Err(CaError::Fault(fault)) => return Err(fault),
                    Ok(_) | Err(_) => return Ok(Vec::new()),
                };
                Ok(authority.certificate().cloned().into_iter().collect())
            }
        }
    }
}

/// Checks a new source.
fn check(work: &mut Work<'_>, scope: &Scope, source: &Source) -> Result<(), RolesAnywhereError> {
    match source {
        Source::Bundle(text) => {
            // It is shown to everybody who may see the anchor.
            if text.contains("PRIVATE KEY") {
                return Err(RolesAnywhereError::validation("The bundle contains a private key"));
            }
            let found = pem::read_certificates(text.as_bytes()).map_err(|error| {
                RolesAnywhereError::Validation(format!("The certificate bundle is {error}"))
            })?;
            if found.len() > limits::MAX_ANCHOR_CERTIFICATES {
                let text = format!(
                    "A certificate bundle has at most {} certificates",
                    limits::MAX_ANCHOR_CERTIFICATES
                );
                return Err(RolesAnywhereError::Validation(text));
            }
            for der in found {
                let parsed = Certificate::parse(&der)
                    .map_err(|error| RolesAnywhereError::Validation(error.to_string()))?;
                certificate::check_authority(&parsed)?;
            }
            Ok(())
        }
        Source::PrivateCa(arn) => {
            let unusable = |why: &str| {
                RolesAnywhereError::Validation(format!("The certificate authority {arn} {why}"))
            };
            let of_scope = Arn::parse(arn).is_some_and(|parsed| parsed.is_in(scope));
            let found = ca::find(work, scope, arn);
            let authority = match found {
                Ok(authority) if of_scope => authority,
                Err(CaError::Fault(fault)) => return Err(fault.into()),
                Ok(_) | Err(_) => return Err(unusable("was not found")),
            };
            match authority.certificate() {
                Some(own) if authority.status() != Status::Deleted => {
                    certificate::check_authority(own)
                }
                _ => Err(unusable("has no certificate")),
            }
        }
    }
}

/// Makes a trust anchor.
pub fn create_trust_anchor(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewTrustAnchor,
    permit: &Permit<action::rolesanywhere::CreateTrustAnchor>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&TRUST_ANCHOR.arn(scope, "*"))?;
    tag_set::check(&new.tags)?;
    check(work, scope, &new.source)?;
    work.admit::<RolesAnywhereError>(&quotas::TRUST_ANCHORS, &[&scope.account, &scope.region])?;
    let now_ms = work.now_ms();
    let mut notifications = notification::defaults();
    notification::merge(&mut notifications, new.notifications);
    let mut record = Record {
        id: ids::uuid()?,
        name: new.name,
        source: new.source,
        enabled: new.enabled,
        created_ms: now_ms,
        updated_ms: now_ms,
        notifications,
        tags: new.tags,
        alias: Alias::default(),
        crls: Vec::new(),
    };
    record.alias.set(work, scope, &TRUST_ANCHOR, &record.id, new.alias)?;
    work.put(&TRUST_ANCHOR.record_key(scope, &record.id), &record)?;
    Ok(TrustAnchor { scope: scope.clone(), record })
}

/// Finds an anchor by its id, its ARN or the ARN of its alias.
pub fn find_trust_anchor(
    work: &mut Work<'_>,
    scope: &Scope,
    text: &str,
) -> Result<TrustAnchor, RolesAnywhereError> {
    let id = TRUST_ANCHOR.id_of(work, scope, text)?;
    by_id(work, scope, &id)?.ok_or_else(|| TRUST_ANCHOR.missing(text))
}

/// The one with this id.
pub(super) fn by_id(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<TrustAnchor>, Fault> {
    let record = work.get::<Record>(&TRUST_ANCHOR.record_key(scope, id))?;
    Ok(record.map(|record| TrustAnchor { scope: scope.clone(), record }))
}

/// The one of this record.
pub(super) fn at(work: &mut Work<'_>, record_key: &str) -> Result<Option<TrustAnchor>, Fault> {
    let parts: Vec<_> = record_key.split('/').collect();
    let [_, _, account, region, id] = parts.as_slice() else {
        return Err(Fault::Damaged(record_key.to_owned()));
    };
    let scope = Scope { account: (*account).to_owned(), region: (*region).to_owned() };
    by_id(work, &scope, id)
}

/// Lists anchors, after the marker of the previous page.
pub fn trust_anchors(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::rolesanywhere::ListTrustAnchors>,
) -> Result<Page<TrustAnchor>, RolesAnywhereError> {
    permit.opens(&TRUST_ANCHOR.arn(scope, "*"))?;
    let page = work.page::<Record>(&TRUST_ANCHOR.prefix(scope), marker, limit)?;
    let of = |record| TrustAnchor { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Changes an anchor.
pub fn update_trust_anchor(
    work: &mut Work<'_>,
    mut anchor: TrustAnchor,
    update: TrustAnchorUpdate,
    permit: &Permit<action::rolesanywhere::UpdateTrustAnchor>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&anchor.arn())?;
    if let Some(source) = update.source {
        check(work, &anchor.scope, &source)?;
        anchor.record.source = source;
    }
    if let Some(name) = update.name {
        anchor.record.name = name;
    }
    let record = &mut anchor.record;
    record.alias.set(work, &anchor.scope, &TRUST_ANCHOR, &record.id, update.alias)?;
    save(work, &mut anchor)?;
    Ok(anchor)
}

/// Enables or disables an anchor.
pub fn set_trust_anchor_enabled(
    work: &mut Work<'_>,
    mut anchor: TrustAnchor,
    enabled: bool,
    permit: &Permit<impl action::EnablesTrustAnchor>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&anchor.arn())?;
    anchor.record.enabled = enabled;
    save(work, &mut anchor)?;
    Ok(anchor)
}

/// Sets notifications.
pub fn put_notifications(
    work: &mut Work<'_>,
    mut anchor: TrustAnchor,
    new: Vec<Notification>,
    permit: &Permit<action::rolesanywhere::PutNotificationSettings>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&anchor.arn())?;
    notification::merge(&mut anchor.record.notifications, new);
    save(work, &mut anchor)?;
    Ok(anchor)
}

/// Puts notifications, each given by its event and channel, back to the default.
pub fn reset_notifications(
    work: &mut Work<'_>,
    mut anchor: TrustAnchor,
    keys: &[(String, Option<String>)],
    permit: &Permit<action::rolesanywhere::ResetNotificationSettings>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&anchor.arn())?;
    let named = |one: &Notification| {
        keys.iter().any(|(event, channel)| {
            one.is_for(event, channel.as_deref().unwrap_or(notification::CHANNELS[0]))
        })
    };
    let defaults = notification::defaults().into_iter().filter(named).collect();
    notification::merge(&mut anchor.record.notifications, defaults);
    save(work, &mut anchor)?;
    Ok(anchor)
}

/// Writes an anchor that was changed.
pub(super) fn save(work: &mut Work<'_>, anchor: &mut TrustAnchor) -> Result<(), Fault> {
    anchor.record.updated_ms = work.now_ms();
    work.put(&TRUST_ANCHOR.record_key(&anchor.scope, &anchor.record.id), &anchor.record)
}
