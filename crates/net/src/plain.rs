//! Plain HTTP for objects that are signed and public: CRLs, OCSP responses, certificates of authorities, timestamps. HTTP/1.1
//! only; clients ask for one thing and leave, or keep the connection.
//!
//! Deliberately without TLS: to check a certificate, a client would first have to check the certificate of that TLS
//! connection (RFC 5280, section 8).

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use outlast_api::service::{Plain, PlainStep, Question, Service, busy, too_large};
use outlast_store::driver::drive;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::limits;
use crate::metrics::{Metrics, Tally};
use crate::peer::Peer;
use crate::server::{Activity, Clock, discard};
use crate::slots::{Number, Of, Slots};

/// Name of the listener in metrics.
const LISTENER: &str = "revocation";

/// A listener, ready to run.
pub struct PlainServer {
    service: Arc<Service>,
    clock: Clock,
    /// Responses that are signed concurrently.
    signing: Semaphore,
    /// Requests that wait for a signature.
    waiting: AtomicUsize,
    /// Requests that may wait for a store over the network.
    reads: Semaphore,
    /// Connections, altogether and for one peer.
    connections: Number,
    /// Counters of limits that took effect.
    tally: Tally,
}

impl PlainServer {
    /// Serves the public objects of `service`.
    pub fn new(service: Arc<Service>, clock: Clock) -> Self {
        let signing = Semaphore::new(limits::MAX_SIGNING);
        let reads = Semaphore::new(limits::MAX_PLAIN_READS);
        let connections =
            Number::of(limits::MAX_PLAIN_CONNECTIONS, Some(limits::MAX_PLAIN_BY_PEER));
        let (waiting, tally) = (AtomicUsize::new(0), Tally::default());
        Self { service, clock, signing, waiting, reads, connections, tally }
    }

    /// Sets how many connections one peer (an IPv4 address, or the first 64 bits of an IPv6 address) may have.
    #[must_use]
    pub fn with_connections_by_peer(mut self, by_peer: usize) -> Self {
        self.connections = Number::of(limits::MAX_PLAIN_CONNECTIONS, Some(by_peer));
        self
    }

    /// Sets the counters of limits that took effect.
    #[must_use]
    pub fn counting(mut self, metrics: Option<Arc<Metrics>>) -> Self {
        self.tally = Tally::new(metrics, LISTENER);
        self
    }

