//! Resumption with tickets: across servers, over time, and where it must not happen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::raw;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_ledger::Outcome;
use outlast_negotiate::{Mode, Rules};
use outlast_net::certificate::KINDS;
use outlast_net::client_auth::{self, ClientAuth};
use outlast_net::door::{Door, ServerCertificate, Settings};
use outlast_net::policy::Policy;
use outlast_net::server::PROTOCOLS;
use outlast_net::tickets::{ACCEPT_MS, Tickets, USE_MS, refresh};
use outlast_net::{HandshakeKind, Negotiated};
use outlast_store::Store;
use outlast_store::memory::MemoryStore;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

const START: i64 = 1_800_000_000_000;

struct Shared {
    store: MemoryStore,
    root: RootKey,
}

impl Shared {
    fn new() -> Self {
        Self { store: MemoryStore::new(), root: RootKey::generate().unwrap() }
    }

    /// A server's periodic work; returns whether it wrote.
    fn refresh(&self, tickets: &Tickets, now_ms: i64) -> bool {
        let mut work = Work::new(&self.store, &self.root, now_ms);
        let keys = refresh(&mut work).unwrap();
        let writes = work.writes_anything();
        if writes {
            self.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        }
        tickets.replace(keys);
        writes
    }

    fn server(&self) -> Arc<Tickets> {
        let tickets = Tickets::new(|| START);
        self.refresh(&tickets, START);
        tickets
    }
}

struct World {
    shown: ServerCertificate,
    root: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let (shown, root) = raw::certificate(&KINDS[0]);
        Self { shown, root }
    }

    fn door(&self, listener: &str, rules: Rules, tickets: &Arc<Tickets>) -> Door {
        let settings = Settings {
            listener: listener.into(),
            rules,
            tickets: Some(tickets.bound(listener, &rules)),
            ..Settings::with_protocols(PROTOCOLS)
        };
        Door::new(settings, vec![self.shown.clone()], None).unwrap()
    }

    fn client(&self, version: &'static SupportedProtocolVersion) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.root.clone())).unwrap();
        let mut config = ClientConfig::builder_with_provider(Policy::default().provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::store(Arc::new(ClientSessionMemoryCache::new(8)));
        config
    }
}

async fn connect(door: &Door, config: &Arc<ClientConfig>) -> Negotiated {
    let (client, server) = tokio::io::duplex(64 * 1024);
    let name = "localhost".try_into().unwrap();
    let connector = TlsConnector::from(config.clone());
    let (client, server) = tokio::join!(connector.connect(name, client), door.accept(server, None));
    let (mut client, mut accepted) = (client.unwrap(), server.unwrap());
    // Tickets follow the handshake, and are processed only when the client reads.
    accepted.stream.write_all(b"x").await.unwrap();
    accepted.stream.flush().await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
    accepted.negotiated
}

#[tokio::test]
async fn servers_of_one_store_resume_each_others_sessions() {
    let (world, shared) = (World::new(), Shared::new());
    let doors = [(); 2].map(|()| world.door("api", Rules::default(), &shared.server()));
    let config = Arc::new(world.client(&rustls::version::TLS13));
    for (door, expected) in
        [(0, HandshakeKind::Full), (1, HandshakeKind::Resumed), (0, HandshakeKind::Resumed)]
    {
        let negotiated = connect(&doors[door], &config).await;
        assert_eq!(negotiated.handshake, expected);
        assert_eq!(negotiated.group.as_deref(), Some("X25519MLKEM768"));
    }
    let config = Arc::new(world.client(&rustls::version::TLS12));
    // Not in TLS 1.2, whose sessions never leave the server.
    for (door, expected) in
        [(0, HandshakeKind::Full), (0, HandshakeKind::Resumed), (1, HandshakeKind::Full)]
    {
        let negotiated = connect(&doors[door], &config).await;
        assert_eq!((negotiated.handshake, negotiated.version.as_str()), (expected, "TLSv1.2"));
    }
}

/// Stores sessions but always sends a share of x25519.
#[derive(Debug)]
struct Stubborn(ClientSessionMemoryCache);

