//! `[audit]` of the settings: how long events stay in the store, and the archive that they are exported to first.
//!
//! Does what `outlast audit prune` does, once a day while a server runs. Only events that were exported and verified
//! are pruned.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_net::server::system_clock;

use crate::commands::audit::prune::{DAY_MS, export_and_prune};
use crate::data::Data;
use crate::failure::Failure;

/// Interval between two rounds.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Which events to prune.
#[derive(Clone)]
pub(crate) struct Retention {
    days: u32,
    archive: PathBuf,
}

impl Retention {
    /// Checks the settings: both must be set, or neither.
    pub(crate) fn choose(
        days: Option<u32>,
        archive: Option<PathBuf>,
    ) -> Result<Option<Self>, Failure> {
        match (days, archive) {
            (None, None) => Ok(None),
            (Some(days), Some(archive)) => Ok(Some(Self { days, archive })),
            (Some(_), None) => Err(Failure::new("audit.retention_days needs audit.archive")
                .hint("name the folder that events are exported to before they are pruned")
                .about("audit.retention_days")),
            (None, Some(_)) => Err(Failure::new("audit.archive needs audit.retention_days")
                .hint("give the number of days after which events are exported and pruned")
                .about("audit.archive")),
        }
    }

    /// Never ends.
    pub(crate) async fn run(self, data: Arc<Data>) {
        loop {
            tokio::task::block_in_place(|| self.round(&data));
            tokio::time::sleep(PERIOD).await;
        }
    }

    fn round(&self, data: &Data) {
        if data.service.audit_alarm().is_some() {
            tracing::error!("audit events are not pruned while there is an alarm");
            return;
        }
        match self.prune(data, system_clock()) {
            Ok(Some((first, last))) => {
                tracing::info!(first, last, archive = %self.archive.display(), "audit events were exported and pruned");
            }
            Ok(None) => {}
            Err(failure) => tracing::error!(
                error = failure.message(),
                archive = %self.archive.display(),
                "audit events were not pruned; the server tries again in a day"
            ),
        }
    }

    fn prune(&self, data: &Data, now_ms: i64) -> Result<Option<(u64, u64)>, Failure> {
        // The folder may be the mount point of a disk: it is not created in the disk's absence.
        if !self.archive.is_dir() {
            return Err(Failure::file(&self.archive, &"there is no such folder"));
        }
        let before_ms = now_ms - i64::from(self.days) * DAY_MS;
        let name = |first: u64, last: u64| {
            self.archive.join(format!("audit-events-{first:012}-{last:012}.jsonl"))
        };
        let pruned = export_and_prune(data, before_ms, name)?;
        Ok(pruned.map(|pruned| (pruned.first, pruned.last)))
    }
}
