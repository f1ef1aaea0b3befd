//! Queue of transactions for the writer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::patience::unavailable;
use crate::{Completion, StoreError, Transaction};

/// Most transactions in the queue; more are refused.
const QUEUE: usize = 4096;
/// Most transactions that share a commit.
const GROUP: usize = 512;
/// Bytes after which a group takes no more transactions.
const GROUP_BYTES: usize = 8 << 20;

pub(super) type Job = (Transaction, Completion);

/// Filled by callers that commit, emptied by the writer.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the queue half-changed: every change is one push or drain.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a transaction, or refuses it at once.
    pub(super) fn push(&self, transaction: Transaction, done: Completion) {
        let mut state = self.state();
        if state.jobs.len() >= QUEUE || state.closed {
            drop(state);
            return done(Err(unavailable("too many commits are waiting for the database")));
        }
        state.jobs.push_back((transaction, done));
        drop(state);
        self.wake.notify_one();
    }

    /// Refuses new transactions; the writer ends after those in the queue.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// The next group; `None` when the queue is closed and empty.
    pub(super) async fn next(&self) -> Option<Vec<Job>> {
        loop {
            let group = self.take();
            if !group.is_empty() {
                return Some(group);
            }
            if self.state().closed {
                return None;
            }
            self.wake.notified().await;
        }
    }

    /// Fails all waiting transactions with `error`.
    pub(super) fn refuse(&self, error: &StoreError) {
        let jobs: Vec<Job> = self.state().jobs.drain(..).collect();
        for (_, done) in jobs {
            done(Err(error.clone()));
        }
    }

    fn take(&self) -> Vec<Job> {
        let mut state = self.state();
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < GROUP && bytes < GROUP_BYTES {
            let Some(job) = state.jobs.pop_front() else { break };
            bytes += size(&job.0);
            group.push(job);
        }
        group
    }
}

fn size(transaction: &Transaction) -> usize {
    let writes = transaction.writes.iter();
    writes.map(|(_, value)| value.as_ref().map_or(0, Vec::len)).sum::<usize>()
        + transaction.events.iter().map(|event| event.body().len()).sum::<usize>()
}
