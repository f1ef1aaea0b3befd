//! The two ends of a connection, whatever they speak, and what is measured.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use crate::error::LabError;
use crate::link::Transfer;

/// Times of a connection by the monotonic clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Times {
    /// When the SYN was sent.
    pub begun_ns: u64,
    /// When TCP was connected.
    pub connected_ns: u64,
    /// When Finished was sent.
    pub handshake_ns: u64,
    /// When the first byte of the answer arrived.
    pub first_byte_ns: u64,
    /// When the last one arrived.
    pub last_byte_ns: u64,
}

/// Resets a connection: no TIME_WAIT, and nothing of it is left on the link when the next one begins.
pub(super) fn cut(stream: TcpStream) -> Result<(), LabError> {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).map_err(LabError::failed)
}

/// The client's end.
pub(super) trait Client {
    /// Called before a measured connection; connections that it opens do not count.
    fn prepare(
        &mut self,
        open: &mut dyn FnMut() -> Result<TcpStream, LabError>,
    ) -> Result<(), LabError> {
        let _ = open;
        Ok(())
    }

    /// Carries out the client's part of a connection, until the deadline.
    fn talk(
        &mut self,
        stream: &mut TcpStream,
        transfer: Transfer,
        times: &mut Times,
        until: Instant,
    ) -> io::Result<()>;
}

/// The server's end.
pub(super) trait Server: Send + Sync {
    /// Carries out the server's part of a connection.
    fn talk(&self, stream: &mut TcpStream) -> io::Result<()>;
}

/// A client's request begins with the size of the answer that it wants, then its own size.
pub(super) fn request(transfer: Transfer) -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(transfer.body.to_be_bytes());
    request.extend(transfer.request.to_be_bytes());
    request.resize(request.len().max(transfer.request as usize), 0);
    request
}

/// The sizes at the beginning of a request; `None` until there are enough bytes.
pub(super) fn asked(request: &[u8]) -> Option<Transfer> {
    let body = u32::from_be_bytes(request.get(..4)?.try_into().ok()?);
    let request = u32::from_be_bytes(request.get(4..8)?.try_into().ok()?);
    Some(Transfer { request: request.max(8), body: body.min(MOST) })
}

/// Longest answer of a server, in bytes.
const MOST: u32 = 1 << 30;

/// Receives so many bytes, and notes the times of the first and the last.
pub(super) fn receive(
    stream: &mut dyn Read,
    body: u32,
    times: &mut Times,
    until: Instant,
) -> io::Result<()> {
    let mut buffer = vec![0; 65536];
    let mut left = body as usize;
    while left > 0 {
        let room = buffer.len().min(left);
        let length = stream.read(&mut buffer[..room])?;
        let now = now_ns();
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if left == body as usize {
            times.first_byte_ns = now;
        }
        left -= length;
        times.last_byte_ns = now;
        if Instant::now() > until + Duration::from_secs(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}
