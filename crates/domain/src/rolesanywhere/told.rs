//! What Roles Anywhere tells about certificates that are about to end, as the notification settings of their trust anchors say.

use outlast_pki::certificate::Certificate;

use super::notification::{CA_EXPIRY, WORKLOAD_EXPIRY};
use super::trust_anchor::{Record, TrustAnchor, at};
use crate::Fault;
use crate::events::{self, Fact, Kind};
use crate::work::{Due, Sweep, Swept, Work};

/// Prefix of the records of trust anchors.
const ANCHORS: &str = "rolesanywhere/trust-anchor/";

/// Tells which certificates of enabled trust anchors are about to end or have just ended, in all accounts and Regions.
pub const TELL: Sweep = Sweep { find, handle };

fn find(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    if !events::is_wanted(work, &[&events::ANCHOR_EXPIRING]) {
        return Ok(Due::default());
    }
    work.due(ANCHORS, after, limit, |record: &Record, _| {
        record.enabled
            && record.notifications.iter().any(|one| one.threshold_of(CA_EXPIRY).is_some())
    })
}

fn handle(work: &mut Work<'_>, record_key: &str, _: &mut Swept) -> Result<(), Fault> {
    let Some(anchor) = at(work, record_key)?.filter(TrustAnchor::enabled) else { return Ok(()) };
    for certificate in anchor.roots(work)? {
        tell(work, &anchor, &certificate, CA_EXPIRY)?;
    }
    Ok(())
}

/// Tells that a certificate that begins a session is about to end.
pub(super) fn tell_workload(
    work: &mut Work<'_>,
    anchor: &TrustAnchor,
    certificate: &Certificate,
) -> Result<(), Fault> {
    tell(work, anchor, certificate, WORKLOAD_EXPIRY)
}

/// Tells once a day that a certificate is about to end, if the anchor's settings say so.
fn tell(
    work: &mut Work<'_>,
    anchor: &TrustAnchor,
    certificate: &Certificate,
    event: &str,
) -> Result<(), Fault> {
    let kind: &'static Kind = match event {
        CA_EXPIRY => &events::ANCHOR_EXPIRING,
        _ => &events::WORKLOAD_EXPIRING,
    };
    let Some(days) = anchor.notifications().iter().find_map(|one| one.threshold_of(event)) else {
        return Ok(());
    };
    let (now_ms, end_ms) = (work.now_ms(), certificate.not_after() * 1000);
    if !events::is_near(now_ms, end_ms, days) || !events::is_recent(now_ms, end_ms) {
        return Ok(());
    }
    let serial = hex::encode_upper(certificate.serial());
    let subject = format!("{}/{serial}", anchor.arn());
    if !events::is_news(work, kind, &subject, events::day(now_ms))? {
        return Ok(());
    }
    let facts = [
        (Fact::SerialNumber, serial.into()),
        (Fact::DaysLeft, events::days_left(now_ms, end_ms).into()),
        (Fact::Issuer, certificate.issuer().to_string().into()),
    ];
    // AWS names no resource for a certificate that is not the anchor's.
    let resources = if event == CA_EXPIRY { vec![anchor.arn()] } else { Vec::new() };
    events::tell(work, kind, anchor.scope(), resources, facts)
}
