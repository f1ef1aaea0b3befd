//! One connection of real s2n-quic with real rustls in virtual time.
//!
//! Each connection has its own executor, network and endpoints, so that connections do not affect each other and any
//! one can be repeated alone. s2n-quic's executor keeps its state in the thread: see [`apart`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustls::{ClientConfig, ServerConfig};
use s2n_quic::client::Connect;
use s2n_quic::provider::event::events::PacketLost;
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber};
use s2n_quic::provider::io::testing::{Builder, Executor, Handle, Io, primary, spawn, time};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::random;
use s2n_quic::provider::tls::rustls as tls;
use s2n_quic::{Client, Server};

use super::network::{Path, Sent, Shared, mixed};
use super::steady::{Ends, SERVER_NAME, refill};
use crate::error::LabError;
use crate::link::Link;

/// Timeout of a connection, in virtual time.
const LIMIT: Duration = Duration::from_secs(120);
/// Time before the client begins: s2n-quic's clock has no zero.
const BEFORE: Duration = Duration::from_millis(1);
/// Size of the buffers between an endpoint and the network in bytes: allocating the default of 8 MiB takes longer
/// than a handshake.
const BUFFERS: usize = 256 * 1024;

/// Result of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Connection {
    /// Nanoseconds until the client's handshake was complete.
    pub(super) handshake_ns: Option<u64>,
    /// Nanoseconds until the echo arrived.
    pub(super) echo_ns: Option<u64>,
    /// Packets that the sender declared lost: client, server.
    pub(super) declared_lost: [u32; 2],
    /// All datagrams until then.
    pub(super) sent: Vec<Sent>,
    /// Why it ended early, if it did.
    pub(super) error: Option<String>,
}

/// Runs a closure on its own thread, since s2n-quic's executor keeps its state in the thread; a panic there becomes
/// an error.
pub(super) fn apart<T: Send>(
    run: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    std::thread::scope(|scope| {
        scope.spawn(run).join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(LabError::failed(format!("s2n-quic in virtual time: {text}")))
        })
    })
}

/// One connection: a handshake, a byte and its echo. To be called within [`apart`].
pub(super) fn connect(
    ends: &Ends,
    link: &Link,
    seed: u64,
    flow: u64,
) -> Result<Connection, LabError> {
    if ends.tickets.as_ref().is_some_and(|tickets| tickets.is_empty()) {
        refill(ends)?;
    }
    let shared = Shared::default();
    let path = Path::new(*link, seed, flow, shared.clone());
    let key = mixed(seed, flow);
    let lost = Lost::default();
    let result = Arc::new(Mutex::new(Connection::default()));
    let mut executor = Executor::new(path, key);
    let handle = executor.handle().clone();
    executor.enter(|| {
        let server = server(&handle, ends.server.clone(), key, lost.server.clone())?;
        let address = server.local_addr().map_err(LabError::failed)?;
        let _ = shared.server.set(address.into());
        spawn(serve(server));
        let client = client(&handle, ends.client.clone(), key, lost.client.clone())?;
        let (shared, result) = (shared.clone(), result.clone());
        primary::spawn(async move {
            time::delay(BEFORE).await;
            let _ = shared.begin.set(time::now());
            let outcome = byte_there_and_back(&client, address, &shared, &result).await;
            let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
            result.error = outcome.err();
            result.sent = shared.seen();
        });
        Ok::<(), LabError>(())
    })?;
    executor.run();
    let mut result = result.lock().unwrap_or_else(PoisonError::into_inner).clone();
    result.declared_lost = [&lost.client, &lost.server].map(|count| count.load(Ordering::Relaxed));
    Ok(result)
}

