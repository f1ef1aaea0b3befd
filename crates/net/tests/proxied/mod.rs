//! Listeners in this process, with certificates, clients and backends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) use crate::pki;

use std::net::SocketAddr;
use std::sync::Arc;

use outlast_net::client_auth::{ClientAuth, Mode};
use outlast_net::door::{self, Door, ServerCertificate};
use outlast_net::policy::Policy;
use outlast_net::proxy::{Address, Backend, Protocol, Proxy, Settings};
use outlast_net::server::system_clock;
use pki::{New, Party, issue};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const SPEC: &str = "ECC_NIST_P256";

pub struct World {
    pub root: Party,
    pub server: Party,
}

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

impl World {
    pub fn new() -> Self {
        let root =
            issue(SPEC, New { days: 3650, ..New::of("RootCACertificate", "Root", now()) }, None);
        let server = server(&root);
        Self { root, server }
    }

    /// Another certificate from the same CA.
    pub fn renewed(&self) -> Party {
        server(&self.root)
    }

    pub fn client(&self, name: &str) -> Party {
        issue(SPEC, New::of("EndEntityClientAuthCertificate", name, now()), Some(&self.root))
    }

    pub fn door(&self, protocol: Protocol, clients: Option<Mode>) -> Arc<Door> {
        self.door_with(&self.server, protocol, clients)
    }

    pub fn door_with(&self, shown: &Party, protocol: Protocol, clients: Option<Mode>) -> Arc<Door> {
        let chain = vec![CertificateDer::from(shown.der())];
        let key = CertifiedKey::from_der(chain, key(shown), &aws_lc_rs::default_provider());
        let shown = ServerCertificate { kind: "tested".into(), key: Arc::new(key.unwrap()) };
        let clients =
            clients.map(|mode| ClientAuth::new(mode, &[self.root.der()], Vec::new()).unwrap());
        let settings = door::Settings::with_protocols(protocol.alpn());
        Arc::new(Door::new(settings, vec![shown], clients).unwrap())
    }

    pub fn config(&self, alpn: &[&str], identity: Option<&Party>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.der())).unwrap();
        let builder = ClientConfig::builder_with_provider(Policy::default().provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(party) => {
                let chain = vec![CertificateDer::from(party.der())];
                builder.with_client_auth_cert(chain, key(party)).unwrap()
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    /// A client's connection.
    pub async fn connect(&self, to: SocketAddr) -> TlsStream<TcpStream> {
        self.connect_with(to, self.config(&[], None), &[]).await.unwrap()
    }

    /// Like `connect`, after sending these bytes.
    pub async fn connect_with(
        &self,
        to: SocketAddr,
        config: ClientConfig,
        before: &[u8],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut stream = TcpStream::connect(to).await?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, before).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

fn server(root: &Party) -> Party {
    let new = New {
        dns: &["localhost"],
        ..New::of("EndEntityServerAuthCertificate", "localhost", now())
    };
    issue(SPEC, new, Some(root))
}

fn key(party: &Party) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(party.pkcs8().expose().to_vec()))
}

pub fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A backend's socket and settings.
pub async fn server_behind() -> (TcpListener, Backend) {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let backend = behind(listener.local_addr().unwrap());
    (listener, backend)
}

pub fn behind(address: SocketAddr) -> Backend {
    Backend { address: Address::Tcp(address.ip().to_string(), address.port()), tls: None }
}

/// An address where nobody listens.
pub fn nobody() -> SocketAddr {
    std::net::TcpListener::bind(any_port()).unwrap().local_addr().unwrap()
}

/// A TLS listener in front of these backends.
pub fn settings(world: &World, protocol: Protocol, backends: Vec<Backend>) -> Settings {
    let mut settings = Settings::new("tested", any_port(), backends);
    settings.protocol = protocol;
    settings.door = Some(world.door(protocol, None));
    settings
}

/// Starts one listener; returns its address.
pub fn start(settings: Settings) -> (Proxy, SocketAddr) {
    let proxy = Proxy::start(vec![settings]).unwrap();
    let address = proxy.addresses()[0].1;
    (proxy, address)
}

/// Fails the test if the future takes too long.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(outlast_testing::PATIENCE, future).await.expect("it takes too long")
}
