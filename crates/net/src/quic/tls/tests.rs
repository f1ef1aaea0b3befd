//! The session alone, with rustls as the client and nothing between them: ClientHellos in pieces, and ones that lie.

use std::any::Any;
use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::Bytes;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_ledger::{End, Handshake, Observe, SshHandshake};
use outlast_store::memory::MemoryStore;
use rustls::pki_types::{CertificateDer, ServerName as Name};
use rustls::quic::ClientConnection;
use rustls::{ClientConfig, RootCertStore};
use s2n_quic_core::crypto::tls::{Endpoint as _, Session as _};
use s2n_quic_core::transport::parameters::ServerTransportParameters;

use super::*;
use crate::HandshakeKind;
use crate::certificate::{KINDS, ensure};
use crate::door::{ServerCertificate, Settings};
use crate::metrics::Tally;
use crate::policy::Policy;
use crate::server::system_clock;

/// Plays the part of s2n-quic.
#[derive(Default)]
struct Wire {
    /// Bytes for the server, by level.
    received: [VecDeque<Bytes>; 3],
    /// Bytes from the server, by level.
    sent: [Vec<u8>; 3],
    has_handshake_keys: bool,
    has_application_keys: bool,
    greeting: Option<Box<dyn Any + Send>>,
    is_complete: bool,
    was_woken: bool,
}

impl Context<Session> for Wire {
    fn on_client_application_params(
        &mut self,
        _: ApplicationParameters<'_>,
        _: &mut Vec<u8>,
    ) -> Result<(), transport::Error> {
        Ok(())
    }
    fn on_handshake_keys(
        &mut self,
        _: <Session as CryptoSuite>::HandshakeKey,
        _: <Session as CryptoSuite>::HandshakeHeaderKey,
    ) -> Result<(), transport::Error> {
        assert!(!std::mem::replace(&mut self.has_handshake_keys, true));
        Ok(())
    }
    fn on_zero_rtt_keys(
        &mut self,
        _: <Session as CryptoSuite>::ZeroRttKey,
        _: <Session as CryptoSuite>::ZeroRttHeaderKey,
        _: ApplicationParameters<'_>,
    ) -> Result<(), transport::Error> {
        panic!("there is no 0-RTT");
    }
    fn on_one_rtt_keys(
        &mut self,
        _: <Session as CryptoSuite>::OneRttKey,
        _: <Session as CryptoSuite>::OneRttHeaderKey,
        parameters: ApplicationParameters<'_>,
    ) -> Result<(), transport::Error> {
        assert_eq!(parameters.transport_parameters, PARAMETERS);
        assert!(!std::mem::replace(&mut self.has_application_keys, true));
        Ok(())
    }
    fn on_server_name(&mut self, name: ServerName) -> Result<(), transport::Error> {
        assert_eq!(&*name, "localhost");
        Ok(())
    }
    fn on_application_protocol(&mut self, name: Bytes) -> Result<(), transport::Error> {
        assert_eq!(name, b"tested"[..]);
        Ok(())
    }
    fn on_key_exchange_group(&mut self, group: NamedGroup) -> Result<(), transport::Error> {
        assert_eq!(group.group_name, "X25519MLKEM768");
        assert!(group.contains_kem);
        Ok(())
    }
    fn on_handshake_complete(&mut self) -> Result<(), transport::Error> {
        self.is_complete = true;
        Ok(())
    }
    fn on_tls_context(&mut self, context: Box<dyn Any + Send>) {
        self.greeting = Some(context);
    }
    fn on_tls_exporter_ready(&mut self, _: &impl TlsSession) -> Result<(), transport::Error> {
        Ok(())
    }
    fn on_tls_handshake_failed(
        &mut self,
        _: &impl TlsSession,
        _: Box<dyn Error + Send + Sync>,
    ) -> Result<(), transport::Error> {
        Ok(())
    }
    fn receive_initial(&mut self, _: Option<usize>) -> Option<Bytes> {
        self.received[0].pop_front()
    }
    fn receive_handshake(&mut self, _: Option<usize>) -> Option<Bytes> {
        self.received[1].pop_front()
    }
    fn receive_application(&mut self, _: Option<usize>) -> Option<Bytes> {
        self.received[2].pop_front()
    }
    fn can_send_initial(&self) -> bool {
        !self.has_handshake_keys
    }
    fn send_initial(&mut self, bytes: Bytes) {
        self.sent[0].extend(bytes);
    }
    fn can_send_handshake(&self) -> bool {
        self.has_handshake_keys
    }
    fn send_handshake(&mut self, bytes: Bytes) {
        self.sent[1].extend(bytes);
    }
    fn can_send_application(&self) -> bool {
        self.has_application_keys
    }
    fn send_application(&mut self, bytes: Bytes) {
        self.sent[2].extend(bytes);
    }
    fn waker(&self) -> &Waker {
        // A woken session is polled again: see `poll`.
        Waker::noop()
    }
}