async fn byte_there_and_back(
    client: &Client,
    address: std::net::SocketAddr,
    shared: &Shared,
    result: &Mutex<Connection>,
) -> Result<(), String> {
    let connect = Connect::new(address).with_server_name(SERVER_NAME);
    let mut connection = client.connect(connect).await.map_err(|error| error.to_string())?;
    let handshake = shared.now();
    result.lock().unwrap_or_else(PoisonError::into_inner).handshake_ns = Some(handshake);
    let stream = connection.open_bidirectional_stream().await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    stream.send(Bytes::from_static(b"x")).await.map_err(|error| error.to_string())?;
    stream.finish().map_err(|error| error.to_string())?;
    let back = stream.receive().await.map_err(|error| error.to_string())?;
    let echo = shared.now();
    result.lock().unwrap_or_else(PoisonError::into_inner).echo_ns = Some(echo);
    match back {
        Some(bytes) if bytes.as_ref() == b"x" => Ok(()),
        _ => Err("the byte did not come back".to_owned()),
    }
}

async fn serve(mut server: Server) {
    while let Some(mut connection) = server.accept().await {
        spawn(async move {
            while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                spawn(async move {
                    while let Ok(Some(bytes)) = stream.receive().await {
                        if stream.send(bytes).await.is_err() {
                            return;
                        }
                    }
                    let _ = stream.finish();
                });
            }
        });
    }
}

fn io(handle: &Handle) -> Result<Io, LabError> {
    let builder = handle
        .builder()
        .with_internal_recv_buffer_size(BUFFERS)
        .and_then(|builder| builder.with_internal_send_buffer_size(BUFFERS));
    builder.and_then(Builder::build).map_err(LabError::failed)
}

fn limits() -> Result<Limits, LabError> {
    Limits::new()
        .with_max_handshake_duration(LIMIT)
        .and_then(|limits| limits.with_max_idle_timeout(LIMIT))
        .map_err(LabError::failed)
}

fn server(
    handle: &Handle,
    config: Arc<ServerConfig>,
    key: u64,
    lost: Arc<AtomicU32>,
) -> Result<Server, LabError> {
    Server::builder()
        .with_io(io(handle)?)
        .map_err(LabError::failed)?
        .with_tls(tls::Server::from(config))
        .map_err(LabError::failed)?
        .with_limits(limits()?)
        .map_err(LabError::failed)?
        .with_random(Seeded::new(key, 1))
        .map_err(LabError::failed)?
        .with_event(Counting(lost))
        .map_err(LabError::failed)?
        .start()
        .map_err(LabError::failed)
}

fn client(
    handle: &Handle,
    config: Arc<ClientConfig>,
    key: u64,
    lost: Arc<AtomicU32>,
) -> Result<Client, LabError> {
    Client::builder()
        .with_io(io(handle)?)
        .map_err(LabError::failed)?
        .with_tls(tls::Client::from(config))
        .map_err(LabError::failed)?
        .with_limits(limits()?)
        .map_err(LabError::failed)?
        .with_random(Seeded::new(key, 0))
        .map_err(LabError::failed)?
        .with_event(Counting(lost))
        .map_err(LabError::failed)?
        .start()
        .map_err(LabError::failed)
}

/// Packets that each side declared lost.
#[derive(Default)]
struct Lost {
    client: Arc<AtomicU32>,
    server: Arc<AtomicU32>,
}

struct Counting(Arc<AtomicU32>);

impl Subscriber for Counting {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo<'_>) {}

    fn on_packet_lost(&mut self, (): &mut (), _: &ConnectionMeta, event: &PacketLost<'_>) {
        if !event.is_mtu_probe {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// s2n-quic's random numbers, the same for the same seed: it uses them to skip packet numbers and to spread timers.
/// They keep no secret here.
#[derive(Debug)]
struct Seeded(Pcg64Mcg);

impl Seeded {
    fn new(key: u64, side: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(mixed(key, u64::MAX - 1 - side)))
    }
}

impl random::Provider for Seeded {
    type Generator = Self;
    type Error = std::convert::Infallible;

    fn start(self) -> Result<Self, Self::Error> {
        Ok(self)
    }
}

impl random::Generator for Seeded {
    fn public_random_fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }

    fn private_random_fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }
}
