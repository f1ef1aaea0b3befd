//! HTTP/3: the same responses as over TCP, within the same limits.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use h3::error::{Code, StreamError};
use h3::frame::FrameStream;
use h3::quic;
use h3::server::{RequestResolver, RequestStream};
use h3::stream::BufRecvStream;
use http::header::{CONTENT_LENGTH, DATE, TE};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame};
use outlast_api::service::http_date;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use super::h3::{BidiStream, Connection as Transport};
use super::{Accepted, Listener};
use crate::limits;
use crate::server::{Connection, Server};

impl Server {
    /// Serves HTTP/3 until `stop` is ready, then lets open requests finish, for [`limits::GRACE`] at most.
    pub async fn run_http3(
        self: Arc<Self>,
        mut listener: Listener,
        stop: impl Future<Output = ()>,
    ) {
        let _watching = self.readiness.watch(&self.service, self.clock);
        let (stopping, stopped) = watch::channel(Stop::No);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let Some(accepted) = accepted else {
                tracing::error!("the QUIC endpoint has closed: HTTP/3 is no longer served");
                self.forget_http3();
                break;
            };
            tokio::spawn(serve(self.clone(), accepted, stopped.clone()));
        }
        drop(stopped);
        let _ = stopping.send(Stop::WhenIdle);
        let ending = async {
            // Each connection and each request holds a receiver until it is finished.
            let _ = timeout(limits::GRACE, stopping.closed()).await;
            let _ = stopping.send(Stop::Now);
            // The datagrams with the close must still be sent.
            let _ = timeout(limits::LAST_WORDS, stopping.closed()).await;
            tokio::time::sleep(limits::STOPPING).await;
        };
        tokio::select! {
            () = ending => {}
            () = turn_away(&mut listener) => {}
        }
        drop(listener);
    }
}

/// Closes handshakes in progress. s2n-quic continues handshakes until its endpoint is gone; nobody should wait for a
/// response then.
async fn turn_away(listener: &mut Listener) {
    while let Some(accepted) = listener.accept().await {
        accepted.connection.close(code(Code::H3_NO_ERROR));
    }
    // Connections may still be open.
    std::future::pending::<()>().await;
}

fn code(code: Code) -> s2n_quic::application::Error {
    s2n_quic::application::Error::new(code.value()).unwrap_or(s2n_quic::application::Error::UNKNOWN)
}

/// How connections learn that the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stop {
    No,
    WhenIdle,
    Now,
}

/// Ends when the server stops in this way. If the sender is gone, that is the end too.
async fn told(stopped: &mut watch::Receiver<Stop>, stop: Stop) {
    let _ = stopped.wait_for(|told| *told >= stop).await;
}

/// `h3` reports errors of a whole connection to the client; they deserve at most a log line.
async fn serve(server: Arc<Server>, accepted: Accepted, mut stopped: watch::Receiver<Stop>) {
    let Accepted { connection, peer, negotiated, watch, mut slot } = accepted;
    tracing::debug!(%peer, ?negotiated, "a connection was accepted over QUIC");
    let handle = connection.handle();
    let activity = slot.activity().clone();
    let connection_of_requests =
        Arc::new(Connection::new(server, &negotiated, peer, activity, watch));
    let serving = requests(connection_of_requests.clone(), connection, peer, stopped.clone());
    tokio::select! {
        outcome = serving => {
            if let Err(error) = outcome {
                tracing::debug!(%peer, %error, "a QUIC connection ended with an error");
            }
        }
        () = connection_of_requests.activity().idle(limits::REQUEST_HEAD) => {
            tracing::debug!(%peer, "an idle QUIC connection was closed");
        }
        () = slot.evicted() => {
            tracing::debug!(%peer, "a QUIC connection was closed to make room for another one");
        }
        // After the grace period the rest is cut off.
        () = told(&mut stopped, Stop::Now) => {}
    }
    handle.close(code(Code::H3_NO_ERROR));
    drop(slot);
}

