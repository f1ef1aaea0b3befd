//! s2n-tls in memory: its crate is safe except for the send and receive callbacks, which get raw pointers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::task::Poll;

use s2n_tls::config::Config;
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, Mode};
use s2n_tls::error::{Error, ErrorType};

/// Both directions of a connection.
#[derive(Default)]
struct Queues {
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

/// A connection in memory.
pub struct MemoryConnection {
    /// Dropped before the queues, to which it points.
    connection: Option<Connection>,
    queues: NonNull<RefCell<Queues>>,
}

impl MemoryConnection {
    /// A side with this configuration; a client passes the name of the server that it expects, and possibly a session
    /// to resume.
    pub fn new(
        mode: Mode,
        config: Config,
        server_name: &str,
        session: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let queues = NonNull::from(Box::leak(Box::<RefCell<Queues>>::default()));
        let mut this = Self { connection: None, queues };
        let mut connection = Connection::new(mode);
        connection.set_config(config)?;
        connection.set_blinding(Blinding::SelfService)?;
        connection.set_receive_callback(Some(receive))?;
        connection.set_send_callback(Some(send))?;
        let context = queues.as_ptr().cast::<c_void>();
        // SAFETY: the queues are alive until `this` is dropped, which drops the connection first.
        unsafe {
            connection.set_receive_context(context)?;
            connection.set_send_context(context)?;
        }
        if mode == Mode::Client {
            connection.set_server_name(server_name)?;
        }
        if let Some(session) = session {
            connection.set_session_ticket(session)?;
        }
        this.connection = Some(connection);
        Ok(this)
    }

    fn queues(&self) -> &RefCell<Queues> {
        // SAFETY: `new` leaked them and only `drop` releases them; only shared references to them are ever made.
        unsafe { self.queues.as_ref() }
    }

    /// Passes in bytes from the other side.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.queues().borrow_mut().incoming.extend(bytes);
    }

    /// Appends bytes for the other side to `output`.
    pub fn drain(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.queues().borrow_mut().outgoing);
    }

    /// Continues the handshake as far as the input allows; returns whether it is complete.
    pub fn handshake(&mut self) -> Result<bool, Error> {
        match self.connection.as_mut().map(Connection::poll_negotiate) {
            Some(Poll::Ready(result)) => result.map(|_| true),
            _ => Ok(false),
        }
    }

    /// Processes messages after the handshake: tickets.
    pub fn settle(&mut self) -> Result<(), Error> {
        match self.connection.as_mut().map(|connection| connection.poll_recv(&mut [0])) {
            Some(Poll::Ready(Err(error))) if error.kind() != ErrorType::Blocked => Err(error),
            _ => Ok(()),
        }
    }

    /// The s2n-tls connection, for queries.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }
}

impl Drop for MemoryConnection {
    fn drop(&mut self) {
        self.connection = None;
        // SAFETY: `new` leaked them, and nothing points to them any more.
        drop(unsafe { Box::from_raw(self.queues.as_ptr()) });
    }
}

/// # Safety s2n-tls calls it with the context that it was given and with room for `len` bytes.
unsafe extern "C" fn receive(context: *mut c_void, buffer: *mut u8, len: u32) -> c_int {
    // SAFETY: the context is the queues of a connection that is alive, because it makes this call.
    let Some(queues) = (unsafe { context.cast::<RefCell<Queues>>().as_ref() }) else { return -1 };
    let Ok(mut queues) = queues.try_borrow_mut() else { return -1 };
    let count = queues.incoming.len().min(len as usize);
    if count == 0 {
        return blocked();
    }
    for (index, byte) in queues.incoming.drain(..count).enumerate() {
        // SAFETY: `index` is below `len`.
        unsafe { buffer.add(index).write(byte) };
    }
    c_int::try_from(count).unwrap_or(-1)
}

/// # Safety s2n-tls calls it with the context that it was given and with `len` bytes.
unsafe extern "C" fn send(context: *mut c_void, buffer: *const u8, len: u32) -> c_int {
    // SAFETY: as in `receive`.
    let Some(queues) = (unsafe { context.cast::<RefCell<Queues>>().as_ref() }) else { return -1 };
    let Ok(mut queues) = queues.try_borrow_mut() else { return -1 };
    // SAFETY: s2n-tls passes that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(buffer, len as usize) };
    queues.outgoing.extend_from_slice(bytes);
    c_int::try_from(len).unwrap_or(-1)
}

/// Reports that nothing can be read now, as `read` would.
fn blocked() -> c_int {
    errno::set_errno(errno::Errno(rustix::io::Errno::AGAIN.raw_os_error()));
    -1
}
