//! Leases of the jobs of a connector: which jobs run, until when, and with how many of the connector's connections.
//!
//! All leases of a connector are one record, so that jobs which begin at the same time on several servers cannot have more
//! connections together than `MaxConcurrentConnections`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::arn::Scope;
use crate::limits;
use crate::work::Work;

/// Prefix of the records, by account, Region and connector.
const PREFIX: &str = "transfer/connector-lease/";

/// The lease of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    id: String,
    /// Its end, milliseconds since 1970.
    until_ms: i64,
    connections: u32,
}

/// The leases of a connector by the id of the job.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Leases(BTreeMap<String, Lease>);

impl Leases {
    /// Those that hold now.
    pub(super) fn load(work: &mut Work<'_>, scope: &Scope, connector: &str) -> Result<Self, Fault> {
        let now_ms = work.now_ms();
        let found = work.get::<Self>(&record_key(scope, connector))?;
        let mut leases = found.unwrap_or_default();
        leases.0.retain(|_, lease| lease.until_ms > now_ms);
        Ok(leases)
    }

    pub(super) fn save(
        &self,
        work: &mut Work<'_>,
        scope: &Scope,
        connector: &str,
    ) -> Result<(), Fault> {
        let record_key = record_key(scope, connector);
        if self.0.is_empty() {
            work.delete(&record_key);
            return Ok(());
        }
        work.put(&record_key, self)
    }

    /// Whether somebody has the job.
    pub(super) fn has(&self, job: &str) -> bool {
        self.0.contains_key(job)
    }

    /// Whether this is the lease of the job.
    pub(super) fn holds(&self, job: &str, lease: &str) -> bool {
        self.0.get(job).is_some_and(|found| found.id == lease)
    }

    /// Connections that no job has.
    pub(super) fn free(&self, most: u32) -> u32 {
        let used = self.0.values().fold(0_u32, |sum, lease| sum.saturating_add(lease.connections));
        most.saturating_sub(used)
    }

    /// Gives the job to somebody, or for longer.
    pub(super) fn set(&mut self, job: &str, id: &str, connections: u32, now_ms: i64) {
        let until_ms = now_ms.saturating_add(limits::CONNECTOR_LEASE_MS);
        self.0.insert(job.to_owned(), Lease { id: id.to_owned(), until_ms, connections });
    }

    /// Ends the lease of the job.
    pub(super) fn remove(&mut self, job: &str) {
        self.0.remove(job);
    }
}

/// Ends all leases of a connector.
pub(super) fn forget(work: &mut Work<'_>, scope: &Scope, connector: &str) {
    work.delete(&record_key(scope, connector));
}

fn record_key(scope: &Scope, connector: &str) -> String {
    format!("{PREFIX}{}/{}/{connector}", scope.account, scope.region)
}
