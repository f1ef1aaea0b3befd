//! What Private CA tells about authorities and what they have made.

use outlast_pki::certificate::Certificate;
use outlast_pki::name::attributes;

use super::authority::{Record, Status, authority_by_id};
use crate::Fault;
use crate::arn::{Arn, Scope};
use crate::events::{self, Fact, Kind, Told};
use crate::work::{Due, Sweep, Swept, Work};

/// Prefix of the records of authorities.
const AUTHORITIES: &str = "ca/authority/";

/// Tells which authorities are about to end or have ended, in all accounts and Regions.
pub const TELL: Sweep = Sweep { find, handle: tell_end };

fn find(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    if !events::is_wanted(work, &[&events::AUTHORITY_EXPIRING, &events::AUTHORITY_EXPIRED]) {
        return Ok(Due::default());
    }
    // The end is in the certificate, which parsing costs more than reading.
    work.due(AUTHORITIES, after, limit, |record: &Record, _| record.status != Status::Deleted)
}

fn tell_end(work: &mut Work<'_>, record_key: &str, _: &mut Swept) -> Result<(), Fault> {
    let damaged = || Fault::Damaged(record_key.to_owned());
    let rest = record_key.strip_prefix(AUTHORITIES).ok_or_else(damaged)?;
    let parts: Vec<_> = rest.split('/').collect();
    let [account, region, id] = parts.as_slice() else { return Err(damaged()) };
    let scope = Scope { account: (*account).to_owned(), region: (*region).to_owned() };
    let Some(authority) = authority_by_id(work, &scope, id)? else { return Ok(()) };
    let Some(certificate) = authority.certificate() else { return Ok(()) };
    if authority.status() == Status::Deleted {
        return Ok(());
    }
    let (now_ms, end_ms) = (work.now_ms(), certificate.not_after() * 1000);
    let days = work.settings().events.authority_days;
    let (kind, news) = if end_ms < now_ms {
        (&events::AUTHORITY_EXPIRED, end_ms)
    } else if events::is_near(now_ms, end_ms, days) {
        (&events::AUTHORITY_EXPIRING, events::day(now_ms))
    } else {
        return Ok(());
    };
    if !events::is_recent(now_ms, end_ms) || !events::is_news(work, kind, &authority.arn(), news)? {
        return Ok(());
    }
    let mut facts = vec![
        (Fact::DaysLeft, events::days_left(now_ms, end_ms).into()),
        (Fact::Ends, Told::Time(end_ms)),
    ];
    facts.extend(common_name(certificate).map(|name| (Fact::CommonName, name.into())));
    events::tell(work, kind, &scope, vec![authority.arn()], facts)
}

fn common_name(certificate: &Certificate) -> Option<String> {
    let found = attributes(certificate.subject()).into_iter();
    found.filter(|(oid, _)| oid.to_string() == "2.5.4.3").map(|(_, value)| value).next()
}

/// Tells what an authority has done. `also` are resources beside it.
pub(super) fn tell_success(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
) -> Result<(), Fault> {
    tell_result(work, kind, authority, also, [(Fact::Result, "success".into())])
}

/// Tells what an authority could not do, and AWS's reason, if there is one.
pub(super) fn tell_failure(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
    reason: Option<&str>,
) -> Result<(), Fault> {
    let facts = [(Fact::Result, "failure".into())].into_iter();
    let facts = facts.chain(reason.map(|reason| (Fact::Reason, reason.into())));
    tell_result(work, kind, authority, also, facts)
}

fn tell_result(
    work: &mut Work<'_>,
    kind: &'static Kind,
    authority: &str,
    also: Option<String>,
    facts: impl IntoIterator<Item = (Fact, Told)>,
) -> Result<(), Fault> {
    // Issuing is frequent: nothing is parsed for nobody.
    if !events::is_wanted(work, &[kind]) {
        return Ok(());
    }
    let arn = Arn::parse(authority).ok_or_else(|| Fault::Damaged(authority.to_owned()))?;
    let scope = Scope { account: arn.account().to_owned(), region: arn.region().to_owned() };
    let resources = [authority.to_owned()].into_iter().chain(also).collect();
    events::tell(work, kind, &scope, resources, facts)
}
