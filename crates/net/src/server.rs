//! HTTPS: accepts connections, reads requests within limits, and answers when the answer is durable.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use outlast_api::audit::TlsDetails;
use outlast_api::outside::Reply;
use outlast_api::service::published::is_log_path;
use outlast_api::service::{Prepared, Request, Response, Route, Service, Step};
use outlast_crypto::pace;
use outlast_domain::ids;
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(crate) use crate::activity::{Activity, Busy};
use crate::bodies::Bodies;
pub(crate) use crate::bodies::{Content, Unread, discard};
use crate::cancelled::Cancelled;
pub use crate::clock::{Clock, system_clock};
use crate::door::{Accepted, Door};
use crate::errands::Errands;
use crate::metrics::{Action, Limit, Metrics, Tally};
use crate::peer::Peer;
use crate::readiness::Readiness;
use crate::slots::{Number, Of, Slot, Slots};
use crate::turns::{TooMany, Turns};
use crate::watch::Watch;
use crate::{Negotiated, limits};

/// ALPN names that the server speaks.
pub const PROTOCOLS: &[&str] = &["h2", "http/1.1"];

/// A server, ready to run.
pub struct Server {
    /// The APIs behind it.
    pub service: Arc<Service>,
    /// The TLS side of its listener.
    pub door: Arc<Door>,
    /// Milliseconds since 1970.
    pub clock: Clock,
    /// Result of the last readiness check.
    pub(crate) readiness: Arc<Readiness>,
    /// Requests that may wait for a store over the network.
    reads: Semaphore,
    /// Turns of principals for long-running calls.
    turns: Turns,
    /// Budget of memory for request bodies.
    bodies: Bodies,
    /// Connections over TCP, altogether and for one peer.
    connections: Number,
    /// Value of `Alt-Svc`: the port of HTTP/3.
    http3: Option<HeaderValue>,
    /// Whether HTTP/3 is no longer served.
    has_lost_http3: AtomicBool,
    /// Counters of requests.
    metrics: Option<Arc<Metrics>>,
    /// Who asks outside for calls.
    errands: Option<Arc<Errands>>,
}

/// Service and operation of a request, by their names in the tables.
#[derive(Default, Clone, Copy)]
struct Asked {
    service: Option<&'static str>,
    operation: Option<&'static str>,
}

/// A connection, over TCP or QUIC.
pub(crate) struct Connection {
    pub(crate) server: Arc<Server>,
    activity: Arc<Activity>,
    pub(crate) tls: TlsDetails,
    pub(crate) peer: String,
    /// Peer whose limits apply.
    pub(crate) of: Peer,
    /// Reports the end of the connection when dropped.
    pub(crate) watch: Watch,
}

impl Server {
    /// The HTTPS server of one listener.
    pub fn new(service: Arc<Service>, door: Arc<Door>, clock: Clock) -> Self {
        let connections = Number::of(limits::MAX_CONNECTIONS, None);
        let bodies = Bodies::new(connections, Tally::default());
        let has_lost_http3 = AtomicBool::new(false);
        let reads = Semaphore::new(limits::MAX_READS);
        let readiness = Arc::<Readiness>::default();
        let (http3, metrics, errands) = (None, None, None);
        Self {
            service,
            door,
            clock,
            readiness,
            reads,
            turns: Turns::new(),
            bodies,
            connections,
            http3,
            has_lost_http3,
            metrics,
            errands,
        }
    }

    /// Sets who asks outside for calls that need it. Without, such calls are refused.
    #[must_use]
    pub fn asking(mut self, errands: Arc<Errands>) -> Self {
        self.errands = Some(errands);
        self
    }

    /// Sets how many connections over TCP one peer (an IPv4 address, or the first 64 bits of an IPv6 address) may have; it gets
    /// the same fraction of the memory for bodies.
    #[must_use]
    pub fn with_connections_by_peer(self, by_peer: usize) -> Self {
        self.with_connections(limits::MAX_CONNECTIONS, by_peer)
    }

