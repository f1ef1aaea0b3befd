//! Which clients the door accepts: every kind of client certificate, over the real door.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail and print")]

use crate::pki;

use std::sync::Arc;

use outlast_net::client_auth::{ClientAuth, ClientAuthError, Mode};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_net::{HandshakeKind, Negotiated};
use pki::{New, Party, issue};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

fn now() -> i64 {
    system_clock().div_euclid(1000)
}

fn root(spec: &str, name: &str) -> Party {
    issue(spec, New { days: 3650, ..New::of("RootCACertificate", name, now()) }, None)
}

fn sub(spec: &str, name: &str, above: &Party) -> Party {
    issue(
        spec,
        New { days: 365, ..New::of("SubordinateCACertificate_PathLen0", name, now()) },
        Some(above),
    )
}

fn client(spec: &str, name: &str, above: &Party) -> Party {
    issue(spec, New::of("EndEntityClientAuthCertificate", name, now()), Some(above))
}

struct World {
    root: Party,
    sub: Party,
    server: Party,
}

fn world(spec: &str) -> World {
    let root = root(spec, "Root");
    let sub = sub(spec, "Sub", &root);
    let server = New {
        dns: &["localhost"],
        ..New::of("EndEntityServerAuthCertificate", "localhost", now())
    };
    let server = issue(spec, server, Some(&sub));
    World { root, sub, server }
}

impl World {
    fn auth(&self, mode: Mode, crls: Vec<Vec<u8>>) -> ClientAuth {
        ClientAuth::new(mode, &[self.root.der()], crls).unwrap()
    }

    fn door(&self, auth: &ClientAuth) -> Door {
        let chain = [self.server.der(), self.sub.der()].map(CertificateDer::from).to_vec();
        let key =
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.server.pkcs8().expose().to_vec()));
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).unwrap();
        let shown = ServerCertificate { kind: "tested".into(), key: Arc::new(key) };
        Door::new(Settings::with_protocols(PROTOCOLS), vec![shown], Some(auth.clone())).unwrap()
    }

    fn config(&self, identity: Option<(&Party, &[&Party])>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.der())).unwrap();
        let builder = ClientConfig::builder_with_provider(Policy::default().provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots);
        match identity {
            None => builder.with_no_client_auth(),
            Some((party, above)) => {
                let chain = std::iter::once(party).chain(above.iter().copied());
                let chain = chain.map(|party| CertificateDer::from(party.der())).collect();
                let key = PrivatePkcs8KeyDer::from(party.pkcs8().expose().to_vec());
                builder.with_client_auth_cert(chain, PrivateKeyDer::from(key)).unwrap()
            }
        }
    }
}

/// The negotiated parameters, or the reason why the server refused.
async fn connect(door: &Door, config: ClientConfig) -> Result<Negotiated, String> {
    let (client, server) = tokio::io::duplex(1 << 20);
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let accept = async {
        let mut accepted = door.accept(server, None).await?;
        accepted.stream.write_all(b"x").await?;
        accepted.stream.flush().await?;
        Ok::<_, std::io::Error>(accepted.negotiated)
    };
    let dial = async {
        // In TLS 1.3 a client learns from the first bytes that it was refused.
        let mut stream = connector.connect(name, client).await?;
        stream.read_exact(&mut [0]).await.map(|_| ())
    };
    let (dialled, accepted) = tokio::join!(dial, accept);
    assert_eq!(dialled.is_ok(), accepted.is_ok());
    accepted.map_err(|error| error.to_string())
}

#[tokio::test]
async fn only_valid_clients_of_the_ca_come_in() {
    for spec in ["ML_DSA_65", "ECC_NIST_P256"] {
        let world = world(spec);
        let good = client(spec, "robot-1", &world.sub);
        let door = world.door(&world.auth(Mode::Require, Vec::new()));
        let negotiated = connect(&door, world.config(Some((&good, &[&world.sub])))).await.unwrap();
        let shown = negotiated.client_certificate.unwrap();
        assert_eq!(shown.subject, "CN=robot-1");
        assert_eq!(shown.issuer, "CN=Sub");
        assert_eq!(shown.serial_number.len(), 32);
        assert!(negotiated.post_quantum);

        let elsewhere = root(spec, "Root");
        let stranger = client(spec, "robot-1", &elsewhere);
        let late = New {
            not_before: now() - 90 * 86_400,
            ..New::of("EndEntityClientAuthCertificate", "late", now())
        };
        let late = issue(spec, late, Some(&world.sub));
        let early = New {
            not_before: now() + 86_400,
            ..New::of("EndEntityClientAuthCertificate", "early", now())
        };
        let early = issue(spec, early, Some(&world.sub));
        // A leaf that issues a certificate: webpki alone checks only basic constraints, not key usage.
        let below_leaf = client(spec, "robot-1", &good);
        for (label, identity, reason) in [
            ("none", None, "no certificates"),
            ("another CA of the same name", Some((&stranger, &[&elsewhere][..])), "BadSignature"),
            ("without its chain", Some((&good, &[][..])), "UnknownIssuer"),
            ("a server's", Some((&world.server, &[&world.sub][..])), "xtended"),
            ("expired", Some((&late, &[&world.sub][..])), "xpired"),
            ("not yet valid", Some((&early, &[&world.sub][..])), "not valid yet"),
            ("below a leaf", Some((&below_leaf, &[&good, &world.sub][..])), ""),
        ] {
            let refused = connect(&door, world.config(identity)).await.err();
            let refused = refused.unwrap_or_else(|| panic!("{spec} {label} was let in"));
            assert!(refused.contains(reason), "{label}: {refused}");
        }
    }
}

