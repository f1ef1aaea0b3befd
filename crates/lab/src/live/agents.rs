//! The processes at the ends of the link: a client and a server that do connections as told, and the one that runs any command
//! there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use super::place;
use super::script::Script;
use crate::error::LabError;
use crate::link::Transfer;

/// What [`exec`] is to run, and where.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exec {
    /// The namespace.
    pub namespace: PathBuf,
    /// Who started it, and with whom it ends; `None` if it watches its standard input.
    pub parent: Option<u32>,
    /// The command.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Runs a command in a namespace: becomes it.
pub(super) fn exec(argument: &str) -> Result<(), LabError> {
    let exec: Exec = serde_json::from_str(argument).map_err(LabError::failed)?;
    let namespace =
        File::open(&exec.namespace).map_err(|error| LabError::file(&exec.namespace, error))?;
    place::enter(namespace.as_fd())?;
    drop(namespace);
    if let Some(parent) = exec.parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(LabError::failed)?;
        // It may have died before the line above.
        let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
        if now != Some(parent) {
            return Err(LabError::failed("who started it has ended"));
        }
    }
    let error = Command::new(&exec.program).args(&exec.arguments).exec();
    Err(LabError::Peer {
        peer: exec.program.to_string_lossy().into_owned(),
        reason: error.to_string(),
    })
}

/// What the server's process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Serve {
    /// Where it listens; port 0 is any.
    pub address: SocketAddr,
    /// A further address, which does not count.
    pub spared: SocketAddr,
    /// What it does with a connection.
    pub script: Script,
}

/// What a client's process is told on a line of its input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The server.
    pub address: SocketAddr,
    /// Where connections do not count.
    pub spared: SocketAddr,
    /// What to do on each connection.
    pub transfer: Transfer,
    /// How many.
    pub count: u64,
    /// How long one may take.
    pub deadline_ms: u64,
}

/// What it answers, a line for each connection: absolute times of the monotonic clock.
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

/// A line of the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// A server is ready at these addresses.
    Ready(SocketAddr),
    /// A connection was done.
    Times(Times),
    /// A connection failed.
    Failed(String),
}

/// The client: does what each line of its input says, and ends with it.
pub(super) fn client(argument: &str) -> Result<(), LabError> {
    let script: Script = serde_json::from_str(argument).map_err(LabError::failed)?;
    let mut client = script.client()?;
    prefer();
    for line in std::io::stdin().lock().lines() {
        let order: Order =
            serde_json::from_str(&line.map_err(LabError::failed)?).map_err(LabError::failed)?;
        let spared = order.spared;
        for _ in 0..order.count {
            let deadline = Duration::from_millis(order.deadline_ms);
            let outcome = client
                .prepare(&mut || open(spared, deadline).map(|(stream, _)| stream))
                .and_then(|()| connection(&mut *client, &order, deadline));
            match outcome {
                Ok(times) => tell(&Line::Times(times))?,
                Err(error) => tell(&Line::Failed(error.to_string()))?,
            }
        }
    }
    Ok(())
}

/// One connection with its times.
fn connection(
    client: &mut dyn super::script::Client,
    order: &Order,
    deadline: Duration,
) -> Result<Times, LabError> {
    let begun_ns = now_ns();
    let (mut stream, connected_ns) = open(order.address, deadline)?;
    let mut times = Times {
        begun_ns,
        connected_ns,
        handshake_ns: connected_ns,
        first_byte_ns: connected_ns,
        last_byte_ns: connected_ns,
    };
    let until = Instant::now() + deadline;
    client
        .talk(&mut stream, order.transfer, &mut times, until)
        .map_err(|error| timed_out(error, deadline))?;
    // Cut: no TIME_WAIT, and nothing of this connection is left on the link when the next one begins.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
        .map_err(LabError::failed)?;
    Ok(times)
}

/// Connects.
fn open(address: SocketAddr, deadline: Duration) -> Result<(TcpStream, u64), LabError> {
    let stream = TcpStream::connect_timeout(&address, deadline).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                format!("no TCP connection within {} s", deadline.as_secs_f64())
            }
            _ => format!("no TCP connection: {error}"),
        };
        LabError::Peer { peer: format!("the server at {address}"), reason }
    })?;
    let connected_ns = now_ns();
    let prepared = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(deadline)))
        .and_then(|()| stream.set_write_timeout(Some(deadline)));
    prepared.map_err(LabError::failed)?;
    Ok((stream, connected_ns))
}

/// The error of a read that waited too long, in words.
fn timed_out(error: std::io::Error, deadline: Duration) -> LabError {
    let reason = match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("no answer within {} s", deadline.as_secs_f64())
        }
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            format!("the connection ended in the middle ({error})")
        }
        _ => error.to_string(),
    };
    LabError::Peer { peer: "the server".into(), reason }
}

/// The server: answers connections until its input ends.
pub(super) fn server(argument: &str) -> Result<(), LabError> {
    let serve: Serve = serde_json::from_str(argument).map_err(LabError::failed)?;
    prefer();
    let server = serve.script.server()?;
    let server: &'static dyn super::script::Server = Box::leak(server);
    let bind = |address: SocketAddr| {
        TcpListener::bind(address).map_err(|error| LabError::Peer {
            peer: format!("the server at {address}"),
            reason: error.to_string(),
        })
    };
    let (counted, spared) = (bind(serve.address)?, bind(serve.spared)?);
    let address = counted.local_addr().map_err(LabError::failed)?;
    for listener in [counted, spared] {
        // Several wait for connections, so that one whose client has gone holds up nobody.
        for _ in 0..WAITERS {
            let listener = listener.try_clone().map_err(LabError::failed)?;
            std::thread::spawn(move || {
                loop {
                    let Ok((mut stream, _)) = listener.accept() else { continue };
                    let patient = stream
                        .set_nodelay(true)
                        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
                    // What fails here fails at the client too, and the client tells it.
                    let _ = patient.and_then(|()| server.talk(&mut stream));
                    wait_for_end(&mut stream);
                }
            });
        }
    }
    tell(&Line::Ready(address))?;
    let mut rest = Vec::new();
    std::io::stdin().lock().read_to_end(&mut rest).map_err(LabError::failed)?;
    Ok(())
}

/// The client closes first.
fn wait_for_end(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer), Ok(length) if length > 0) {}
}

/// Ahead of what else the machine does, if the system allows it: other work is no part of a measurement.
pub(super) fn prefer() {
    let _ = rustix::process::setpriority_process(None, -15);
}

/// A line to who started this process.
fn tell(line: &Line) -> Result<(), LabError> {
    let mut text = serde_json::to_vec(line).map_err(LabError::failed)?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(LabError::failed)
}

/// Threads that wait for connections.
const WAITERS: usize = 8;
/// How long a server waits for a client that says nothing.
const PATIENCE: Duration = Duration::from_secs(600);
