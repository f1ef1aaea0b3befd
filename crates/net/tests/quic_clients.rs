//! Mutual TLS over QUIC: the same clients are accepted as over TCP, and HTTP/3 knows their identity.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::pki;
use crate::quic_support;

use std::net::UdpSocket;
use std::sync::Arc;

use outlast_net::client_auth::{ClientAuth, Mode};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::echo;
use outlast_net::policy::Policy;
use outlast_net::quic::{self, Accepted, Listener};
use outlast_net::server::system_clock;
use pki::{New, Party, issue};
use quic_support::{connect, echoed, endpoint};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

fn private(party: &Party) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(party.pkcs8().expose().to_vec()))
}

struct World {
    root: Party,
    door: Arc<Door>,
}

fn world(spec: &str, mode: Mode) -> World {
    let root = New { days: 3650, ..New::of("RootCACertificate", "Root", now()) };
    let root = issue(spec, root, None);
    let server = New {
        dns: &["localhost"],
        ..New::of("EndEntityServerAuthCertificate", "localhost", now())
    };
    let server = issue(spec, server, Some(&root));
    let chain = vec![CertificateDer::from(server.der())];
    let provider = aws_lc_rs::default_provider();
    let key = CertifiedKey::from_der(chain, private(&server), &provider).unwrap();
    let shown = ServerCertificate { kind: "tested".into(), key: Arc::new(key) };
    let auth = ClientAuth::new(mode, &[root.der()], Vec::new()).unwrap();
    let settings = Settings {
        quic_protocols: vec![echo::PROTOCOL.as_bytes().to_vec()],
        ..Settings::default()
    };
    World { root, door: Arc::new(Door::new(settings, vec![shown], Some(auth)).unwrap()) }
}

impl World {
    fn config(&self, identity: Option<&Party>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.der())).unwrap();
        let builder = ClientConfig::builder_with_provider(Policy::default().provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(party) => {
                let chain = vec![CertificateDer::from(party.der())];
                builder.with_client_auth_cert(chain, private(party)).unwrap()
            }
        };
        config.alpn_protocols = vec![echo::PROTOCOL.as_bytes().to_vec()];
        config
    }

    fn listen(&self) -> Listener {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Listener::start(self.door.clone(), socket, quic::Settings::default()).unwrap()
    }
}

#[tokio::test]
async fn a_client_shows_its_certificate_over_quic() {
    for spec in ["ML_DSA_65", "ECC_NIST_P256"] {
        let world = world(spec, Mode::Require);
        let mut listener = world.listen();
        let robot = New::of("EndEntityClientAuthCertificate", "robot-1", now());
        let robot = issue(spec, robot, Some(&world.root));
        let client = endpoint(world.config(Some(&robot)));
        let (connection, accepted) =
            tokio::join!(connect(&client, listener.address()), listener.accept());
        let _connection = connection.unwrap();
        let Accepted { negotiated, .. } = accepted.unwrap();
        let shown = negotiated.client_certificate.unwrap();
        assert!(shown.subject.contains("robot-1"), "{}", shown.subject);
        assert_eq!(negotiated.group.as_deref(), Some("X25519MLKEM768"));
    }
}

#[tokio::test]
async fn who_has_no_good_certificate_is_told_so() {
    let world = world("ECC_NIST_P256", Mode::Require);
    let listener = world.listen();
    let address = listener.address();
    let serving = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let stranger = New { days: 3650, ..New::of("RootCACertificate", "Other", now()) };
    let stranger = issue("ECC_NIST_P256", stranger, None);
    let robot = New::of("EndEntityClientAuthCertificate", "robot-1", now());
    let robot = issue("ECC_NIST_P256", robot, Some(&stranger));
    // certificate_required, and unknown_ca (RFC 8446, section 6.2).
    for (identity, alert) in [(None, 116), (Some(&robot), 48)] {
        let client = endpoint(world.config(identity));
        // In TLS 1.3 a client finishes before the server has checked its certificate.
        let error = match connect(&client, address).await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        };
        match error {
            quinn::ConnectionError::ConnectionClosed(close) => {
                assert_eq!(u64::from(close.error_code), 0x100 + alert);
            }
            other => panic!("{other:?}"),
        }
    }
    serving.abort();
}

#[tokio::test]
async fn where_it_is_optional_others_come_in_too() {
    let world = world("ECC_NIST_P256", Mode::Request);
    let listener = world.listen();
    let address = listener.address();
    let serving = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let client = endpoint(world.config(None));
    let connection = connect(&client, address).await.unwrap();
    assert_eq!(echoed(&connection, b"x").await, b"x");
    serving.abort();
}
