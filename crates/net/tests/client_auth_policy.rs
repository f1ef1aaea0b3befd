//! Mutual TLS with each kind of client certificate, and policies that allow only some.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::Arc;

use outlast_crypto::keys::KeySpec;
use outlast_crypto::versions::Version;
use outlast_negotiate::Rules;
use outlast_net::Negotiated;
use outlast_net::client_auth::{self, ClientAuth};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_pki::whatif::{self, Made};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsConnector;

fn made(specs: &[&str]) -> Made {
    let rows: Vec<_> = specs.iter().map(|name| KeySpec::by_name(name).unwrap()).collect();
    whatif::build(&rows, &["localhost".to_owned()], system_clock().div_euclid(1000) - 60).unwrap()
}

fn key(made: &Made) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.leaf_key.expose().to_vec()))
}

/// All certificates except the root.
fn shown(made: &Made) -> Vec<CertificateDer<'static>> {
    let all = made.certificates.iter().cloned().map(CertificateDer::from);
    all.take(made.certificates.len() - 1).collect()
}

fn root(made: &Made) -> Vec<u8> {
    made.certificates.last().unwrap().clone()
}

/// Result of a client with this chain at a server that trusts the chain's root.
async fn connect(
    server: &Made,
    client: &Made,
    rules: Rules,
    version: Version,
) -> Result<Negotiated, String> {
    let provider = aws_lc_rs::default_provider();
    let key_of_server = CertifiedKey::from_der(shown(server), key(server), &provider).unwrap();
    let certificate = ServerCertificate { kind: "tested".into(), key: Arc::new(key_of_server) };
    let auth = ClientAuth::new(client_auth::Mode::Require, &[root(client)], Vec::new()).unwrap();
    let settings = Settings { rules, ..Settings::with_protocols(PROTOCOLS) };
    let door = Door::new(settings, vec![certificate], Some(auth)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(root(server))).unwrap();
    let config = ClientConfig::builder_with_provider(Policy::of(&Rules::default()).provider())
        .with_protocol_versions(&[version.rustls()])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(shown(client), key(client))
        .unwrap();
    let (near, far) = tokio::io::duplex(1 << 18);
    let connector = TlsConnector::from(Arc::new(config));
    let connecting = async {
        let mut stream = connector.connect("localhost".try_into().unwrap(), near).await?;
        // A TLS 1.3 client learns only now whether it was accepted.
        stream.read(&mut [0]).await
    };
    let accepting = async {
        let accepted = door.accept(far, None).await.map_err(|error| error.to_string())?;
        Ok(accepted.negotiated)
    };
    let (_, accepted) = tokio::join!(connecting, accepting);
    accepted
}

#[tokio::test]
async fn clients_come_in_with_what_the_policy_allows() {
    let only_87 = Rules::named("cnsa2-2026-11").unwrap();
    let server = made(&["ML_DSA_87", "ML_DSA_87"]);
    for (specs, allowed) in [
        (&["ML_DSA_44", "ML_DSA_44"][..], false),
        (&["ML_DSA_65", "ML_DSA_65"], false),
        (&["ML_DSA_87", "ML_DSA_87"], true),
        (&["ML_DSA_87", "ML_DSA_87", "ML_DSA_87"], true),
        // An intermediate signs with a weaker key.
        (&["ML_DSA_87", "ML_DSA_65", "ML_DSA_87"], false),
        // A root signs with one.
        (&["ML_DSA_44", "ML_DSA_87"], false),
        // A leaf has one.
        (&["ML_DSA_87", "ML_DSA_65"], false),
        (&["ECC_NIST_P256", "ECC_NIST_P256"], false),
        (&["ECC_NIST_P384", "ECC_NIST_P384"], false),
        (&["RSA_2048", "RSA_2048"], false),
    ] {
        let client = made(specs);
        let usual = connect(&server, &client, Rules::default(), Version::Tls13).await;
        let certificate = usual.unwrap().client_certificate;
        assert!(certificate.is_some(), "{specs:?}");
        let strict = connect(&server, &client, only_87, Version::Tls13).await;
        assert_eq!(strict.is_ok(), allowed, "{specs:?}: {strict:?}");
    }
}

#[tokio::test]
async fn clients_of_tls12_have_ecdsa_or_rsa() {
    let server = made(&["ECC_NIST_P256", "ECC_NIST_P256"]);
    for (specs, allowed) in [
        (&["ECC_NIST_P256", "ECC_NIST_P256"][..], true),
        (&["RSA_2048", "RSA_2048"], true),
        (&["ML_DSA_65", "ML_DSA_65"], false),
        (&["ML_DSA_65", "ECC_NIST_P256"], false),
    ] {
        let client = made(specs);
        let outcome = connect(&server, &client, Rules::default(), Version::Tls12).await;
        assert_eq!(outcome.is_ok(), allowed, "{specs:?}: {outcome:?}");
    }
}
