//! A witness: `POST <prefix>/add-checkpoint` over plain HTTP/1.1.
//!
//! Deliberately without TLS: the log signs the requests, and the witness its responses. A response is sent when the
//! cosigned head is on disk, and is made from what the same transaction read: of two concurrent conflicting requests
//! only one can succeed.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use outlast_domain::change::Contended;
use outlast_domain::seal::RootKey;
use outlast_domain::witness::{add_checkpoint, cosign};
use outlast_domain::work::Work;
use outlast_store::driver::{Attempt, drive};
use outlast_store::{Store, StoreError};
use outlast_tlog::Signer;
use outlast_tlog::witness::{AddCheckpoint, Decision, SIZE_TYPE};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::limits;
use crate::metrics::Tally;
use crate::peer::Peer;
use crate::server::{Activity, Clock, discard};
use crate::slots::{Number, Of, Slots};

/// Longest checkpoint from the log in bytes: text and several ML-DSA-44 signatures.
const MAX_EVIDENCE: usize = 16 * 1024;

/// A witness, ready to run.
pub struct WitnessServer {
    store: Arc<dyn Store>,
    root: RootKey,
    signer: Signer,
    clock: Clock,
    prefix: String,
}

impl WitnessServer {
    /// Serves below `prefix`, which is empty or begins with a slash. `store` must not cache records that another
    /// process changes.
    pub fn new(
        store: Arc<dyn Store>,
        root: RootKey,
        signer: Signer,
        prefix: &str,
        clock: Clock,
    ) -> Self {
        let prefix = prefix.trim_end_matches('/').to_owned();
        Self { store, root, signer, clock, prefix }
    }

    /// Serves until `stop` is ready, then lets open requests finish, for [`limits::GRACE`] at most.
    pub async fn run(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let number = Number::of(limits::MAX_WITNESS_CONNECTIONS, None);
        let slots = Slots::new(Of::Connections, number, Tally::default());
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    slots.make_room();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let activity = Arc::new(Activity::new());
            // All are busy, so this one is refused.
            let of = Some(Peer::of(peer.ip()));
            let Ok(mut slot) = slots.enter(of, &activity) else { continue };
            let (server, watcher) = (self.clone(), graceful.watcher());
            let mut stopped = stopped.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = server.connection(stream, peer, watcher, activity) => {}
                    () = slot.evicted() => {}
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
        let touched = activity.clone();
        let service = service_fn(move |request| {
            let (server, activity) = (self.clone(), touched.clone());
            async move {
                activity.touch();
                let response = server.answer(request, &activity).await;
                activity.touch();
                Ok::<_, Infallible>(response.map(Full::new))
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::PLAIN_IDLE)
            .max_buf_size(limits::MAX_WITNESS_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            outcome = watcher.watch(serving) => {
                if let Err(error) = outcome {
                    tracing::debug!(%peer, %error, "a connection ended with an error");
                }
            }
            () = activity.idle(limits::PLAIN_IDLE) => {}
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        activity: &Arc<Activity>,
    ) -> Response<Bytes> {
        let path = request.uri().path();
        if path.strip_prefix(self.prefix.as_str()) != Some("/add-checkpoint") {
            discard(request.into_body()).await;
            return text(StatusCode::NOT_FOUND, "only add-checkpoint exists");
        }
        if request.method() != Method::POST {
            discard(request.into_body()).await;
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only POST");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        if request.body().size_hint().lower() > limits::MAX_WITNESS_BODY as u64 {
            discard(request.into_body()).await;
            return text(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long");
        }
        let mut body = request.into_body();
        let reading = Limited::new(&mut body, limits::MAX_WITNESS_BODY).collect();
        let body = match timeout(limits::PLAIN_IDLE, reading).await {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                discard(body).await;
                return text(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long");
            }
            Ok(Err(_)) => return text(StatusCode::BAD_REQUEST, "the request was incomplete"),
            Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
        };
        // Only when the whole request has arrived: a slow sender must not lock out others.
        let _busy = activity.begin();
        match AddCheckpoint::parse(&body) {
            Ok(request) => self.judge(&request).await,
            Err(error) => text(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }

    async fn judge(&self, request: &AddCheckpoint) -> Response<Bytes> {
        let decide = || async {
            let mut work = Work::new(self.store.as_ref(), &self.root, (self.clock)());
            match add_checkpoint(&mut work, request) {
                Ok((Some(Decision::Cosign(head)), time)) => {
                    Attempt::Commit(work.into_transaction(Vec::new()), (head.size, time))
                }
                Ok((Some(refusal), _)) => Attempt::Done(refused(&refusal, request)),
                Ok((None, _)) => {
                    let message = "checkpoints with extension lines are not cosigned";
                    Attempt::Done(text(StatusCode::BAD_REQUEST, message))
                }
                Err(fault) if fault.is_conflict() => Attempt::Again,
                Err(fault) => Attempt::Done(failed(&fault)),
            }
        };
        // Only now: it signs what the disk says was recorded.
        let sign = |(size, time), outcome: Result<(), StoreError>| {
            if let Err(error) = outcome {
                return failed(&error);
            }
            let origin = request.checkpoint.checkpoint().origin();
            match cosign(&self.signer, request, time) {
                Ok(signature) => {
                    tracing::info!(origin, size, "cosigned");
                    answer_with(StatusCode::OK, "text/plain; charset=utf-8", signature.to_string())
                }
                Err(error) => failed(&error),
            }
        };
        drive(self.store.as_ref(), decide, sign).await.unwrap_or_else(|| {
            text(StatusCode::SERVICE_UNAVAILABLE, "too many requests for this log at once")
        })
    }
}

fn refused(decision: &Decision, request: &AddCheckpoint) -> Response<Bytes> {
    let head = request.checkpoint.checkpoint();
    let (origin, size) = (head.origin(), head.size());
    let status = StatusCode::from_u16(decision.status()).unwrap_or(StatusCode::BAD_REQUEST);
    match decision {
        Decision::Conflict(known) => {
            if known.size == size && known.root != *head.root() {
                // The log has signed it: this is proof of two histories.
                let checkpoint = request.checkpoint.to_string();
                let shown = checkpoint.floor_char_boundary(MAX_EVIDENCE);
                let checkpoint = checkpoint.get(..shown).unwrap_or_default();
                tracing::error!(
                    origin,
                    size,
                    checkpoint,
                    "the log has signed two roots for one size"
                );
            }
            answer_with(status, SIZE_TYPE, format!("{}\n", known.size))
        }
        Decision::Inconsistent(error) => {
            tracing::warn!(origin, size, old = request.old, %error, "not cosigned: not proved consistent");
            text(status, &error.to_string())
        }
        Decision::NotSigned(error) => text(status, &error.to_string()),
        Decision::UnknownOrigin => text(status, "this witness does not know the log"),
        Decision::OldIsLarger => text(status, "the old size is larger than the checkpoint's"),
        Decision::Cosign(_) => text(status, "the checkpoint was not cosigned"),
    }
}

fn failed(error: &dyn std::fmt::Display) -> Response<Bytes> {
    tracing::error!(%error, "a checkpoint could not be recorded");
    text(StatusCode::INTERNAL_SERVER_ERROR, "the checkpoint could not be recorded")
}

fn text(status: StatusCode, message: &str) -> Response<Bytes> {
    answer_with(status, "text/plain; charset=utf-8", format!("{message}\n"))
}

fn answer_with(status: StatusCode, kind: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