    /// Serves until `stop` is ready, then lets open requests finish, for [`limits::GRACE`] at most.
    pub async fn run(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let slots = Slots::new(Of::Connections, self.connections, self.tally.clone());
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or the client left: neither may end the server.
                    tracing::warn!(%error, "a connection could not be accepted");
                    slots.make_room();
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                }
            };
            let activity = Arc::new(Activity::new());
            let of = Some(Peer::of(peer.ip()));
            // All connections are busy, so this one is refused.
            let Ok(mut slot) = slots.enter(of, &activity) else { continue };
            let (server, watcher) = (self.clone(), graceful.watcher());
            let mut stopped = stopped.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = server.connection(stream, peer, watcher, activity) => {}
                    // It was idle for longest when there were too many connections.
                    () = slot.evicted() => {}
                    // Cuts off everything that is left after the grace period.
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
        }
        drop(listener);
        let _ = timeout(limits::GRACE, graceful.shutdown()).await;
        let _ = stopping.send(true);
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: Watcher,
        activity: Arc<Activity>,
    ) {
        let _ = stream.set_nodelay(true);
        let busy = activity.clone();
        let service = service_fn(move |request| {
            let (server, activity) = (self.clone(), busy.clone());
            async move {
                let answer = server.answer(request, peer, &activity).await;
                Ok::<_, Infallible>(answer.map(|bytes| Sent { bytes, activity }))
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::PLAIN_IDLE)
            // Responses wait for their reader: pipelined requests are not read while this many bytes are unsent.
            // Sending responses together (`pipeline_flush`) would defeat that, because hyper would copy all of them
            // into one buffer.
            .max_buf_size(limits::MAX_PLAIN_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            outcome = watcher.watch(serving) => {
                if let Err(error) = outcome {
                    tracing::debug!(%peer, %error, "a connection ended with an error");
                }
            }
            () = activity.idle(limits::PLAIN_IDLE) => {
                tracing::debug!(%peer, "an idle connection was closed");
            }
        }
    }

    async fn answer(
        &self,
        request: http::Request<Incoming>,
        peer: SocketAddr,
        activity: &Arc<Activity>,
    ) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        activity.touch();
        let is_timestamp = outlast_api::service::tsa::is_path(head.uri.path());
        let mut request = Plain {
            method: &head.method,
            path: head.uri.path(),
            headers: &head.headers,
            body: &[],
            now_ms: (self.clock)(),
            peer: peer.ip(),
        };
        let body = if head.method == Method::POST {
            match read(&head.headers, body).await {
                Ok(body) => body,
                Err(()) => return too_large(),
            }
        } else {
            discard(body).await;
            Bytes::new()
        };
        if is_timestamp {
            let _busy = activity.begin();
            return self.timestamp(&head, &body, peer.ip()).await;
        }
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        if reads && let Some(response) = self.service.plain_again(&request) {
            return response;
        }
        // Only when the whole request has arrived: a slow sender must not lock out others.
        let _busy = activity.begin();
        request.body = &body;
        match self.off_thread(|| self.service.plain(&request)).await {
            PlainStep::Respond(response) => response,
            PlainStep::Ask(question) => self.ask(&question, request.now_ms).await,
        }
    }

    /// Signs a response when it is this request's turn. Refuses requests beyond [`limits::MAX_QUESTIONS`]: strangers
    /// with ever new requests must not keep the disk from callers of operations.
    async fn ask(&self, question: &Question, now_ms: i64) -> Response<Bytes> {
        if let Some(response) = self.off_thread(|| self.service.recheck(question, now_ms)).await {
            return response;
        }
        let Some(_waiting) = Waiting::begin(&self.waiting) else { return busy() };
        let Ok(Ok(_turn)) = timeout(limits::SIGNING_WAIT, self.signing.acquire()).await else {
            return busy();
        };
        let now_ms = (self.clock)();
        // Another request may have had it signed in the meantime.
        if let Some(response) = self.off_thread(|| self.service.recheck(question, now_ms)).await {
            return response;
        }
        let sign = || self.off_thread(|| self.service.sign(question, now_ms));
        let finish = |signed, outcome| self.service.signed(question, signed, outcome, now_ms);
        drive(self.service.store().as_ref(), sign, finish).await.unwrap_or_else(busy)
    }

    /// The service.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// Milliseconds since 1970.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Runs work that reads a store over the network away from this thread's requests, which move to another thread.
    /// Only [`limits::MAX_PLAIN_READS`] of them occupy a thread.
    pub(crate) async fn off_thread<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.service.store().is_remote() {
            let _turn = self.reads.acquire().await;
            tokio::task::block_in_place(work)
        } else {
            work()
        }
    }
}

/// A response that is being sent. It is sent in pieces, and each requested piece is a sign of life: a slow reader
/// gets all of it, and a connection whose peer does not read is closed.
struct Sent {
    bytes: Bytes,
    activity: Arc<Activity>,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        self.activity.touch();
        let piece = self.bytes.len().min(limits::PLAIN_PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// A waiting request.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let this = Self(waiting);
        (before < limits::MAX_QUESTIONS).then_some(this)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn read(headers: &http::HeaderMap, mut body: Incoming) -> Result<Bytes, ()> {
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|len| len > limits::MAX_PLAIN_BODY) {
        discard(body).await;
        return Err(());
    }
    let reading = Limited::new(&mut body, limits::MAX_PLAIN_BODY).collect();
    match timeout(limits::PLAIN_IDLE, reading).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => {
            discard(body).await;
            Err(())
        }
        Err(_) => Err(()),
    }
}
