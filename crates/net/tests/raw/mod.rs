//! A door with an observer, ClientHellos that are taken apart and reassembled, and a client that writes bytes itself.
#![allow(dead_code, reason = "each test uses some of it")]

use std::io::Cursor;
use std::sync::{Arc, Mutex};

use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_ledger::{End, Handshake, Observe, Outcome, SshHandshake};
use outlast_net::certificate::{KINDS, Kind, ensure};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_pki::pem;
use outlast_store::memory::MemoryStore;
use outlast_testing::PATIENCE;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Records what is reported.
#[derive(Default)]
pub struct Heard {
    pub handshakes: Mutex<Vec<Handshake>>,
    pub ends: Mutex<Vec<End>>,
}

impl Observe for Heard {
    fn handshake(&self, handshake: &Handshake) {
        self.handshakes.lock().unwrap().push(handshake.clone());
    }

    fn ssh_handshake(&self, _: &SshHandshake) {}

    fn end(&self, end: &End) {
        self.ends.lock().unwrap().push(end.clone());
    }
}

impl Heard {
    /// Removes and returns the only outcome so far.
    pub fn outcome(&self) -> Option<Outcome> {
        let mut list = self.handshakes.lock().unwrap();
        assert!(list.len() <= 1, "{list:?}");
        list.pop().map(|handshake| handshake.outcome)
    }

