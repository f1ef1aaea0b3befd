//! The processes at the ends of the link: one with a client at one end and a server at the other, and one that runs
//! any command at an end.
//!
//! Client and server share a process, but neither a thread nor a namespace: so they share one chain of certificates.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::now_ns;
use super::ends::{Client, Server, Times, cut};
use super::flows::{FIRST_SPARED, LAST_SPARED};
use super::namespace;
use super::script::Script;
use crate::error::LabError;
use crate::link::Transfer;

/// Argument of [`exec`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exec {
    /// The namespace.
    pub namespace: PathBuf,
    /// The process that started it, with which it ends.
    pub parent: u32,
    /// The command.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Enters a namespace and replaces this process by a command.
pub(super) fn exec(argument: &str) -> Result<(), LabError> {
    let exec: Exec = serde_json::from_str(argument).map_err(LabError::failed)?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(LabError::failed)?;
    // The parent may have died before the line above.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    if parent != Some(exec.parent) {
        return Err(LabError::failed("the process that started it has ended"));
    }
    enter(&exec.namespace)?;
    // As at the other end.
    prefer();
    let error = Command::new(&exec.program).args(&exec.arguments).exec();
    let peer = exec.program.to_string_lossy().into_owned();
    Err(LabError::Peer { peer, reason: error.to_string() })
}

/// Argument of [`ends`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ends {
    /// The namespaces of client and server.
    pub places: [PathBuf; 2],
    /// Address of the server, port 0 for a free one; `None` if another process serves.
    pub server: Option<SocketAddr>,
    /// What both ends do on a connection.
    pub script: Script,
}

/// An order to the client, on a line of its input.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Order {
    /// The server.
    pub address: SocketAddr,
    /// Sizes of request and answer.
    pub transfer: Transfer,
    /// Number of connections.
    pub count: u64,
    /// Timeout of a connection.
    pub deadline_ms: u64,
}

/// A line of the process's output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The server, if there is one, listens at this address.
    Ready(Option<SocketAddr>),
    /// Times of a connection.
    Times(Times),
    /// A connection failed.
    Failed(String),
}

/// Client and server: carries out each line of its input, and ends with the input.
pub(super) fn ends(argument: &str) -> Result<(), LabError> {
    let ends: Ends = serde_json::from_str(argument).map_err(LabError::failed)?;
    prefer();
    let address = match &ends.server {
        Some(address) => Some(serve(&ends.places[1], *address, ends.script.server()?)?),
        None => None,
    };
    let mut client = ends.script.client()?;
    enter(&ends.places[0])?;
    tell(&Line::Ready(address))?;
    for line in std::io::stdin().lock().lines() {
        let order: Order =
            serde_json::from_str(&line.map_err(LabError::failed)?).map_err(LabError::failed)?;
        let deadline = Duration::from_millis(order.deadline_ms);
        for _ in 0..order.count {
            let outcome = client
                .prepare(&mut || open_spared(order.address, deadline))
                .and_then(|()| connection(&mut *client, &order, deadline));
            match outcome {
                Ok(times) => tell(&Line::Times(times))?,
                Err(LabError::Peer { peer, reason }) => {
                    tell(&Line::Failed(format!("{peer}: {reason}")))?;
                }
                Err(error) => tell(&Line::Failed(error.to_string()))?,
            }
        }
    }
    Ok(())
}

/// One connection, with its times.
fn connection(
    client: &mut dyn Client,
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
        .map_err(|error| in_words(&error, deadline))?;
    cut(stream)?;
    Ok(times)
}

/// Connects.
fn open(address: SocketAddr, deadline: Duration) -> Result<(TcpStream, u64), LabError> {
    let stream = TcpStream::connect_timeout(&address, deadline)
        .map_err(|error| not_connected(address, &error, deadline))?;
    let connected_ns = now_ns();
    patient(&stream, deadline).map_err(LabError::failed)?;
    Ok((stream, connected_ns))
}

/// Connects from a port whose connections the link neither numbers nor drops.
pub(super) fn open_spared(address: SocketAddr, deadline: Duration) -> Result<TcpStream, LabError> {
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let failed = |error: Errno| not_connected(address, &error.into(), deadline);
    for port in FIRST_SPARED..LAST_SPARED {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket =
            socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(failed)?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match bind(&socket, &SocketAddr::new(any, port)).and_then(|()| connect(&socket, &address)) {
            Ok(()) => {
                let stream = TcpStream::from(socket);
                patient(&stream, deadline).map_err(LabError::failed)?;
                return Ok(stream);
            }
            // Another connection has the port, or had it a moment ago.
            Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(Errno::ADDRINUSE))
}

fn patient(stream: &TcpStream, deadline: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(deadline))?;
    stream.set_write_timeout(Some(deadline))
}

fn not_connected(address: SocketAddr, error: &std::io::Error, deadline: Duration) -> LabError {
    let reason = match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("no TCP connection within {} s", deadline.as_secs_f64())
        }
        _ => format!("no TCP connection: {error}"),
    };
    LabError::Peer { peer: format!("the server at {address}"), reason }
}

/// Why a connection ended.
fn in_words(error: &std::io::Error, deadline: Duration) -> LabError {
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

/// Starts threads that serve at the server's end as long as the process lives, where connections are counted.
fn serve(
    place: &Path,
    address: SocketAddr,
    server: Box<dyn Server>,
) -> Result<SocketAddr, LabError> {
    let server: Arc<dyn Server> = Arc::from(server);
    std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            enter(place)?;
            let listener = TcpListener::bind(address).map_err(|error| LabError::Peer {
                peer: format!("the server at {address}"),
                reason: error.to_string(),
            })?;
            let address = listener.local_addr().map_err(LabError::failed)?;
            // Several wait for connections, so that one whose client is gone does not hold up others.
            for _ in 0..WAITERS {
                let listener = listener.try_clone().map_err(LabError::failed)?;
                let server = server.clone();
                std::thread::spawn(move || accept(&listener, &*server));
            }
            Ok(address)
        });
        started.join().unwrap_or_else(|_| Err(LabError::failed("the server does not start")))
    })
}

/// Serves connections one after the other.
fn accept(listener: &TcpListener, server: &dyn Server) {
    loop {
        let Ok((mut stream, _)) = listener.accept() else {
            // Perhaps out of file descriptors: other connections need a moment to end.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let patient =
            stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        // A failure here is a failure at the client, too, which reports it.
        let _ = patient.and_then(|()| server.talk(&mut stream));
        // The client closes first.
        let mut buffer = [0; 4096];
        while matches!(stream.read(&mut buffer), Ok(length) if length > 0) {}
    }
}

/// Moves this thread, and those that it starts from now on, into a namespace.
fn enter(path: &Path) -> Result<(), LabError> {
    let namespace = File::open(path).map_err(|error| LabError::file(path, error))?;
    namespace::enter(namespace.as_fd())
}

/// Raises this thread's priority, if the system allows it, so that other work disturbs the measurement less.
pub(super) fn prefer() {
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Writes a line for the parent process.
fn tell(line: &Line) -> Result<(), LabError> {
    let mut text = serde_json::to_vec(line).map_err(LabError::failed)?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(LabError::failed)
}

/// Niceness of clients and servers.
const NICENESS: i32 = -15;
/// Threads that wait for connections.
const WAITERS: usize = 8;
/// How long a server waits for a silent client.
const PATIENCE: Duration = Duration::from_secs(600);
