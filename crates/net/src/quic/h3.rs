//! Implements the QUIC traits of `h3` with s2n-quic. Nothing here knows HTTP, except for the limit on frames.
//!
//! Two small traits abstract streams, so that the fuzz target of HTTP/3 can supply bytes without sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use s2n_quic::application;
use s2n_quic::connection::{self, BidirectionalStreamAcceptor, Handle, ReceiveStreamAcceptor};
use s2n_quic::stream;

use super::frames::{Frames, Wrong};
use crate::limits;

/// A connection for `h3`.
pub(super) struct Connection {
    handle: Handle,
    requests: BidirectionalStreamAcceptor,
    others: ReceiveStreamAcceptor,
}

impl Connection {
    pub(super) fn new(connection: s2n_quic::Connection) -> Self {
        let (handle, acceptor) = connection.split();
        let (requests, others) = acceptor.split();
        Self { handle, requests, others }
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let stream = ready!(self.others.poll_accept_receive_stream(context));
        Poll::Ready(match stream.map_err(connection_error)? {
            Some(stream) => Ok(RecvStream::of_unidirectional(stream)),
            None => Err(closed()),
        })
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let stream = ready!(self.requests.poll_accept_bidirectional_stream(context));
        Poll::Ready(match stream.map_err(connection_error)? {
            Some(stream) => Ok(BidiStream::new(stream)),
            None => Err(closed()),
        })
    }

    fn opener(&self) -> Opener {
        Opener(self.handle.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.handle, context)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.handle, context)
    }

    fn close(&mut self, code: Code, _reason: &[u8]) {
        self.handle.close(error_code(code.value()));
    }
}

/// Opens streams on a connection.
pub(super) struct Opener(Handle);

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.0, context)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.0, context)
    }

    fn close(&mut self, code: Code, _reason: &[u8]) {
        self.0.close(error_code(code.value()));
    }
}

fn open_bidi<B: Buf>(
    handle: &mut Handle,
    context: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let stream = ready!(handle.poll_open_bidirectional_stream(context));
    Poll::Ready(stream.map(BidiStream::new).map_err(on_stream))
}

fn open_send<B: Buf>(
    handle: &mut Handle,
    context: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    let stream = ready!(handle.poll_open_send_stream(context));
    Poll::Ready(stream.map(SendStream::new).map_err(on_stream))
}

/// The sending half of a QUIC stream.
pub(super) trait Outgoing {
    /// Sends as many bytes as there is room for.
    fn poll_send(
        &mut self,
        piece: &mut Bytes,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamErrorIncoming>>;

    /// Ends the stream; ready when the peer has received everything.
    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>>;

    /// Resets the stream; unsent bytes are dropped.
    fn reset(&mut self, code: u64);

    /// Stream id.
    fn id(&self) -> u64;
}

impl Outgoing for stream::SendStream {
    fn poll_send(
        &mut self,
        piece: &mut Bytes,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), StreamErrorIncoming>> {
        Self::poll_send(self, piece, context).map_err(stream_error)
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Self::poll_close(self, context).map_err(stream_error)
    }

    fn reset(&mut self, code: u64) {
        // A peer's STOP_SENDING has already reset the stream (RFC 9000, section 3.5). s2n-quic counts such a stream
        // as open until we have seen that, and a reset does not see it: the peer would permanently lose one stream.
        let _ = self.poll_send_ready(&mut Context::from_waker(Waker::noop()));
        let _ = Self::reset(self, error_code(code));
    }

    fn id(&self) -> u64 {
        Self::id(self)
    }
}

/// The receiving half of a QUIC stream.
pub(super) trait Incoming {
    /// The next bytes; `None` at the end.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>>;

    /// Tells the peer that we read no more.
    fn stop_sending(&mut self, code: u64);

    /// Closes the whole connection.
    fn close_connection(&mut self, code: u64);

    /// Stream id.
    fn id(&self) -> u64;
}

impl Incoming for stream::ReceiveStream {
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Self::poll_receive(self, context).map_err(stream_error)
    }

    fn stop_sending(&mut self, code: u64) {
        let _ = Self::stop_sending(self, error_code(code));
    }

    fn close_connection(&mut self, code: u64) {
        self.connection().close(error_code(code));
    }

    fn id(&self) -> u64 {
        Self::id(self)
    }
}

/// A bidirectional stream.
pub(super) struct BidiStream<
    B: Buf,
    S: Outgoing = stream::SendStream,
    R: Incoming = stream::ReceiveStream,
> {
    send: SendStream<B, S>,
    receive: RecvStream<R>,
}

impl<B: Buf> BidiStream<B> {
    fn new(stream: stream::BidirectionalStream) -> Self {
        let (receive, send) = stream.split();
        Self::of_halves(send, receive)
    }
}

impl<B: Buf, S: Outgoing, R: Incoming> BidiStream<B, S, R> {
    pub(super) fn of_halves(send: S, receive: R) -> Self {
        Self { send: SendStream::new(send), receive: RecvStream::of_request(receive) }
    }

    /// Becomes true when the peer has sent everything.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        self.receive.ended.clone()
    }
}

impl<B: Buf, S: Outgoing, R: Incoming> quic::BidiStream<B> for BidiStream<B, S, R> {
    type SendStream = SendStream<B, S>;
    type RecvStream = RecvStream<R>;

    fn split(self) -> (SendStream<B, S>, RecvStream<R>) {
        (self.send, self.receive)
    }
}

