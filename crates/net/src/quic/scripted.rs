//! An HTTP/3 client made of bytes, for the fuzz target and its seeds.
//!
//! A script replaces the connection below `h3`; everything else, from the adapter's streams to the body of a request,
//! is the code that serves clients over UDP. There is no clock and no thread: the same bytes always have the same
//! result.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::frame::FrameStream;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use h3::stream::BufRecvStream;
use http::Method;
use http_body_util::{BodyExt, Full};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::h3::{BidiStream, Incoming, Outgoing, RecvStream, SendStream};
use super::server::{head, received, send_answer};
use crate::limits;

/// Result of a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Method, path and body length of each request that was read to the end.
    pub requests: Vec<(String, String, usize)>,
    /// Requests that were given up.
    pub refused: usize,
    /// Code with which the connection was closed.
    pub closed: Option<u64>,
    /// Bytes sent to the client.
    pub sent: usize,
}

/// Plays a script, which is a sequence of events. Each event is a byte, a length and that many bytes. The lower three
/// bits of the byte name a stream: the client's first four request streams, then its first four unidirectional ones.
/// The next two bits say whether the stream continues (0, 1), ends (2) or is reset (3) with that.
pub fn play(script: &[u8]) -> Outcome {
    // Nobody waits for its clock, but without it `timeout` panics.
    let _entered = RUNTIME.as_ref().map(Runtime::enter);
    let wire = Wire::default();
    let signal = Arc::new(Signal::default());
    let mut outcome = Arc::new(Mutex::new(Outcome::default()));
    let mut tasks = Tasks::default();
    tasks.add(serve(wire.clone(), tasks.spawner(), outcome.clone()));
    tasks.run(&signal);
    for event in events(script) {
        lock(&wire.0).deliver(event);
        signal.0.store(true, Ordering::Relaxed);
        tasks.run(&signal);
    }
    // The end of the server also closes the connection, which is not the client's doing.
    let Outcome { closed, sent, .. } = lock(&wire.0).told();
    drop(tasks);
    let outcome = Arc::get_mut(&mut outcome)
        .map(|outcome| std::mem::take(outcome.get_mut().unwrap_or_else(PoisonError::into_inner)));
    Outcome { closed, sent, ..outcome.unwrap_or_default() }
}

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().ok());

