//! A real QUIC client (quinn) that makes connections one after the other: a handshake, a byte and its echo, and the
//! end.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, IdleTimeout, TransportConfig, VarInt};
use serde::{Deserialize, Serialize};

use super::steady::PROTOCOL;
use super::steady::SERVER_NAME;
use crate::error::LabError;
use crate::subject::Subject;
use crate::time::thread_cpu;
use crate::tls::{self, chain};

/// Time after which a connection has failed.
const LIMIT: Duration = Duration::from_secs(60);
/// Time for sending the end of the last connection.
const LAST_WORDS: Duration = Duration::from_millis(3);

/// A client of a subject, which trusts the chain that this process made for it.
#[derive(Debug, Clone)]
pub struct Client {
    config: ClientConfig,
}

/// Costs and times of connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Nanoseconds of each handshake, and of each whole connection up to the byte's return.
    pub times: Vec<[u64; 2]>,
    /// Number of failed connections.
    pub failed: u32,
    /// Nanoseconds from the start of the first connection to the end of the last one.
    pub wall_ns: u64,
    /// CPU time of the client's only thread, in nanoseconds.
    pub cpu_ns: u64,
}

impl Client {
    /// Offers only the subject's group, so that nothing else can be negotiated.
    pub fn new(subject: &Subject) -> Result<Self, LabError> {
        let mut config = tls::client_config(subject)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let quic = QuicClientConfig::try_from(config).map_err(LabError::failed)?;
        let mut config = ClientConfig::new(Arc::new(quic));
        let mut transport = TransportConfig::default();
        let idle = IdleTimeout::try_from(LIMIT).map_err(LabError::failed)?;
        transport.max_idle_timeout(Some(idle));
        config.transport_config(Arc::new(transport));
        Ok(Self { config })
    }

    /// Makes connections one after the other, on this thread. With `fresh`, each uses a port of its own. Failed
    /// connections are counted; if the first one fails, that is an error.
    pub fn connect(
        &self,
        address: SocketAddr,
        count: u32,
        fresh: bool,
        stop: &AtomicBool,
    ) -> Result<Done, LabError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::failed)?;
        runtime.block_on(self.all(address, count, fresh, stop))
    }

    async fn all(
        &self,
        address: SocketAddr,
        count: u32,
        fresh: bool,
        stop: &AtomicBool,
    ) -> Result<Done, LabError> {
        let mut done = Done::default();
        let mut endpoint = self.endpoint(address)?;
        let (begun, cpu) = (Instant::now(), thread_cpu());
        for index in 0..count {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            if fresh && index > 0 {
                endpoint = self.endpoint(address)?;
            }
            let connected = tokio::time::timeout(LIMIT, connection(&endpoint, address)).await;
            match connected.unwrap_or_else(|_| Err("it took too long".into())) {
                Ok(times) => done.times.push(times),
                Err(error) if index == 0 => {
                    let peer = format!("the echo endpoint at {address}");
                    return Err(LabError::Peer { peer, reason: error.to_string() });
                }
                Err(_) => done.failed += 1,
            }
        }
        done.wall_ns = nanos(begun.elapsed());
        done.cpu_ns = nanos(thread_cpu().saturating_sub(cpu));
        // The last connection's end must still be sent; waiting until everything is forgotten would take three
        // timers.
        tokio::time::sleep(LAST_WORDS).await;
        drop(endpoint);
        Ok(done)
    }

    fn endpoint(&self, address: SocketAddr) -> Result<Endpoint, LabError> {
        let ip =
            if address.ip().is_loopback() { address.ip() } else { Ipv4Addr::UNSPECIFIED.into() };
        let mut endpoint = Endpoint::client(SocketAddr::new(ip, 0)).map_err(LabError::failed)?;
        endpoint.set_default_client_config(self.config.clone());
        Ok(endpoint)
    }
}

async fn connection(
    endpoint: &Endpoint,
    address: SocketAddr,
) -> Result<[u64; 2], Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let connection = endpoint.connect(address, SERVER_NAME)?.await?;
    let handshake = nanos(begun.elapsed());
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"x").await?;
    send.finish()?;
    let back = receive.read_to_end(1).await?;
    let echo = nanos(begun.elapsed());
    connection.close(VarInt::from_u32(0), b"");
    if back == b"x" { Ok([handshake, echo]) } else { Err("the byte did not come back".into()) }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The command of an `outlast` echo endpoint (`service`) with a subject's chain, which is written to this folder. It
/// serves on one thread.
pub fn endpoint(
    service: &Path,
    folder: &Path,
    subject: &Subject,
    address: SocketAddr,
) -> Result<Command, LabError> {
    let name = subject.authentication.name.to_lowercase().replace(' ', "-");
    let prefix = format!("{name}-{}", subject.certificates);
    let files =
        chain::server(subject.authentication, subject.certificates)?.write(folder, &prefix)?;
    let mut command = Command::new(service);
    command.args(["serve-echo", "--transport", "quic", "--threads", "1"]);
    command.arg("--listen").arg(address.to_string());
    command.arg("--tls-cert-file").arg(&files.chain).arg("--tls-key-file").arg(&files.key);
    for name in ["POLICY", "MODE", "TLS_CERT", "TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_NAMES"] {
        command.env_remove(format!("OUTLAST_{name}"));
    }
    Ok(command)
}

/// Whether a process in this thread's namespace has bound this UDP port.
pub fn listens(port: u16) -> bool {
    let table = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
    let ending = format!(":{port:04X}");
    table
        .lines()
        .any(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&ending)))
}
