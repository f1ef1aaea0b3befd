//! HTTPS: accepts connections, reads requests within limits, and answers when the answer is durable.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use outlast_api::audit::TlsDetails;
use outlast_api::service::published::PREFIX;
use outlast_api::service::{MAX_ATTEMPTS, Prepared, Request, Response, Route, Service, Step};
use outlast_domain::ids;
use outlast_store::StoreError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use crate::accept::Handshakes;
use crate::door::{Accepted, Door};
use crate::metrics::Metrics;
use crate::watch::Watch;
use crate::{Negotiated, limits};

/// ALPN names that the server speaks.
pub const PROTOCOLS: &[&str] = &["h2", "http/1.1"];

/// The time that requests see, milliseconds since 1970.
pub type Clock = fn() -> i64;

/// The system's clock.
pub fn system_clock() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A server that is ready to run.
pub struct Server {
    /// What it serves.
    pub service: Arc<Service>,
    /// How connections come in.
    pub door: Arc<Door>,
    /// What time it is.
    pub clock: Clock,
    /// Memory for bodies, in KiB.
    bodies: Semaphore,
    /// Where HTTP/3 is, in the words of `Alt-Svc`.
    http3: Option<HeaderValue>,
    /// It is not there any more.
    has_lost_http3: AtomicBool,
    /// Where requests are counted.
    metrics: Option<Arc<Metrics>>,
}

/// What a request asked for, by the names of the tables.
#[derive(Default, Clone, Copy)]
struct Asked {
    service: Option<&'static str>,
    operation: Option<&'static str>,
}

/// What requests carry, over any version of HTTP.
pub(crate) trait Content:
    Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + Send
{
}

impl<B> Content for B
where
    B: Body<Data = Bytes> + Unpin + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
}

/// A connection, over TCP or QUIC.
pub(crate) struct Connection {
    pub(crate) server: Arc<Server>,
    activity: Arc<Activity>,
    pub(crate) tls: TlsDetails,
    pub(crate) peer: String,
    /// Reports the end of the connection when dropped.
    pub(crate) watch: Watch,
}

/// Requests that are open on a connection, and when the last one ended.
pub(crate) struct Activity {
    open: AtomicUsize,
    last: Mutex<Instant>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { open: AtomicUsize::new(0), last: Mutex::new(Instant::now()) }
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Something went on without a request being open.
    pub(crate) fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since when there has been no request; `None` if there is one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (self.open.load(Ordering::Relaxed) == 0).then_some(last)
    }

    /// Ends when there was no request for as long as a connection may idle.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit / 4).await;
            if self.idle_since().is_some_and(|since| since.elapsed() > limit) {
                return;
            }
        }
    }
}

