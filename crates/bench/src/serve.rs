//! Servers that this program runs as a child process: `outlast-bench serve WHAT ADDRESS CERTIFICATE KEY`.
//!
//! The doors accept, do the handshake and close, on one thread: the cost of a server of the project compared with the
//! plain library.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;

use outlast_net::door::{Door, Settings};
use outlast_net::echo;
use outlast_net::policy::Policy;
use outlast_net::proxy::{Address, Backend, Proxy};
use outlast_net::quic::Listener;
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::identity::{Identity, load};

/// A kind of server: its name and its function.
type Serve = fn(&Given) -> Result<(), String>;

/// Parsed command line.
struct Given {
    address: SocketAddr,
    certificate: String,
    key: String,
    /// Address of the backend.
    behind: Option<SocketAddr>,
}

const SERVERS: &[(&str, Serve)] =
    &[("door", door), ("quic", quic), ("rustls", rustls), ("backend", backend), ("proxy", proxy)];

/// Command that starts a server.
pub(crate) fn command(
    what: &str,
    address: SocketAddr,
    identity: &Identity,
) -> Result<Command, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(here);
    command.arg("serve").arg(what).arg(address.to_string());
    command.arg(&identity.certificate).arg(&identity.key);
    Ok(command)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let [what, address, certificate, key, behind @ ..] = arguments else {
        return Err("usage: outlast-bench serve WHAT ADDRESS CERTIFICATE KEY [BEHIND]".into());
    };
    let parse = |text: &String| text.parse().map_err(|_| format!("{text} is no address"));
    let given = Given {
        address: parse(address)?,
        certificate: certificate.clone(),
        key: key.clone(),
        behind: behind.first().map(parse).transpose()?,
    };
    let (_, serve) =
        SERVERS.iter().find(|(name, _)| name == what).ok_or_else(|| format!("no {what} here"))?;
    serve(&given)
}

/// The door with its tickets and counters, without observers.
fn door(given: &Given) -> Result<(), String> {
    over_tcp(given.address, made(given)?)
}

/// The echo endpoint over QUIC.
fn quic(given: &Given) -> Result<(), String> {
    let door = Arc::new(made(given)?);
    let serve = async {
        let socket = UdpSocket::bind(given.address)?;
        // Counts addresses alike, because only this machine connects.
        let settings = outlast_net::quic::Settings {
            connections_by_peer: usize::MAX,
            ..outlast_net::quic::Settings::default()
        };
        let listener = Listener::start(door, socket, settings)?;
        echo::over_quic(listener, std::future::pending()).await;
        io::Result::Ok(())
    };
    runtime()?.block_on(serve).map_err(|error| error.to_string())
}

fn made(given: &Given) -> Result<Door, String> {
    // Every server has a second thread. A process with one thread allocates memory without locks; with a second
    // thread, such as the ledger's, a handshake costs a few per cent more.
    std::thread::spawn(|| {
        loop {
            std::thread::park();
        }
    });
    let settings = Settings {
        listener: "measured".into(),
        quic_protocols: vec![echo::PROTOCOL.into()],
        ..Settings::default()
    };
    Door::new(settings, vec![load(&given.certificate, &given.key)?], None)
        .map_err(|error| error.to_string())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

fn over_tcp(address: SocketAddr, door: Door) -> Result<(), String> {
    runtime()?.block_on(accept_all(Arc::new(door), address)).map_err(|error| error.to_string())
}

async fn accept_all(door: Arc<Door>, address: SocketAddr) -> io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    loop {
        let (stream, peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let door = door.clone();
        tokio::spawn(async move {
            if let Ok(mut accepted) = door.accept(stream, Some(peer)).await {
                let _ = accepted.stream.shutdown().await;
            }
        });
    }
}

/// Plain rustls over blocking sockets.
fn rustls(given: &Given) -> Result<(), String> {
    let certificate = load(&given.certificate, &given.key)?;
    let resolver = rustls::sign::SingleCertAndKey::from(certificate.key);
    let mut config = ServerConfig::builder_with_provider(Policy::default().provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.ticketer =
        rustls::crypto::aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
    let config = Arc::new(config);
    let handshake = |mut stream: TcpStream| -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        connection.send_close_notify();
        connection.complete_io(&mut stream)?;
        Ok(())
    };
    let listener = TcpListener::bind(given.address).map_err(|error| error.to_string())?;
    for stream in listener.incoming() {
        let _ = stream.and_then(handshake);
    }
    Ok(())
}

/// The backend of a proxy. If the client's first byte is `+` it sends bytes without end; otherwise it echoes.
fn backend(given: &Given) -> Result<(), String> {
    let serve = async {
        let listener = tokio::net::TcpListener::bind(given.address).await?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let mut wanted = [0];
                while stream.read_exact(&mut wanted).await.is_ok() {
                    if wanted == *b"+" {
                        let piece = vec![0; 256 * 1024];
                        while stream.write_all(&piece).await.is_ok() {}
                        return;
                    }
                    if stream.write_all(&wanted).await.is_err() {
                        return;
                    }
                }
            });
        }
    };
    let ended: io::Result<()> = runtime()?.block_on(serve);
    ended.map_err(|error| error.to_string())
}

/// A proxy for bytes.
fn proxy(given: &Given) -> Result<(), String> {
    let behind = given.behind.ok_or("a proxy needs a server behind it")?;
    let address = Address::Tcp(behind.ip().to_string(), behind.port());
    let backends = vec![Backend { address, tls: None }];
    let door = Some(Arc::new(made(given)?));
    let settings = outlast_net::proxy::Settings {
        door,
        connections_by_peer: Some(usize::MAX),
        ..outlast_net::proxy::Settings::new("measured", given.address, backends)
    };
    runtime()?.block_on(async {
        let _proxy = Proxy::start(vec![settings]).map_err(|error| error.to_string())?;
        std::future::pending().await
    })
}