#[tokio::test]
async fn one_that_is_asked_for_may_be_missing_but_not_wrong() {
    let world = world("ML_DSA_44");
    let door = world.door(&world.auth(Mode::Request, Vec::new()));
    let negotiated = connect(&door, world.config(None)).await.unwrap();
    assert_eq!(negotiated.client_certificate, None);
    let elsewhere = root("ML_DSA_44", "Root");
    let stranger = client("ML_DSA_44", "robot-1", &elsewhere);
    assert!(connect(&door, world.config(Some((&stranger, &[&elsewhere])))).await.is_err());
}

#[tokio::test]
async fn revoked_clients_stay_out_also_when_the_crl_comes_later() {
    let world = world("ML_DSA_65");
    let (good, bad) =
        (client("ML_DSA_65", "good", &world.sub), client("ML_DSA_65", "bad", &world.sub));
    let revoked: &[&[u8]] = &[bad.certificate.serial()];
    let crl = |at: i64, serials: &[&[u8]]| world.sub.crl(1, serials, at);
    let door = world.door(&world.auth(Mode::Require, Vec::new()));
    let above = [&world.sub];
    let identity = |party| Some((party, &above[..]));
    connect(&door, world.config(identity(&bad))).await.unwrap();

    door.replace_clients(&world.auth(Mode::Require, vec![crl(now(), revoked)])).unwrap();
    connect(&door, world.config(identity(&good))).await.unwrap();
    let refused = connect(&door, world.config(identity(&bad))).await.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");

    // A CRL that has expired, or does not cover the client's issuer, proves nothing.
    door.replace_clients(&world.auth(Mode::Require, vec![crl(now() - 10 * 86_400, &[])])).unwrap();
    assert!(connect(&door, world.config(identity(&good))).await.is_err());
    let other = world.root.crl(1, &[], now());
    door.replace_clients(&world.auth(Mode::Require, vec![other.clone()])).unwrap();
    assert!(connect(&door, world.config(identity(&good))).await.is_err());

    // A revoked CA invalidates its clients.
    let serial: &[u8] = world.sub.certificate.serial();
    let crls = vec![crl(now(), &[]), world.root.crl(2, &[serial], now())];
    door.replace_clients(&world.auth(Mode::Require, crls)).unwrap();
    let refused = connect(&door, world.config(identity(&good))).await.unwrap_err();
    assert!(refused.contains("Revoked"), "{refused}");
    door.replace_clients(&world.auth(Mode::Require, vec![crl(now(), &[]), other])).unwrap();
    connect(&door, world.config(identity(&good))).await.unwrap();
}

#[tokio::test]
async fn sessions_are_not_resumed_past_a_revocation() {
    let world = world("ECC_NIST_P256");
    let bad = client("ECC_NIST_P256", "bad", &world.sub);
    let door = world.door(&world.auth(Mode::Require, Vec::new()));
    let mut config = world.config(Some((&bad, &[&world.sub])));
    config.resumption = Resumption::in_memory_sessions(8);
    for _ in 0..2 {
        let negotiated = connect(&door, config.clone()).await.unwrap();
        assert_eq!(negotiated.handshake, HandshakeKind::Full);
    }
    let crl = world.sub.crl(1, &[bad.certificate.serial()], now());
    door.replace_clients(&world.auth(Mode::Require, vec![crl])).unwrap();
    assert!(connect(&door, config).await.is_err());
}

#[tokio::test]
async fn expired_and_non_issuing_roots_are_not_trusted() {
    let ended = New {
        not_before: now() - 20 * 86_400,
        days: 10,
        ..New::of("RootCACertificate", "Old", now())
    };
    let ended = issue("ECC_NIST_P256", ended, None);
    let late = client("ECC_NIST_P256", "late", &ended);
    let world = world("ECC_NIST_P256");
    let roots = [ended.der(), world.root.der()];
    let auth = ClientAuth::new(Mode::Require, &roots, Vec::new()).unwrap();
    let door = world.door(&auth);
    assert!(connect(&door, world.config(Some((&late, &[&ended])))).await.is_err());
    let leaf = client("ECC_NIST_P256", "leaf", &world.sub);
    let none = ClientAuth::new(Mode::Require, &[leaf.der()], Vec::new());
    assert_eq!(none.err(), Some(ClientAuthError::NoCa));
    assert!(ClientAuth::new(Mode::Require, &[world.root.der()], vec![b"no CRL".to_vec()]).is_err());
}
