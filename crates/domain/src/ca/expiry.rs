//! Tells which authorities are about to end.

use outlast_pki::name::common_names;

use super::authority::{Record, Status, authority_by_id};
use crate::Fault;
use crate::arn::Scope;
use crate::events::{self, Fact, Told};
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
    let name = common_names(certificate.subject()).next();
    facts.extend(name.map(|name| (Fact::CommonName, name.into())));
    events::tell(work, kind, &scope, vec![authority.arn()], facts)
}