async fn requests(
    connection: Arc<Connection>,
    transport: s2n_quic::Connection,
    peer: SocketAddr,
    mut stopped: watch::Receiver<Stop>,
) -> Result<(), h3::error::ConnectionError> {
    let handle = transport.handle();
    let mut driver: h3::server::Connection<Transport, Bytes> = h3::server::builder()
        .max_field_section_size(limits::MAX_HEAD as u64)
        .send_grease(false)
        .build(Transport::new(transport))
        .await?;
    let streams = Arc::new(Streams::default());
    let mut is_stopping = false;
    loop {
        let stream = tokio::select! {
            stream = std::future::poll_fn(|context| driver.poll_accept_request_stream(context)) => {
                stream?
            }
            () = told(&mut stopped, Stop::WhenIdle), if !is_stopping => {
                is_stopping = true;
                // RFC 9114, section 5.2: requests so far are answered, later ones are not. The number is that of the
                // first stream that is not answered.
                driver.shutdown(1).await?;
                continue;
            }
            () = nothing_open(&connection), if is_stopping => return Ok(()),
            () = streams.of_no_use.notified() => {
                // Requests that have just ended count: a client that sends one head late keeps the others.
                if !is_unused(&connection) {
                    continue;
                }
                tracing::debug!(%peer, "a QUIC client opened streams and sent no request in time");
                handle.close(code(Code::H3_EXCESSIVE_LOAD));
                return Ok(());
            }
        };
        let Some(mut stream) = stream else { return Ok(()) };
        if streams.without_request.load(Ordering::Relaxed) > limits::STREAMS_WITHOUT_REQUEST {
            tracing::debug!(%peer, "a QUIC client opened streams without requests");
            handle.close(code(Code::H3_EXCESSIVE_LOAD));
            return Ok(());
        }
        // Policies may refer to the source address, and audit records contain it. The client proved its address in
        // the handshake; an address to which it migrated may be forged until it is validated (RFC 9000, section
        // 9.3.1). Another port is the work of a NAT; from another address it must connect again.
        if !is_stopping && handle.remote_addr().is_ok_and(|now| now.ip() != peer.ip()) {
            tracing::debug!(%peer, "a QUIC client has moved to another address");
            is_stopping = true;
            // This stream is the first that is not answered.
            driver.shutdown(0).await?;
        }
        if is_stopping {
            // Tells the client that it may retry elsewhere.
            let rejected = Code::H3_REQUEST_REJECTED.value();
            quic::RecvStream::stop_sending(&mut stream, rejected);
            quic::SendStream::<Bytes>::reset(&mut stream, rejected);
            streams.without_request.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let ended = stream.ended();
        let resolver = driver.create_resolver(FrameStream::new(BufRecvStream::new(stream)));
        let busy = connection.activity().attend();
        let serving = serve_stream(connection.clone(), streams.clone(), resolver, ended);
        let mut stopped = stopped.clone();
        tokio::spawn(async move {
            let _busy = busy;
            tokio::select! {
                outcome = serving => {
                    if let Err(error) = outcome {
                        tracing::debug!(%error, "an HTTP/3 request was not answered");
                    }
                }
                () = told(&mut stopped, Stop::Now) => {}
            }
        });
    }
}

/// Shared by the streams of a connection.
struct Streams {
    /// Turns for reading a head.
    heads: Arc<Semaphore>,
    /// Streams that ended before a request arrived on them. `h3` remembers each stream until its request is answered,
    /// so it never forgets these.
    without_request: AtomicUsize,
    /// Open requests whose head has arrived.
    requests: AtomicUsize,
    /// A head did not arrive in time, and there was no other request.
    of_no_use: Notify,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            heads: Arc::new(Semaphore::new(limits::HEADS_AT_A_TIME)),
            without_request: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            of_no_use: Notify::new(),
        }
    }
}

impl Streams {
    /// A stream ended without a request.
    fn end_without_request(&self, why: &Failed) {
        self.without_request.fetch_add(1, Ordering::Relaxed);
        // The peer may have vanished. The state of QUIC and TLS is freed early: nothing arrives, and nothing is being
        // done for the connection.
        if matches!(why, Failed::Slow) && self.requests.load(Ordering::Relaxed) == 0 {
            self.of_no_use.notify_one();
        }
    }
}

/// A request with its head, until this is dropped.
struct Requested<'a>(&'a AtomicUsize);

impl<'a> Requested<'a> {
    fn begin(requests: &'a AtomicUsize) -> Self {
        requests.fetch_add(1, Ordering::Relaxed);
        Self(requests)
    }
}

