//! The door over QUIC, with quinn as the client: the same outcomes as over TCP.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::quic_support;

use std::time::Duration;

use outlast_crypto::groups::{Group, Strength};
use outlast_ledger::Outcome;
use outlast_negotiate::{Mode, Refusal, Rules, Transport};
use outlast_net::certificate::{KINDS, Kind};
use outlast_net::policy::Policy;
use outlast_net::quic::Settings;
use outlast_net::{HandshakeKind, echo};
use quic_support::{World, connect, echoed, endpoint, hinted};
use rustls::client::Resumption;

const ECHO: &str = echo::PROTOCOL;

/// Groups of the default policy, in its order.
fn rows() -> impl Iterator<Item = &'static Group> {
    Rules::default().groups()
}

#[tokio::test]
async fn a_hybrid_is_chosen_whatever_the_order_and_the_share() {
    let world = World::new(Rules::default(), &KINDS[0], ECHO);
    let mut listener = world.listen(Settings::default());
    let address = listener.address();
    let mut retries = 0;
    let mut count = 0;
    for first in rows() {
        for second in rows().filter(|row| row.name != first.name) {
            for share in [first, second] {
                count += 1;
                let groups = [first, second];
                let label = format!("{} {}, share {}", first.name, second.name, share.name);
                let policy = Policy::named(&[first.name, second.name]).unwrap();
                let client = endpoint(hinted(world.config(&policy, ECHO), share));
                let (connection, accepted) =
                    tokio::join!(connect(&client, address), listener.accept());
                connection.expect(&label);
                let negotiated = accepted.unwrap().negotiated;
                // A hybrid share also brings the share of its classical half, if the client offers that group.
                let halves = [
                    ("X25519MLKEM768", "x25519"),
                    ("SecP256r1MLKEM768", "secp256r1"),
                    ("SecP384r1MLKEM1024", "secp384r1"),
                ];
                let sent = |row: &Group| {
                    row.name == share.name || halves.contains(&(share.name, row.name))
                };
                let ordered = |strength: Strength| {
                    let equals = move || {
                        let fits = move |row: &&Group| row.strength == strength;
                        rows()
                            .filter(fits)
                            .filter(move |row| groups.iter().any(|it| it.name == row.name))
                    };
                    equals().find(|row| sent(row)).or_else(|| equals().next())
                };
                let expected =
                    ordered(Strength::Hybrid).or_else(|| ordered(Strength::Classical)).unwrap();
                assert_eq!(negotiated.group.as_deref(), Some(expected.name), "{label}");
                assert_eq!(negotiated.version, "TLSv1.3");
                assert_eq!(negotiated.cipher_suite, "TLS_AES_256_GCM_SHA384");
                assert_eq!(negotiated.post_quantum, expected.strength == Strength::Hybrid);
                let kind = if sent(expected) {
                    HandshakeKind::Full
                } else {
                    retries += 1;
                    HandshakeKind::FullWithHelloRetryRequest
                };
                assert_eq!(negotiated.handshake, kind, "{label}");
            }
        }
    }
    println!("{count} combinations, {retries} of them with a HelloRetryRequest");
    assert_eq!(count, 60);
    let handshakes = world.reports.handshakes.lock().unwrap();
    assert_eq!(handshakes.len(), count);
    for handshake in handshakes.iter() {
        let offer = handshake.offer.as_ref().unwrap();
        assert_eq!(offer.transport, Transport::Quic);
        assert_eq!(offer.sni.as_deref(), Some("localhost"));
        assert!(matches!(handshake.outcome, Outcome::Served(_)));
    }
}

#[tokio::test]
async fn who_cannot_is_refused_with_the_alert_of_tls() {
    let require = Rules { mode: Mode::Require, ..Rules::default() };
    let world = World::new(require, &KINDS[0], ECHO);
    let listener = world.listen(Settings::default());
    let address = listener.address();
    let stop = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let alert = |error: quinn::ConnectionError| match error {
        quinn::ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
        other => panic!("{other:?}"),
    };
    let classical = endpoint(world.config(&Policy::classical(), ECHO));
    let error = connect(&classical, address).await.unwrap_err();
    // handshake_failure (RFC 8446, section 6.2; RFC 9001, section 4.8)
    assert_eq!(alert(error), 0x100 + 40);
    let other = endpoint(world.config(&Policy::default(), "other"));
    let error = connect(&other, address).await.unwrap_err();
    // no_application_protocol: s2n-quic itself would say handshake_failure.
    assert_eq!(alert(error), 0x100 + 120);
    let hybrid = endpoint(world.config(&Policy::default(), ECHO));
    let connection = connect(&hybrid, address).await.unwrap();
    assert_eq!(echoed(&connection, b"x").await, b"x");
    let outcomes: Vec<_> =
        world.reports.handshakes.lock().unwrap().iter().map(|it| it.outcome.clone()).collect();
    assert_eq!(outcomes[0], Outcome::Refused(Refusal::Classical));
    assert!(matches!(&outcomes[1], Outcome::Failed(_)), "{outcomes:?}");
    assert!(matches!(&outcomes[2], Outcome::Served(it) if it.post_quantum), "{outcomes:?}");
    assert_eq!(outcomes.len(), 3);
    stop.abort();
}

