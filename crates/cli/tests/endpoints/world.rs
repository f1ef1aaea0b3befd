//! Certificates, and listeners in this process under any policy: each records connections by the server name that the
//! client asked for, so that many clients can connect at once.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use outlast_crypto::schemes::Scheme;
use outlast_ledger::{End, Handshake, Observe, SshHandshake};
use outlast_negotiate::Rules;
use outlast_negotiate::decide::CertificateFacts;
use outlast_net::client_auth::ClientAuth;
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::quic;
use outlast_net::server::system_clock;
use outlast_testing::PATIENCE;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::pki::{New, Party, issue};

/// Name of the kind in the ledger, key type, and signature scheme.
pub const KINDS: &[(&str, &str, &str)] = &[
    ("ecdsa-p256", "ECC_NIST_P256", "ecdsa_secp256r1_sha256"),
    ("ecdsa-p384", "ECC_NIST_P384", "ecdsa_secp384r1_sha384"),
    ("ml-dsa-44", "ML_DSA_44", "mldsa44"),
    ("ml-dsa-65", "ML_DSA_65", "mldsa65"),
    ("ml-dsa-87", "ML_DSA_87", "mldsa87"),
];

/// ALPN name of the protocol over QUIC here.
pub const PROTOCOL: &[u8] = b"matrix";

/// Domain below which each client has its own name.
pub const DOMAIN: &str = "matrix.test";

/// Roots and leaves of every kind.
pub struct World {
    folder: tempfile::TempDir,
    leaves: HashMap<&'static str, ServerCertificate>,
    /// All roots, for clients of this process.
    pub roots: RootCertStore,
    /// The same roots in a file.
    pub ca: PathBuf,
    /// Issuers of client certificates.
    authorities: Vec<Party>,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = system_clock().div_euclid(1000);
        let mut world = Self {
            ca: folder.path().join("ca.pem"),
            folder,
            leaves: HashMap::new(),
            roots: RootCertStore::empty(),
            authorities: Vec::new(),
        };
        let mut pem = String::new();
        for (kind, spec, _) in KINDS {
            let name = format!("Root of {kind}");
            let root = issue(spec, New::of("RootCACertificate", &name, now), None);
            let wildcard = format!("*.{DOMAIN}");
            let leaf = New {
                dns: &[&wildcard],
                ..New::of("EndEntityServerAuthCertificate", "server", now)
            };
            let leaf = issue(spec, leaf, Some(&root));
            pem += &root.pem();
            world.roots.add(CertificateDer::from(root.der())).unwrap();
            let key = PrivatePkcs8KeyDer::from(leaf.pkcs8().expose().to_vec());
            let key = CertifiedKey::from_der(
                vec![leaf.der().into()],
                PrivateKeyDer::from(key),
                &aws_lc_rs::default_provider(),
            );
            let key = Arc::new(key.unwrap());
            world.leaves.insert(kind, ServerCertificate { kind: (*kind).to_owned(), key });
            world.authorities.push(root);
        }
        std::fs::write(&world.ca, pem).unwrap();
        world
    }

    /// Path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate for a client, from the root of this kind: the files with it and its key.
    pub fn client(&self, kind: &str, name: &str) -> (PathBuf, PathBuf) {
        let index = KINDS.iter().position(|row| row.0 == kind).unwrap();
        let now = system_clock().div_euclid(1000);
        let new = New::of("EndEntityClientAuthCertificate", name, now);
        let party = issue(KINDS[index].1, new, Some(&self.authorities[index]));
        let (certificate, key) =
            (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        std::fs::write(&certificate, party.pem()).unwrap();
        std::fs::write(&key, party.key_pem()).unwrap();
        (certificate, key)
    }

    /// A TCP listener with these certificates, the preferred first.
    pub async fn listen(&self, rules: Rules, kinds: &[&str]) -> Listener {
        self.listen_for(rules, kinds, None).await
    }

    /// The same, which asks for certificates of clients.
    pub async fn listen_for(
        &self,
        rules: Rules,
        kinds: &[&str],
        clients: Option<ClientAuth>,
    ) -> Listener {
        let recorder = Arc::new(Recorder::default());
        let settings = Settings {
            listener: "matrix".into(),
            rules,
            observer: Some(recorder.clone()),
            ..Settings::default()
        };
        let certificates = kinds.iter().map(|kind| self.leaves[kind].clone()).collect();
        let door = Arc::new(Door::new(settings, certificates, clients).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let door = door.clone();
                tokio::spawn(async move {
                    let Ok(accepted) = door.accept(stream, Some(peer)).await else { return };
                    let mut stream = accepted.stream;
                    // Data to read, after the tickets, and an end.
                    let _ = stream.write_all(b"x").await;
                    let _ = stream.shutdown().await;
                    let rest = async { while let Ok(1..) = stream.read(&mut [0; 512]).await {} };
                    let _ = tokio::time::timeout(PATIENCE, rest).await;
                });
            }
        });
        Listener { address, rules, facts: kinds.iter().map(|kind| facts(kind)).collect(), recorder }
    }

    /// A QUIC listener, which sends data on each stream that the client opens.
    pub fn listen_quic(&self, rules: Rules, kinds: &[&str]) -> Listener {
        let recorder = Arc::new(Recorder::default());
        let settings = Settings {
            listener: "matrix".into(),
            rules,
            quic_protocols: vec![PROTOCOL.to_vec()],
            observer: Some(recorder.clone()),
            ..Settings::default()
        };
        let certificates = kinds.iter().map(|kind| self.leaves[kind].clone()).collect();
        let door = Arc::new(Door::new(settings, certificates, None).unwrap());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut listener = quic::Listener::start(door, socket, quic::Settings::default()).unwrap();
        let address = listener.address();
        tokio::spawn(async move {
            while let Some(mut accepted) = listener.accept().await {
                tokio::spawn(async move {
                    let connection = &mut accepted.connection;
                    while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await
                    {
                        let _ = stream.send(Bytes::from_static(b"x")).await;
                        let _ = stream.finish();
                    }
                });
            }
        });
        Listener { address, rules, facts: kinds.iter().map(|kind| facts(kind)).collect(), recorder }
    }

    /// The first kind of certificate whose scheme the policy has.
    pub fn kind_for(rules: &Rules) -> &'static str {
        let fits =
            |row: &&(_, _, &str)| rules.handshake_schemes().any(|scheme| scheme.name == row.2);
        KINDS.iter().find(fits).unwrap_or_else(|| panic!("{}", rules.policy.name)).0
    }
}

