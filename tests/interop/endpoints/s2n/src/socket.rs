//! A connection of s2n-tls on a blocking socket.
//!
//! The safe API has no call that takes a file descriptor, so the two callbacks are given one.

use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::task::Poll;

use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, Mode};
use s2n_tls::error::Error;

pub struct Socket {
    // Before the stream: dropped first, as its callbacks name the descriptor.
    pub connection: Connection,
    stream: TcpStream,
}

impl Socket {
    pub fn new(mode: Mode, config: Config, stream: TcpStream) -> Result<Self, Error> {
        let mut connection = Connection::new(mode);
        connection.set_config(config)?;
        // A failed handshake is told at once, not after the random delay of up to 30 seconds.
        connection.set_blinding(Blinding::SelfService)?;
        connection.set_receive_callback(Some(receive))?;
        connection.set_send_callback(Some(send))?;
        let context = pointer(stream.as_raw_fd());
        // SAFETY: the context is a number that is never followed; the descriptor outlives the connection.
        unsafe {
            connection.set_receive_context(context)?;
            connection.set_send_context(context)?;
        }
        Ok(Self { connection, stream })
    }

    pub fn handshake(&mut self) -> Result<(), Error> {
        ready(self.connection.poll_negotiate()).map(drop)
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        ready(self.connection.poll_send(bytes))
    }

    pub fn receive(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        ready(self.connection.poll_recv(bytes))
    }

    /// Says goodbye without waiting for the peer's.
    pub fn close(mut self) {
        let _ = self.connection.poll_shutdown_send();
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

/// A blocking socket makes nobody wait later, unless its time is over.
fn ready<T>(outcome: Poll<Result<T, Error>>) -> Result<T, Error> {
    match outcome {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::io_error(std::io::ErrorKind::TimedOut.into())),
    }
}

fn pointer(descriptor: RawFd) -> *mut libc::c_void {
    std::ptr::without_provenance_mut(usize::try_from(descriptor).unwrap_or(usize::MAX))
}

fn descriptor(context: *mut libc::c_void) -> libc::c_int {
    libc::c_int::try_from(context.addr()).unwrap_or(-1)
}

unsafe extern "C" fn receive(context: *mut libc::c_void, buffer: *mut u8, len: u32) -> libc::c_int {
    // SAFETY: s2n-tls gives a buffer of this length.
    let read = unsafe { libc::recv(descriptor(context), buffer.cast(), len as usize, 0) };
    libc::c_int::try_from(read).unwrap_or(-1)
}

unsafe extern "C" fn send(context: *mut libc::c_void, buffer: *const u8, len: u32) -> libc::c_int {
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: s2n-tls gives a buffer of this length.
    let sent = unsafe { libc::send(descriptor(context), buffer.cast(), len as usize, flags) };
    libc::c_int::try_from(sent).unwrap_or(-1)
}
