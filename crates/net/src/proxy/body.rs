//! Bodies that pass through the proxy, and idle connections for the next request.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Sleep, sleep};

use crate::limits;
use crate::server::Activity;

/// Idle connections to a backend, and since when they are idle.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<(SendRequest<TimedBody>, Instant)>>);

impl Spare {
    /// Takes the most recently used connection, if it is still usable.
    pub(super) fn take(&self) -> Option<SendRequest<TimedBody>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(sender, since)| {
            sender.is_ready() && since.elapsed() < limits::SPARE_BACKEND_IDLE
        });
        kept.pop().map(|(sender, _)| sender)
    }

    /// Keeps a connection for the next request, unless there are enough.
    pub(super) fn keep(&self, sender: SendRequest<TimedBody>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < limits::SPARE_BACKEND_CONNECTIONS {
            kept.push((sender, Instant::now()));
        }
    }
}

/// A body that must make progress, and the resources held until it ends.
pub(crate) struct TimedBody {
    body: Option<Incoming>,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Notified of each piece.
    pub(super) progress: Option<Arc<Activity>>,
    /// Notified of a fault in the body.
    pub(super) fault: Option<Fault>,
    /// Counts progress each time that a piece is taken.
    moves: Moves,
    pub(super) held: Option<Held>,
}

/// Resources that are released when a body has ended.
pub(super) type Held = Box<dyn std::any::Any + Send + Sync>;

/// Response to a client whose own fault prevents a response from the backend.
pub(super) type Fault = Arc<OnceLock<Failed>>;

/// Number of times that a body on a client's connection has made progress.
pub(super) type Moves = Arc<AtomicUsize>;

impl TimedBody {
    /// A body that may be silent for at most `limit`.
    pub(super) fn new(body: Incoming, limit: Duration, moves: Moves) -> Self {
        Self { body: Some(body), moves, limit, ..Self::empty() }
    }

    fn at_fault(&self, failed: Failed) {
        if let Some(fault) = &self.fault {
            let _ = fault.set(failed);
        }
    }

    /// An empty body.
    pub(super) fn empty() -> Self {
        Self {
            body: None,
            limit: Duration::ZERO,
            stalled: None,
            progress: None,
            fault: None,
            moves: Moves::default(),
            held: None,
        }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        this.moves.fetch_add(1, Ordering::Relaxed);
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            this.stalled = None;
            if let Some(progress) = &this.progress {
                progress.touch();
            }
            if let Some(Err(_)) = frame {
                this.at_fault(MALFORMED);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = this.limit;
        let stalled = this.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(context));
        this.at_fault(STOPPED);
        Poll::Ready(Some(Err("the body stopped coming".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Why a backend did not respond, and what the client gets instead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed(pub StatusCode, pub &'static str);

const MALFORMED: Failed =
    Failed(StatusCode::BAD_REQUEST, "the body of the request is malformed or incomplete");
const STOPPED: Failed =
    Failed(StatusCode::REQUEST_TIMEOUT, "the body of the request stopped coming");
