//! Whether this server can do its work, and why not: what `/readyz` says.
//!
//! A look asks the store and opens a secret, so it is made from time to time and not for whoever asks: `crates/net` does
//! that and keeps what was found. What the reasons mean, and what to do, is in `docs/readiness.md`.

use std::fmt;

use outlast_domain::Fault;
use outlast_domain::seal::migration;

use super::{Reading, Service};

/// A reason why a server is not ready.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its name, with which its line begins.
    pub name: &'static str,
    /// What is said of it. No more than anybody may know: details are in the log.
    says: &'static str,
}

/// The log is not the one that was signed.
pub static AUDIT: Reason = Reason { name: "audit", says: "the audit trail was tampered with" };
/// No look has ended for a while.
pub static LOOK: Reason =
    Reason { name: "look", says: "the store and the root key have not been looked at for a while" };
/// The store does not answer.
pub static STORE: Reason = Reason { name: "store", says: "the store cannot be read" };
/// What the store has is sealed under a root key that this server cannot unwrap.
pub static ROOT_KEY: Reason = Reason {
    name: "root-key",
    says: "secrets cannot be opened: the root key is kept by something else than this server was started with, or the \
           store is damaged",
};
/// The token does not do its work.
pub static TOKEN: Reason = Reason {
    name: "token",
    says: "secrets cannot be opened: the token of the root key does not answer",
};
/// The clock is far from the one that it is held against.
pub static CLOCK: Reason =
    Reason { name: "clock", says: "the clock is wrong, and nothing that is due is done" };

/// All of them.
pub static REASONS: &[&Reason] = &[&AUDIT, &LOOK, &STORE, &ROOT_KEY, &TOKEN, &CLOCK];

/// A reason, with what is particular this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Row of [`REASONS`].
    pub reason: &'static Reason,
    /// What is particular; empty if nothing is.
    pub detail: String,
}

impl Problem {
    /// A reason and what is particular.
    pub fn new(reason: &'static Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

/// One line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name, self.reason.says)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl Service {
    /// Looks at all that this server needs: reads the store, opens a secret, and holds the clock against the database's.
    /// The problems, none of which hides another; what is no more than their names for whoever asks is in the log.
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

    /// Opens one sealed record as it is now, and has the root key by which others are.
    fn open_a_secret(&self, now_ms: i64) -> Result<(), Fault> {
        self.root.check_current(self.fresh.as_ref())?;
        migration::state(&mut self.work(now_ms)).map(drop)
    }
}