impl Drop for Requested<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a stream's request and answers it.
///
/// Anybody can make many streams wait, so a waiting stream must be small: the state of an operation is made only when
/// there is a request, and the stream is moved to the heap once (a future contains a copy of everything that is moved
/// into the futures that it awaits).
fn serve_stream(
    connection: Arc<Connection>,
    streams: Arc<Streams>,
    resolver: RequestResolver<Transport, Bytes>,
    ended: Arc<AtomicBool>,
) -> impl Future<Output = Result<(), Failed>> {
    let head = Box::pin(head(resolver, streams.heads.clone()));
    async move {
        let head = head.await.inspect_err(|why| streams.end_without_request(why))?;
        let _requested = Requested::begin(&streams.requests);
        Box::pin(answer(&connection, head, ended)).await
    }
}

/// Whether a connection has not been used for as long as a head may take.
fn is_unused(connection: &Connection) -> bool {
    connection.activity().unused_since().is_some_and(|since| since.elapsed() >= limits::STREAM_HEAD)
}

/// Ends when no request is open.
async fn nothing_open(connection: &Connection) {
    while connection.activity().idle_since().is_none() {
        tokio::time::sleep(limits::STOPPING).await;
    }
}

pub(super) type Head<S> = (http::Request<()>, RequestStream<S, Bytes>);

/// Waits for a request's head in its turn, for at most [`limits::STREAM_HEAD`].
pub(super) fn head<C: quic::Connection<Bytes>>(
    resolver: RequestResolver<C, Bytes>,
    heads: Arc<Semaphore>,
) -> impl Future<Output = Result<Head<C::BidiStream>, Failed>> {
    let head = async move {
        let _turn: Option<OwnedSemaphorePermit> = heads.acquire_owned().await.ok();
        Box::pin(resolver.resolve_request()).await
    };
    timeout(limits::STREAM_HEAD, head)
        .map(|outcome| outcome.map_err(|_| Failed::Slow)?.map_err(Failed::from))
}

/// Fields that only HTTP/1.1 has (RFC 9114, section 4.2).
const OF_CONNECTIONS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// Whether it contains fields that `h3` accepts but no request may have.
fn is_malformed(fields: &HeaderMap) -> bool {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let is_length = |value: &HeaderValue| {
        let value = value.as_bytes();
        !value.is_empty() && value.iter().all(u8::is_ascii_digit)
    };
    OF_CONNECTIONS.iter().any(|name| fields.contains_key(*name))
        || fields.get_all(TE).iter().any(|value| value != "trailers")
        || lengths.next().is_some_and(|first| !is_length(first))
        || lengths.next().is_some()
}

async fn answer(
    connection: &Connection,
    head: Head<BidiStream<Bytes>>,
    ended: Arc<AtomicBool>,
) -> Result<(), Failed> {
    let (mut request, send) = received(head, ended)?;
    let is_head = request.method() == Method::HEAD;
    request.body_mut().begins().await;
    let answer = connection.answer(request).await;
    let seconds = (connection.server.clock)().div_euclid(1000);
    timeout(limits::ANSWER, send_answer(send, answer, is_head, seconds))
        .await
        .map_err(|_| Failed::Slow)?
}

/// A request with its body, and where to send the response.
pub(super) type Received<S, R> = (http::Request<Content<R>>, RequestStream<S, Bytes>);

pub(super) fn received<S: quic::BidiStream<Bytes>>(
    (request, mut stream): Head<S>,
    ended: Arc<AtomicBool>,
) -> Result<Received<S::SendStream, S::RecvStream>, Failed> {
    if is_malformed(request.headers()) {
        // RFC 9114, section 4.1.2
        stream.stop_stream(Code::H3_MESSAGE_ERROR);
        stream.stop_sending(Code::H3_MESSAGE_ERROR);
        return Err(Failed::Malformed);
    }
    let (send, receive) = stream.split();
    let announced = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let body = Content::new(receive, ended, announced);
    Ok((request.map(|()| body), send))
}