/// An open request.
pub(crate) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// A server.
    pub fn new(service: Arc<Service>, door: Arc<Door>, clock: Clock) -> Self {
        let bodies = Semaphore::new(limits::BODY_BUDGET_KIB as usize);
        let has_lost_http3 = AtomicBool::new(false);
        Self { service, door, clock, bodies, http3: None, has_lost_http3, metrics: None }
    }

    /// Counts requests there.
    #[must_use]
    pub fn counting(mut self, metrics: Option<Arc<Metrics>>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Says in each answer over TCP that HTTP/3 is at this port of the same host (RFC 7838).
    #[must_use]
    pub fn announcing_http3(mut self, port: u16) -> Self {
        let value = format!("h3=\":{port}\"; ma={}", limits::ALT_SVC.as_secs());
        self.http3 = HeaderValue::from_str(&value).ok();
        self
    }

    /// Says from now on that HTTP/3 is nowhere, so that clients forget where it was (RFC 7838, section 3).
    pub(crate) fn forget_http3(&self) {
        self.has_lost_http3.store(true, Ordering::Relaxed);
    }

    fn where_http3_is(&self) -> Option<HeaderValue> {
        let lost = self.has_lost_http3.load(Ordering::Relaxed);
        self.http3.clone().map(|http3| if lost { HeaderValue::from_static("clear") } else { http3 })
    }

    /// Memory for bodies, in KiB: one for all of them.
    pub(crate) fn bodies(&self) -> &Semaphore {
        &self.bodies
    }

    /// Serves until `stop` is ready, then lets open requests finish, for [`limits::GRACE`] at most.
    pub async fn run(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let slots = Arc::new(Semaphore::new(limits::MAX_CONNECTIONS));
        let graceful = GracefulShutdown::new();
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let mut handshakes = Handshakes::default();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or the client went away: neither may end the server.
                    tracing::warn!(%error, "a connection could not be accepted");
                    handshakes.close_oldest();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (server, watcher) = (self.clone(), graceful.watcher());
            let mut stopped = stopped.clone();
            let (slots, closed) = (slots.clone(), handshakes.begin());
            tokio::spawn(async move {
                let serve = async {
                    let accepting = server.accept(stream, peer, slots);
                    let accepted = tokio::select! {
                        accepted = accepting => accepted,
                        _ = closed => None,
                    };
                    if let Some((accepted, _slot)) = accepted {
                        server.connection(accepted, peer, watcher).await;
                    }
                };
                tokio::select! {
                    () = serve => {}
                    // After the grace period what is left is cut off.
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
        }
        drop(listener);
        let _ = timeout(limits::GRACE, graceful.shutdown()).await;
        let _ = stopping.send(true);
    }

    /// The TLS handshake, and a place among the connections.
    async fn accept(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        slots: Arc<Semaphore>,
    ) -> Option<(Accepted<TcpStream>, OwnedSemaphorePermit)> {
        let _ = stream.set_nodelay(true);
        let accepted = match self.door.accept(stream, Some(peer)).await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%peer, %error, "a handshake failed");
                return None;
            }
        };
        match timeout(limits::HANDSHAKE, slots.acquire_owned()).await {
            Ok(slot) => Some((accepted, slot.ok()?)),
            Err(_) => {
                tracing::debug!(%peer, "there was no place for a connection");
                None
            }
        }
    }

    async fn connection(
        self: Arc<Self>,
        accepted: Accepted<TcpStream>,
        peer: SocketAddr,
        watcher: Watcher,
    ) {
        let Accepted { stream, negotiated, watch } = accepted;
        tracing::debug!(%peer, ?negotiated, "a connection was accepted");
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let connection = Arc::new(Connection::new(self, &negotiated, peer, watch));
        let activity = connection.activity.clone();
        let service = service_fn(move |request| {
            let connection = connection.clone();
            async move {
                let mut answer = connection.answer(request).await;
                if let Some(http3) = connection.server.where_http3_is() {
                    answer.headers_mut().insert(ALT_SVC, http3);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // By ALPN, not by the first bytes: a client that sends none would be waited for without a limit.
        let mut builder = if is_h2 { builder.http2_only() } else { builder.http1_only() };
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::REQUEST_HEAD)
            .max_buf_size(limits::MAX_HEAD * 2);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits::REQUEST_HEAD)
            .max_header_list_size(u32::try_from(limits::MAX_HEAD).unwrap_or(u32::MAX))
            .max_concurrent_streams(limits::MAX_STREAMS);
        let serving = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        tokio::select! {
            outcome = watcher.watch(serving) => {
                if let Err(error) = outcome {
                    tracing::debug!(%peer, %error, "a connection ended with an error");
                }
            }
            () = activity.idle(limits::REQUEST_HEAD) => tracing::debug!(%peer, "an idle connection was closed"),
        }
    }
}

/// Reads a body that is not wanted, within limits: a client that is still sending sees no answer.
pub(crate) async fn discard(mut body: impl Content) {
    let reading = async {
        let mut left = limits::MAX_DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Bytes::len);
            left = match left.checked_sub(read) {
                Some(left) => left,
                None => break,
            };
        }
    };
    let _ = timeout(limits::DISCARD, reading).await;
}

fn http_answer(response: Response, request_id: &str) -> http::Response<Full<Bytes>> {
    let mut out = http::Response::new(Full::new(Bytes::from(response.body)));
    *out.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = out.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(response.content_type));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert("x-amzn-requestid", id);
    }
    if response.is_cbor {
        headers.insert("smithy-protocol", HeaderValue::from_static("rpc-v2-cbor"));
    }
    if let Some(code) = response.error {
        headers.insert("x-amzn-errortype", HeaderValue::from_static(code));
    }
    out
}

impl Connection {
    pub(crate) fn new(
        server: Arc<Server>,
        negotiated: &Negotiated,
        peer: SocketAddr,
        watch: Watch,
    ) -> Self {
        let (tls, peer) = (negotiated.tls_details(), peer.ip().to_string());
        Self { server, activity: Arc::new(Activity::new()), tls, peer, watch }
    }

