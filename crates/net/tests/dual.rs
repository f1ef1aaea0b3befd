//! Two certificates at once: which client gets which, and certificates that the operator provides.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::raw;

use std::sync::Arc;

use outlast_crypto::keys::KeySpec;
use outlast_ledger::{Outcome, Served};
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::{Mode, Rules};
use outlast_net::certificate::{KINDS, SETS, kinds_by_name};
use outlast_net::door::{Door, Settings};
use outlast_net::own_certificate::{self, OwnError};
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_pki::pem;
use outlast_pki::whatif::{self, Made};
use raw::*;
use rustls::pki_types::CertificateDer;
use rustls::{NamedGroup, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ML_DSA: [SignatureScheme; 3] =
    [SignatureScheme::ML_DSA_44, SignatureScheme::ML_DSA_65, SignatureScheme::ML_DSA_87];

fn dual() -> World {
    let kinds = kinds_by_name("dual").unwrap();
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    world_with(|_| {}, &names)
}

async fn served(world: &World, change: impl FnOnce(&mut rustls::ClientConfig)) -> Served {
    let mut config = world.config(&["X25519MLKEM768"], NamedGroup::X25519MLKEM768);
    change(&mut config);
    let mut client = connection(config);
    let mut wire = world.connect();
    finish(&mut client, &mut wire).await.unwrap();
    let Some(Outcome::Served(served)) = world.heard.outcome() else { panic!() };
    served
}

/// A verifier without ML-DSA.
fn without_ml_dsa(world: &World, config: &mut rustls::ClientConfig) {
    let mut provider = (**config.crypto_provider()).clone();
    let all = provider.signature_verification_algorithms;
    let mapping: Vec<_> =
        all.mapping.iter().copied().filter(|(scheme, _)| !ML_DSA.contains(scheme)).collect();
    provider.signature_verification_algorithms =
        rustls::crypto::WebPkiSupportedAlgorithms { mapping: mapping.leak(), ..all };
    *config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(world.roots.clone())
        .with_no_client_auth();
}

#[tokio::test]
async fn ml_dsa_is_for_those_that_offer_it() {
    let world = dual();
    let new = served(&world, |_| {}).await;
    assert_eq!(new.certificate.as_deref(), Some("ml-dsa-65"));
    assert_eq!(new.scheme.as_deref(), Some("mldsa65"));
    let old = served(&world, |config| without_ml_dsa(&world, config)).await;
    assert_eq!(old.certificate.as_deref(), Some("ecdsa-p256"));
    assert_eq!(old.scheme.as_deref(), Some("ecdsa_secp256r1_sha256"));
}

/// The answer to a hello is encrypted, but the door's report shows the choice.
#[tokio::test]
async fn signature_algorithms_cert_counts_where_it_is_sent() {
    let world = dual();
    for (sent_schemes, expected) in
        [(&[0x0403_u16, 0x0804][..], "ecdsa_secp256r1_sha256"), (&[0x0403, 0x0905], "mldsa65")]
    {
        let mut hello = Hello::of_record(&sent(&mut world.client()));
        let list: Vec<u8> = sent_schemes.iter().flat_map(|code| code.to_be_bytes()).collect();
        hello.add(50, &vector(&list));
        let offer =
            outlast_negotiate::Offer::parse(&hello.message(), outlast_negotiate::Transport::Tcp);
        let decision =
            outlast_negotiate::decide(world.door.rules(), &offer.unwrap(), &world.door.facts());
        let outlast_negotiate::Decision::Serve(choice) = decision else { panic!() };
        assert_eq!(choice.scheme.name, expected);
        // The door does so: an ML-DSA-65 flight is more than ten times as long.
        let mut wire = world.connect();
        wire.write_all(&hello.record()).await.unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut read = 0;
        // The flight arrives in one piece or in parts without a pause; then the door waits for the client.
        let mut patience = outlast_testing::PATIENCE;
        while let Ok(Ok(more @ 1..)) =
            tokio::time::timeout(patience, wire.read(&mut buffer[read..])).await
        {
            read += more;
            patience = std::time::Duration::from_millis(500);
        }
        assert_eq!(read > 8000, expected == "mldsa65", "{read} bytes");
    }
}

#[tokio::test]
async fn each_kind_of_certificate_is_served_and_policies_choose() {
    for kind in KINDS {
        let world = world_with(|_| {}, &[kind.name]);
        let served = served(&world, |_| {}).await;
        assert_eq!(served.certificate.as_deref(), Some(kind.name));
        let [facts] = &world.door.facts()[..] else { panic!() };
        assert_eq!(facts.chain.len(), 1, "{facts:?}");
        assert!(facts.schemes.contains(&facts.chain[0]), "root and leaf are of one kind");
    }
    assert_eq!(SETS[0].name, "dual");
}

fn made(specs: &[&str]) -> Made {
    let rows: Vec<_> = specs.iter().map(|name| KeySpec::by_name(name).unwrap()).collect();
    whatif::build(&rows, &["localhost".to_owned()], system_clock().div_euclid(1000) - 60).unwrap()
}

/// Policies without TLS, and those that fit none of the certificates, refuse every client.
#[tokio::test]
async fn every_policy_makes_a_door_in_every_mode() {
    let own = |specs: &[&str]| {
        let made = made(specs);
        let own = own_certificate::read(chain_pem(&made).as_bytes(), made.leaf_key.expose());
        own.unwrap().certificate
    };
    let certificates = [own(&["ML_DSA_65", "ML_DSA_65"]), own(&["ECC_NIST_P256"; 2])];
    let hello = sent(&mut dual().client());
    for policy in POLICIES {
        for mode in Mode::ALL {
            let rules = Rules { policy, mode };
            let settings = Settings { rules, ..Settings::with_protocols(&["h2"]) };
            let door = Door::new(settings, certificates.to_vec(), None);
            let door = door.unwrap_or_else(|error| panic!("{} {mode}: {error}", policy.name));
            let (mut client, server) = tokio::io::duplex(1 << 16);
            client.write_all(&hello).await.unwrap();
            client.shutdown().await.unwrap();
            assert!(door.accept(server, None).await.is_err());
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            // A ServerHello or an alert.
            assert!(matches!(answer.first(), Some(21 | 22)), "{} {mode}: {answer:?}", policy.name);
            assert!(policy.has_tls() || answer[0] == 21, "{}", policy.name);
        }
    }
}

fn chain_pem(made: &Made) -> String {
    pem::chain(made.certificates.iter().map(Vec::as_slice))
}

#[tokio::test]
async fn chain_from_files_can_be_replaced_at_run_time() {
    let chains = [
        (made(&["ECC_NIST_P384", "ECC_NIST_P256"]), "ecdsa-p256"),
        (made(&["ML_DSA_87", "ML_DSA_65", "ML_DSA_44"]), "ml-dsa-44"),
        (made(&["RSA_2048", "RSA_2048"]), "rsa-2048"),
    ];
    let mut roots = RootCertStore::empty();
    let mut owns = Vec::new();
    for (made, kind) in &chains {
        let own =
            own_certificate::read(chain_pem(made).as_bytes(), made.leaf_key.expose()).unwrap();
        assert_eq!(own.certificate.kind, *kind);
        let root = made.certificates.last().unwrap();
        assert_eq!(own.root_pem.unwrap(), pem::certificate(root));
        assert_eq!(own.certificate.key.cert.len(), made.certificates.len() - 1);
        roots.add(CertificateDer::from(root.clone())).unwrap();
        owns.push(own.certificate);
    }
    let heard = Arc::new(Heard::default());
    let settings =
        Settings { observer: Some(heard.clone()), ..Settings::with_protocols(PROTOCOLS) };
    let door = Arc::new(Door::new(settings, vec![owns[0].clone()], None).unwrap());
    let world = World { door: door.clone(), roots, heard };
    // A connection that stays open.
    let config = world.config(&["X25519MLKEM768"], NamedGroup::X25519MLKEM768);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let (client, server) = tokio::io::duplex(1 << 16);
    let (client, accepted) = tokio::join!(
        connector.connect("localhost".try_into().unwrap(), client),
        door.accept(server, None)
    );
    let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());
    world.heard.outcome().unwrap();
    for (own, (_, kind)) in owns.iter().zip(&chains) {
        door.replace_certificates(vec![own.clone()]).unwrap();
        assert_eq!(served(&world, |_| {}).await.certificate.as_deref(), Some(*kind));
        accepted.stream.write_all(b"still").await.unwrap();
        accepted.stream.flush().await.unwrap();
        client.read_exact(&mut [0; 5]).await.unwrap();
    }
    assert_eq!(world.heard.ends.lock().unwrap().len(), 3, "the open one has not ended");
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let (one, other) =
        (made(&["ECC_NIST_P256", "ECC_NIST_P256"]), made(&["ML_DSA_65", "ML_DSA_65"]));
    let read =
        |chain: &[u8], key: &[u8]| own_certificate::read(chain, key).map(|_| ()).unwrap_err();
    let chain = chain_pem(&one);
    assert_eq!(read(chain.as_bytes(), other.leaf_key.expose()), OwnError::OtherKey);
    let mixed = pem::chain([one.certificates[0].as_slice(), &other.certificates[1]]);
    assert_eq!(read(mixed.as_bytes(), one.leaf_key.expose()), OwnError::Order(1));
    let turned = pem::chain([one.certificates[1].as_slice(), &one.certificates[0]]);
    assert_eq!(read(turned.as_bytes(), one.leaf_key.expose()), OwnError::Order(1));
    assert_eq!(read(chain.as_bytes(), chain.as_bytes()), OwnError::NoKey);
    assert_eq!(read(chain.as_bytes(), b""), OwnError::NoKey);
    assert!(matches!(read(b"", one.leaf_key.expose()), OwnError::Chain(_)));
    let many = pem::chain((0..9).map(|_| one.certificates[1].as_slice()));
    assert_eq!(read(many.as_bytes(), one.leaf_key.expose()), OwnError::TooLong);
}