/// The server's loop, without the parts that need a socket.
async fn serve(wire: Wire, spawner: Spawner, outcome: Arc<Mutex<Outcome>>) {
    let built = h3::server::builder()
        .max_field_section_size(limits::MAX_HEAD as u64)
        .send_grease(false)
        .build::<_, Bytes>(wire)
        .await;
    let Ok(mut driver) = built else { return };
    let heads = Arc::new(Semaphore::new(limits::HEADS_AT_A_TIME));
    loop {
        let accepted =
            std::future::poll_fn(|context| driver.poll_accept_request_stream(context)).await;
        let Ok(Some(stream)) = accepted else { return };
        let ended = stream.ended();
        let resolver = driver.create_resolver(FrameStream::new(BufRecvStream::new(stream)));
        let (heads, outcome) = (heads.clone(), outcome.clone());
        spawner.add(async move {
            let answering = async {
                let head = head(resolver, heads).await.ok()?;
                let (request, send) = received(head, ended).ok()?;
                let (parts, body) = request.into_parts();
                let len = body.collect().await.ok()?.to_bytes().len();
                let is_head = parts.method == Method::HEAD;
                let answer = http::Response::new(Full::new(Bytes::from_static(b"read")));
                send_answer(send, answer, is_head, 0).await.ok()?;
                Some((parts.method.to_string(), parts.uri.path().to_owned(), len))
            };
            let answered = answering.await;
            let mut outcome = lock(&outcome);
            match answered {
                Some(request) => outcome.requests.push(request),
                None => outcome.refused += 1,
            }
        });
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Where tasks add further tasks.
#[derive(Clone, Default)]
struct Spawner(Arc<Mutex<Vec<Task>>>);

impl Spawner {
    fn add(&self, task: impl Future<Output = ()> + 'static) {
        lock(&self.0).push(Box::pin(task));
    }
}

#[derive(Default)]
struct Tasks {
    running: Vec<Task>,
    new: Spawner,
}

impl Tasks {
    fn spawner(&self) -> Spawner {
        self.new.clone()
    }

    fn add(&mut self, task: impl Future<Output = ()> + 'static) {
        self.running.push(Box::pin(task));
    }

    /// Runs until all tasks wait for the next event.
    fn run(&mut self, signal: &Arc<Signal>) {
        let waker = Waker::from(signal.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            self.running.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            let new = std::mem::take(&mut *lock(&self.new.0));
            let is_new = !new.is_empty();
            self.running.extend(new);
            if !signal.0.swap(false, Ordering::Relaxed) && !is_new {
                return;
            }
        }
    }
}

/// Whether a task was woken.
#[derive(Default)]
struct Signal(AtomicBool);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Streams of each kind that a script can name.
const STREAMS: usize = 4;

/// An event on one of the client's streams.
struct Event {
    is_request: bool,
    number: usize,
    bytes: Bytes,
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    Fin,
    Reset,
}

fn events(mut script: &[u8]) -> Vec<Event> {
    let mut out = Vec::new();
    while let [first, len, rest @ ..] = script {
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        out.push(Event {
            is_request: usize::from(first & 7) < STREAMS,
            number: usize::from(first & 7) % STREAMS,
            bytes: Bytes::copy_from_slice(bytes),
            end: match first >> 3 & 3 {
                2 => Some(End::Fin),
                3 => Some(End::Reset),
                _ => None,
            },
        });
        script = rest;
    }
    out
}

/// Bytes that arrived on a stream and were not read.
#[derive(Default)]
struct Arrived {
    pieces: VecDeque<Bytes>,
    end: Option<End>,
}

#[derive(Default)]
struct State {
    /// Request streams, then unidirectional ones: those that the client opens, one after the other.
    streams: [Vec<Arrived>; 2],
    /// How many of them the server has accepted.
    accepted: [usize; 2],
    opened: u64,
    closed: Option<u64>,
    sent: usize,
}

impl State {
    fn told(&self) -> Outcome {
        Outcome { closed: self.closed, sent: self.sent, ..Outcome::default() }
    }

    fn deliver(&mut self, event: Event) {
        let streams = &mut self.streams[usize::from(!event.is_request)];
        while streams.len() <= event.number {
            streams.push(Arrived::default());
        }
        let stream = &mut streams[event.number];
        // QUIC delivers nothing after the end.
        if stream.end.is_some() {
            return;
        }
        if !event.bytes.is_empty() {
            stream.pieces.push_back(event.bytes);
        }
        stream.end = event.end;
    }
}

/// The connection.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<State>>);

impl Wire {
    fn poll_accept(&self, kind: usize) -> Poll<Result<Received, ConnectionErrorIncoming>> {
        let mut state = lock(&self.0);
        if let Some(error_code) = state.closed {
            return Poll::Ready(Err(ConnectionErrorIncoming::ApplicationClose { error_code }));
        }
        let number = state.accepted[kind];
        if number >= state.streams[kind].len() {
            return Poll::Pending;
        }
        state.accepted[kind] += 1;
        Poll::Ready(Ok(Received { wire: self.clone(), kind, number }))
    }

    fn close_with(&self, code: u64) {
        lock(&self.0).closed.get_or_insert(code);
    }
}

/// Receiving half of a stream.
struct Received {
    wire: Wire,
    kind: usize,
    number: usize,
}

impl Incoming for Received {
    fn poll_receive(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let mut state = lock(&self.wire.0);
        if let Some(error) = closed(&state) {
            return Poll::Ready(Err(error));
        }
        let stream = &mut state.streams[self.kind][self.number];
        match stream.pieces.pop_front() {
            Some(piece) => Poll::Ready(Ok(Some(piece))),
            None => match stream.end {
                Some(End::Fin) => Poll::Ready(Ok(None)),
                Some(End::Reset) => Poll::Ready(Err(StreamErrorIncoming::StreamTerminated {
                    error_code: Code::H3_REQUEST_CANCELLED.value(),
                })),
                None => Poll::Pending,
            },
        }
    }

    fn stop_sending(&mut self, _: u64) {}

    fn close_connection(&mut self, code: u64) {
        self.wire.close_with(code);
    }

    fn id(&self) -> u64 {
        // RFC 9000, section 2.1: the lowest bit of a client's stream is 0; the next one means unidirectional.
        (self.number as u64) << 2 | (self.kind as u64) << 1
    }
}

fn closed(state: &State) -> Option<StreamErrorIncoming> {
    let error_code = state.closed?;
    let connection_error = ConnectionErrorIncoming::ApplicationClose { error_code };
    Some(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })
}

/// Sending half of a stream, which counts bytes.
struct Sent {
    wire: Wire,
    id: u64,
}

impl Outgoing for Sent {
    fn poll_send(
        &mut self,
        piece: &mut Bytes,
        _: &mut Context<'_>,
    ) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut state = lock(&self.wire.0);
        if let Some(error) = closed(&state) {
            return Poll::Ready(Err(error));
        }
        state.sent += piece.len();
        piece.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(closed(&lock(&self.wire.0)).map_or(Ok(()), Err))
    }

    fn reset(&mut self, _: u64) {}

    fn id(&self) -> u64 {
        self.id
    }
}

impl<B: Buf> quic::Connection<B> for Wire {
    type RecvStream = RecvStream<Received>;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<RecvStream<Received>, ConnectionErrorIncoming>> {
        self.poll_accept(1).map_ok(RecvStream::of_unidirectional)
    }