    /// The same, with another total.
    #[must_use]
    pub fn with_connections(mut self, all: usize, by_peer: usize) -> Self {
        self.connections = Number::of(all, Some(by_peer));
        self.bodies = Bodies::new(self.connections, self.tally());
        self
    }

    /// Sets the counters of requests.
    #[must_use]
    pub fn counting(mut self, metrics: Option<Arc<Metrics>>) -> Self {
        self.metrics = metrics;
        self.bodies = Bodies::new(self.connections, self.tally());
        self
    }

    fn tally(&self) -> Tally {
        Tally::new(self.metrics.clone(), self.door.listener())
    }

    /// Announces in each response over TCP that HTTP/3 is served on this port of the same host (RFC 7838).
    #[must_use]
    pub fn announcing_http3(mut self, port: u16) -> Self {
        let value = format!("h3=\":{port}\"; ma={}", limits::ALT_SVC.as_secs());
        self.http3 = HeaderValue::from_str(&value).ok();
        self
    }

    /// From now on announces that HTTP/3 is no longer served, so that clients forget it (RFC 7838, section 3).
    pub(crate) fn forget_http3(&self) {
        self.has_lost_http3.store(true, Ordering::Relaxed);
    }

    fn where_http3_is(&self) -> Option<HeaderValue> {
        let lost = self.has_lost_http3.load(Ordering::Relaxed);
        self.http3.clone().map(|http3| if lost { HeaderValue::from_static("clear") } else { http3 })
    }

