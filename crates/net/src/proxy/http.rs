//! HTTP through the proxy: HTTP/1.1 or HTTP/2 on the client's side, HTTP/1.1 over kept connections to the backend.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::time::sleep;

use super::backend::{Lease, Target, Unavailable};
use super::body::{Failed, Fault, Moves, TimedBody};
use super::headers::{self, Origin};
use super::pieces::Transport;
use super::pump::pump;
use super::route::{Finish, Front};
use crate::cancelled::Cancelled;
use crate::limits;
use crate::server::{Activity, Busy, discard};
use crate::slots::Slot;

/// Marks the response to a request whose body was malformed, cancelled or missing.
#[derive(Clone, Copy)]
struct OfClient;

/// Held by a request until its response is complete.
type Held = (Busy, Lease, Slot);

type Answer = Response<Either<TimedBody, Full<Bytes>>>;

impl From<Unavailable> for Failed {
    fn from(error: Unavailable) -> Self {
        match error {
            Unavailable::NoneWell => {
                Self(StatusCode::SERVICE_UNAVAILABLE, "no backend server is healthy")
            }
            Unavailable::TimedOut { .. } => {
                Self(StatusCode::GATEWAY_TIMEOUT, "the backend server did not answer in time")
            }
            Unavailable::Refused { .. } => {
                Self(StatusCode::BAD_GATEWAY, "the backend server cannot be reached")
            }
        }
    }
}

const BROKE_OFF: Failed =
    Failed(StatusCode::BAD_GATEWAY, "the backend server closed the connection without an answer");
const TOO_LATE: Failed =
    Failed(StatusCode::GATEWAY_TIMEOUT, "the backend server did not answer in time");

const TOO_MANY: Failed =
    Failed(StatusCode::SERVICE_UNAVAILABLE, "too many requests are waiting for an answer");

/// Serves a client until it leaves, is idle for too long, or the listener stops.
pub(crate) async fn serve(stream: impl Transport + 'static, is_h2: bool, front: Arc<Front>) {
    let activity = front.activity.clone();
    let moves = Moves::default();
    let cancelled = Arc::new(Cancelled::new(front.route.settings.tally()));
    let service = {
        let (front, activity, moves) = (front.clone(), activity.clone(), moves.clone());
        let requests = cancelled.clone();
        service_fn(move |request| {
            moves.fetch_add(1, Ordering::Relaxed);
            let request_is_open = requests.begin();
            let answering = answer(front.clone(), activity.begin(), moves.clone(), request);
            async move {
                let answer = answering.await;
                if answer.extensions().get::<OfClient>().is_none() {
                    request_is_open.answered();
                }
                Ok::<_, Infallible>(answer)
            }
        })
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    // Chooses by ALPN, not by the first bytes, because waiting for a client that sends none would have no limit.
    let mut builder = if is_h2 { builder.http2_only() } else { builder.http1_only() };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::REQUEST_HEAD)
        .half_close(true)
        .max_buf_size(limits::MAX_HEAD * 2);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::REQUEST_HEAD)
        .initial_connection_window_size(limits::PROXY_WINDOW)
        .initial_stream_window_size(limits::PROXY_STREAM_WINDOW)
        .max_send_buf_size(limits::PROXY_SEND_BUFFER)
        .max_pending_accept_reset_streams(limits::MAX_RESET_STREAMS)
        .max_header_list_size(u32::try_from(limits::MAX_HEAD).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits::MAX_PROXY_STREAMS);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut serving = Box::pin(serving);
    let mut finish = front.finish.clone();
    tokio::select! {
        outcome = serving.as_mut() => {
            if let Err(error) = outcome {
                tracing::debug!(peer = front.peer.map(tracing::field::display), %error, "a connection ended with an error");
            }
            return;
        }
        () = activity.idle(limits::REQUEST_HEAD) => {
            tracing::debug!(peer = front.peer.map(tracing::field::display), "an idle connection was closed");
            return;
        }
        () = stuck(&activity, &moves, front.route.settings.answer + limits::REQUEST_HEAD) => {
            tracing::debug!(peer = front.peer.map(tracing::field::display), "a client that reads nothing was disconnected");
            return;
        }
        () = cancelled.too_many() => {
            tracing::debug!(peer = front.peer.map(tracing::field::display), "a client cancelled too many requests");
            return;
        }
        () = Finish::begins(&mut finish) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}