impl ClientSessionStore for Stubborn {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        Some(NamedGroup::X25519)
    }
    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {}
    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(name, value);
    }
    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(name)
    }
}

/// A client whose share does not fit is asked for another, and resumes all the same.
#[tokio::test]
async fn a_session_resumes_after_a_retry() {
    let (world, shared) = (World::new(), Shared::new());
    let heard = Arc::new(raw::Heard::default());
    let settings = Settings {
        tickets: Some(shared.server().bound("api", &Rules::default())),
        observer: Some(heard.clone()),
        ..Settings::with_protocols(PROTOCOLS)
    };
    let door = Door::new(settings, vec![world.shown.clone()], None).unwrap();
    let mut config = world.client(&rustls::version::TLS13);
    config.resumption = Resumption::store(Arc::new(Stubborn(ClientSessionMemoryCache::new(8))));
    let config = Arc::new(config);
    for resumed in [false, true] {
        connect(&door, &config).await;
        let Some(Outcome::Served(served)) = heard.outcome() else { panic!() };
        assert_eq!(served.group.as_deref(), Some("X25519MLKEM768"));
        assert_eq!((served.hello_retry, served.resumed), (true, resumed));
        assert_eq!(served.scheme.is_none(), resumed);
    }
}

#[tokio::test]
async fn a_session_is_resumed_only_where_it_was_made() {
    let (world, shared) = (World::new(), Shared::new());
    let tickets = shared.server();
    let require = Rules { mode: Mode::Require, ..Rules::default() };
    let classical = Rules::named("classical-2026-11").unwrap();
    for (listener, rules, expected) in [
        ("api", Rules::default(), HandshakeKind::Resumed),
        ("proxy", Rules::default(), HandshakeKind::Full),
        ("api", require, HandshakeKind::Full),
        ("api", classical, HandshakeKind::Full),
    ] {
        let config = Arc::new(world.client(&rustls::version::TLS13));
        let door = world.door("api", Rules::default(), &tickets);
        connect(&door, &config).await;
        let other = world.door(listener, rules, &tickets);
        let negotiated = connect(&other, &config).await;
        assert_eq!(negotiated.handshake, expected, "{listener} {rules:?}");
    }
}

#[tokio::test]
async fn a_stolen_ticket_is_worth_nothing_once_its_key_is_gone() {
    let (world, shared) = (World::new(), Shared::new());
    let tickets = shared.server();
    let door = world.door("api", Rules::default(), &tickets);
    let config = Arc::new(world.client(&rustls::version::TLS13));
    connect(&door, &config).await;
    // Removes all keys, as an operator can by removing the record.
    let mut work = Work::new(&shared.store, &shared.root, START);
    assert!(work.exists("tls/ticket-keys").unwrap());
    work.delete("tls/ticket-keys");
    shared.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    shared.refresh(&tickets, START);
    assert_eq!(connect(&door, &config).await.handshake, HandshakeKind::Full);
    assert_eq!(connect(&door, &config).await.handshake, HandshakeKind::Resumed);
}

#[tokio::test]
async fn who_is_asked_for_a_certificate_gets_no_tickets() {
    let (world, shared) = (World::new(), Shared::new());
    let auth =
        ClientAuth::new(client_auth::Mode::Request, std::slice::from_ref(&world.root), Vec::new());
    let rules = Rules::default();
    let settings = Settings {
        tickets: Some(shared.server().bound("api", &rules)),
        ..Settings::with_protocols(PROTOCOLS)
    };
    let door = Door::new(settings, vec![world.shown.clone()], Some(auth.unwrap())).unwrap();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let config = Arc::new(world.client(version));
        for _ in 0..2 {
            assert_eq!(connect(&door, &config).await.handshake, HandshakeKind::Full);
        }
    }
}