/// Facts about a certificate of this kind.
pub fn facts(kind: &str) -> CertificateFacts {
    let scheme = KINDS.iter().find(|row| row.0 == kind).unwrap().2;
    let scheme = Scheme::by_name(scheme).unwrap();
    // The root's key is of the same type.
    let chain = vec![scheme.code_point];
    CertificateFacts { kind: kind.to_owned(), schemes: vec![scheme.code_point], chain }
}

/// A listener of this process.
pub struct Listener {
    pub address: SocketAddr,
    pub rules: Rules,
    pub facts: Vec<CertificateFacts>,
    recorder: Arc<Recorder>,
}

impl Listener {
    /// `2026-11 prefer`
    pub fn label(&self) -> String {
        format!("{} {}", self.rules.policy.name, self.rules.mode)
    }

    /// The record of the `count`th connection with this name.
    pub async fn recorded(&self, name: &str, count: usize) -> Result<Handshake, String> {
        let begun = tokio::time::Instant::now();
        loop {
            if let Some(found) = self.recorder.found(name, count) {
                return Ok(found);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the listener saw no client that asked for {name}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Keeps the records, by server name.
#[derive(Default)]
pub struct Recorder(Mutex<HashMap<String, Vec<Handshake>>>);

impl Recorder {
    fn found(&self, name: &str, count: usize) -> Option<Handshake> {
        self.0.lock().unwrap().get(name)?.get(count - 1).cloned()
    }
}

impl Observe for Recorder {
    fn handshake(&self, handshake: &Handshake) {
        let name = handshake.offer.as_ref().and_then(|offer| offer.sni.clone()).unwrap_or_default();
        self.0.lock().unwrap().entry(name).or_default().push(handshake.clone());
    }

    fn ssh_handshake(&self, _: &SshHandshake) {}

    fn end(&self, _: &End) {}
}