    /// The budget of memory for bodies, which all listeners of the server share.
    pub(crate) fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// Serves until `stop` is ready, then lets open requests finish, for [`limits::GRACE`] at most.
    pub async fn run(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let _watching = self.readiness.watch(&self.service, self.clock);
        let slots = Slots::new(Of::Connections, self.connections, self.tally());
        let number = Number::of_handshakes(limits::MAX_HANDSHAKES, self.connections);
        let handshakes = Slots::new(Of::Handshakes, number, self.tally());
        let graceful = GracefulShutdown::new();
        let (stopping, stopped) = tokio::sync::watch::channel(false);
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
                    handshakes.make_room();
                    slots.make_room();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (server, watcher) = (self.clone(), graceful.watcher());
            let mut stopped = stopped.clone();
            let of = Some(Peer::of(peer.ip()));
            let activity = Arc::new(Activity::new());
            // A handshake is not busy, so there is always one that can be closed for another.
            let Ok(mut handshake) = handshakes.enter(of, &activity) else { continue };
            let slots = slots.clone();
            tokio::spawn(async move {
                let serve = async {
                    let accepted = tokio::select! {
                        accepted = server.accept(stream, peer) => accepted,
                        () = handshake.evicted() => None,
                    };
                    drop(handshake);
                    let Some(accepted) = accepted else { return };
                    match slots.enter(of, &activity) {
                        Ok(slot) => server.connection(accepted, peer, slot, watcher).await,
                        Err(limit) => {
                            tracing::debug!(%peer, ?limit, "a connection was refused, because the server is full");
                        }
                    }
                };
                tokio::select! {
                    () = serve => {}
                    // Cuts off everything that is left after the grace period.
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
        }
        drop(listener);
        let _ = timeout(limits::GRACE, graceful.shutdown()).await;
        let _ = stopping.send(true);
    }

    /// The TLS handshake.
    async fn accept(&self, stream: TcpStream, peer: SocketAddr) -> Option<Accepted<TcpStream>> {
        let _ = stream.set_nodelay(true);
        match self.door.accept(stream, Some(peer)).await {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                tracing::debug!(%peer, %error, "a handshake failed");
                None
            }
        }
    }

    async fn connection(
        self: Arc<Self>,
        accepted: Accepted<TcpStream>,
        peer: SocketAddr,
        mut slot: Slot,
        watcher: Watcher,
    ) {
        let Accepted { stream, negotiated, watch } = accepted;
        tracing::debug!(%peer, ?negotiated, "a connection was accepted");
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let activity = slot.activity().clone();
        let cancelled = Arc::new(Cancelled::new(self.tally()));
        let connection =
            Arc::new(Connection::new(self, &negotiated, peer, activity.clone(), watch));
        let requests = cancelled.clone();
        let service = service_fn(move |request| {
            let (connection, request_is_open) = (connection.clone(), requests.begin());
            async move {
                let mut answer = connection.answer(request).await;
                // A body that ends because its stream was reset gets here too.
                if answer.status() != StatusCode::REQUEST_TIMEOUT {
                    request_is_open.answered();
                }
                if let Some(http3) = connection.server.where_http3_is() {
                    answer.headers_mut().insert(ALT_SVC, http3);
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        // Chooses by ALPN, not by the first bytes, because waiting for a client that sends none would have no limit.
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
            .initial_connection_window_size(limits::HTTP2_WINDOW)
            .initial_stream_window_size(limits::HTTP2_STREAM_WINDOW)
            .max_pending_accept_reset_streams(limits::MAX_RESET_STREAMS)
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
            () = slot.evicted() => tracing::debug!(%peer, "a connection was closed to make room for another one"),
            () = cancelled.too_many() => {
                tracing::debug!(%peer, "a client cancelled too many requests");
            }
        }
    }
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
        activity: Arc<Activity>,
        watch: Watch,
    ) -> Self {
        let (of, tls) = (Peer::of(peer.ip()), negotiated.tls_details());
        Self { server, activity, tls, peer: peer.ip().to_string(), of, watch }
    }

    /// Its activity.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) async fn answer(
        &self,
        request: http::Request<impl Content>,
    ) -> http::Response<Full<Bytes>> {
        let _open = self.activity.attend();
        let begun = Instant::now();
        let request_id = ids::uuid().unwrap_or_default();
        let mut asked = Asked::default();
        let answer = if outlast_api::acme::is_path(request.uri().path()) {
            asked.service = Some("acme");
            self.acme(request, &request_id).await
        } else if outlast_api::service::tsa::is_path(request.uri().path()) {
            asked.service = Some("timestamp");
            http_answer(self.timestamp(request, &request_id).await, &request_id)
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
            discard(body).await;
            return self.health(path == "/readyz").await;
        }
        if head.method == Method::GET && is_log_path(path) {
            discard(body).await;
            let _use = self.activity.begin();
            return self.log_resource(&head, request_id).await;
        }
        let route = match Route::find(&head.method, path, &head.headers) {
            Ok(route) => route,
            Err(response) => {
                discard(body).await;
                return response;
            }
        };
        self.activity.touch();
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
        // In HTTP/2 and HTTP/3 the host is part of the request's target.
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
        // Anybody can send a body; only callers with an access key may fill memory with large ones.
        let expected = announced.unwrap_or(max);
        if expected > limits::UNKNOWN_CALLER_BODY
            && let Err(response) = self.off_thread(false, || service.admit(route, &request)).await
        {
            discard(body).await;
            return response;
        }
        let body = match self.server.bodies.read(self.of, body, max).await {
            Ok(body) => body,
            Err(Unread::TooLong) => return route.too_large(),
            Err(Unread::Incomplete) => return route.incomplete(),
        };
        // Only when the whole body has arrived: a slow sender must not lock out others.
        let _use = self.activity.begin();
        let body = &body.bytes;
        request.body = body;
        let route = match route.resolve(body) {
            Ok(route) => route,
            Err(response) => return response,
        };
        asked.operation = Some(route.names().1);
        // The principal, once the call is known to be a long one.
        let principal: OnceLock<String> = OnceLock::new();
        let reply: OnceLock<Reply> = OnceLock::new();
        let prepare = || async {
            let prepare = || service.prepare_with(route, &request, reply.get());
            let step = match principal.get() {
                None => self.off_thread(false, || pace::quickly(prepare)).await,
                Some(principal) => match self.in_turn(principal, prepare).await {
                    Some(step) => step,
                    None => return Attempt::Done(route.throttled()),
                },
            };
            match &step {
                Step::TakesLong(signer) => drop(principal.set(signer.clone())),
                Step::Commit(prepared) => self.watch.principal(&prepared.principal),
                Step::Respond(_) | Step::Again | Step::Ask(_) => {}
            }
            match (step, &self.server.errands) {
                (Step::Ask(asking), Some(errands)) => {
                    let unheard = Some(asking.errand.unheard());
                    let mut asked = Unheard { service, route, request: &request, reply: unheard };
                    let answer = errands.run(asking.errand).await;
                    asked.reply = None;
                    let _ = reply.set(answer);
                    Attempt::Again
                }
                (step, _) => step.into(),
            }
        };
        drive(service.store().as_ref(), prepare, Prepared::settle)
            .await
            .unwrap_or_else(|| service.contended(route))
    }

    /// Runs work that takes long, or that reads a store over the network, away from this thread's requests, which
    /// move to another thread. Only [`limits::MAX_READS`] of those that read over the network occupy a thread.
    pub(crate) async fn off_thread<T>(&self, slow: bool, work: impl FnOnce() -> T) -> T {
        if self.server.service.store().is_remote() {
            let _turn = self.server.reads.acquire().await;
            tokio::task::block_in_place(work)
        } else if slow {
            tokio::task::block_in_place(work)
        } else {
            work()
        }
    }

    /// Runs long work when it is this principal's turn; `None` if too many of its calls are already waiting.
    pub(crate) async fn in_turn<T>(&self, principal: &str, work: impl FnOnce() -> T) -> Option<T> {
        match self.server.turns.take(principal).await {
            Ok(_turn) => Some(self.off_thread(true, work).await),
            Err(TooMany) => {
                self.server.tally().count(Limit::SlowByPrincipal, Action::Refused);
                None
            }
        }
    }

    /// A GET of a log's resource; its body is ignored.
    async fn log_resource(&self, head: &http::request::Parts, request_id: &str) -> Response {
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
        self.off_thread(true, || self.server.service.log_resource(&request)).await
    }

    /// `/healthz`, and `/readyz` with a line for each reason why the server is not ready. Neither reads the store.
    async fn health(&self, is_about_readiness: bool) -> Response {
        let problems = match is_about_readiness {
            true => self.server.readiness.why_not(&self.server.service).await,
            false => Vec::new(),
        };
        let lines: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        Response {
            status: if problems.is_empty() { 200 } else { 503 },
            content_type: "text/plain",
            is_cbor: false,
            error: None,
            body: if problems.is_empty() { b"ok\n".to_vec() } else { lines.into_bytes() },
        }
    }
}

/// A call that has asked somebody outside. If its caller hangs up before the reply, which drops this, the call ends with its event
/// all the same: nobody is asked without one.
struct Unheard<'a> {
    service: &'a Service,
    route: Route,
    request: &'a Request<'a>,
    /// The reply that the call ends with; none once there is another.
    reply: Option<Reply>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        let Some(reply) = self.reply.take() else { return };
        let prepare = || self.service.prepare_with(self.route, self.request, Some(&reply));
        // A store over the network blocks, as in `off_thread`.
        let step = match self.service.store().is_remote() {
            true => tokio::task::block_in_place(prepare),
            false => prepare(),
        };
        let Step::Commit(prepared) = step else {
            tracing::error!("the event of a call whose caller has hung up cannot be made");
            return;
        };
        let tell = |outcome: Result<(), StoreError>| {
            if let Err(error) = outcome {
                tracing::error!(%error, "the event of a call whose caller has hung up is lost");
            }
        };
        self.service.store().commit(prepared.transaction, Box::new(tell));
    }
}
