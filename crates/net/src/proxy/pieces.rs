//! Buffers that are borrowed while bytes move, and given back when they rest.
//!
//! Thousands of connections may be open, and few of them have something to say at a time: a connection that waits holds no
//! buffer.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::limits;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// A buffer with bytes that wait to be taken from its front.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// Empty, or [`limits::PIECE`] long.
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

impl Piece {
    /// What is there to be taken.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Whether no more fits behind what is there.
    pub(crate) fn is_full(&self) -> bool {
        self.to == limits::PIECE
    }

    /// So much was taken.
    pub(crate) fn take(&mut self, len: usize) {
        self.from = (self.from + len).min(self.to);
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Gives the buffer back if nothing is in it.
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

    /// Reads once into what is free; the count is zero at the end.
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

/// A byte stream that can be cut off so that the other side notices.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {
    /// When it is dropped, the peer shall see a reset and not an end.
    fn reset(&self);
}

impl Transport for TcpStream {
    fn reset(&self) {
        let _ = self.set_zero_linger();
    }
}

impl Transport for UnixStream {
    /// There is no such thing on these: the peer sees an end.
    fn reset(&self) {}
}

/// Reads from the stream below in large pieces, and can look ahead.
///
/// rustls reads 4 KiB at a time: each would be a call of the system.
#[derive(Debug)]
pub struct Wide<S> {
    stream: S,
    piece: Piece,
}

impl<S> Wide<S> {
    /// Nothing is read yet.
    pub fn new(stream: S) -> Self {
        Self { stream, piece: Piece::default() }
    }

    /// What has been read and not been taken.
    pub(crate) fn ahead(&self) -> &[u8] {
        self.piece.waiting()
    }

    /// So much of it is done with.
    pub(crate) fn skip(&mut self, len: usize) {
        self.piece.take(len);
        self.piece.rest();
    }
}

impl<S: AsyncRead + Unpin> Wide<S> {
    /// Reads more of what is ahead; an end is an error.
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
    /// An end without close_notify says it already.
    fn reset(&self) {}
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Transport for tokio_rustls::client::TlsStream<S> {
    /// An end without close_notify says it already.
    fn reset(&self) {}
}