impl<B: Buf, S: Outgoing, R: Incoming> quic::SendStream<B> for BidiStream<B, S, R> {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf, S: Outgoing, R: Incoming> quic::RecvStream for BidiStream<B, S, R> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(context)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

/// Sending half.
pub(super) struct SendStream<B: Buf, S: Outgoing = stream::SendStream> {
    stream: S,
    writing: Option<WriteBuf<B>>,
    /// The part that s2n-quic takes next.
    piece: Bytes,
    /// Whether the peer has received everything or has been told that nothing follows.
    is_over: bool,
}

impl<B: Buf, S: Outgoing> SendStream<B, S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, writing: None, piece: Bytes::new(), is_over: false }
    }
}

impl<B: Buf, S: Outgoing> quic::SendStream<B> for SendStream<B, S> {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        loop {
            if !self.piece.is_empty() {
                ready!(self.stream.poll_send(&mut self.piece, context))?;
                continue;
            }
            match &mut self.writing {
                Some(writing) if writing.has_remaining() => {
                    let len = writing.chunk().len();
                    self.piece = writing.copy_to_bytes(len);
                }
                _ => {
                    self.writing = None;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(
                    "data was to be sent before the previous data had been".into(),
                ),
            });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    /// Ready when the peer has received everything, so that a connection may be closed then.
    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(quic::SendStream::<B>::poll_ready(self, context))?;
        ready!(self.stream.poll_close(context))?;
        self.is_over = true;
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, code: u64) {
        self.is_over = true;
        self.stream.reset(code);
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<B: Buf, S: Outgoing> Drop for SendStream<B, S> {
    fn drop(&mut self) {
        if !self.is_over {
            // s2n-quic would end the stream as if it were complete.
            self.stream.reset(Code::H3_REQUEST_CANCELLED.value());
        }
    }
}

/// Receiving half.
pub(super) struct RecvStream<R: Incoming = stream::ReceiveStream> {
    stream: R,
    frames: Frames,
    /// Bytes received but not passed on.
    rest: Bytes,
    ended: Arc<AtomicBool>,
}

impl<R: Incoming> RecvStream<R> {
    pub(super) fn of_request(stream: R) -> Self {
        Self::new(stream, Frames::of_request(limits::MAX_HEAD as u64))
    }

    pub(super) fn of_unidirectional(stream: R) -> Self {
        Self::new(stream, Frames::of_unidirectional(limits::MAX_HEAD as u64))
    }

    fn new(stream: R, frames: Frames) -> Self {
        Self { stream, frames, rest: Bytes::new(), ended: Arc::default() }
    }

    /// Stops reading: an exceeded limit ends the stream, a broken rule the connection.
    fn refuse(&mut self, wrong: Wrong) -> StreamErrorIncoming {
        self.rest.clear();
        let code = code_of(wrong).value();
        match wrong {
            Wrong::TooLong | Wrong::TooMany => quic::RecvStream::stop_sending(self, code),
            Wrong::Cut | Wrong::Unexpected => self.stream.close_connection(code),
        }
        StreamErrorIncoming::StreamTerminated { error_code: code }
    }
}

impl<R: Incoming> quic::RecvStream for RecvStream<R> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(wrong) = self.frames.refused() {
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated {
                error_code: code_of(wrong).value(),
            }));
        }
        // A peer that sends as fast as we read would keep timeouts from being checked.
        let progress = ready!(tokio::task::coop::poll_proceed(context));
        if self.rest.is_empty() {
            let Some(bytes) = ready!(self.stream.poll_receive(context))? else {
                progress.made_progress();
                if let Err(wrong) = self.frames.end() {
                    return Poll::Ready(Err(self.refuse(wrong)));
                }
                self.ended.store(true, Ordering::Release);
                return Poll::Ready(Ok(None));
            };
            self.rest = bytes;
        }
        progress.made_progress();
        // The rest is not read, and gives the peer no credit, before this part has been used.
        match self.frames.next(&self.rest) {
            Ok(len) => Poll::Ready(Ok(Some(self.rest.split_to(len.min(self.rest.len()))))),
            Err(wrong) => Poll::Ready(Err(self.refuse(wrong))),
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.stream.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<R: Incoming> Drop for RecvStream<R> {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Acquire) {
            // RFC 9114, section 4.1: a response may be complete before its request; this code says that nothing is
            // wrong. After another code it has no effect.
            self.stream.stop_sending(Code::H3_NO_ERROR.value());
        }
    }
}

fn code_of(wrong: Wrong) -> Code {
    match wrong {
        Wrong::TooLong | Wrong::TooMany => Code::H3_EXCESSIVE_LOAD,
        Wrong::Cut => Code::H3_FRAME_ERROR,
        Wrong::Unexpected => Code::H3_FRAME_UNEXPECTED,
    }
}

fn id(id: u64) -> StreamId {
    // s2n-quic has no id that does not fit.
    StreamId::try_from(id).unwrap_or_else(|_| h3::proto::varint::VarInt::MAX.into())
}

fn error_code(code: u64) -> application::Error {
    application::Error::new(code).unwrap_or(application::Error::UNKNOWN)
}

fn closed() -> ConnectionErrorIncoming {
    // As if the peer had closed it: s2n-quic does not say who closed a connection without an error.
    ConnectionErrorIncoming::ApplicationClose { error_code: Code::H3_NO_ERROR.value() }
}

fn connection_error(error: connection::Error) -> ConnectionErrorIncoming {
    match error {
        connection::Error::Closed { .. } => closed(),
        connection::Error::Application { error, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: error.into() }
        }
        connection::Error::IdleTimerExpired { .. } => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn on_stream(error: connection::Error) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn stream_error(error: stream::Error) -> StreamErrorIncoming {
    match error {
        stream::Error::StreamReset { error, .. } => {
            StreamErrorIncoming::StreamTerminated { error_code: error.into() }
        }
        stream::Error::ConnectionError { error, .. } => on_stream(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
