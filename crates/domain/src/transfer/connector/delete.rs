//! The end of a connector, which is also that of its jobs.

use super::config::Connector;
use super::report::Report;
use super::{lease, run};
use crate::identity::{Permit, action};
use crate::transfer::TransferError;
use crate::work::Work;

/// Deletes a connector. Jobs that run have lost their lease with this, and stop at their next result: the reports, which are for
/// the audit trail of the same transaction, say that they may have been done, as those of jobs do that were interrupted. Jobs
/// that have not begun never are, and results are gone. Their records are swept later, since there may be many.
pub fn delete_connector(
    work: &mut Work<'_>,
    connector: &Connector,
    permit: &Permit<action::transfer::DeleteConnector>,
) -> Result<Vec<Report>, TransferError> {
    permit.opens(&connector.arn())?;
    let reports = run::deleted(work, connector)?;
    lease::forget(work, connector.scope(), connector.id());
    work.delete(&connector.record_key());
    Ok(reports)
}
