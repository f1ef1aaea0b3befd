//! Requirements before a store is served: its audit log and the records that decide are as they were signed; a store
//! of an earlier build is upgraded first.

use std::path::Path;

use outlast_domain::change::Contended;
use outlast_domain::seal::RootKey;
use outlast_domain::seal::migration::{self, State};
use outlast_domain::work::Work;
use outlast_domain::{Fault, audit, ca, ids, register};
use outlast_net::server::system_clock;
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{Store, StoreError};

use super::{Data, store_event, store_failure};
use crate::failure::Failure;
use crate::files;

impl Data {
    /// Checks that the records that decide who may do what are those of the audit events.
    pub(super) fn check_register(&self) -> Result<(), Failure> {
        if !register::holds(&mut self.service.work(system_clock()))? {
            return Err(Failure::new(
                "the records that decide who may do what do not match the audit events: some were added, put back \
                 or removed",
            )
            .hint("to see which, run: outlast store check --data DIR; restore the newest good backup with: outlast restore BACKUP --data NEW"));
        }
        Ok(self.service.follow_events(system_clock())?)
    }

    /// Checks that the audit log can be continued, and starts to watch it. The hash chain of an earlier build's store
    /// becomes a log first.
    pub(super) fn open_log(&self) -> Result<(), Failure> {
        self.change(|work| {
            if !audit::legacy::is_old(work)? {
                return Ok(((), Vec::new()));
            }
            let state = migration::state(work)?.filter(|state| !state.has_log);
            let Some(state) = state else {
                return Err(log_failure(Fault::Audit("its records are missing".into())));
            };
            tracing::info!("converting the audit events to a Merkle log, once");
            let adopted = audit::legacy::adopt(work, &random_origin()?, &mut |events| {
                if events.is_multiple_of(100_000) {
                    tracing::info!(events, "verifying the events so far");
                }
            })
            .map_err(log_failure)?;
            migration::set_state(work, State { has_log: true, ..state })?;
            let last = adopted.last.map(|(checkpoint, public_key)| {
                serde_json::json!({ "checkpoint": checkpoint, "publicKey": public_key })
            });
            let event = store_event(
                work.now_ms(),
                "AdoptAuditChain",
                &serde_json::json!({
                    "events": adopted.events,
                    "chain": adopted.chain,
                    "checkpoints": adopted.checkpoints,
                    "lastCheckpoint": last,
                }),
            )?;
            Ok(((), vec![event]))
        })?;
        let mut work = self.service.work(system_clock());
        let head = audit::check_start(&mut work).map_err(log_failure)?;
        Ok(self.service.watch_log(&head)?)
    }

    /// Adds the authorities to the index by which Roles Anywhere finds issuers that an earlier version has left out. An older
    /// server on the same database may leave out more, so every start looks for them.
    pub(super) fn index_authorities(&self) -> Result<(), Failure> {
        let missing = ca::unindexed(&self.service.work(system_clock()))?;
        for record_keys in missing.chunks(MIGRATED_AT_ONCE) {
            self.change(|work| {
                record_keys.iter().try_for_each(|record_key| ca::index(work, record_key))?;
                Ok::<_, Fault>(((), Vec::new()))
            })?;
        }
        if !missing.is_empty() {
            let authorities = missing.len();
            tracing::info!(
                authorities,
                "certificate authorities of an earlier version are indexed"
            );
        }
        Ok(())
    }
}

/// A unique name for an audit log.
pub(super) fn random_origin() -> Result<String, Failure> {
    Ok(format!("audit.outlast.internal/{}", ids::hex::<8>()?))
}

/// Why a store is not served.
fn log_failure(fault: Fault) -> Failure {
    match fault {
        Fault::Audit(_) => Failure::new(fault.to_string()).hint(
            "somebody has changed the database: run outlast store check --data DIR, keep the folder as it is, and restore the newest good backup; outlast audit clear-alarm --data DIR lets servers start again after an alarm",
        ),
        fault => fault.into(),
    }
}

/// Authenticates the records of a store of an earlier version.
pub(crate) fn bring_up_to_date(
    store: &dyn Store,
    root: &RootKey,
    state: State,
) -> Result<(), Failure> {
    tracing::info!("the store is from an earlier version: its records are authenticated now, once");
    let (mut after, mut seen) = (Some(String::new()), 0);
    while let Some(from) = after {
        let step = commit_step(store, root, |work| migration::step(work, &from, MIGRATED_AT_ONCE))?;
        seen += step.seen;
        for place in step.unreadable {
            tracing::warn!(place, "a record cannot be read; it is left as it is");
        }
        tracing::info!(records = seen, "records are being authenticated");
        after = step.next;
    }
    let state = State { is_authenticated: true, ..state };
    commit_step(store, root, |work| {
        register::begin(work)?;
        migration::set_state(work, state)
    })?;
    tracing::info!(records = seen, "every record is authenticated");
    Ok(())
}

/// Name of a file in the data folder which says that the store's records are authenticated: somebody who can write to
/// the database cannot remove it together with the record that says the same.
pub(super) const AUTHENTICATED: &str = "records-authenticated";

pub(super) fn note_authenticated(folder: &Path) -> Result<(), Failure> {
    let path = folder.join(AUTHENTICATED);
    if path.exists() {
        return Ok(());
    }
    files::write(
        &path,
        b"Every record of this store is authenticated. Do not remove this file.\n",
        0o600,
    )
}

/// Records that one transaction of an upgrade covers.
const MIGRATED_AT_ONCE: usize = 2000;

fn commit_step<T>(
    store: &dyn Store,
    root: &RootKey,
    run: impl Fn(&mut Work<'_>) -> Result<T, Fault>,
) -> Result<T, Failure> {
    let prepare = || {
        let mut work = Work::new(store, root, system_clock());
        match run(&mut work) {
            // No event records it: the log begins with the records as they are then.
            Ok(done) => Attempt::Commit(work.into_first_transaction(), done),
            // Another server on the same database may be doing it, too.
            Err(fault) if fault.is_conflict() => Attempt::Again,
            Err(fault) => Attempt::Done(Err(fault.into())),
        }
    };
    drive_and_wait(store, prepare, |done, outcome| outcome.map(|()| done).map_err(store_failure))
        .unwrap_or_else(|| Err(store_failure(StoreError::Conflict)))
}