pub(super) async fn send_answer<S: quic::SendStream<Bytes>>(
    mut send: RequestStream<S, Bytes>,
    answer: http::Response<Full<Bytes>>,
    is_head: bool,
    seconds: i64,
) -> Result<(), Failed> {
    let (mut head, body) = answer.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes);
    let body = body.unwrap_or_else(|never| match never {});
    // hyper adds this over TCP. SDKs set their clocks by the date.
    if let Ok(date) = HeaderValue::from_str(&http_date(seconds)) {
        head.headers.entry(DATE).or_insert(date);
    }
    if !is_head {
        head.headers.entry(CONTENT_LENGTH).or_insert(body.len().into());
    }
    send.send_response(http::Response::from_parts(head, ())).await?;
    // RFC 9110, section 9.3.2
    if !body.is_empty() && !is_head {
        send.send_data(body).await?;
    }
    Ok(send.finish().await?)
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the request is malformed")]
    Malformed,
    #[error("the client took too long")]
    Slow,
}

/// The body of a request.
pub(super) struct Content<R> {
    stream: RequestStream<R, Bytes>,
    /// Bytes that arrived before anybody asked.
    first: Option<Bytes>,
    /// Whether the client has sent everything.
    ended: Arc<AtomicBool>,
    is_over: bool,
    /// Missing bytes of the announced length.
    left: Option<u64>,
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("the body is not as long as its request says")]
    Length,
}

impl<R: quic::RecvStream> Content<R> {
    fn new(stream: RequestStream<R, Bytes>, ended: Arc<AtomicBool>, left: Option<u64>) -> Self {
        let mut body = Self { stream, first: None, ended, is_over: false, left };
        // Most requests fit in one packet, so it is already known whether there is a body. An error is reported again
        // later.
        let first = std::future::poll_fn(|context| body.poll_data(context)).now_or_never();
        if let Some(Ok(Some(bytes))) = first {
            body.first = Some(bytes);
        }
        body
    }

    /// Waits for the end of a request that announces no body, or for the first bytes of one. RFC 9114, section 4.1,
    /// lets a server answer earlier and stop the request, but some clients treat that as a failure: those of the
    /// crate `h3`.
    async fn begins(&mut self) {
        if self.first.is_some() || self.is_over || matches!(self.left, Some(1..)) {
            return;
        }
        let first = std::future::poll_fn(|context| self.poll_data(context));
        // An error is reported again later.
        if let Ok(Ok(Some(bytes))) = timeout(limits::STREAM_END, first).await {
            self.first = Some(bytes);
        }
    }

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ContentError>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        loop {
            let Some(mut data) = ready!(self.stream.poll_recv_data(context))? else {
                // `h3` also reports the end after an empty DATA frame.
                if !self.ended.load(Ordering::Acquire) {
                    continue;
                }
                self.is_over = true;
                // RFC 9114, section 4.1.2: a request whose length differs from the announced one is malformed.
                return Poll::Ready(match self.left {
                    Some(1..) => Err(ContentError::Length),
                    _ => Ok(None),
                });
            };
            let bytes = data.copy_to_bytes(data.remaining());
            if let Some(left) = &mut self.left {
                *left = left.checked_sub(bytes.len() as u64).ok_or(ContentError::Length)?;
            }
            return Poll::Ready(Ok(Some(bytes)));
        }
    }
}

impl<R: quic::RecvStream + Unpin> Body for Content<R> {
    type Data = Bytes;
    type Error = ContentError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ContentError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.poll_data(context)
            .map(|outcome| outcome.map(|bytes| bytes.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.is_over && !matches!(self.left, Some(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_output<A, B, F>(_: impl Fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn stream_that_waits_for_its_request_takes_little_memory() {
        let waiting = size_of_output(head::<Transport>);
        let answering = size_of_output(|(connection, streams), (resolver, ended)| {
            serve_stream(connection, streams, resolver, ended)
        });
        assert!(waiting + answering <= 1536, "{waiting} and {answering} bytes");
    }

    #[test]
    fn late_head_ends_a_connection_only_if_no_request_is_open() {
        let streams = Streams::default();
        let is_of_no_use = || streams.of_no_use.notified().now_or_never().is_some();
        let requested = Requested::begin(&streams.requests);
        streams.end_without_request(&Failed::Slow);
        assert!(!is_of_no_use());
        drop(requested);
        streams.end_without_request(&Failed::Malformed);
        assert!(!is_of_no_use());
        streams.end_without_request(&Failed::Slow);
        assert!(is_of_no_use());
        assert_eq!(streams.without_request.load(Ordering::Relaxed), 3);
    }
}
