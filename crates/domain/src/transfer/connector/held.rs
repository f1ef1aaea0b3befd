//! A job that a server has under a lease.

use super::config::{self, Connector};
use super::job::Job;
use super::lease::Leases;
use super::record::{self, JobKey, JobRecord, Used};
use crate::Fault;
use crate::work::Work;

/// A job whose lease holds.
pub(super) struct Held {
    pub(super) key: JobKey,
    pub(super) leases: Leases,
    pub(super) connector: Connector,
    pub(super) job: JobRecord,
}

/// Finds what belongs to a job, if its lease holds.
pub(super) fn held(work: &mut Work<'_>, job: &Job) -> Result<Option<Held>, Fault> {
    let key = JobKey {
        scope: job.scope.clone(),
        connector: job.connector_id.clone(),
        id: job.id.clone(),
    };
    let leases = Leases::load(work, &key.scope, &key.connector)?;
    if !leases.holds(&key.id, &job.lease) {
        return Ok(None);
    }
    let connector = config::look_up(work, &key.scope, &key.connector)?;
    let (Some(connector), Some(record)) = (connector, record::load(work, &key)?) else {
        return Ok(None);
    };
    Ok(Some(Held { key, leases, connector, job: record }))
}

/// The connector of a job whose lease holds, and which is about to be done with the settings that the connector has now.
pub(super) fn connector_of(work: &mut Work<'_>, job: &Job) -> Result<Option<Connector>, Fault> {
    let Some(Held { key, connector, job: mut record, .. }) = held(work, job)? else {
        return Ok(None);
    };
    let used = Some(Used::of(&connector));
    if record.used != used {
        record.used = used;
        work.put(&key.job(), &record)?;
    }
    Ok(Some(connector))
}
