//! A stream that counts its bytes and whose beginning can be read twice.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use outlast_negotiate::offer::{Collector, OfferError, check_second};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Bytes of a connection so far, including TLS.
#[derive(Debug, Default)]
pub struct Counts {
    /// From the peer.
    pub received: AtomicU64,
    /// To the peer.
    pub sent: AtomicU64,
}

/// A stream with its counts.
#[derive(Debug)]
pub struct Observed<S> {
    stream: S,
    counts: Arc<Counts>,
    /// Bytes read ahead, to be read again.
    ahead: Vec<u8>,
    /// How many of them have been read again.
    taken: usize,
    /// Present while a second ClientHello is expected.
    retry: Option<Box<Retry>>,
    retried: bool,
    refused: Option<OfferError>,
}

/// Requirements on a second ClientHello.
#[derive(Debug)]
struct Retry {
    collector: Collector,
    received: Vec<u8>,
    first: Vec<u8>,
    group: u16,
}

/// Bytes of one read.
const PIECE: usize = 4096;

impl<S> Observed<S> {
    /// Nothing is counted yet.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            counts: Arc::default(),
            ahead: Vec::new(),
            taken: 0,
            retry: None,
            retried: false,
            refused: None,
        }
    }

    /// The counts, which are updated further.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// The inner stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// After the ClientHello `first`, a HelloRetryRequest asks for a share of `group`. Holds back the following bytes
    /// until they are known to be a valid change of the first ClientHello.
    pub(crate) fn expect_retry(&mut self, first: Vec<u8>, early_data: bool, group: u16) {
        let hello_end = self.ahead.len().min(self.hello_len(first.len()));
        let received = self.ahead.split_off(hello_end);
        let collector = Collector::second(early_data);
        self.retry = Some(Box::new(Retry { collector, received, first, group }));
    }

    /// Bytes of the records that contain a message of this length, as they are in `ahead`.
    fn hello_len(&self, message: usize) -> usize {
        let (mut at, mut left) = (0, message);
        while left > 0 {
            let Some([_, _, _, high, low]) = self.ahead.get(at..at + 5) else { break };
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            left = left.saturating_sub(len);
            at += 5 + len;
        }
        at
    }

    /// Whether a valid second ClientHello arrived.
    pub(crate) fn has_retried(&self) -> bool {
        self.retried
    }

    /// Lets all further bytes through.
    pub(crate) fn release(&mut self) {
        self.retry = None;
    }

    /// Fault of the second ClientHello.
    pub(crate) fn refused(&self) -> Option<OfferError> {
        self.refused
    }
}

impl<S: AsyncRead + Unpin> Observed<S> {
    /// Reads a ClientHello, or bytes that cannot become one. They will be read again, in as few records as possible.
    /// Calls `heard` when bytes have arrived.
    pub async fn client_hello(
        &mut self,
        mut heard: impl FnMut(),
    ) -> io::Result<Result<Vec<u8>, OfferError>> {
        let mut collector = Collector::first();
        loop {
            self.ahead.reserve(PIECE);
            let read = self.stream.read_buf(&mut self.ahead).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.counts.received.fetch_add(read as u64, Ordering::Relaxed);
            heard();
            match collector.advance(&self.ahead) {
                Ok(false) => collector.trim(&mut self.ahead),
                Ok(true) => {
                    collector.trim(&mut self.ahead);
                    if !collector.is_in_one_record() {
                        prepend(&mut self.ahead, collector.to_records());
                    }
                    return Ok(Ok(collector.into_message()));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Reads until the second ClientHello is complete and can be passed on, or the peer has closed.
    fn poll_retry(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, counts, ahead, taken, retry, retried, refused } = self;
        let Some(state) = retry else { return Poll::Ready(Ok(())) };
        loop {
            let outcome = match state.collector.advance(&state.received) {
                Ok(false) => {
                    state.collector.trim(&mut state.received);
                    let mut piece = [0; PIECE];
                    let mut buffer = ReadBuf::new(&mut piece);
                    ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
                    let read = buffer.filled();
                    if read.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    counts.received.fetch_add(read.len() as u64, Ordering::Relaxed);
                    state.received.extend_from_slice(read);
                    continue;
                }
                Ok(true) => check_second(&state.first, state.collector.message(), state.group),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                (*retry, *refused) = (None, Some(error));
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
            state.collector.trim(&mut state.received);
            *ahead = std::mem::take(&mut state.received);
            *taken = 0;
            if !state.collector.is_in_one_record() {
                prepend(ahead, state.collector.to_records());
            }
            (*retry, *retried) = (None, true);
            return Poll::Ready(Ok(()));
        }
    }
}

fn prepend(ahead: &mut Vec<u8>, mut records: Vec<u8>) {
    records.append(ahead);
    *ahead = records;
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() && self.retry.is_some() {
            ready!(self.poll_retry(context))?;
            if self.ahead.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        if let Some(left) = self.ahead.get(self.taken..).filter(|left| !left.is_empty()) {
            let len = left.len().min(buffer.remaining());
            buffer.put_slice(&left[..len]);
            self.taken += len;
            if self.taken == self.ahead.len() {
                (self.ahead, self.taken) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        self.counts.received.fetch_add(read as u64, Ordering::Relaxed);
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = &outcome {
            self.counts.sent.fetch_add(*written as u64, Ordering::Relaxed);
        }
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        if let Poll::Ready(Ok(written)) = &outcome {
            self.counts.sent.fetch_add(*written as u64, Ordering::Relaxed);
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
