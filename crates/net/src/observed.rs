//! A stream that is counted, and whose beginning can be read twice.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use outlast_negotiate::offer::{Collected, MAX_CLIENT_HELLO, OfferError, collect};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Bytes of a connection so far, TLS and all.
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
    /// Read ahead, to be read again.
    ahead: Vec<u8>,
    /// How much of that has been.
    taken: usize,
}

impl<S> Observed<S> {
    /// Nothing is counted yet.
    pub fn new(stream: S) -> Self {
        Self { stream, counts: Arc::default(), ahead: Vec::new(), taken: 0 }
    }

    /// The counts, which go on.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// The stream below.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> Observed<S> {
    /// Reads until there is a ClientHello, or what cannot become one. All of it will be read again.
    pub async fn client_hello(&mut self) -> io::Result<Result<Vec<u8>, OfferError>> {
        loop {
            match collect(&self.ahead) {
                Collected::Complete(message) => return Ok(Ok(message)),
                Collected::Malformed(error) => return Ok(Err(error)),
                Collected::Incomplete => {}
            }
            // Each record has a header; a peer that sends a byte in each is cut off here, too.
            if self.ahead.len() > 2 * MAX_CLIENT_HELLO {
                return Ok(Err(OfferError::TooLong));
            }
            let before = self.ahead.len();
            self.ahead.reserve(4096);
            let read = self.stream.read_buf(&mut self.ahead).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            debug_assert_eq!(self.ahead.len(), before + read);
            self.counts.received.fetch_add(read as u64, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
