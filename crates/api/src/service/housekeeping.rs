//! Housekeeping: erases, rotates and forgets what is due.

use outlast_domain::transfer::connector;
use outlast_domain::work::{Done, Sweep, Swept, Work};
use outlast_domain::{
    Fault, acm, acme, ca, events, identity, kms, limits, rolesanywhere, secrets, transfer,
};

use super::Service;
use super::alone::Did;
use crate::ops::{ACM, ACM_PCA, KMS, OUTLAST, ROLES_ANYWHERE, SECRETS_MANAGER, STS, TRANSFER};
use crate::table::ServiceRow;

/// The sweeps, and their services.
static SWEEPS: &[(&ServiceRow, Sweep)] = &[
    (&KMS, kms::ERASE_EXPIRED),
    (&KMS, kms::ROTATE_DUE),
    (&KMS, kms::FORGET_EXPIRED),
    (&KMS, kms::REFILE_GRANTS),
    (&KMS, kms::TELL_DELETIONS),
    (&STS, identity::session::FORGET_ENDED),
    (&SECRETS_MANAGER, secrets::ERASE_EXPIRED),
    (&ACM_PCA, ca::ERASE_EXPIRED),
    (&ACM_PCA, ca::FORGET_TOKENS),
    (&ACM_PCA, ca::TELL),
    (&ACM, acme::CLEAN_UP),
    (&ACM, acme::EXPIRE_ORDERS),
    (&ACM, acme::FORGET_CERTIFICATES),
    (&ACM, acme::FORGET_NONCES),
    (&ACM, acme::FORGET_ORDERS),
    (&ACM, acme::FORGET_TOKENS),
    (&ACM, acm::FORGET_ENDED),
    (&ACM, acm::FORGET_TOKENS),
    (&ACM, acm::TELL),
    (&ROLES_ANYWHERE, rolesanywhere::TELL),
    (&OUTLAST, kms::approval::FORGET_ENDED),
    (&TRANSFER, transfer::FORGET_EXECUTIONS),
    (&TRANSFER, connector::FORGET),
    // Records of no service.
    (&ACM, events::outbox::FORGET),
    (&ACM, events::FORGET),
];

/// Records that one step of a sweep reads.
const PAGE: usize = 500;

/// One round of housekeeping.
pub(super) struct Round<'a> {
    service: &'a Service,
    now_ms: i64,
    /// The first failure.
    failed: Option<Fault>,
}

impl Service {
    /// Erases keys, CAs and imported material whose time is over, rotates keys that are due, and forgets old
    /// sessions, import parameters and idempotency tokens. Each change of a key or CA is committed together with its
    /// audit event.
    ///
    /// # Errors
    /// The first failure; everything else is done nevertheless, and what failed is tried again in the next
    /// round. [`Fault::Clock`] if the clock is known to be wrong: then nothing is swept.
    pub fn run_housekeeping(&self, now_ms: i64) -> Result<(), Fault> {
        let mut round = Round::new(self, now_ms);
        if let Err(fault) = self.follow_events(now_ms) {
            tracing::warn!(%fault, "the newest audit events could not be read");
            round.failed = Some(fault);
        }
        match self.may_sweep(now_ms) {
            Ok(true) => {
                for (row, sweep) in SWEEPS {
                    round.sweep(row, sweep);
                }
                // Slow work comes last, so that it delays nothing else.
                round.sweep_in_steps(&ACM, &acm::renew::RENEW_DUE, limits::RENEWALS_AT_ONCE);
            }
            Ok(false) => {}
            Err(fault) => {
                round.failed.get_or_insert(fault);
            }
        }
        round.outcome()
    }
}

impl<'a> Round<'a> {
    pub(super) fn new(service: &'a Service, now_ms: i64) -> Self {
        Self { service, now_ms, failed: None }
    }

    pub(super) fn outcome(self) -> Result<(), Fault> {
        self.failed.map_or(Ok(()), Err)
    }

    pub(super) fn sweep(&mut self, row: &ServiceRow, sweep: &Sweep) {
        self.sweep_in_steps(row, sweep, PAGE);
    }

    /// Commits up to `step` items together.
    fn sweep_in_steps(&mut self, row: &ServiceRow, sweep: &Sweep, step: usize) {
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = match (sweep.find)(&self.service.work(self.now_ms), &from, PAGE) {
                Ok(due) => due,
                Err(fault) => return self.failed(row, &from, fault),
            };
            for record_key in due.damaged {
                self.failed(row, &record_key, Fault::Damaged(record_key.clone()));
            }
            for record_keys in due.record_keys.chunks(step) {
                self.handle_all(row, sweep, record_keys);
            }
            after = due.next;
        }
    }

    /// One commit for all costs one sync of the disk. If it fails for any reason, each item is committed by itself,
    /// so that a key of one account does not delay the others.
    fn handle_all(&mut self, row: &ServiceRow, sweep: &Sweep, record_keys: &[String]) {
        if record_keys.is_empty() {
            return;
        }
        let all = |work: &mut Work<'_>, swept: &mut Swept| {
            record_keys.iter().try_for_each(|record_key| (sweep.handle)(work, record_key, swept))
        };
        if let Ok(did) = self.service.do_once(row, self.now_ms, all) {
            tell(row, record_keys, &did);
            return;
        }
        for record_key in record_keys {
            let one =
                |work: &mut Work<'_>, swept: &mut Swept| (sweep.handle)(work, record_key, swept);
            match self.service.do_at_last(row, self.now_ms, one) {
                Ok(did) => tell(row, std::slice::from_ref(record_key), &did),
                Err(fault) => self.failed(row, record_key, fault),
            }
        }
    }

    pub(super) fn failed(&mut self, row: &ServiceRow, record_key: &str, fault: Fault) {
        let service = row.model.signing_name;
        tracing::warn!(service, record_key, %fault, "a due task failed; it will be tried again");
        self.failed.get_or_insert(fault);
    }
}

/// Logs the result of a sweep: each item that has an audit event, and the number of records without one.
fn tell(row: &ServiceRow, record_keys: &[String], did: &Did<()>) {
    let (service, deleted) = (row.model.signing_name, did.deleted);
    for done in &did.swept.done {
        let Done { scope, arn, event } = done;
        let (account, region) = (scope.account.as_str(), scope.region.as_str());
        tracing::info!(service, event, arn, account, region, "a due task was done");
    }
    if did.swept.done.is_empty() && deleted > 0 {
        // Record keys begin with the kind of the record.
        let kind = record_keys.first().map(String::as_str).unwrap_or_default();
        let kind = kind.match_indices('/').nth(1).map_or(kind, |(end, _)| &kind[..end]);
        tracing::info!(service, kind, deleted, "expired records were deleted");
    }
}