#[tokio::test]
async fn ml_dsa_certificates_fit_and_bytes_are_counted() {
    let kind = Kind::by_name("ml-dsa-65").unwrap();
    let world = World::new(Rules::default(), kind, ECHO);
    let listener = world.listen(Settings::default());
    let address = listener.address();
    let stop = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let client = endpoint(world.config(&Policy::default(), ECHO));
    let connection = connect(&client, address).await.unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
    assert_eq!(echoed(&connection, &sent).await, sent);
    connection.close(0_u32.into(), b"");
    client.wait_idle().await;
    let served = match world.reports.handshakes.lock().unwrap()[0].outcome.clone() {
        Outcome::Served(served) => served,
        other => panic!("{other:?}"),
    };
    assert_eq!(served.scheme.as_deref(), Some("mldsa65"));
    assert_eq!(served.certificate.as_deref(), Some("ml-dsa-65"));
    let begun = std::time::Instant::now();
    while world.reports.ends.lock().unwrap().is_empty() {
        assert!(begun.elapsed() < outlast_testing::PATIENCE, "no end was reported");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let end = world.reports.ends.lock().unwrap()[0].clone();
    assert_eq!(end.connection, world.reports.handshakes.lock().unwrap()[0].connection);
    assert!((300_000..400_000).contains(&end.received), "{end:?}");
    assert!((300_000..400_000).contains(&end.sent), "{end:?}");
    stop.abort();
}

#[tokio::test]
async fn resumed_sessions_exchange_hybrid_keys() {
    let world = World::new(Rules::default(), &KINDS[0], ECHO);
    let mut listener = world.listen(Settings::default());
    let address = listener.address();
    let mut config = world.config(&Policy::default(), ECHO);
    config.resumption = Resumption::in_memory_sessions(8);
    config.enable_early_data = true;
    let client = endpoint(config);
    let mut kinds = Vec::new();
    for round in 0..3 {
        let connecting = client.connect(address, "localhost").unwrap();
        let Err(connecting) = connecting.into_0rtt() else {
            panic!("round {round}: the ticket allows early data")
        };
        let (connection, accepted) = tokio::join!(connecting, listener.accept());
        let accepted = accepted.unwrap();
        assert_eq!(accepted.negotiated.group.as_deref(), Some("X25519MLKEM768"));
        kinds.push(accepted.negotiated.handshake);
        // Tickets follow the handshake.
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.unwrap().close(0_u32.into(), b"");
    }
    assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]);
}

#[tokio::test]
async fn listener_sends_retry_and_refuses_above_its_limits() {
    let world = World::new(Rules::default(), &KINDS[0], ECHO);
    let settings = Settings { retry_above: 0, max_connections: 3, ..Settings::default() };
    let listener = world.listen(settings);
    let address = listener.address();
    let stop = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let client = endpoint(world.config(&Policy::default(), ECHO));
    let mut open = Vec::new();
    for _ in 0..3 {
        let connection = connect(&client, address).await.unwrap();
        assert_eq!(echoed(&connection, b"x").await, b"x");
        open.push(connection);
    }
    match connect(&client, address).await.unwrap_err() {
        quinn::ConnectionError::ConnectionClosed(close) => {
            // CONNECTION_REFUSED (RFC 9000, section 20.1)
            assert_eq!(u64::from(close.error_code), 2);
        }
        other => panic!("{other:?}"),
    }
    // A free slot goes to the next client.
    open.pop().unwrap().close(0_u32.into(), b"");
    let begun = std::time::Instant::now();
    let connection = loop {
        match connect(&client, address).await {
            Ok(connection) => break connection,
            Err(error) => assert!(begun.elapsed() < outlast_testing::PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(echoed(&connection, b"x").await, b"x");
    stop.abort();
}

#[tokio::test]
async fn a_client_may_move_to_another_address() {
    let world = World::new(Rules::default(), &KINDS[0], ECHO);
    let listener = world.listen(Settings::default());
    let address = listener.address();
    let stop = tokio::spawn(echo::over_quic(listener, std::future::pending()));
    let client = endpoint(world.config(&Policy::default(), ECHO));
    let connection = connect(&client, address).await.unwrap();
    // s2n-quic accepts at most three further addresses.
    for round in 0..3_u8 {
        assert_eq!(echoed(&connection, &[round; 2000]).await, [round; 2000]);
        client.rebind(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
    }
    assert_eq!(echoed(&connection, b"still there").await, b"still there");
    stop.abort();
}