/// Ends if there are requests and none of their bodies has made progress for this long: a client that asks for much
/// and reads nothing. Other frames, such as PING, do not count.
async fn stuck(activity: &Activity, moves: &Moves, limit: Duration) {
    let mut last = moves.load(Ordering::Relaxed);
    loop {
        sleep(limit).await;
        let now = moves.load(Ordering::Relaxed);
        if now == last && activity.idle_since().is_none() {
            return;
        }
        last = now;
    }
}

async fn answer(
    front: Arc<Front>,
    busy: Busy,
    moves: Moves,
    mut request: Request<Incoming>,
) -> Answer {
    let switch = headers::upgrade(request.version(), request.headers())
        .map(|protocol| (protocol, hyper::upgrade::on(&mut request)));
    let (mut head, body) = request.into_parts();
    let route = &front.route;
    let origin = Origin {
        client: front.peer.map(|peer| peer.ip()),
        trusted: front.direct.is_some_and(|peer| route.trusts(peer.ip())),
        transparent: route.settings.transparent,
        tls: front.negotiated.as_ref(),
        tls_headers: route.settings.tls_headers,
    };
    if let Err(status) = headers::outward(&mut head, &origin) {
        discard(body).await;
        return told(&Failed(status, "the request cannot be forwarded"));
    }
    if let (Some(hosts), Some(host)) = (&route.settings.hosts, head.headers.get(HOST))
        && !headers::is_for(host, hosts)
    {
        discard(body).await;
        let status = StatusCode::MISDIRECTED_REQUEST;
        return told(&Failed(status, "this proxy does not serve requests for this host"));
    }
    // Without either field hyper assumes that a GET has no body.
    if !body.is_end_stream() && !head.headers.contains_key(CONTENT_LENGTH) {
        head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    let progress = Arc::new(Activity::new());
    let mut body = TimedBody::new(body, limits::REQUEST_HEAD, moves.clone());
    body.progress = Some(progress.clone());
    let Some(slot) = route.slot(front.of, &front.activity).await else {
        discard(body).await;
        return told(&TOO_MANY);
    };
    let fault = Fault::default();
    body.fault = Some(fault.clone());
    match exchange(&front, Request::from_parts(head, body), &progress).await {
        Ok((response, lease)) => homeward(front, response, switch, (busy, lease, slot), moves),
        Err(failed) => match fault.get() {
            // The client's body was at fault, not the backend.
            Some(fault) => {
                let mut answer = told(fault);
                answer.extensions_mut().insert(OfClient);
                answer
            }
            None => told(&failed),
        },
    }
}

/// The first response that a backend returns.
async fn exchange(
    front: &Front,
    mut request: Request<TimedBody>,
    progress: &Activity,
) -> Result<(Response<Incoming>, Lease), Failed> {
    let backends = &front.route.backends;
    // A connection that begins with a client's address belongs to that client.
    let pooled = backends.connecting.announce.is_none();
    let limit = front.route.settings.answer;
    let mut last = Failed::from(Unavailable::NoneWell);
    let bound = headers::binds(request.headers());
    for target in backends.order() {
        let lease = backends.lease(target.clone());
        // A backend may close a kept connection just when it is reused. Requests that can safely be repeated are.
        let again = replay(&request);
        if let Some(mut sender) = pooled.then(|| target.spare.take()).flatten() {
            match send(&mut sender, request, progress, limit).await {
                Ok(response) => return Ok((keep(&target, sender, response, !bound), lease)),
                Err(Unsent::Late) => return Err(TOO_LATE),
                Err(Unsent::Back(unsent)) => request = *unsent,
                Err(Unsent::Lost) => request = again.ok_or(BROKE_OFF)?,
            }
        }
        let stream = match backends.connect_to(&target, &front.announcement).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a backend server did not accept a connection");
                last = error.into();
                continue;
            }
        };
        let (mut sender, connection) =
            http1::Builder::new().handshake(TokioIo::new(stream)).await.map_err(|_| BROKE_OFF)?;
        tokio::spawn(async move {
            // The request gets the errors.
            let _ = connection.with_upgrades().await;
        });
        match send(&mut sender, request, progress, limit).await {
            Ok(response) => return Ok((keep(&target, sender, response, pooled && !bound), lease)),
            Err(Unsent::Late) => return Err(TOO_LATE),
            Err(Unsent::Lost) => return Err(BROKE_OFF),
            Err(Unsent::Back(unsent)) => (request, last) = (*unsent, BROKE_OFF),
        }
    }
    Err(last)
}

