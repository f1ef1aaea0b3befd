//! Deletion of trust anchors, with what belongs to them.

use super::trust_anchor::TrustAnchor;
use super::{RolesAnywhereError, TRUST_ANCHOR, crl};
use crate::identity::{Permit, action};
use crate::work::Work;

/// Deletes an anchor with its CRLs.
pub fn delete_trust_anchor(
    work: &mut Work<'_>,
    anchor: TrustAnchor,
    permit: &Permit<action::rolesanywhere::DeleteTrustAnchor>,
) -> Result<TrustAnchor, RolesAnywhereError> {
    permit.opens(&anchor.arn())?;
    for id in &anchor.record.crls {
        crl::forget(work, anchor.scope(), id)?;
    }
    anchor.record.alias.remove(work, anchor.scope(), &TRUST_ANCHOR);
    work.delete(&TRUST_ANCHOR.record_key(anchor.scope(), anchor.id()));
    Ok(anchor)
}