    fn poll_accept_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B, Sent, Received>, ConnectionErrorIncoming>> {
        self.poll_accept(0).map_ok(|receive| {
            let send = Sent { wire: self.clone(), id: receive.id() };
            BidiStream::of_halves(send, receive)
        })
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Wire {
    type BidiStream = BidiStream<B, Sent, Received>;
    type SendStream = SendStream<B, Sent>;

    fn poll_open_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        // An HTTP/3 server opens none (RFC 9114, section 6.1).
        Poll::Pending
    }

    fn poll_open_send(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        let mut state = lock(&self.0);
        let id = state.opened << 2 | 3;
        state.opened += 1;
        Poll::Ready(Ok(SendStream::new(Sent { wire: self.clone(), id })))
    }

    fn close(&mut self, code: Code, _: &[u8]) {
        self.close_with(code.value());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOES_ON: u8 = 0;
    const ENDS: u8 = 2;
    const IS_RESET: u8 = 3;

    fn event(stream: u8, kind: u8, bytes: &[u8]) -> Vec<u8> {
        [&[kind << 3 | stream, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[kind, u8::try_from(content.len()).unwrap()], content].concat()
    }

    /// HEADERS from QPACK's static table: the method's row, https, localhost, and a path, followed by other bytes.
    fn headers(method: u8, path: &str, more: &[u8]) -> Vec<u8> {
        let len = u8::try_from(path.len()).unwrap();
        let mut block = vec![0, 0, 0xc0 | method, 0xc0 | 23, 0x50, 9];
        block.extend(b"localhost");
        block.extend([0x51, len]);
        block.extend(path.bytes());
        block.extend(more);
        frame(1, &block)
    }

    const GET: u8 = 17;
    const POST: u8 = 20;
    const CONTENT_LENGTH_ROW: u8 = 4;

    /// The control stream with empty SETTINGS.
    fn control() -> Vec<u8> {
        event(4, GOES_ON, &[0, 4, 0])
    }

    fn requests(outcome: &Outcome) -> Vec<(&str, &str, usize)> {
        let each = outcome.requests.iter();
        each.map(|(method, path, len)| (method.as_str(), path.as_str(), *len)).collect()
    }

    #[test]
    fn requests_are_read_whole_or_in_pieces() {
        let mut body = headers(POST, "/two", &[]);
        body.extend(frame(0, b"hello"));
        for size in 1..=body.len() {
            let mut script = control();
            script.extend(event(0, ENDS, &headers(GET, "/one", &[])));
            body.chunks(size).for_each(|piece| script.extend(event(1, GOES_ON, piece)));
            let before = play(&script);
            assert_eq!(requests(&before), [("GET", "/one", 0)]);
            script.extend(event(1, ENDS, b""));
            let outcome = play(&script);
            assert_eq!(requests(&outcome), [("GET", "/one", 0), ("POST", "/two", 5)]);
            assert_eq!((outcome.refused, outcome.closed), (0, None));
            assert!(outcome.sent > before.sent);
            assert_eq!(play(&script), outcome, "the same bytes do the same");
        }
    }

    #[test]
    fn what_breaks_the_rules_is_not_answered() {
        let no_request = |bytes: &[u8], kind| {
            let outcome = play(&[control(), event(0, kind, bytes)].concat());
            assert!(outcome.requests.is_empty(), "{bytes:02x?}");
            (outcome.refused, outcome.closed)
        };
        let whole = headers(GET, "/", &[]);
        let unexpected = Some(Code::H3_FRAME_UNEXPECTED.value());
        assert_eq!(no_request(&frame(0, b"first"), ENDS), (1, unexpected));
        assert_eq!(no_request(&whole[..5], ENDS), (1, Some(Code::H3_FRAME_ERROR.value())));
        assert_eq!(no_request(&whole, IS_RESET), (1, None));
        assert_eq!(no_request(&whole[..5], GOES_ON), (0, None));
        // A frame above the limit ends only its stream.
        assert_eq!(no_request(&[1, 0x80, 0xff, 0, 0], GOES_ON), (1, None));
        // A body of another length than announced: shorter, then longer.
        for announced in [b'6', b'4'] {
            let length = [0x50 | CONTENT_LENGTH_ROW, 1, announced];
            let bytes = [headers(POST, "/", &length), frame(0, b"hello")].concat();
            assert_eq!(no_request(&bytes, ENDS), (1, None));
        }
        // A control stream that does not begin with SETTINGS.
        let outcome = play(&event(4, GOES_ON, &[0, 7, 1, 0]));
        assert_eq!(outcome.closed, Some(Code::H3_MISSING_SETTINGS.value()));
    }

    /// Inputs that fuzzing found are always tried.
    #[test]
    fn seeds_are_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/h3");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let _ = play(&std::fs::read(entry.unwrap().path()).unwrap());
            seen += 1;
        }
        assert!(seen > 0);
    }
}