/// A client offers early data with a ticket from another server: the data is refused, and the handshake continues.
#[tokio::test]
async fn early_data_is_refused_and_the_handshake_goes_on() {
    let (world, shared) = (World::new(), Shared::new());
    let mut elsewhere = rustls::ServerConfig::builder_with_provider(Policy::default().provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
            world.shown.key.clone(),
        )));
    elsewhere.max_early_data_size = 1000;
    let mut config = world.client(&rustls::version::TLS13);
    config.enable_early_data = true;
    let config = Arc::new(config);
    let (client, server) = tokio::io::duplex(64 * 1024);
    let connector = TlsConnector::from(config.clone());
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(elsewhere));
    let name = || "localhost".try_into().unwrap();
    let (client, server) = tokio::join!(connector.connect(name(), client), acceptor.accept(server));
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    server.write_all(b"x").await.unwrap();
    server.flush().await.unwrap();
    client.read_exact(&mut [0]).await.unwrap();
    // Now with early data for this server.
    let door = world.door("api", Rules::default(), &shared.server());
    let (mut wire, server) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(async move {
        let mut accepted = door.accept(server, None).await.unwrap();
        accepted.stream.write_all(b"hello").await.unwrap();
        accepted.stream.flush().await.unwrap();
        accepted.negotiated
    });
    let mut client = ClientConnection::new(config, name()).unwrap();
    client.early_data().unwrap().write_all(b"early").unwrap();
    raw::finish(&mut client, &mut wire).await.unwrap();
    assert!(!client.is_early_data_accepted());
    assert_eq!(serving.await.unwrap().handshake, HandshakeKind::Full);
}

#[test]
fn keys_are_stored_before_use_and_removed_after() {
    let shared = Shared::new();
    static NOW: AtomicI64 = AtomicI64::new(START);
    let clock = || NOW.load(Ordering::Relaxed);
    let (one, other) = (Tickets::new(clock), Tickets::new(clock));
    let rules = Rules::default();
    let (makes, opens) = (one.bound("api", &rules), other.bound("api", &rules));
    assert!(makes.enabled() && makes.encrypt(b"session").is_none(), "there is no key yet");
    assert_eq!(makes.lifetime(), 6 * 3600);
    assert!(shared.refresh(&one, START));
    assert!(!shared.refresh(&other, START), "the other finds what the one has made");
    let mut ids = Vec::new();
    // Half a day in steps of ten minutes; the other server refreshes only every five hours.
    for step in 0..12 * 6 {
        let now = START + step * 600_000;
        NOW.store(now, Ordering::Relaxed);
        shared.refresh(&one, now);
        if step % 30 == 0 {
            shared.refresh(&other, now);
        }
        let ticket = makes.encrypt(b"session").unwrap();
        assert_eq!(opens.decrypt(&ticket).unwrap(), b"session", "step {step}");
        if ids.last() != Some(&ticket[..16].to_vec()) {
            ids.push(ticket[..16].to_vec());
        }
    }
    assert_eq!(ids.len(), 2, "one key for each six hours");
    // A ticket lasts as long as promised, and not much longer.
    let ticket = makes.encrypt(b"session").unwrap();
    let made = NOW.load(Ordering::Relaxed);
    for (later, opened) in [(USE_MS, true), (ACCEPT_MS, false)] {
        NOW.store(made + later, Ordering::Relaxed);
        shared.refresh(&one, made + later);
        assert_eq!(makes.decrypt(&ticket).is_some(), opened, "after {later} ms");
    }
    // Without a refresh its key is not accepted either.
    assert!(opens.decrypt(&ticket).is_none());
    // A clock that was wrong for a while leaves no permanent traces.
    let now = made + ACCEPT_MS;
    shared.refresh(&other, now + 100 * ACCEPT_MS);
    NOW.store(now, Ordering::Relaxed);
    assert!(shared.refresh(&one, now));
    assert!(makes.encrypt(b"session").is_some());
}

#[test]
fn a_ticket_that_was_changed_does_not_open() {
    let shared = Shared::new();
    let tickets = shared.server().bound("api", &Rules::default());
    let ticket = tickets.encrypt(b"session").unwrap();
    for at in 0..ticket.len() {
        let mut bad = ticket.clone();
        bad[at] ^= 1;
        assert!(tickets.decrypt(&bad).is_none(), "byte {at}");
        assert!(tickets.decrypt(&ticket[..at]).is_none(), "cut at {at}");
    }
    assert_ne!(ticket, tickets.encrypt(b"session").unwrap());
}
