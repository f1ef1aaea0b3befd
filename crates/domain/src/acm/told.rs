//! What Certificate Manager tells about certificates: available, about to end, ended, revoked, not renewed.

use super::account;
use super::certificate::{self, Certificate, Origin, Record, Status};
use crate::Fault;
use crate::events::{self, Fact, Kind, Told};
use crate::work::{Due, Sweep, Swept, Work};

/// Prefix of the records of certificates.
const CERTIFICATES: &str = "acm/certificate/";
/// Days before the end at which a failed renewal is told, each once (AWS: "ACM Certificate Renewal Action Required").
const ACTION_DAYS: &[i64] = &[1, 3, 15, 30, 45];

/// Tells which certificates are about to end or have ended, in all accounts and Regions.
pub const TELL: Sweep = Sweep { find, handle: tell_end };

fn find(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    if !events::is_wanted(work, &[&events::CERTIFICATE_EXPIRING, &events::CERTIFICATE_EXPIRED]) {
        return Ok(Due::default());
    }
    work.due(CERTIFICATES, after, limit, |record: &Record, now_ms| {
        let end_ms = record.details.not_after * 1000;
        let is_told = matches!(record.status(now_ms), Status::Issued | Status::Expired);
        is_told
            && events::is_near(now_ms, end_ms, account::DEFAULT_DAYS)
            && events::is_recent(now_ms, end_ms)
    })
}

fn tell_end(work: &mut Work<'_>, record_key: &str, _: &mut Swept) -> Result<(), Fault> {
    let Some(certificate) = certificate::at(work, record_key, CERTIFICATES)? else { return Ok(()) };
    let (now_ms, end_ms) = (work.now_ms(), end_ms(&certificate));
    match certificate.status(now_ms) {
        Status::Issued => {
            let days = account::days_before_expiry(work, certificate.scope())?;
            let (kind, today) = (&events::CERTIFICATE_EXPIRING, events::day(now_ms));
            if events::is_near(now_ms, end_ms, days)
                && events::is_news(work, kind, &certificate.arn(), today)?
            {
                tell(work, kind, &certificate, [])?;
            }
        }
        // "Certificate Expired events aren't available for imported certificates."
        Status::Expired if certificate.record().origin != Origin::Imported => {
            let kind = &events::CERTIFICATE_EXPIRED;
            if events::has_just_ended(now_ms, end_ms)
                && events::is_news(work, kind, &certificate.arn(), end_ms)?
            {
                tell(work, kind, &certificate, [])?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Tells that a certificate is available. `action` is AWS's word for the reason.
pub(super) fn tell_available(
    work: &mut Work<'_>,
    certificate: &Certificate,
    action: &'static str,
) -> Result<(), Fault> {
    let action = (Fact::Action, action.into());
    tell(work, &events::CERTIFICATE_AVAILABLE, certificate, [action])
}

/// Tells that a certificate was revoked.
pub(super) fn tell_revoked(work: &mut Work<'_>, certificate: &Certificate) -> Result<(), Fault> {
    tell(work, &events::CERTIFICATE_REVOKED, certificate, [])
}

/// Tells that a renewal needs help, once for each of [`ACTION_DAYS`]. `reason` is AWS's word.
pub(super) fn tell_not_renewed(
    work: &mut Work<'_>,
    certificate: &Certificate,
    reason: &str,
) -> Result<(), Fault> {
    let (now_ms, end_ms) = (work.now_ms(), end_ms(certificate));
    let near = ACTION_DAYS.iter().find(|days| events::is_near(now_ms, end_ms, **days));
    let kind = &events::RENEWAL_ACTION_REQUIRED;
    // A later certificate may fail with as many days left.
    let news = |days: i64| end_ms / 1000 * 100 + days;
    if let Some(days) = near
        && events::is_news(work, kind, &certificate.arn(), news(*days))?
    {
        tell(work, kind, certificate, [(Fact::Reason, reason.into())])?;
    }
    Ok(())
}

fn end_ms(certificate: &Certificate) -> i64 {
    certificate.record().details.not_after * 1000
}

fn tell<const N: usize>(
    work: &mut Work<'_>,
    kind: &'static Kind,
    certificate: &Certificate,
    more: [(Fact, Told); N],
) -> Result<(), Fault> {
    let (record, end_ms) = (certificate.record(), end_ms(certificate));
    let name = record.details.common_name.as_deref().or(record.domain.as_deref());
    let method = record.public.as_ref().map(|public| public.method.name());
    let facts = [
        (Fact::CertificateType, record.kind().into()),
        (Fact::Created, Told::Time(record.created_ms)),
        (Fact::DaysLeft, events::days_left(work.now_ms(), end_ms).into()),
        (Fact::Ends, Told::Time(end_ms)),
        (Fact::Exportable, record.exportable.into()),
        (Fact::Exported, record.exported.into()),
        // No service of AWS uses it here.
        (Fact::InUse, false.into()),
    ];
    let facts = facts.into_iter().chain(more);
    let facts = facts.chain(name.map(|name| (Fact::CommonName, name.into())));
    let facts = facts.chain(method.map(|method| (Fact::ValidationMethod, method.into())));
    events::tell(work, kind, certificate.scope(), vec![certificate.arn()], facts)
}
