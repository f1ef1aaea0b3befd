//! What listeners have in common: connections that have not done their handshake.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::limits;

/// The connections that have not done their handshake, oldest first.
#[derive(Default)]
pub(crate) struct Handshakes(VecDeque<oneshot::Sender<()>>);

impl Handshakes {
    /// Adds one, in the place of the oldest if there are too many. What it gives tells that it must close.
    pub(crate) fn begin(&mut self) -> oneshot::Receiver<()> {
        if self.0.len() >= limits::MAX_HANDSHAKES {
            // Those whose other end is gone are through.
            self.0.retain(|open| !open.is_closed());
        }
        if self.0.len() >= limits::MAX_HANDSHAKES {
            self.close_oldest();
        }
        let (close, closed) = oneshot::channel();
        self.0.push_back(close);
        closed
    }

    /// Closes the one that has waited longest.
    pub(crate) fn close_oldest(&mut self) {
        while let Some(oldest) = self.0.pop_front() {
            if oldest.send(()).is_ok() {
                return;
            }
        }
    }
}
