//! Buffers that are borrowed while bytes move and returned when they do not.
//!
//! Of thousands of open connections only a few are active at a time: a waiting connection holds no buffer.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A buffer whose bytes are taken from the front.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Empty, or [`limits::PIECE`] long.
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Piece {
    /// The bytes that can be taken.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Whether there is no room after the bytes.
    pub(crate) fn is_full(&self) -> bool {
        self.to == limits::PIECE
    }

    /// Removes this many bytes from the front.
    pub(crate) fn take(&mut self, len: usize) {
        self.from = (self.from + len).min(self.to);
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Returns the buffer if it is empty.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            (self.from, self.to) = (0, 0);
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < limits::SPARE_PIECES {
                spare.push(bytes);
            }
        }
    }

    /// Reads once into the free part; returns 0 at the end of the stream.
    pub(crate) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        from: Pin<&mut (impl AsyncRead + ?Sized)>,
    ) -> Poll<io::Result<usize>> {
        if self.bytes.is_empty() {
            let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            self.bytes = spare.unwrap_or_else(|| vec![0; limits::PIECE]);
        }
        let mut free = ReadBuf::new(&mut self.bytes[self.to..]);
        let outcome = from.poll_read(context, &mut free);
        let read = free.filled().len();
        self.to += read;
        if read == 0 {
            self.rest();
        }
        outcome.map_ok(|()| read)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.take(usize::MAX - self.from);
        self.rest();
    }
}

/// A byte stream that can be aborted visibly for the peer.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    /// On drop, the peer sees a reset instead of an end.
    fn reset(&self);
}

impl Transport for TcpStream {
    fn reset(&self) {
        let _ = self.set_zero_linger();
    }
}

impl Transport for UnixStream {
    /// These have no reset: the peer sees an end.
    fn reset(&self) {}
}

/// Reads from the inner stream in large pieces and can look ahead.
///
/// rustls reads 4 KiB at a time, each of which would be a system call.
#[derive(Debug)]
pub struct Wide<S> {
    stream: S,
    piece: Piece,
}

impl<S> Wide<S> {
    /// Wraps `stream`, from which nothing has been read.
    pub fn new(stream: S) -> Self {
        Self { stream, piece: Piece::default() }
    }

    /// Bytes that have been read ahead.
    pub(crate) fn ahead(&self) -> &[u8] {
        self.piece.waiting()
    }

    /// Drops this many of them.
    pub(crate) fn skip(&mut self, len: usize) {
        self.piece.take(len);
        self.piece.rest();
    }
}

impl<S: AsyncRead + Unpin> Wide<S> {
    /// Reads more bytes ahead; an end of the stream is an error.
    pub(crate) async fn more(&mut self) -> io::Result<()> {
        if self.piece.is_full() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = std::future::poll_fn(|context| {
            self.piece.poll_fill(context, Pin::new(&mut self.stream))
        });
        match read.await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wide<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.piece.is_empty() {
            if buffer.remaining() >= limits::PIECE {
                return Pin::new(&mut this.stream).poll_read(context, buffer);
            }
            match this.piece.poll_fill(context, Pin::new(&mut this.stream)) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        let len = this.piece.waiting().len().min(buffer.remaining());
        buffer.put_slice(&this.piece.waiting()[..len]);
        this.piece.take(len);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wide<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
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

impl<S: Transport> Transport for Wide<S> {
    fn reset(&self) {
        self.stream.reset();
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Transport for tokio_rustls::server::TlsStream<S> {
    /// An end without close_notify is sign enough.
    fn reset(&self) {}
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Transport for tokio_rustls::client::TlsStream<S> {
    /// An end without close_notify is sign enough.
    fn reset(&self) {}
}
