//! Uploads that begin a workflow.
//!
//! Source: Transfer Family User Guide, "Managed workflows restrictions and limitations": a workflow begins when a file is closed
//! after it was written, and not for one without content.

use outlast_domain::Fault;
use outlast_domain::transfer::{Uploaded, begin};
use outlast_domain::work::Work;

use super::super::workflows;
use super::{FileEvent, Session, Subject};

/// Begins the workflow that the server names for what has happened, in the same transaction: its audit event, if there is one.
/// Users of a file have no workflows.
pub(super) fn start(
    work: &mut Work<'_>,
    session: &Session,
    event: &FileEvent<'_>,
    subject: &Subject<'_>,
    now_ms: i64,
) -> Result<Option<Vec<u8>>, Fault> {
    let is_partial = match *event {
        FileEvent::Close { bytes_in: 1.., .. } => false,
        // A close that failed has stored nothing, and the client knows it.
        FileEvent::PartialClose { bytes_in: 1.., .. } if subject.why.is_empty() => true,
        _ => return Ok(None),
    };
    if !subject.writes || session.principal.is_none() || subject.target.is_empty() {
        return Ok(None);
    }
    let connection = &session.connection;
    let uploaded = Uploaded {
        scope: &connection.scope,
        server: connection.server_arn.rsplit('/').next().unwrap_or_default(),
        user: &session.user,
        session: &connection.session,
        target: subject.target,
        is_partial,
        is_apart: subject.is_apart,
    };
    let Some(happened) = begin(work, &uploaded)? else { return Ok(None) };
    tracing::info!(
        workflow = happened.execution.workflow_arn(),
        execution = happened.execution.id(),
        event = happened.what.name(),
        "an upload begins a workflow"
    );
    workflows::event(&happened, now_ms).map(Some)
}
