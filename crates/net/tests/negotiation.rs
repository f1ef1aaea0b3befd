//! Which group is negotiated: every order of a client's groups and every choice of shares, over the real door.
//!
//! The expected outcome follows from the rule: a hybrid group if the client offers one, otherwise a classical one; a
//! HelloRetryRequest exactly if the share of the chosen group was not sent. The test fails if rustls changes how it
//! chooses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::sync::Arc;

use outlast_crypto::groups::{Group, Strength};
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_negotiate::Rules;
use outlast_net::certificate::{KINDS, ensure};
use outlast_net::door::{Accepted, Door, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::{PROTOCOLS, system_clock};
use outlast_net::{HandshakeKind, Negotiated};
use outlast_pki::pem;
use outlast_store::memory::MemoryStore;
use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore, SupportedProtocolVersion};
use tokio_rustls::TlsConnector;

struct World {
    door: Door,
    roots: RootCertStore,
}

fn world() -> World {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let chain = ensure(&mut work, &KINDS[0], &["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    for der in pem::read_certificates(chain.root_pem.as_bytes()).unwrap() {
        roots.add(CertificateDer::from(der)).unwrap();
    }
    let door =
        Door::new(Settings::with_protocols(PROTOCOLS), vec![chain.certificate(&KINDS[0])], None)
            .unwrap();
    World { door, roots }
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

fn config(
    world: &World,
    groups: &[&Group],
    share: &Group,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let names: Vec<_> = groups.iter().map(|group| group.name).collect();
    let mut config = ClientConfig::builder_with_provider(Policy::named(&names).unwrap().provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(world.roots.clone())
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(Hint(share.key_exchange.name())));
    config
}

async fn connect(world: &World, config: ClientConfig) -> (Negotiated, Negotiated) {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let (client, server) =
        tokio::join!(connector.connect(name, client), world.door.accept(server, None));
    let client = client.unwrap();
    (Negotiated::of(client.get_ref().1), server.unwrap().negotiated)
}

/// Groups of the default policy, in its order.
fn rows() -> impl Iterator<Item = &'static Group> {
    Rules::default().groups()
}

/// All ordered choices of up to `max` groups.
fn orders(max: usize) -> Vec<Vec<&'static Group>> {
    let mut all: Vec<Vec<&'static Group>> = vec![Vec::new()];
    let mut out = Vec::new();
    for _ in 0..max {
        all = all
            .iter()
            .flat_map(|prefix| {
                rows()
                    .filter(|row| !prefix.iter().any(|known| known.name == row.name))
                    .map(|row| [prefix.as_slice(), &[row]].concat())
            })
            .collect();
        out.extend(all.clone());
    }
    out
}

#[tokio::test]
async fn a_hybrid_is_chosen_whenever_the_client_names_one() {
    let world = world();
    let mut count = 0;
    let mut retries = 0;
    for groups in orders(3) {
        for share in &groups {
            count += 1;
            let config = config(&world, &groups, share, &[&rustls::version::TLS13]);
            let (client, server) = connect(&world, config).await;
            let label = format!(
                "{:?} with a share of {}",
                groups.iter().map(|row| row.name).collect::<Vec<_>>(),
                share.name
            );
            // A hybrid share also brings the share of its classical half, if the client offers that group.
            let halves = [
                ("X25519MLKEM768", "x25519"),
                ("SecP256r1MLKEM768", "secp256r1"),
                ("SecP384r1MLKEM1024", "secp384r1"),
            ];
            let sent =
                |row: &Group| row.name == share.name || halves.contains(&(share.name, row.name));
            let hybrids = || groups.iter().filter(|row| row.strength == Strength::Hybrid);
            let ordered = |hybrid: bool| {
                let equals = || {
                    let fits = move |row: &&Group| (row.strength == Strength::Hybrid) == hybrid;
                    rows().filter(fits).filter(|row| groups.iter().any(|it| it.name == row.name))
                };
                equals().find(|row| sent(row)).or_else(|| equals().next())
            };
            let expected = ordered(hybrids().next().is_some()).unwrap();
            assert_eq!(client.group.as_deref(), Some(expected.name), "{label}");
            assert_eq!(client, server, "{label}");
            assert_eq!(server.post_quantum, expected.strength == Strength::Hybrid);
            assert_eq!(server.cipher_suite, "TLS_AES_256_GCM_SHA384");
            let kind = if sent(expected) {
                HandshakeKind::Full
            } else {
                retries += 1;
                HandshakeKind::FullWithHelloRetryRequest
            };
            assert_eq!(server.handshake, kind, "{label}");
        }
    }
    println!("{count} combinations, {retries} of them with a HelloRetryRequest");
    assert_eq!(count, 6 + 30 * 2 + 120 * 3);
}

#[tokio::test]
async fn tls12_clients_get_a_curve_whatever_else_they_name() {
    let world = world();
    for groups in orders(2) {
        // Without the curve of the certificate's key no TLS 1.2 handshake is possible (RFC 8422, section 5.1).
        if groups.iter().all(|row| row.name != "secp256r1") {
            continue;
        }
        let config = config(&world, &groups, groups[0], &[&rustls::version::TLS12]);
        let (client, server) = connect(&world, config).await;
        assert_eq!(client.version, "TLSv1.2");
        let classical = |row: &&Group| row.strength == Strength::Classical;
        let named = |row: &&Group| groups.iter().any(|it| it.name == row.name);
        let expected = rows().filter(classical).find(named).unwrap();
        assert_eq!(server.group.as_deref(), Some(expected.name));
        assert!(!server.post_quantum);
    }
}

#[tokio::test]
async fn a_resumed_session_still_exchanges_hybrid_keys() {
    let world = world();
    let policy = Policy::default();
    let mut config = ClientConfig::builder_with_provider(policy.provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(world.roots.clone())
        .with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(8);
    let connector = TlsConnector::from(Arc::new(config));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let name = ServerName::try_from("localhost").unwrap();
        let (client, server) =
            tokio::join!(connector.connect(name, client), world.door.accept(server, None));
        let Accepted { stream: mut server, negotiated, .. } = server.unwrap();
        let mut client = client.unwrap();
        // Tickets follow the handshake, and are processed only when the client reads.
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        server.write_all(b"x").await.unwrap();
        server.flush().await.unwrap();
        client.read_exact(&mut [0]).await.unwrap();
        assert_eq!(negotiated.group.as_deref(), Some("X25519MLKEM768"));
        kinds.push(negotiated.handshake);
    }
    assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed]);
}

#[tokio::test]
async fn garbage_ends_the_handshake_cleanly() {
    use tokio::io::AsyncWriteExt;
    let world = world();
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff], &[0; 600], &[0x16; 70_000]]
    {
        let (mut client, server) = tokio::io::duplex(128 * 1024);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        drop(client);
        let outcome =
            tokio::time::timeout(outlast_testing::PATIENCE, world.door.accept(server, None));
        assert!(outcome.await.expect("the handshake ended").is_err());
    }
}
