//! The audit log of a running server: signs its heads, verifies signed parts again, and refuses calls once the log
//! differs from what was signed.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use outlast_domain::Fault;
use outlast_domain::audit::{self, Guard, Head, Patrol};
use outlast_domain::change::change;
use outlast_domain::work::Work;

use super::Service;
use super::published::Published;

/// Tiles of 256 events that one round of the first patrol verifies.
const FIRST_ROUND: u64 = 64;
/// Rounds in which a later patrol verifies the whole log: one day, at a round every two seconds.
const ROUNDS_A_DAY: u64 = 43_200;

/// What the server knows of the log.
#[derive(Default)]
pub(super) struct State {
    pub(super) guard: Arc<Guard>,
    patrol: Mutex<Patrol>,
    pub(super) published: RwLock<Published>,
}

impl Service {
    /// Starts to watch the log: from now on every event of this process must be in it. `head` comes from
    /// [`audit::check_start`].
    pub fn watch_log(&self, head: &Head) -> Result<(), Fault> {
        self.trail.guard.watch(head.range()?);
        Ok(())
    }

    /// Why calls are refused, if the audit log differs from what was signed.
    pub fn audit_alarm(&self) -> Option<String> {
        self.trail.guard.alarm()
    }

    /// Signs the head of the log if it is due; with `at_end` also if only few events are new.
    ///
    /// # Errors
    /// [`Fault::Audit`] if somebody has changed the log: the alarm is raised then. After any other error
    /// except the store's, calls are refused until a head can be signed.
    pub fn sign_log(&self, now_ms: i64, at_end: bool) -> Result<(), Fault> {
        loop {
            let advance = |work: &mut Work<'_>| {
                Ok((audit::log::advance(work, &self.trail.guard, at_end)?, Vec::new()))
            };
            let step = match change(self.store.as_ref(), || self.work(now_ms), advance) {
                Ok(step) => step,
                Err(fault) => {
                    match &fault {
                        Fault::Audit(reason) => self.raise_alarm(reason),
                        // While the store fails, no event can be committed either.
                        Fault::Store(_) => {}
                        // For instance the root key was rotated elsewhere, or somebody has changed its record.
                        other => self.trail.guard.suspend(&other.to_string()),
                    }
                    return Err(fault);
                }
            };
            if let Some(advance) = step.advance {
                self.trail.guard.advance(advance);
            }
            if !step.more {
                return Ok(());
            }
        }
    }

    /// Verifies some of the events that were signed before: the whole log soon after the start, then once a day.
    ///
    /// # Errors
    /// Those of [`Service::sign_log`].
    pub fn patrol_log(&self, now_ms: i64) -> Result<(), Fault> {
        if self.audit_alarm().is_some() {
            return Ok(());
        }
        let mut patrol = self.trail.patrol.lock().unwrap_or_else(PoisonError::into_inner);
        let tiles = if patrol.completed {
            self.fresh.last_event()? / (256 * ROUNDS_A_DAY) + 1
        } else {
            FIRST_ROUND
        };
        let outcome = patrol.go_on(&mut self.work(now_ms), tiles);
        if let Err(fault) = &outcome {
            self.note_alarm(fault);
        }
        outcome
    }

    /// Stops signing, and with it every call, because the log differs from what was signed.
    pub fn raise_alarm(&self, reason: &str) {
        if self.trail.guard.raise(reason) {
            tracing::error!(
                reason,
                "AUDIT ALARM: the log differs from what was signed; nothing more is signed, and calls are refused"
            );
            // For the next server: nobody else may know what this one has seen.
            let mut work = self.work(0);
            let noted = audit::alarm::note(&mut work, reason).and_then(|()| {
                Ok(self.store.commit_and_wait(work.into_transaction(Vec::new()))?)
            });
            if let Err(fault) = noted {
                tracing::error!(%fault, "the alarm could not be recorded");
            }
        }
    }

    fn note_alarm(&self, fault: &Fault) {
        if let Fault::Audit(reason) = fault {
            self.raise_alarm(reason);
        }
    }
}