    /// What goes on on it.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) async fn answer(
        &self,
        request: http::Request<impl Content>,
    ) -> http::Response<Full<Bytes>> {
        let _busy = self.activity.begin();
        let begun = Instant::now();
        let request_id = ids::uuid().unwrap_or_default();
        let mut asked = Asked::default();
        let answer = if outlast_api::acme::is_path(request.uri().path()) {
            asked.service = Some("acme");
            self.acme(request, &request_id).await
        } else {
            let response = self.respond(request, &request_id, &mut asked).await;
            http_answer(response, &request_id)
        };
        if let Some(metrics) = &self.server.metrics {
            let status = answer.status().as_u16();
            metrics.request(asked.service, asked.operation, status, begun.elapsed());
        }
        answer
    }

    async fn respond(
        &self,
        request: http::Request<impl Content>,
        request_id: &str,
        asked: &mut Asked,
    ) -> Response {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if head.method == Method::GET && matches!(path, "/healthz" | "/readyz") {
            return self.health(path == "/readyz");
        }
        if head.method == Method::GET && path.starts_with(PREFIX) {
            return self.log_resource(&head, request_id);
        }
        let route = match Route::find(&head.method, path, &head.headers) {
            Ok(route) => route,
            Err(response) => return response,
        };
        asked.service = Some(route.names().0);
        let max = route.max_body();
        let announced = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|len| len > max) {
            discard(body).await;
            return route.too_large();
        }
        // HTTP/2 and HTTP/3 have the host in the request's target.
        let host = head
            .headers
            .get(HOST)
            .and_then(|value| value.to_str().ok())
            .or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
            .unwrap_or_default();
        let service = &self.server.service;
        let mut request = Request {
            method: &head.method,
            path,
            query: head.uri.query().unwrap_or_default(),
            host,
            headers: &head.headers,
            body: &[],
            source_ip: &self.peer,
            tls: Some(&self.tls),
            now_ms: (self.server.clock)(),
            request_id,
        };
        // Anybody can send a body; who would fill the memory with large ones must have an access key.
        let expected = announced.unwrap_or(max);
        if expected > limits::UNKNOWN_CALLER_BODY
            && let Err(response) = self.aside(false, || service.admit(route, &request))
        {
            discard(body).await;
            return response;
        }
        let reading = async {
            let share = u32::try_from(expected / 1024 + 1).unwrap_or(limits::BODY_BUDGET_KIB);
            let share = self.server.bodies.acquire_many(share.min(limits::BODY_BUDGET_KIB)).await;
            (Limited::new(body, max).collect().await, share)
        };
        let (body, _share) = match timeout(limits::REQUEST_BODY, reading).await {
            Ok((Ok(collected), share)) => (collected.to_bytes(), share),
            Ok((Err(error), _)) if error.is::<http_body_util::LengthLimitError>() => {
                return route.too_large();
            }
            Ok((Err(_), _)) | Err(_) => return route.incomplete(),
        };
        request.body = &body;
        let route = match route.resolve(&body) {
            Ok(route) => route,
            Err(response) => return response,
        };
        asked.operation = Some(route.names().1);
        for _ in 0..MAX_ATTEMPTS {
            let step = self.aside(route.is_slow(&body), || service.prepare(route, &request));
            match step {
                Step::Respond(response) => return response,
                Step::Again => {}
                Step::Commit(prepared) => {
                    self.watch.principal(&prepared.principal);
                    if let Some(response) = self.commit(*prepared).await {
                        return response;
                    }
                }
            }
        }
        service.contended(route)
    }

    /// The response once the commit's outcome is certain; `None` to run the operation again.
    async fn commit(&self, mut prepared: Prepared) -> Option<Response> {
        let (sender, receiver) = oneshot::channel();
        let transaction = std::mem::take(&mut prepared.transaction);
        self.server.service.store().commit(
            transaction,
            Box::new(move |outcome| {
                // The client may have gone; what was committed stays.
                let _ = sender.send(outcome);
            }),
        );
        let outcome = receiver.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the outcome of a commit was lost".into()))
        });
        match outcome {
            Ok(()) => Some(prepared.response),
            Err(StoreError::Conflict) => None,
            Err(error) => Some(prepared.commit_failed(error)),
        }
    }

    /// Does what may take long, or reads a store over the network, so that the other requests of this thread
    /// can move elsewhere meanwhile.
    pub(crate) fn aside<T>(&self, slow: bool, work: impl FnOnce() -> T) -> T {
        if slow || self.server.service.store().is_remote() {
            tokio::task::block_in_place(work)
        } else {
            work()
        }
    }

    /// A GET of the audit log, whose body counts for nothing.
    fn log_resource(&self, head: &http::request::Parts, request_id: &str) -> Response {
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        let host = head.headers.get(HOST).and_then(|value| value.to_str().ok()).or(authority);
        let request = Request {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            host: host.unwrap_or_default(),
            headers: &head.headers,
            body: &[],
            source_ip: &self.peer,
            tls: Some(&self.tls),
            now_ms: (self.server.clock)(),
            request_id,
        };
        self.aside(true, || self.server.service.log_resource(&request))
    }

    /// Alive, or ready: the store can be read, and the audit trail is the one that was signed.
    fn health(&self, look_at_store: bool) -> Response {
        let store = self.server.service.store();
        let problem = if !look_at_store {
            None
        } else if let Some(alarm) = self.server.service.audit_alarm() {
            Some(format!("the audit trail was tampered with: {alarm}\n"))
        } else {
            let read = self.aside(false, || store.read("meta/ready"));
            read.is_err().then(|| "the store cannot be read\n".to_owned())
        };
        Response {
            status: if problem.is_none() { 200 } else { 503 },
            content_type: "text/plain",
            is_cbor: false,
            error: None,
            body: problem.unwrap_or_else(|| "ok\n".to_owned()).into_bytes(),
        }
    }
}
