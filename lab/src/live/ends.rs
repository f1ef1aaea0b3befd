//! What both ends of a connection do, whatever they speak, and what is measured.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use crate::error::LabError;
use crate::link::Transfer;

/// Of a connection: absolute times of the monotonic clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Times {
    /// The SYN leaves.
    pub begun_ns: u64,
    /// TCP is connected.
    pub connected_ns: u64,
    /// Finished has left.
    pub handshake_ns: u64,
    /// The first byte of the answer is there.
    pub first_byte_ns: u64,
    /// The last one.
    pub last_byte_ns: u64,
}

/// Cuts a connection: no TIME_WAIT, and nothing of it is left on the link when the next one begins.
pub(super) fn cut(stream: TcpStream) -> Result<(), LabError> {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).map_err(LabError::failed)
}

/// A client's part.
pub(super) trait Client {
    /// Before a connection that is measured; connections that are opened here do not count.
    fn prepare(
        &mut self,
        open: &mut dyn FnMut() -> Result<TcpStream, LabError>,
    ) -> Result<(), LabError> {
        let _ = open;
        Ok(())
    }

    /// On a connection, until this moment.
    fn talk(
        &mut self,
        stream: &mut TcpStream,
        transfer: Transfer,
        times: &mut Times,
        until: Instant,
    ) -> io::Result<()>;
}

/// A server's part.
pub(super) trait Server: Send + Sync {
    /// On a connection.
    fn talk(&self, stream: &mut TcpStream) -> io::Result<()>;
}

/// A client's request begins with how much it wants, then how long it is itself.
pub(super) fn request(transfer: Transfer) -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(transfer.body.to_be_bytes());
    request.extend(transfer.request.to_be_bytes());
    request.resize(request.len().max(transfer.request as usize), 0);
    request
}

/// What the first bytes of a request say; `None` until there are enough.
pub(super) fn asked(request: &[u8]) -> Option<Transfer> {
    let body = u32::from_be_bytes(request.get(..4)?.try_into().ok()?);
    let request = u32::from_be_bytes(request.get(4..8)?.try_into().ok()?);
    Some(Transfer { request: request.max(8), body: body.min(MOST) })
}

/// Bytes that a server sends for one request, at most.
const MOST: u32 = 1 << 30;

/// Receives so many bytes, and notes the first and the last.
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
