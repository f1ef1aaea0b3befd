//! `outlast serve-echo`: an endpoint that only echoes, for measuring handshakes and transport.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_net::certificate::ensure;
use outlast_net::door::{self, Door};
use outlast_net::echo::{self, PROTOCOL};
use outlast_net::quic::{self, Listener};
use outlast_net::server::system_clock;
use outlast_store::memory::MemoryStore;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::tls::{Shows, Tls};
use crate::{files, listeners, output, reload, settings, values};

/// Arguments of `serve-echo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Address and port; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_parser = values::address)]
    listen: SocketAddr,
    /// Transports to serve, both at the same port.
    #[arg(long, value_enum, default_value_t = Transport::Both)]
    transport: Transport,
    #[command(flatten)]
    tls: settings::Tls,
    /// File for the root of the certificate, in PEM; the certificate is new at each start.
    #[arg(long, value_name = "FILE")]
    ca_out: Option<PathBuf>,
    /// Worker threads; all packets of a QUIC listener are handled by one [default: one per processor].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Concurrent connections over QUIC; with more concurrent handshakes, clients get a Retry.
    #[arg(long, default_value_t = 65_536)]
    max_connections: usize,
}

/// Transports to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    /// TLS over TCP.
    Tcp,
    /// QUIC.
    Quic,
    /// Both.
    Both,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let tls = Tls::choose(arguments.tls, arguments.listen, None)?;
    let door = Arc::new(door(&tls, arguments.ca_out.as_deref())?);
    listeners::raise_open_files();
    let threads = arguments.threads.map(usize::from);
    let mut builder = match threads {
        Some(1) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let runtime =
        builder.enable_all().build().map_err(|error| crate::runtime::cannot_start(&error))?;
    runtime.block_on(async {
        let receive = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("signals cannot be received: {error}")))
        };
        let mut terminate = receive(SignalKind::terminate())?;
        let mut interrupt = receive(SignalKind::interrupt())?;
        let (tcp, udp, address) = bind(arguments.listen, arguments.transport)?;
        if let Some(listener) = tcp {
            tokio::spawn(echo::over_tcp(door.clone(), listener, std::future::pending()));
        }
        if let Some(socket) = udp {
            let settings = quic::Settings {
                retry_above: arguments.max_connections,
                max_handshakes: arguments.max_connections,
                max_connections: arguments.max_connections,
                connections_by_peer: arguments.max_connections,
                ..quic::Settings::default()
            };
            let listener = Listener::start(door, socket, settings)
                .map_err(|error| Failure::new(format!("QUIC cannot be served: {error}")))?;
            tokio::spawn(echo::over_quic(listener, std::future::pending()));
        }
        output::line(&format!("listening on {address}"));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

/// A door with a new certificate.
fn door(tls: &Tls, ca_out: Option<&Path>) -> Result<Door, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the certificate cannot be made: {error}"))
    };
    let store = MemoryStore::new();
    let root = RootKey::generate().map_err(|error| failed(&error))?;
    let mut roots = String::new();
    let mut certificates = Vec::new();
    match &tls.shows {
        Shows::Own(kinds) => {
            for kind in kinds {
                let mut work = Work::new(&store, &root, system_clock());
                let chain = ensure(&mut work, kind, &tls.names).map_err(|error| failed(&error))?;
                roots.push_str(&chain.root_pem);
                certificates.push(chain.certificate(kind));
            }
        }
        Shows::Files(list) => {
            for files in list {
                let own = files.load()?;
                roots.push_str(own.root_pem.as_deref().unwrap_or_default());
                certificates.push(own.certificate);
            }
        }
    }
    if let Some(path) = ca_out {
        files::write(path, roots.as_bytes(), 0o644)?;
    }
    let settings = door::Settings {
        listener: PROTOCOL.into(),
        rules: tls.rules,
        quic_protocols: vec![PROTOCOL.as_bytes().to_vec()],
        ..door::Settings::with_protocols(&[PROTOCOL])
    };
    let door = Door::new(settings, certificates, None)
        .map_err(|error| Failure::new(format!("TLS cannot be configured: {error}")))?;
    reload::check(&door)?;
    Ok(door)
}

type Bound = (Option<TcpListener>, Option<UdpSocket>, SocketAddr);

fn bind(listen: SocketAddr, transport: Transport) -> Result<Bound, Failure> {
    use crate::http3::Http3;
    match transport {
        Transport::Tcp => {
            let (listener, address, _) = listeners::listen_both(listen, Http3::Off)?;
            Ok((Some(listener), None, address))
        }
        Transport::Both => {
            let (listener, address, socket) = listeners::listen_both(listen, Http3::On)?;
            Ok((Some(listener), socket, address))
        }
        Transport::Quic => {
            let bound = UdpSocket::bind(listen).and_then(|it| Ok((it.local_addr()?, it)));
            let (address, socket) = bound.map_err(|error| {
                Failure::new(format!("{listen} over UDP: {error}"))
                    .hint("choose another address with --listen")
            })?;
            Ok((None, Some(socket), address))
        }
    }
}
