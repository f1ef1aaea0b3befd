//! An SSH connection to a server outside, on its socket.

use std::sync::Arc;
use std::time::Instant;

use outlast_domain::transfer::connector::{Failure, FailureCode};
use outlast_ssh::{Client, ClientConfig, ClientEvent, Reason};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout};

use crate::clock::Clock;
use crate::limits;

use super::report::Report;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// The server closed it, or the network broke.
    Closed,
    /// The server sent nothing, and took nothing, for [`limits::OUTBOUND_IDLE`].
    Silent,
    /// One of the two sides said why.
    Said(String),
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Closed => Self::new(FailureCode::Connection, "the server closed the connection"),
            Lost::Silent => Self::new(FailureCode::Timeout, "the server does not answer"),
            Lost::Said(text) => {
                Self::new(FailureCode::Connection, format!("the connection ended: {text}"))
            }
        }
    }
}

pub(super) struct Link {
    pub(super) ssh: Client,
    stream: TcpStream,
    clock: Clock,
    buffer: Box<[u8]>,
    pub(super) report: Report,
    /// Whether the server takes nothing any more. What it said before can still be read.
    is_deaf: bool,
}

impl Link {
    pub(super) fn new(
        config: Arc<ClientConfig>,
        stream: TcpStream,
        clock: Clock,
        report: Report,
    ) -> Self {
        let ssh = Client::new(config, clock().unsigned_abs());
        let buffer = vec![0; limits::SFTP_READ].into_boxed_slice();
        Self { ssh, stream, clock, buffer, report, is_deaf: false }
    }

    /// What happens next. Nothing is lost if this is not awaited to its end.
    pub(super) async fn event(&mut self) -> Result<ClientEvent, Lost> {
        let mut moved = Instant::now();
        loop {
            match self.ssh.poll() {
                Some(ClientEvent::Disconnected(end)) => return Err(Lost::Said(end.message)),
                Some(event) => return Ok(event),
                None => self.wait(&mut moved).await?,
            }
        }
    }

    /// Waits until bytes move, or a timer of the transport is due.
    async fn wait(&mut self, moved: &mut Instant) -> Result<(), Lost> {
        if self.write() {
            *moved = Instant::now();
        }
        let reads = self.ssh.wants_input() || self.is_deaf;
        let writes = !self.ssh.outgoing().is_empty() && !self.is_deaf;
        let interest = match (reads, writes) {
            (true, true) => Interest::READABLE | Interest::WRITABLE,
            (false, true) => Interest::WRITABLE,
            _ => Interest::READABLE,
        };
        let silent = *moved + limits::OUTBOUND_IDLE;
        let now_ms = (self.clock)().unsigned_abs();
        let timer = self.ssh.next_timer().map(|at_ms| {
            Instant::now() + std::time::Duration::from_millis(at_ms.saturating_sub(now_ms))
        });
        let deadline = timer.map_or(silent, |timer| timer.min(silent));
        tokio::select! {
            ready = self.stream.ready(interest) => {
                let ready = ready.map_err(|_| Lost::Closed)?;
                let is_readable = ready.is_readable() || ready.is_read_closed();
                if reads && is_readable && self.read()? {
                    *moved = Instant::now();
                }
                Ok(())
            }
            () = sleep_until(deadline.into()) => {
                if Instant::now() >= silent {
                    return Err(Lost::Silent);
                }
                self.ssh.on_timer((self.clock)().unsigned_abs());
                Ok(())
            }
        }
    }

    /// Reads what the socket has; whether it had anything.
    fn read(&mut self) -> Result<bool, Lost> {
        match self.stream.try_read(&mut self.buffer) {
            Ok(0) => Err(Lost::Closed),
            Ok(len) => {
                self.report.received = self.report.received.saturating_add(len as u64);
                let now_ms = (self.clock)().unsigned_abs();
                self.ssh.receive(self.buffer.get(..len).unwrap_or_default(), now_ms);
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            Err(_) => Err(Lost::Closed),
        }
    }

    /// Writes what the socket takes; whether it took anything.
    fn write(&mut self) -> bool {
        let mut any = false;
        while !self.ssh.outgoing().is_empty() && !self.is_deaf {
            match self.stream.try_write(self.ssh.outgoing()) {
                Ok(len) => {
                    self.report.sent = self.report.sent.saturating_add(len as u64);
                    self.ssh.sent(len);
                    any = true;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                // A server that ends the connection often says why before.
                Err(_) => self.is_deaf = true,
            }
        }
        any
    }

    /// Sends what is to be sent, and takes no further part. What cannot be sent within [`limits::LAST_WORDS`] is lost.
    pub(super) async fn end(mut self) {
        self.ssh.disconnect(Reason::ByApplication, "done");
        while self.ssh.poll().is_some() {}
        let sending = async {
            loop {
                self.write();
                let is_done = self.is_deaf || self.ssh.outgoing().is_empty();
                if is_done || self.stream.writable().await.is_err() {
                    break;
                }
            }
        };
        let _ = timeout(limits::LAST_WORDS, sending).await;
    }
}