const PARAMETERS: &[u8] = b"parameters of the client";

struct World {
    endpoint: Endpoint,
    roots: RootCertStore,
    reports: Arc<Reports>,
    /// Replaces the certificate during a handshake.
    next: Option<ServerCertificate>,
}

/// What would be reported to the ledger.
#[derive(Default)]
struct Reports {
    handshakes: Mutex<Vec<Handshake>>,
    ends: Mutex<Vec<End>>,
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

fn world() -> World {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let chain = ensure(&mut work, &KINDS[0], &["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    for der in outlast_pki::pem::read_certificates(chain.root_pem.as_bytes()).unwrap() {
        roots.add(CertificateDer::from(der)).unwrap();
    }
    let next = ensure(&mut work, &KINDS[1], &["localhost".to_owned()]).unwrap();
    let next = Some(next.certificate(&KINDS[1]));
    let reports = Arc::new(Reports::default());
    let settings = Settings {
        quic_protocols: vec![b"tested".to_vec()],
        observer: Some(reports.clone()),
        ..Settings::default()
    };
    let door = Door::new(settings, vec![chain.certificate(&KINDS[0])], None).unwrap();
    let load = Arc::new(Load::new(&super::super::Settings::default(), Tally::default()));
    World { endpoint: Endpoint { door: Arc::new(door), load }, roots, reports, next }
}

impl World {
    fn session(&mut self) -> Session {
        let address = s2n_quic_core::inet::SocketAddress::default();
        let info = ConnectionInfo::new(address.into(), address.into());
        self.endpoint.new_server_session(&ServerTransportParameters::default(), info)
    }

    /// Offers a hybrid group, but sends a share of another one.
    fn client(&self, groups: &[&str]) -> ClientConnection {
        let mut config =
            ClientConfig::builder_with_provider(Policy::named(groups).unwrap().provider())
                .with_protocol_versions(&[&rustls::version::TLS13])
                .unwrap()
                .with_root_certificates(self.roots.clone())
                .with_no_client_auth();
        config.alpn_protocols = vec![b"tested".to_vec()];
        let name = Name::try_from("localhost").unwrap();
        ClientConnection::new(Arc::new(config), Version::V1, name, PARAMETERS.to_vec()).unwrap()
    }
}

fn flight(client: &mut ClientConnection) -> Vec<u8> {
    let mut out = Vec::new();
    while client.write_hs(&mut out).is_some() {}
    out
}

/// Like s2n-quic, which polls a woken session again.
fn poll(session: &mut Session, wire: &mut Wire) -> Poll<Result<(), transport::Error>> {
    let outcome = session.poll(wire);
    if outcome.is_pending() && matches!(session.state, State::Failed(_)) {
        wire.was_woken = true;
        return session.poll(wire);
    }
    outcome
}

/// The alert that answers a ClientHello.
fn refused(hello: &[u8]) -> u8 {
    let mut world = world();
    let (mut session, mut wire) = (world.session(), Wire::default());
    wire.received[0].push_back(Bytes::copy_from_slice(hello));
    match poll(&mut session, &mut wire) {
        Poll::Ready(Err(error)) => {
            assert!(wire.was_woken, "the first packet's error would be lost");
            error.try_into_tls_error().unwrap().code
        }
        other => panic!("{other:?}"),
    }
}

/// Runs the handshake to its end, with the client's bytes in pieces of this size.
fn finish(world: &mut World, groups: &[&str], piece: usize) -> (Negotiated, bool) {
    let (mut session, mut wire) = (world.session(), Wire::default());
    let mut client = world.client(groups);
    for _ in 0..4 {
        let level = usize::from(wire.has_handshake_keys);
        for bytes in flight(&mut client).chunks(piece) {
            wire.received[level].push_back(Bytes::copy_from_slice(bytes));
            // Each in its own packet.
            match poll(&mut session, &mut wire) {
                Poll::Ready(outcome) => {
                    outcome.unwrap();
                    let greeting = wire.greeting.take().unwrap().downcast::<Greeting>().unwrap();
                    assert!(wire.is_complete);
                    return (greeting.negotiated, !wire.sent[2].is_empty());
                }
                Poll::Pending => assert!(!wire.is_complete),
            }
        }
        if let Some(next) = world.next.take() {
            world.endpoint.door.replace_certificates(vec![next]).unwrap();
        }
        for sent in &mut wire.sent {
            if !sent.is_empty() {
                client.read_hs(&std::mem::take(sent)).unwrap();
                // The client's bytes at the previous level come first.
            }
        }
    }
    panic!("no end");
}

#[test]
fn handshake_and_end_are_reported_as_decided() {
    let mut world = world();
    // Nobody accepts it.
    finish(&mut world, &["X25519MLKEM768"], 500);
    let handshakes = world.reports.handshakes.lock().unwrap();
    match handshakes.as_slice() {
        [Handshake { connection, outcome: Outcome::Served(served), .. }] => {
            // Its certificate has been replaced in the meantime.
            assert_eq!(served.certificate.as_deref(), Some(KINDS[0].name));
            let ends = world.reports.ends.lock().unwrap();
            assert_eq!(ends.iter().map(|end| end.connection).collect::<Vec<_>>(), [*connection]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn early_failures_are_reported_after_the_first_bytes() {
    let mut world = world();
    let hello = flight(&mut world.client(&["X25519MLKEM768"]));
    for (came, reports) in [(&b""[..], 0), (&hello[..100], 1), (b"\x02\0\0\x01", 1)] {
        let (mut session, mut wire) = (world.session(), Wire::default());
        if !came.is_empty() {
            wire.received[0].push_back(Bytes::copy_from_slice(came));
        }
        let _ = poll(&mut session, &mut wire);
        drop(session);
        let reported = std::mem::take(&mut *world.reports.handshakes.lock().unwrap());
        assert_eq!(reported.len(), reports, "{reported:?}");
        assert!(reported.iter().all(|it| matches!(it.outcome, Outcome::Failed(_))));
    }
}

#[test]
fn a_client_hello_may_come_in_pieces_of_any_size() {
    let mut world = world();
    world.next = None;
    for piece in [1, 2, 3, 4, 5, 7, 64, 500, 1199, 1_000_000] {
        let (negotiated, has_tickets) = finish(&mut world, &["X25519MLKEM768", "x25519"], piece);
        assert_eq!(negotiated.group.as_deref(), Some("X25519MLKEM768"));
        assert_eq!(negotiated.handshake, HandshakeKind::Full);
        assert!(has_tickets, "tickets are sent with the end of the handshake");
        // The second ClientHello too.
        let (negotiated, _) = finish(&mut world, &["x25519", "X25519MLKEM768"], piece);
        assert_eq!(negotiated.group.as_deref(), Some("X25519MLKEM768"));
        assert_eq!(negotiated.handshake, HandshakeKind::FullWithHelloRetryRequest);
    }
}

#[test]
fn what_is_no_client_hello_gets_an_alert() {
    let mut client = world().client(&["X25519MLKEM768"]);
    let hello = flight(&mut client);
    // unexpected_message
    assert_eq!(refused(&[&[2], &hello[1..]].concat()), 10);
    assert_eq!(refused(&[&hello[..], b"x"].concat()), 10);
    // decode_error: an inner length does not fit.
    let mut broken = hello.clone();
    let len = broken.len();
    broken.truncate(len - 1);
    let body = (len - 5) as u32;
    broken[1..4].copy_from_slice(&body.to_be_bytes()[1..]);
    assert_eq!(refused(&broken), 50);
    // Only rustls notices: there is no usable share.
    let mut lying = hello;
    let share = lying.windows(4).position(|it| it == [0x11, 0xec, 0x04, 0xc0]).unwrap();
    lying[share + 4..share + 4 + 1216].fill(0xff);
    assert!(matches!(refused(&lying), 40 | 47), "an ML-KEM key out of range");
}

#[test]
fn a_second_client_hello_that_lies_is_refused() {
    for (from, to) in [(&b"localhost"[..], &b"localhosu"[..]), (&[0x13, 0x02], &[0x13, 0x01])] {
        let mut world = world();
        let (mut session, mut wire) = (world.session(), Wire::default());
        let mut client = world.client(&["x25519", "X25519MLKEM768"]);
        wire.received[0].push_back(flight(&mut client).into());
        assert!(poll(&mut session, &mut wire).is_pending());
        client.read_hs(&std::mem::take(&mut wire.sent[0])).unwrap();
        let mut second = flight(&mut client);
        // Behind type, length, version and random (RFC 8446, section 4.1.2), which may have any bytes.
        let at = 38 + second[38..].windows(from.len()).position(|it| it == from).unwrap();
        second[at..at + to.len()].copy_from_slice(to);
        wire.received[0].push_back(second.into());
        match poll(&mut session, &mut wire) {
            // illegal_parameter
            Poll::Ready(Err(error)) => assert_eq!(error.try_into_tls_error().unwrap().code, 47),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_listener_that_is_full_refuses_before_any_cryptography() {
    let mut world = world();
    let full = super::super::Settings { max_connections: 0, ..Default::default() };
    world.endpoint.load = Arc::new(Load::new(&full, Tally::default()));
    let (mut session, mut wire) = (world.session(), Wire::default());
    let hello = flight(&mut world.client(&["X25519MLKEM768"]));
    wire.received[0].push_back(hello.into());
    match poll(&mut session, &mut wire) {
        Poll::Ready(Err(error)) => {
            assert_eq!(error.code, transport::Error::CONNECTION_REFUSED.code);
        }
        other => panic!("{other:?}"),
    }
    assert!(wire.sent.iter().all(Vec::is_empty));
}
