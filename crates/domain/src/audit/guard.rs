//! What a running server remembers of the log, so that whoever writes to the database cannot change what it has seen.
//!
//! The store may be somebody else's. A server therefore keeps the log as of the last head that it has verified, and the
//! leaf hashes of the events that it has committed since. The next head must continue the one and contain the other.
//! Anything else is an alarm: from then on nothing is signed and no call that needs an audit event is carried out.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_store::NewEvent;
use outlast_tlog::{CompactRange, Hash};

/// One for each process that serves a store.
#[derive(Default)]
pub struct Guard {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Events of this process that no verified head covers, and whether each is known to be durable.
    own: HashMap<Hash, bool, foldhash::fast::RandomState>,
    known: Option<CompactRange>,
    alarm: Option<String>,
    /// Why the last attempt to sign a head failed, if that says nothing against the log.
    suspended: Option<String>,
}

/// The log as of a head that was signed and committed.
#[derive(Debug)]
pub struct Advance {
    pub(super) range: CompactRange,
    /// Leaf hashes of the events between the head before and this one.
    pub(super) covered: Vec<Hash>,
}

impl Guard {
    /// Why the audit trail is not trusted any more, if it is not.
    pub fn alarm(&self) -> Option<String> {
        self.state().alarm.clone()
    }

    /// Why no event may be committed, if none may: there is an alarm, or the last head could not be signed. Otherwise
    /// whoever keeps heads from being signed leaves the events of calls uncovered for as long as they like.
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

    /// Stops signing, and with it every call that needs an event. Returns whether this is the first reason, which stays.
    pub fn raise(&self, reason: &str) -> bool {
        let mut state = self.state();
        let is_first = state.alarm.is_none();
        state.alarm.get_or_insert_with(|| reason.to_owned());
        is_first
    }

    /// Begins to watch over a log that is verified so far. Before that nothing is remembered: a process that only
    /// makes a few changes signs no heads.
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

    /// The outcome of their commit. One that is open is not relied on.
    pub fn end(&self, leaves: &[Hash], is_durable: bool) {
        let mut state = self.state();
        for leaf in leaves {
            if !is_durable {
                state.own.remove(leaf);
            } else if let Some(known) = state.own.get_mut(leaf) {
                // A head may cover it already: then it is not there any more.
                *known = true;
            }
        }
    }

    /// Notes a head that is durable.
    pub fn advance(&self, advance: Advance) {
        let mut state = self.state();
        for leaf in &advance.covered {
            state.own.remove(leaf);
        }
        state.known = Some(advance.range);
        state.suspended = None;
    }

    /// The events of this process that the next head must cover. Asked before the end of the events is read.
    pub(super) fn durable(&self) -> HashSet<Hash, foldhash::fast::RandomState> {
        let state = self.state();
        state.own.iter().filter(|(_, durable)| **durable).map(|(leaf, _)| *leaf).collect()
    }

    pub(super) fn known(&self) -> Option<CompactRange> {
        self.state().known.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
