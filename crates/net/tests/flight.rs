//! Compares the estimate of a handshake's bytes with handshakes of rustls' client and the door's own server.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::sync::Arc;

use outlast_crypto::keys::KeySpec;
use outlast_negotiate::Rules;
use outlast_net::client_auth::{ClientAuth, Mode};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_pki::whatif::flight::{self, Request, Shape};
use outlast_pki::whatif::{self, Made};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use x509_cert::der::Encode;

fn make(specs: &[&str]) -> Made {
    let rows: Vec<_> = specs.iter().map(|name| KeySpec::by_name(name).unwrap()).collect();
    let now = system_clock().div_euclid(1000);
    whatif::build(&rows, &["server.example.com".to_owned()], now - 60).unwrap()
}

fn key(made: &Made) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.leaf_key.expose().to_vec()))
}

fn sent(made: &Made) -> &[Vec<u8>] {
    &made.certificates[..made.certificates.len() - 1]
}

fn ders(list: &[Vec<u8>]) -> Vec<CertificateDer<'static>> {
    list.iter().cloned().map(CertificateDer::from).collect()
}

struct Measured {
    client_hello: usize,
    server: usize,
    client: usize,
}

/// A handshake with the door, over a pipe whose bytes are counted.
async fn measure(made: &Made, rules: Rules, mutual: bool, staple: Option<Vec<u8>>) -> Measured {
    let provider = aws_lc_rs::default_provider();
    let mut certified = CertifiedKey::from_der(ders(sent(made)), key(made), &provider).unwrap();
    certified.ocsp = staple;
    let root = made.certificates.last().unwrap().clone();
    let auth = mutual
        .then(|| ClientAuth::new(Mode::Require, std::slice::from_ref(&root), Vec::new()).unwrap());
    let shown = ServerCertificate { kind: "tested".into(), key: Arc::new(certified) };
    let settings = Settings { rules, ..Settings::with_protocols(PROTOCOLS) };
    let door = Door::new(settings, vec![shown], auth).unwrap();
    let policy = Policy::of(&rules);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(root)).unwrap();
    let builder = ClientConfig::builder_with_provider(policy.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = if mutual {
        builder.with_client_auth_cert(ders(sent(made)), key(made)).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("server.example.com").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let (mut wire, server_end) = tokio::io::duplex(1 << 20);
    let server = tokio::spawn(async move { door.accept(server_end, None).await.map(|_| ()) });
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    wire.write_all(&hello).await.unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 1 << 16];
    while client.is_handshaking() {
        let read = wire.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the server closed");
        received += read;
        let mut bytes = &buffer[..read];
        while !bytes.is_empty() {
            client.read_tls(&mut bytes).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    let mut answer = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut answer).unwrap();
    }
    wire.write_all(&answer).await.unwrap();
    server.await.unwrap().unwrap();
    Measured { client_hello: hello.len(), server: received, client: answer.len() }
}

fn near(estimate: usize, measured: usize, slack: usize, label: &str) {
    println!("{label}: estimated {estimate}, measured {measured}");
    assert!(estimate.abs_diff(measured) <= slack, "{label}: {estimate} and {measured}");
}

/// DER-encoded ECDSA signatures differ in length by a few bytes; all others have one length.
#[tokio::test]
async fn estimates_are_what_goes_over_the_wire() {
    for (specs, signature, slack) in [
        (&["ML_DSA_87", "ML_DSA_65", "ML_DSA_44"][..], 2420, 0),
        (&["ML_DSA_87", "ML_DSA_87", "ML_DSA_87", "ML_DSA_87"], 4627, 0),
        (&["ML_DSA_65", "ML_DSA_65"], 3309, 0),
        (&["RSA_2048", "RSA_2048", "RSA_2048"], 256, 0),
        (&["ECC_NIST_P256", "ECC_NIST_P256", "ECC_NIST_P256"], 71, 3),
    ] {
        let made = make(specs);
        for rules in [Rules::default(), Rules::named("classical-2026-11").unwrap()] {
            let hybrid = rules.groups().any(|row| row.strength.is_post_quantum());
            let share =
                if hybrid { flight::HYBRID_SERVER_SHARE } else { flight::CLASSICAL_SERVER_SHARE };
            let root =
                outlast_pki::certificate::Certificate::parse(made.certificates.last().unwrap())
                    .unwrap();
            let schemes = Policy::default()
                .provider()
                .signature_verification_algorithms
                .supported_schemes()
                .len();
            let authorities = 2 + root.subject().to_der().unwrap().len();
            for (mutual, staple) in [(false, None), (true, None), (false, Some(500))] {
                let label = format!("{specs:?} hybrid={hybrid} mutual={mutual} staple={staple:?}");
                let shape = Shape {
                    chain: sent(&made),
                    signature,
                    share,
                    protocol: Some(2),
                    staple,
                    request: mutual.then_some(Request { schemes, authorities }),
                };
                let measured = measure(&made, rules, mutual, staple.map(|len| vec![0; len])).await;
                near(flight::server(&shape).bytes(), measured.server, slack, &label);
                if mutual {
                    let estimate = flight::client(sent(&made), signature).bytes();
                    near(estimate, measured.client, slack, &label);
                }
                assert!(measured.client_hello > if hybrid { 1184 } else { 200 });
            }
        }
    }
}
