//! The ClientHello after a HelloRetryRequest: what it may change, and what happens if it lies.
#![allow(clippy::unwrap_used, clippy::panic, clippy::type_complexity, reason = "a test may fail")]

use crate::raw;

use outlast_ledger::Outcome;
use raw::*;
use rustls::ClientConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A client that has been asked for another share: its hellos and the connection.
async fn asked(
    world: &World,
    change: impl FnOnce(&mut Hello),
) -> (ClientConnection, Hello, DuplexStream) {
    let mut client = world.retrying();
    let mut first = Hello::of_record(&sent(&mut client));
    change(&mut first);
    let mut wire = world.connect();
    wire.write_all(&first.record()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let read = wire.read(&mut buffer).await.unwrap();
    let answer = &buffer[..read];
    assert_eq!(&answer[..1], [22], "a HelloRetryRequest: {answer:?}");
    receive(&mut client, answer).unwrap();
    let second = sent(&mut client);
    // The client sends a ChangeCipherSpec before its hello.
    let second = Hello::of_record(second.strip_prefix(&[20, 3, 3, 0, 1, 1]).unwrap());
    (client, second, wire)
}

async fn rest(mut wire: DuplexStream) -> Vec<u8> {
    let mut answer = Vec::new();
    wire.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn an_honest_client_is_served_however_its_second_hello_comes() {
    let world = world();
    let len = asked(&world, |_| {}).await.1.message().len();
    world.heard.reported().await;
    world.heard.handshakes.lock().unwrap().clear();
    // Trying all offsets would take long; those near the ends matter most.
    let offsets = (1..64).chain((64..len - 8).step_by(97)).chain(len - 8..len);
    for at in offsets {
        for by_records in [false, true] {
            let (mut client, second, mut wire) = asked(&world, |_| {}).await;
            let message = second.message();
            let (first, rest) = if by_records {
                (record(&message[..at]), record(&message[at..]))
            } else {
                let whole = second.record();
                (whole[..at].to_vec(), whole[at..].to_vec())
            };
            if by_records {
                wire.write_all(&typed(20, &[1])).await.unwrap();
            }
            wire.write_all(&first).await.unwrap();
            tokio::task::yield_now().await;
            wire.write_all(&rest).await.unwrap();
            finish(&mut client, &mut wire).await.unwrap();
            let Some(Outcome::Served(served)) = world.heard.outcome() else { panic!() };
            assert!(served.hello_retry && served.post_quantum);
        }
    }
}

type Lie = (&'static str, fn(&mut Hello), u8);

/// RFC 8446, section 4.1.2.
const LIES: &[Lie] = &[
    ("the same shares as before", |it| *it.extension(51) = vector(&share(29, 32)), 47),
    ("no share", |it| *it.extension(51) = vec![0, 0], 50),
    ("no list of shares", |it| it.remove(51), 47),
    ("a share of another length", |it| *it.extension(51) = vector(&share(0x11ec, 99)), 47),
    ("a share of another group in front", |it| it.prepend(51, &share(29, 32)), 47),
    (
        "a share of a group that it has not named",
        |it| *it.extension(51) = vector(&share(0x11eb, 1249)),
        47,
    ),
    ("other groups", |it| *it.extension(10) = vec![0, 2, 0x11, 0xec], 47),
    ("a group more", |it| it.prepend(10, &[0, 24]), 47),
    (
        "a suite less",
        |it| {
            it.suites.drain(..2);
        },
        47,
    ),
    ("another session", |it| it.session[0] ^= 1, 47),
    ("no session", |it| it.session.clear(), 47),
    ("another random", |it| it.random[31] ^= 1, 47),
    ("another version", |it| it.version = [3, 4], 47),
    ("another server name", |it| *it.extension(0) = vector(b"\0\0\x05other"), 47),
    ("no server name", |it| it.remove(0), 47),
    ("other protocols", |it| *it.extension(16) = vector(b"\x08http/1.1"), 47),
    ("other schemes", |it| it.prepend(13, &[0x09, 0x05]), 47),
    ("other versions", |it| *it.extension(43) = vec![4, 3, 4, 3, 3], 47),
    ("TLS 1.2", |it| *it.extension(43) = vec![2, 3, 3], 47),
    ("a cookie", |it| it.add(44, &vector(b"cookie")), 47),
    ("early data", |it| it.add(42, b""), 47),
    ("a session to resume, from nowhere", |it| it.extensions.push((41, vec![0; 9])), 47),
    ("an unknown extension", |it| it.add(0x3333, b""), 47),
    ("an extension less", |it| it.remove(23), 47),
    ("an extension twice", |it| it.add(43, &[2, 3, 4]), 47),
    ("compression", |it| it.compressions = vec![0, 1], 47),
    (
        "something cut off",
        |it| {
            it.extension(51).pop();
        },
        50,
    ),
];

#[tokio::test]
async fn a_second_hello_that_lies_is_refused_before_keys_are_used() {
    let world = world();
    for (what, change, description) in LIES {
        let (_, mut second, mut wire) = asked(&world, |_| {}).await;
        change(&mut second);
        wire.write_all(&second.record()).await.unwrap();
        assert_eq!(rest(wire).await, alert(*description), "{what}");
        assert!(world.heard.failure().len() > 10, "{what}");
    }
}

#[tokio::test]
async fn what_may_change_may_change() {
    let world = world();
    let changes: &[(&str, fn(&mut Hello), fn(&mut Hello))] = &[
        ("padding more", |_| {}, |it| it.add(21, &[0; 100])),
        ("padding less", |it| it.add(21, &[0; 100]), |_| {}),
        ("padding of another length", |it| it.add(21, &[0; 9]), |it| it.add(21, &[0; 7])),
        ("another order", |_| {}, |it| it.extensions.reverse()),
    ];
    for (what, first, second) in changes {
        let (_, mut hello, mut wire) = asked(&world, first).await;
        second(&mut hello);
        wire.write_all(&hello.record()).await.unwrap();
        let mut answer = [0; 16];
        wire.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[0], 22, "{what}: a ServerHello");
        drop(wire);
        world.heard.reported().await;
        world.heard.outcome().unwrap();
    }
}

#[tokio::test]
async fn what_is_no_second_hello_is_answered_or_not() {
    let world = world();
    let cases: &[(&str, Vec<u8>, Option<u8>)] = &[
        ("application data", typed(23, &[0; 30]), Some(10)),
        ("an empty record", typed(22, b""), Some(10)),
        ("another message", record(&[20, 0, 0, 0]), Some(10)),
        ("a long ChangeCipherSpec", typed(20, &[1, 1]), Some(22)),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec(), Some(10)),
        ("an alert", alert(40), None),
    ];
    for (what, bytes, expected) in cases {
        let (_, _, mut wire) = asked(&world, |_| {}).await;
        wire.write_all(bytes).await.unwrap();
        let expected = expected.map(alert).unwrap_or_default();
        assert_eq!(rest(wire).await, expected, "{what}");
        world.heard.failure();
    }
    // Many ChangeCipherSpecs.
    let (_, _, mut wire) = asked(&world, |_| {}).await;
    for _ in 0..10_000 {
        if wire.write_all(&typed(20, &[1])).await.is_err() {
            break;
        }
    }
    assert_eq!(rest(wire).await, alert(22));
    world.heard.failure();
}

/// Early data sent before the client could know of the retry is skipped (RFC 8446, section 4.2.10), and the client
/// continues without it.
#[tokio::test]
async fn early_data_before_the_retry_is_skipped() {
    let world = world();
    let (_, mut second, mut wire) = asked(&world, |first| first.add(42, b"")).await;
    second.remove(42);
    wire.write_all(&typed(23, &[7; 2000])).await.unwrap();
    wire.write_all(&typed(20, &[1])).await.unwrap();
    wire.write_all(&second.record()).await.unwrap();
    let mut answer = [0; 16];
    wire.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[0], 22, "a ServerHello");
}
