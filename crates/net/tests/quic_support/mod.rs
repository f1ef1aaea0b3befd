//! A QUIC listener with a fresh certificate, and quinn as its client.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use outlast_crypto::groups::Group;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_ledger::{End, Handshake, Observe, SshHandshake};
use outlast_negotiate::Rules;
use outlast_net::certificate::{Kind, ensure};
use outlast_net::door::{Door, Settings};
use outlast_net::policy::Policy;
use outlast_net::quic::{self, Listener};
use outlast_net::server::system_clock;
use outlast_pki::pem;
use outlast_store::memory::MemoryStore;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore};

/// Determines which share the client sends, and stores nothing.
#[derive(Debug)]
pub struct Hint(pub NamedGroup);

impl ClientSessionStore for Hint {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        Some(self.0)
    }
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {}
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

/// Reports of a listener.
#[derive(Default)]
pub struct Reports {
    pub handshakes: Mutex<Vec<Handshake>>,
    pub ends: Mutex<Vec<End>>,
}

impl Observe for Reports {
    fn handshake(&self, handshake: &Handshake) {
        self.handshakes.lock().unwrap().push(handshake.clone());
    }

    fn ssh_handshake(&self, _: &SshHandshake) {}

    fn end(&self, end: &End) {
        self.ends.lock().unwrap().push(end.clone());
    }
}

pub struct World {
    pub door: Arc<Door>,
    pub roots: RootCertStore,
    pub reports: Arc<Reports>,
}

impl World {
    pub fn new(rules: Rules, kind: &Kind, protocol: &str) -> Self {
        let store = MemoryStore::new();
        let root = RootKey::generate().unwrap();
        let mut work = Work::new(&store, &root, system_clock());
        let chain = ensure(&mut work, kind, &["localhost".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        for der in pem::read_certificates(chain.root_pem.as_bytes()).unwrap() {
            roots.add(CertificateDer::from(der)).unwrap();
        }
        let reports = Arc::new(Reports::default());
        let settings = Settings {
            listener: "tested".into(),
            rules,
            quic_protocols: vec![protocol.as_bytes().to_vec()],
            observer: Some(reports.clone()),
            ..Settings::with_protocols(&[protocol])
        };
        let door = Door::new(settings, vec![chain.certificate(kind)], None).unwrap();
        Self { door: Arc::new(door), roots, reports }
    }

    pub fn listen(&self, settings: quic::Settings) -> Listener {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Listener::start(self.door.clone(), socket, settings).unwrap()
    }

    pub fn config(&self, policy: &Policy, protocol: &str) -> ClientConfig {
        client_config(policy, self.roots.clone(), protocol)
    }
}

pub fn client_config(policy: &Policy, roots: RootCertStore, protocol: &str) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(policy.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config
}

/// Sends a share of only this group, and never resumes.
pub fn hinted(mut config: ClientConfig, share: &Group) -> ClientConfig {
    config.resumption = Resumption::store(Arc::new(Hint(share.key_exchange.name())));
    config
}

/// A client on its own socket.
pub fn endpoint(config: ClientConfig) -> quinn::Endpoint {
    let config = QuicClientConfig::try_from(config).unwrap();
    let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
    endpoint
}

pub async fn connect(
    endpoint: &quinn::Endpoint,
    address: SocketAddr,
) -> Result<quinn::Connection, quinn::ConnectionError> {
    endpoint.connect(address, "localhost").unwrap().await
}

/// Sends bytes and reads them back.
pub async fn echoed(connection: &quinn::Connection, bytes: &[u8]) -> Vec<u8> {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    let sending = async {
        send.write_all(bytes).await.unwrap();
        send.finish().unwrap();
    };
    let (back, ()) = tokio::join!(receive.read_to_end(bytes.len() + 1), sending);
    back.unwrap()
}