/// The same request again, if it is safe and has no body (RFC 9110, section 9.2.2).
fn replay(request: &Request<TimedBody>) -> Option<Request<TimedBody>> {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !safe || !request.body().is_end_stream() {
        return None;
    }
    let mut again = Request::new(TimedBody::empty());
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    Some(again)
}

enum Unsent {
    /// Nothing of it was sent.
    Back(Box<Request<TimedBody>>),
    /// It may have arrived.
    Lost,
    /// No response arrived in time.
    Late,
}

async fn send(
    sender: &mut SendRequest<TimedBody>,
    request: Request<TimedBody>,
    progress: &Activity,
    limit: Duration,
) -> Result<Response<Incoming>, Unsent> {
    progress.touch();
    let sending = async {
        if sender.ready().await.is_err() {
            return Err(Unsent::Back(Box::new(request)));
        }
        sender.try_send_request(request).await.map_err(|mut error| match error.take_message() {
            Some(request) => Unsent::Back(Box::new(request)),
            None => Unsent::Lost,
        })
    };
    let sending = std::pin::pin!(sending);
    tokio::select! {
        outcome = sending => outcome,
        // A long body may take its time as long as it makes progress.
        () = progress.idle(limit) => Err(Unsent::Late),
    }
}

/// Keeps the connection for later, when it has finished this response.
fn keep(
    target: &Arc<Target>,
    mut sender: SendRequest<TimedBody>,
    response: Response<Incoming>,
    pooled: bool,
) -> Response<Incoming> {
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if pooled && !switching && !headers::binds(response.headers()) {
        let target = Arc::downgrade(target);
        tokio::spawn(async move {
            if sender.ready().await.is_ok()
                && let Some(target) = target.upgrade()
            {
                target.spare.keep(sender);
            }
        });
    }
    response
}

fn homeward(
    front: Arc<Front>,
    mut response: Response<Incoming>,
    switch: Option<(HeaderValue, OnUpgrade)>,
    held: Held,
    moves: Moves,
) -> Answer {
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let switch = switch.filter(|(asked, _)| headers::switches_to(asked, response.headers()));
    headers::homeward(response.headers_mut(), switching);
    *response.version_mut() = http::Version::HTTP_11;
    let idle = front.route.settings.idle;
    if switching {
        let Some((_, client)) = switch else {
            // Nobody asked for it, or the client asked for another protocol.
            return told(&BROKE_OFF);
        };
        let server = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let _held = held;
            if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
                let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
                let (mut finish, mut heard) = (front.finish.clone(), || {});
                tokio::select! {
                    _ = pump(&mut client, &mut server, idle, &mut heard) => {}
                    () = Finish::cuts(&mut finish) => {}
                }
            }
            drop(front);
        });
        return response.map(|_| Either::Right(Full::default()));
    }
    response.map(|body| {
        let mut body = TimedBody::new(body, idle.min(front.route.settings.answer), moves);
        body.held = Some(Box::new(held));
        Either::Left(body)
    })
}

impl Transport for TokioIo<Upgraded> {
    fn reset(&self) {}
}

fn told(failed: &Failed) -> Answer {
    let Failed(status, text) = failed;
    let body = format!("{}: {text}\n", status.as_str());
    let mut response = Response::new(Either::Right(Full::new(Bytes::from(body))));
    *response.status_mut() = *status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
