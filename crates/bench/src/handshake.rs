//! Server CPU of full handshakes: the door compared with plain rustls, hybrid compared with classical; in memory, on
//! one thread, in turns.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_harness::time::thread_cpu;
use outlast_ledger::Observe;
use outlast_net::certificate::{KINDS, ensure};
use outlast_net::door::{Door, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_store::memory::MemoryStore;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Figure;
use crate::statistics::{quantile, ratio};

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let rounds = if quick { 300 } else { 3000 };
    // The door limits the time of a handshake and therefore needs a runtime's clock.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let _entered = runtime.enter();
    let bench = Bench::new(None).map_err(|error| format!("{error:?}"))?;
    let cases: [(&Arc<ClientConfig>, bool); 4] = [
        (&bench.hybrid, true),
        (&bench.classical, true),
        (&bench.hybrid, false),
        (&bench.classical, false),
    ];
    let mut samples: [Vec<Duration>; 4] = Default::default();
    for round in 0..rounds + 20 {
        for offset in 0..cases.len() {
            // Each round starts with another case.
            let index = (round + offset) % cases.len();
            let (config, through_door) = cases[index];
            let spent = if through_door { bench.door(config)? } else { bench.bare(config)? };
            if round >= 20 {
                samples[index].push(spent);
            }
        }
    }
    let [door_hybrid, door_classical, bare_hybrid, bare_classical] =
        samples.map(|mut samples| quantile(&mut samples, 0.1));
    let upgrade = ratio(door_hybrid, door_classical);
    let reached = ratio(bare_hybrid, door_hybrid);
    let micros = |time: Duration| time.as_micros();
    Ok(vec![
        Figure {
            name: "full handshake at the door, server CPU, hybrid / classical",
            value: format!("{upgrade:.3}"),
            limit: "<= 1.25",
            met: upgrade <= 1.25,
            note: format!(
                "{} / {} µs (p10 of {rounds}, in turns; bare rustls {} / {} µs = {:.3})",
                micros(door_hybrid),
                micros(door_classical),
                micros(bare_hybrid),
                micros(bare_classical),
                ratio(bare_hybrid, bare_classical),
            ),
        },
        Figure {
            name: "full hybrid handshake, rate of the door / rate of bare in-memory rustls",
            value: format!("{reached:.3}"),
            limit: ">= 0.85",
            met: reached >= 0.85,
            note: format!(
                "classical {:.3}; both choose the group, the door reads the offer first",
                ratio(bare_classical, door_classical)
            ),
        },
    ])
}

/// Handshakes in memory, client and server in turns.
pub(crate) struct Bench {
    door: Door,
    bare: Arc<ServerConfig>,
    pub(crate) hybrid: Arc<ClientConfig>,
    classical: Arc<ClientConfig>,
}

impl Bench {
    pub(crate) fn new(
        observer: Option<Arc<dyn Observe>>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let store = MemoryStore::new();
        let root = RootKey::generate()?;
        let mut work = Work::new(&store, &root, system_clock());
        let chain = ensure(&mut work, &KINDS[0], &["localhost".to_owned()])?;
        let mut roots = RootCertStore::empty();
        for der in outlast_pki::pem::read_certificates(chain.root_pem.as_bytes())? {
            roots.add(CertificateDer::from(der))?;
        }
        let client = |policy: &Policy| -> Result<_, rustls::Error> {
            let mut config = ClientConfig::builder_with_provider(policy.provider())
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            config.resumption = Resumption::disabled();
            Ok(Arc::new(config))
        };
        let resolver = rustls::sign::SingleCertAndKey::from(chain.certified_key.clone());
        let mut bare = ServerConfig::builder_with_provider(Policy::default().provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        bare.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
        Ok(Self {
            door: Door::new(
                Settings { observer, ..Settings::with_protocols(PROTOCOLS) },
                vec![chain.certificate(&KINDS[0])],
                None,
            )?,
            bare: Arc::new(bare),
            hybrid: client(&Policy::default())?,
            classical: client(&Policy::classical())?,
        })
    }

    fn client(config: &Arc<ClientConfig>) -> Result<ClientConnection, String> {
        let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
        ClientConnection::new(config.clone(), name).map_err(|error| error.to_string())
    }

    /// One handshake with plain rustls; returns the server's CPU time.
    fn bare(&self, config: &Arc<ClientConfig>) -> Result<Duration, String> {
        let mut client = Self::client(config)?;
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let mut to_server = Vec::new();
        let mut to_client = Vec::new();
        let begun = thread_cpu();
        let mut server =
            ServerConnection::new(self.bare.clone()).map_err(|error| failed(&error))?;
        let mut spent = thread_cpu() - begun;
        while client.is_handshaking() || server.is_handshaking() || client.wants_write() {
            while client.wants_write() {
                client.write_tls(&mut to_server).map_err(|error| failed(&error))?;
            }
            let begun = thread_cpu();
            let mut input = to_server.as_slice();
            while !input.is_empty() {
                server.read_tls(&mut input).map_err(|error| failed(&error))?;
                server.process_new_packets().map_err(|error| failed(&error))?;
            }
            while server.wants_write() {
                server.write_tls(&mut to_client).map_err(|error| failed(&error))?;
            }
            spent += thread_cpu() - begun;
            to_server.clear();
            feed(&mut client, &to_client)?;
            to_client.clear();
        }
        let begun = thread_cpu();
        drop(server);
        spent += thread_cpu() - begun;
        Ok(spent)
    }

    /// One handshake through the door; returns the server's CPU time.
    pub(crate) fn door(&self, config: &Arc<ClientConfig>) -> Result<Duration, String> {
        let mut client = Self::client(config)?;
        let pipe = Pipe::default();
        let mut context = Context::from_waker(Waker::noop());
        let begun = thread_cpu();
        let mut accepting = Box::pin(self.door.accept(pipe.clone(), None));
        let mut spent = thread_cpu() - begun;
        loop {
            while client.wants_write() {
                let mut out = pipe.0.borrow_mut();
                client.write_tls(&mut out.to_server).map_err(|error| error.to_string())?;
            }
            let begun = thread_cpu();
            let outcome = accepting.as_mut().poll(&mut context);
            spent += thread_cpu() - begun;
            let answer: Vec<u8> = pipe.0.borrow_mut().to_client.drain(..).collect();
            feed(&mut client, &answer)?;
            if let Poll::Ready(accepted) = outcome {
                let accepted = accepted.map_err(|error| error.to_string())?;
                let hybrid = Arc::ptr_eq(config, &self.hybrid);
                if accepted.negotiated.post_quantum != hybrid {
                    return Err("the wrong group was negotiated".into());
                }
                let begun = thread_cpu();
                drop((accepting, accepted));
                spent += thread_cpu() - begun;
                return Ok(spent);
            }
        }
    }
}

fn feed(client: &mut ClientConnection, mut input: &[u8]) -> Result<(), String> {
    while !input.is_empty() {
        client.read_tls(&mut input).map_err(|error| error.to_string())?;
        client.process_new_packets().map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Two queues that stand in for a socket.
#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<Queues>>);

#[derive(Default)]
struct Queues {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let queue = &mut self.0.borrow_mut().to_server;
        if queue.is_empty() {
            return Poll::Pending;
        }
        let (first, _) = queue.as_slices();
        let len = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..len]);
        queue.drain(..len);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().to_client.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
