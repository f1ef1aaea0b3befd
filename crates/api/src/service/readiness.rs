//! Whether this server can do its work, and if not, why: what `/readyz` says.
//!
//! A check reads the store and opens a secret, so it runs from time to time and not for each request: `crates/net` runs it
//! and keeps the result. `docs/readiness.md` says what the reasons mean, and what to do.

use std::fmt;

use outlast_domain::Fault;
use outlast_domain::seal::migration;

use super::{Reading, Service};

/// A reason why a server is not ready.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// Name of the reason, which begins its line.
    pub name: &'static str,
    /// The rest of the line. Strangers may read it; details are in the log.
    says: &'static str,
}

/// The audit log differs from what was signed.
pub static AUDIT: Reason = Reason { name: "audit", says: "the audit trail was tampered with" };
/// No check has finished for a while.
pub static LOOK: Reason =
    Reason { name: "look", says: "the store and the root key have not been checked for a while" };
/// The store does not answer.
pub static STORE: Reason = Reason { name: "store", says: "the store cannot be read" };
/// The store is sealed under a root key that this server cannot unwrap.
pub static ROOT_KEY: Reason = Reason {
    name: "root-key",
    says: "secrets cannot be opened: the root key is kept elsewhere than this server was told at its start, or the \
           store is damaged",
};
/// The token does not answer, or refuses.
pub static TOKEN: Reason = Reason {
    name: "token",
    says: "secrets cannot be opened: the token of the root key does not answer",
};
/// The clock is far from its reference.
pub static CLOCK: Reason =
    Reason { name: "clock", says: "the clock is wrong, and due tasks are not done" };

/// All reasons.
pub static REASONS: &[&Reason] = &[&AUDIT, &LOOK, &STORE, &ROOT_KEY, &TOKEN, &CLOCK];

/// A reason with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Row of [`REASONS`].
    pub reason: &'static Reason,
    /// Details of this case; empty if there are none.
    pub detail: String,
}

impl Problem {
    /// A reason with details.
    pub fn new(reason: &'static Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// The line that `/readyz` shows.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name, self.reason.says)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl Service {
    /// Checks everything that this server needs: reads the store, opens a secret, and compares the clock with the
    /// database's. Returns every problem; details that strangers must not see go to the log.
    pub fn look(&self, reading: Reading) -> Vec<Problem> {
        let mut problems = Vec::new();
        let outcomes = [self.open_a_secret(reading.wall_ms), self.hold_clock(reading)];
        for fault in outcomes.into_iter().filter_map(Result::err) {
            let problem = match &fault {
                Fault::Store(_) => Problem::new(&STORE, ""),
                Fault::RootKey(_) => Problem::new(&TOKEN, ""),
                Fault::Clock(how) => Problem::new(&CLOCK, how),
                _ => Problem::new(&ROOT_KEY, ""),
            };
            tracing::debug!(reason = problem.reason.name, %fault, "this server is not ready");
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Opens one sealed record from the store, past the cache, and unwraps the current root key.
    fn open_a_secret(&self, now_ms: i64) -> Result<(), Fault> {
        self.root.check_current(self.fresh.as_ref())?;
        migration::state(&mut self.work(now_ms)).map(drop)
    }
}
