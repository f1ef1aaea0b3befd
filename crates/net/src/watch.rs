//! Reports about a connection: one when its handshake ends, one when the connection ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_ledger::{End, Observe};

use crate::clock::system_clock;
use crate::observed::Counts;

/// Numbers connections within this process.
pub(crate) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An open connection; reports its end on drop.
pub struct Watch {
    connection: u64,
    observer: Option<Arc<dyn Observe>>,
    counts: Arc<Counts>,
    principal: Mutex<Option<String>>,
}

impl Watch {
    pub(crate) fn new(
        connection: u64,
        observer: Option<Arc<dyn Observe>>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { connection, observer, counts, principal: Mutex::default() }
    }

    /// Sets the counters of the connection's bytes.
    pub(crate) fn counted(&mut self, counts: Arc<Counts>) {
        self.counts = counts;
    }

    /// Id of the connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Sets the connection's principal; the first one stays.
    pub fn principal(&self, name: &str) {
        let mut principal = self.principal.lock().unwrap_or_else(PoisonError::into_inner);
        if principal.is_none() {
            *principal = Some(name.to_owned());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(observer) = &self.observer else { return };
        let principal = self.principal.lock().unwrap_or_else(PoisonError::into_inner).take();
        observer.end(&End {
            connection: self.connection,
            time_ms: system_clock(),
            principal,
            received: self.counts.received.load(Ordering::Relaxed),
            sent: self.counts.sent.load(Ordering::Relaxed),
        });
    }
}
