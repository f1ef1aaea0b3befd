//! What a running server remembers of the log, so that nobody who writes to the database can change what it has seen.
//!
//! Others may be able to write to the store. So a server keeps the log's state as of the last head that it verified,
//! and the leaf hashes of the events that it has committed since. The next head must continue the first and contain
//! the second. Otherwise it raises an alarm: from then on it signs nothing and refuses every call that needs an audit
//! event.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_store::NewEvent;
use outlast_tlog::{CompactRange, Hash};

/// A process that serves a store has one.
#[derive(Default)]
pub struct Guard {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Events of this process that no verified head covers yet, and whether each is known to be durable.
    own: HashMap<Hash, bool, foldhash::fast::RandomState>,
    known: Option<CompactRange>,
    alarm: Option<String>,
    /// Why the last attempt to sign a head failed, for a reason that does not cast doubt on the log.
    suspended: Option<String>,
}

/// The log's state as of a head that was signed and committed.
#[derive(Debug)]
pub struct Advance {
    pub(super) range: CompactRange,
    /// Leaf hashes of the events between the previous head and this one.
    pub(super) covered: Vec<Hash>,
}

impl Guard {
    /// Why the audit trail is not trusted any more, if it is not.
    pub fn alarm(&self) -> Option<String> {
        self.state().alarm.clone()
    }

    /// Why no event may be committed, if that is so: there is an alarm, or the last head could not be signed.
    /// Otherwise an attacker who keeps heads from being signed could leave the events of calls uncovered for any
    /// length of time.
    pub fn refusal(&self) -> Option<String> {
        let state = self.state();
        let alarm =
            state.alarm.as_ref().map(|why| format!("the audit trail was tampered with: {why}"));
        alarm.or_else(|| {
            let why = state.suspended.as_ref()?;
            Some(format!("the audit events cannot be signed for now: {why}"))
        })
    }

    /// Stops every call that needs an event until a head can be signed again.
    pub fn suspend(&self, reason: &str) {
        self.state().suspended = Some(reason.to_owned());
    }

    /// Stops signing, and with it every call that needs an event. Returns whether this is the first reason; only the
    /// first is kept.
    pub fn raise(&self, reason: &str) -> bool {
        let mut state = self.state();
        let is_first = state.alarm.is_none();
        state.alarm.get_or_insert_with(|| reason.to_owned());
        is_first
    }

    /// Starts to watch a log that is verified up to here. Before, nothing is remembered: a process that only makes a
    /// few changes signs no heads.
    pub fn watch(&self, range: CompactRange) {
        self.state().known = Some(range);
    }

    /// Events are about to be committed.
    pub fn begin(&self, events: &[NewEvent]) {
        let mut state = self.state();
        if state.known.is_none() {
            return;
        }
        for event in events {
            state.own.insert(*event.leaf(), false);
        }
    }

    /// Notes the outcome of their commit. Events whose outcome is unknown are not relied on.
    pub fn end(&self, leaves: &[Hash], is_durable: bool) {
        let mut state = self.state();
        for leaf in leaves {
            if !is_durable {
                state.own.remove(leaf);
            } else if let Some(known) = state.own.get_mut(leaf) {
                // If a head covers the event already, it is not in the list any more.
                *known = true;
            }
        }
    }

    /// Notes a signed head that is durable.
    pub fn advance(&self, advance: Advance) {
        let mut state = self.state();
        for leaf in &advance.covered {
            state.own.remove(leaf);
        }
        state.known = Some(advance.range);
        state.suspended = None;
    }

    /// The events of this process that the next head must cover. To be called before the number of events is read.
    pub(super) fn durable(&self) -> HashSet<Hash, foldhash::fast::RandomState> {
        let state = self.state();
        state.own.iter().filter(|(_, durable)| **durable).map(|(leaf, _)| *leaf).collect()
    }

    pub(super) fn known(&self) -> Option<CompactRange> {
        self.state().known.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves the state consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
