//! Scripts for the two ends of a connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use super::ends::{Client, Server, Times, asked, receive, request};
use super::tls::{Foreign, Named};
use crate::error::LabError;
use crate::link::Transfer;
use crate::trace::{Side, Trace};

/// What the two ends do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Script {
    /// Send as many bytes, after as much work, as in a measured handshake.
    Play(Trace),
    /// Speak TLS with rustls.
    Rustls(Named),
    /// The client speaks TLS with rustls, to a foreign server.
    Foreign(Named, Foreign),
}

impl Script {
    /// The client's end.
    pub fn client(&self) -> Result<Box<dyn Client>, LabError> {
        match self {
            Self::Play(trace) => Ok(Box::new(Player(trace.clone()))),
            Self::Rustls(named) => named.client(None),
            Self::Foreign(named, foreign) => named.client(Some(foreign)),
        }
    }

    /// The server's end.
    pub fn server(&self) -> Result<Box<dyn Server>, LabError> {
        match self {
            Self::Play(trace) => Ok(Box::new(Player(trace.clone()))),
            Self::Rustls(named) => named.server(),
            Self::Foreign(..) => Err(LabError::failed("somebody else serves")),
        }
    }
}

/// Plays a trace.
struct Player(Trace);

impl Player {
    fn read(stream: &mut TcpStream, mut bytes: u32) -> io::Result<()> {
        let mut buffer = [0; 65536];
        while bytes > 0 {
            let room = buffer.len().min(bytes as usize);
            let length = stream.read(&mut buffer[..room])?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes = bytes.saturating_sub(u32::try_from(length).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    fn work(nanoseconds: u64) {
        let until = now_ns() + nanoseconds;
        while now_ns() < until {
            std::hint::spin_loop();
        }
    }
}

impl Client for Player {
    fn talk(
        &mut self,
        stream: &mut TcpStream,
        transfer: Transfer,
        times: &mut Times,
        until: Instant,
    ) -> io::Result<()> {
        for (index, step) in self.0.steps.iter().enumerate() {
            if step.from == Side::Client {
                Self::work(step.cpu_ns);
                stream.write_all(&vec![0; step.bytes as usize])?;
            } else if index < self.0.client_done {
                Self::read(stream, step.bytes)?;
            }
            if index == self.0.client_done {
                times.handshake_ns = now_ns();
                break;
            }
        }
        *times =
            Times { first_byte_ns: times.handshake_ns, last_byte_ns: times.handshake_ns, ..*times };
        if transfer.request == 0 && transfer.body == 0 {
            return Ok(());
        }
        stream.write_all(&request(transfer))?;
        // The server's messages after the handshake come before its answer.
        let after: u32 =
            self.0.steps.iter().skip(self.0.client_done + 1).map(|step| step.bytes).sum();
        Self::read(stream, after)?;
        receive(stream, transfer.body, times, until)
    }
}

impl Server for Player {
    fn talk(&self, stream: &mut TcpStream) -> io::Result<()> {
        for (index, step) in self.0.steps.iter().enumerate() {
            if step.from == Side::Client {
                Self::read(stream, step.bytes)?;
            } else {
                Self::work(step.cpu_ns);
                stream.write_all(&vec![0; step.bytes as usize])?;
            }
            if index == self.0.client_done {
                Self::work(self.0.server_after_ns);
            }
        }
        let mut header = [0; 8];
        stream.read_exact(&mut header)?;
        let Some(transfer) = asked(&header) else { return Ok(()) };
        Self::read(stream, transfer.request - 8)?;
        stream.write_all(&vec![0; transfer.body as usize])
    }
}
