//! Listening sockets, and the limit of open files that connections need.

use std::net::{SocketAddr, UdpSocket};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket};

use crate::failure::Failure;
use crate::http3::Http3;

/// Connections that may wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 4096;

/// Each connection is an open file, and shells and service managers often allow only 1024 by default.
pub(crate) fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit on open files could not be raised");
    }
}

/// Ports that are tried if any port will do and must be free for UDP, too.
const TRIES: usize = 16;

/// The listener of the APIs with its address, and the socket of HTTP/3 at the same port.
pub(crate) fn listen_both(
    at: SocketAddr,
    http3: Http3,
) -> Result<(TcpListener, SocketAddr, Option<UdpSocket>), Failure> {
    let mut tries = 0;
    loop {
        let (listener, address) = listen_at(at, "--listen")?;
        tries += 1;
        match http3.bind(address) {
            Ok(socket) => return Ok((listener, address, socket)),
            Err(_) if at.port() == 0 && tries < TRIES => {}
            Err(error) if http3 == Http3::IfPossible => {
                tracing::warn!(%address, %error, "no HTTP/3: the port is not available over UDP");
                return Ok((listener, address, None));
            }
            Err(error) => {
                return Err(Failure::new(format!("{address} over UDP: {error}"))
                    .hint("choose another address with --listen, or switch it off: --http3 off"));
            }
        }
    }
}

/// A listener with its address; `flag` names the option for another address in errors.
pub(crate) fn listen_at(at: SocketAddr, flag: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let bound = bind(at).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        Failure::new(format!("{at}: {error}")).hint(format!("choose another address with {flag}"))
    })?;
    Ok((listener, address))
}

/// Tokio's own `bind` lets 128 connections wait to be accepted; in a burst the others would be delayed by a second.
fn bind(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    socket.listen(BACKLOG)
}