    pub fn failure(&self) -> String {
        match self.outcome() {
            Some(Outcome::Failed(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a handshake is reported.
    pub async fn reported(&self) {
        let begun = std::time::Instant::now();
        while self.handshakes.lock().unwrap().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "no handshake was reported");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

pub struct World {
    pub door: Arc<Door>,
    pub roots: RootCertStore,
    pub heard: Arc<Heard>,
}

/// A chain of this kind, and its root.
pub fn certificate(kind: &Kind) -> (ServerCertificate, Vec<u8>) {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let chain = ensure(&mut work, kind, &["localhost".to_owned()]).unwrap();
    let root = pem::read_certificates(chain.root_pem.as_bytes()).unwrap().remove(0);
    (chain.certificate(kind), root)
}

pub fn world() -> World {
    world_with(|_| {}, &[KINDS[0].name])
}

pub fn world_with(change: impl FnOnce(&mut Settings), kinds: &[&str]) -> World {
    let mut roots = RootCertStore::empty();
    let mut certificates = Vec::new();
    for name in kinds {
        let (shown, root) = certificate(Kind::by_name(name).unwrap());
        roots.add(CertificateDer::from(root)).unwrap();
        certificates.push(shown);
    }
    let heard = Arc::new(Heard::default());
    let mut settings =
        Settings { observer: Some(heard.clone()), ..Settings::with_protocols(PROTOCOLS) };
    change(&mut settings);
    World { door: Arc::new(Door::new(settings, certificates, None).unwrap()), roots, heard }
}

/// Determines which share the client sends, and stores nothing.
#[derive(Debug)]
struct Hint(NamedGroup);

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

impl World {
    /// A TLS 1.3 client with these groups that sends a share of this one.
    pub fn config(&self, groups: &[&str], share: NamedGroup) -> ClientConfig {
        let mut config =
            ClientConfig::builder_with_provider(Policy::named(groups).unwrap().provider())
                .with_protocol_versions(&[&rustls::version::TLS13])
                .unwrap()
                .with_root_certificates(self.roots.clone())
                .with_no_client_auth();
        config.resumption = Resumption::store(Arc::new(Hint(share)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }

    /// The usual hello: hybrid and classical shares.
    pub fn client(&self) -> ClientConnection {
        connection(self.config(&["X25519MLKEM768", "x25519"], NamedGroup::X25519MLKEM768))
    }

    /// A client with a small hello.
    pub fn small(&self) -> ClientConnection {
        connection(self.config(&["x25519"], NamedGroup::X25519))
    }

    /// A client that must be asked for another share.
    pub fn retrying(&self) -> ClientConnection {
        connection(self.config(&["x25519", "secp256r1", "X25519MLKEM768"], NamedGroup::X25519))
    }

    /// Client end of a connection to the door.
    pub fn connect(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(1 << 20);
        let door = self.door.clone();
        tokio::spawn(async move {
            if let Ok(mut accepted) = door.accept(server, None).await {
                let _ = accepted.stream.write_all(b"hello").await;
                let _ = accepted.stream.shutdown().await;
            }
        });
        client
    }

    /// Everything that the door answers to these pieces.
    pub async fn answer(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut client = self.connect();
        for piece in pieces {
            if client.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut answer = Vec::new();
        let reading = client.read_to_end(&mut answer);
        tokio::time::timeout(PATIENCE, reading).await.expect("an end").unwrap();
        answer
    }
}

pub fn connection(config: ClientConfig) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

/// Bytes that the client wants to send.
pub fn sent(client: &mut ClientConnection) -> Vec<u8> {
    let mut out = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut out).unwrap();
    }
    out
}

/// Continues the handshake until the door's ServerHello. The error is the client's.
pub async fn finish(
    client: &mut ClientConnection,
    wire: &mut DuplexStream,
) -> Result<(), rustls::Error> {
    let mut text = Vec::new();
    let mut buffer = vec![0; 1 << 14];
    while text != b"hello" {
        let bytes = sent(client);
        if wire.write_all(&bytes).await.is_err() {
            break;
        }
        let reading = tokio::time::timeout(PATIENCE, wire.read(&mut buffer));
        let read = reading.await.expect("no answer").unwrap();
        receive(client, &buffer[..read])?;
        let mut plain = [0; 16];
        if let Ok(read) = std::io::Read::read(&mut client.reader(), &mut plain) {
            text.extend_from_slice(&plain[..read]);
        }
        assert!(read > 0 || text == b"hello", "the door has closed");
    }
    Ok(())
}

pub fn receive(client: &mut ClientConnection, bytes: &[u8]) -> Result<(), rustls::Error> {
    let mut bytes = Cursor::new(bytes);
    while client.read_tls(&mut bytes).unwrap() > 0 {
        client.process_new_packets()?;
    }
    Ok(())
}

/// The message in records of at most this many bytes.
pub fn records(message: &[u8], max: usize) -> Vec<u8> {
    message.chunks(max).flat_map(record).collect()
}

pub fn record(body: &[u8]) -> Vec<u8> {
    typed(22, body)
}

pub fn typed(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap();
    [&[kind, 3, 1], &len.to_be_bytes()[..], body].concat()
}

/// An alert that ends the connection.
pub fn alert(description: u8) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, description]
}

/// A ClientHello that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    pub version: [u8; 2],
    pub random: Vec<u8>,
    pub session: Vec<u8>,
    pub suites: Vec<u8>,
    pub compressions: Vec<u8>,
    pub extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    /// Parses the only message in the only record.
    pub fn of_record(record: &[u8]) -> Self {
        assert_eq!(record[0], 22);
        let len = usize::from(u16::from_be_bytes([record[3], record[4]]));
        assert_eq!(record.len(), 5 + len);
        Self::parse(&record[5..])
    }

    pub fn parse(message: &[u8]) -> Self {
        let mut rest = &message[4..];
        let mut take = |len: usize| {
            let (taken, left) = rest.split_at(len);
            rest = left;
            taken.to_vec()
        };
        let version = take(2).try_into().unwrap();
        let random = take(32);
        let len = take(1)[0].into();
        let session = take(len);
        let len = take(2);
        let suites = take(u16::from_be_bytes([len[0], len[1]]).into());
        let len = take(1)[0].into();
        let compressions = take(len);
        take(2);
        let mut extensions = Vec::new();
        while !rest.is_empty() {
            let kind = u16::from_be_bytes([rest[0], rest[1]]);
            let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            extensions.push((kind, rest[4..4 + len].to_vec()));
            rest = &rest[4 + len..];
        }
        Self { version, random, session, suites, compressions, extensions }
    }

    pub fn message(&self) -> Vec<u8> {
        let mut body = self.version.to_vec();
        body.extend_from_slice(&self.random);
        body.push(u8::try_from(self.session.len()).unwrap());
        body.extend_from_slice(&self.session);
        body.extend_from_slice(&vector(&self.suites));
        body.push(u8::try_from(self.compressions.len()).unwrap());
        body.extend_from_slice(&self.compressions);
        let list: Vec<u8> = self
            .extensions
            .iter()
            .flat_map(|(kind, content)| [&kind.to_be_bytes()[..], &vector(content)].concat())
            .collect();
        body.extend_from_slice(&vector(&list));
        let len = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1], &len[1..], &body].concat()
    }

    pub fn record(&self) -> Vec<u8> {
        records(&self.message(), 1 << 14)
    }

    pub fn extension(&mut self, kind: u16) -> &mut Vec<u8> {
        let found = self.extensions.iter_mut().find(|(known, _)| *known == kind);
        &mut found.unwrap_or_else(|| panic!("no extension {kind}")).1
    }

    pub fn remove(&mut self, kind: u16) {
        self.extensions.retain(|(known, _)| *known != kind);
    }

    pub fn add(&mut self, kind: u16, content: &[u8]) {
        self.extensions.insert(0, (kind, content.to_vec()));
    }

    /// Prepends values to a list of two-byte values with a two-byte length.
    pub fn prepend(&mut self, kind: u16, values: &[u8]) {
        let content = self.extension(kind);
        let list = [values, &content[2..]].concat();
        *content = vector(&list);
    }
}

/// Prefixes a two-byte length.
pub fn vector(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// A key share.
pub fn share(group: u16, len: usize) -> Vec<u8> {
    [&group.to_be_bytes()[..], &vector(&vec![9; len])].concat()
}
