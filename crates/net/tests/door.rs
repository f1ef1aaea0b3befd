//! ClientHellos in every form, and the answers to bytes that are not one: over the real door, by a client that writes
//! bytes itself.
#![allow(clippy::unwrap_used, clippy::panic, clippy::type_complexity, reason = "a test may fail")]

use crate::raw;

use std::time::{Duration, Instant};

use outlast_ledger::Outcome;
use outlast_negotiate::offer::{Collected, MAX_CLIENT_HELLO, collect};
use raw::*;
use rustls::NamedGroup;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_hello_may_be_split_anywhere_over_segments_and_records() {
    let world = world();
    let len = sent(&mut world.small()).len();
    for at in 1..len {
        let mut client = world.small();
        let hello = sent(&mut client);
        let mut wire = world.connect();
        wire.write_all(&hello[..at]).await.unwrap();
        tokio::task::yield_now().await;
        wire.write_all(&hello[at..]).await.unwrap();
        finish(&mut client, &mut wire).await.unwrap();
        assert!(matches!(world.heard.outcome(), Some(Outcome::Served(_))), "segments at {at}");
        if at < len - 5 {
            let mut client = world.small();
            let hello = sent(&mut client);
            let message = &hello[5..];
            let mut wire = world.connect();
            let split = [record(&message[..at]), record(&message[at..])].concat();
            wire.write_all(&split).await.unwrap();
            finish(&mut client, &mut wire).await.unwrap();
            assert!(matches!(world.heard.outcome(), Some(Outcome::Served(_))), "records at {at}");
        }
    }
}

#[tokio::test]
async fn hybrid_hello_may_arrive_in_one_byte_records() {
    let world = world();
    let mut client = world.client();
    let hello = sent(&mut client);
    let mut wire = world.connect();
    for byte in records(&hello[5..], 1) {
        wire.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    finish(&mut client, &mut wire).await.unwrap();
    let Some(Outcome::Served(served)) = world.heard.outcome() else { panic!() };
    assert!(served.post_quantum);
}

#[test]
fn a_hybrid_hello_is_collected_from_any_two_pieces() {
    let world = world();
    let hello = sent(&mut world.client());
    let message = &hello[5..];
    for at in 0..message.len() {
        assert_eq!(collect(&hello[..at]), Collected::Incomplete);
        if at > 0 {
            let split = [record(&message[..at]), record(&message[at..])].concat();
            assert_eq!(collect(&split), Collected::Complete(message.to_vec()));
        }
    }
}

#[tokio::test]
async fn the_longest_hello_is_served_and_a_longer_one_is_not() {
    let world = world();
    let mut client = world.client();
    let hello = Hello::of_record(&sent(&mut client));
    let room = MAX_CLIENT_HELLO - (hello.message().len() - 4) - 4;
    for (len, alerted) in [(room, false), (room + 1, true)] {
        let mut longer = hello.clone();
        longer.add(21, &vec![0; len]);
        let answer = world.answer(&[&records(&longer.message(), 1 << 14), &alert(0)]).await;
        if alerted {
            assert_eq!(answer, alert(47));
        } else {
            assert_eq!(answer[0], 22, "a ServerHello");
        }
        world.heard.outcome().unwrap();
    }
}

/// RFC 8701: meaningless values wherever they are allowed.
#[tokio::test]
async fn grease_changes_nothing() {
    let world = world();
    for grease in [0x0a0a_u16, 0x3a3a, 0xfafa] {
        let bytes = grease.to_be_bytes();
        let slots: &[(&str, fn(&mut Hello, [u8; 2]))] = &[
            ("suites", |hello, value| hello.suites = [&value[..], &hello.suites].concat()),
            ("groups", |hello, value| hello.prepend(10, &value)),
            ("schemes", |hello, value| hello.prepend(13, &value)),
            ("shares", |hello, value| {
                hello.prepend(10, &value);
                hello.prepend(51, &share(u16::from_be_bytes(value), 1));
            }),
            ("versions", |hello, value| {
                let content = hello.extension(43);
                let list = [&value[..], &content[1..]].concat();
                *content = [&[u8::try_from(list.len()).unwrap()], &list[..]].concat();
            }),
            ("names of protocols", |hello, value| hello.prepend(16, &[2, value[0], value[1]])),
            ("extensions", |hello, value| hello.add(u16::from_be_bytes(value), b"x")),
            ("extensions, empty", |hello, value| hello.add(u16::from_be_bytes(value), b"")),
        ];
        for (slot, change) in slots {
            let mut hello = Hello::of_record(&sent(&mut world.client()));
            change(&mut hello, bytes);
            let answer = world.answer(&[&hello.record(), &alert(0)]).await;
            assert_eq!(answer[0], 22, "{slot}: a ServerHello");
            world.heard.outcome().unwrap();
        }
    }
}

/// Name of a fault, the change to the hello, and the alert that answers it.
type Bad = (&'static str, fn(&mut Hello), u8);

const BAD: &[Bad] = &[
    ("a share of another length", |it| *it.extension(51) = vector(&share(0x11ec, 1215)), 47),
    ("an empty share", |it| *it.extension(51) = vector(&share(0x11ec, 0)), 50),
    (
        "a share twice",
        |it| *it.extension(51) = vector(&[share(29, 32), share(29, 32)].concat()),
        47,
    ),
    ("a share of a group that is not named", |it| it.prepend(51, &share(24, 97)), 47),
    (
        "a list of shares that is cut off",
        |it| {
            it.extension(51).pop();
        },
        50,
    ),
    ("something after the shares", |it| it.extension(51).push(0), 50),
    ("no shares", |it| it.remove(51), 109),
    ("no groups", |it| it.remove(10), 109),
    ("no schemes", |it| it.remove(13), 109),
    ("half a group", |it| it.prepend(10, &[1]), 50),
    ("an empty list of groups", |it| *it.extension(10) = vec![0, 0], 50),
    ("an empty list of schemes", |it| *it.extension(13) = vec![0, 0], 50),
    ("an extension twice", |it| it.add(10, &[0, 2, 0, 29]), 47),
    (
        "an unknown extension twice",
        |it| {
            it.add(0x3333, b"a");
            it.add(0x3333, b"b");
        },
        47,
    ),
    ("half a cipher suite", |it| it.suites.push(1), 50),
    ("no cipher suites", |it| it.suites.clear(), 50),
    ("unknown cipher suites only", |it| it.suites = vec![0x13, 0xff], 40),
    ("a session of 33 bytes", |it| it.session = vec![0; 33], 50),
    ("compression", |it| it.compressions = vec![1, 0], 47),
    ("no null compression method", |it| it.compressions = vec![1], 47),
    ("no compressions", |it| it.compressions.clear(), 50),
    ("an unknown version only", |it| *it.extension(43) = vec![2, 3, 5], 70),
    ("half a version", |it| *it.extension(43) = vec![3, 3, 4, 3], 50),
    (
        "a version before TLS 1.2",
        |it| {
            it.version = [3, 2];
            it.extensions.clear();
        },
        70,
    ),
    ("an invalid server name", |it| *it.extension(0) = vector(b"\0\0\x03a b"), 47),
    ("two server names", |it| *it.extension(0) = vector(b"\0\0\x01a\0\0\x01b"), 50),
    ("an empty list of protocols", |it| *it.extension(16) = vec![0, 0], 50),
    ("a protocol without a name", |it| *it.extension(16) = vec![0, 1, 0], 50),
    (
        "unknown groups only",
        |it| {
            *it.extension(10) = vec![0, 2, 0x77, 0x77];
            *it.extension(51) = vec![0, 0];
        },
        40,
    ),
    ("unknown schemes only", |it| *it.extension(13) = vec![0, 2, 0x77, 0x77], 40),
    ("a session to resume that does not come last", |it| it.add(41, b""), 47),
    (
        "a session to resume without the way to",
        |it| {
            it.remove(45);
            it.extensions.push((41, b"".to_vec()));
        },
        109,
    ),
    ("early data with something in it", |it| it.add(42, b"x"), 50),
];

#[tokio::test]
async fn what_is_wrong_with_a_hello_is_answered_by_the_right_alert() {
    let world = world();
    for (what, change, description) in BAD {
        let mut hello = Hello::of_record(&sent(&mut world.client()));
        change(&mut hello);
        assert_eq!(world.answer(&[&hello.record()]).await, alert(*description), "{what}");
        let outcome = world.heard.outcome().unwrap();
        assert!(!matches!(outcome, Outcome::Served(_)), "{what}");
    }
}

#[tokio::test]
async fn what_is_no_hello_is_answered_or_not() {
    let world = world();
    let hello = sent(&mut world.client());
    let http = "HTTP/1.0 400 Bad Request";
    let cases: &[(&str, Vec<u8>, Result<u8, &str>)] = &[
        ("an empty record", typed(22, b""), Ok(10)),
        (
            "an empty record in the middle",
            [&record(&hello[5..9]), &typed(22, b"")[..]].concat(),
            Ok(10),
        ),
        ("a record that is too long", vec![22, 3, 1, 0x40, 1], Ok(22)),
        ("another message", record(&[2, 0, 0, 0]), Ok(10)),
        ("the first byte of another message", vec![22, 3, 1, 0, 9, 20], Ok(10)),
        ("ChangeCipherSpec before the hello", typed(20, &[1]), Ok(10)),
        ("application data", typed(23, &[0; 20]), Ok(10)),
        ("a record within the message", [record(&hello[5..100]), typed(20, &[1])].concat(), Ok(10)),
        ("something behind it in its record", record(&[&hello[5..], &[1]].concat()), Ok(10)),
        ("a record of SSL 4", vec![22, 4, 0, 0, 5, 1], Ok(70)),
        ("SSL 2.0", vec![0x80, 46, 1, 0, 2, 0, 21, 0, 0, 0, 16], Ok(70)),
        ("SSL 2.0 for TLS", vec![0x80, 46, 1, 3, 3, 0, 21, 0, 0, 0, 16], Ok(70)),
        ("zeros", vec![0; 600], Ok(10)),
        ("SSH", b"SSH-2.0-OpenSSH_10.0\r\n".to_vec(), Ok(10)),
        ("an alert", alert(42), Err("")),
        ("a notice of closing", vec![21, 3, 1, 0, 2, 1, 0], Err("")),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), Err(http)),
        ("HTTP with a body", b"POST /x HTTP/1.1\r\n\r\n".to_vec(), Err(http)),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), Err(http)),
    ];
    for (what, bytes, expected) in cases {
        let answer = world.answer(&[bytes]).await;
        match expected {
            Ok(description) => assert_eq!(answer, alert(*description), "{what}"),
            Err("") => assert!(answer.is_empty(), "{what}"),
            Err(text) => assert!(answer.starts_with(text.as_bytes()), "{what}"),
        }
        assert!(!world.heard.failure().is_empty(), "{what}");
    }
}

/// RFC 8446, section 4.1.3: a TLS 1.3 client whose offer was reduced on the way can tell.
#[tokio::test]
async fn who_gets_tls12_is_told_that_there_is_tls13() {
    let world = world();
    // The client offers the curve of the certificate's key.
    let config = world.config(&["X25519MLKEM768", "secp256r1"], NamedGroup::X25519MLKEM768);
    let mut hello = Hello::of_record(&sent(&mut connection(config)));
    hello.remove(43);
    hello.suites = [&[0xc0, 0x2b], &hello.suites[..]].concat();
    let answer = world.answer(&[&hello.record(), &alert(0)]).await;
    let random = &answer[5 + 4 + 2..][..32];
    assert_eq!(answer[9..11], [3, 3]);
    assert_eq!(&random[24..], b"DOWNGRD\x01");
}

#[tokio::test]
async fn who_only_knocks_is_not_reported_and_who_begins_is() {
    let world = world();
    drop(world.connect());
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert_eq!(world.heard.outcome(), None);
    let mut wire = world.connect();
    wire.write_all(&[22, 3, 1]).await.unwrap();
    drop(wire);
    world.heard.reported().await;
    assert_eq!(world.heard.failure(), "unexpected end of file");
}

#[tokio::test]
async fn a_slow_client_is_cut_off_and_reported() {
    let world = world_with(|it| it.handshake_limit = Some(Duration::from_secs(2)), &["ecdsa-p256"]);
    // One byte at a time, inside the hello.
    let hello = sent(&mut world.client());
    let mut wire = world.connect();
    let mut written = 0;
    for byte in hello.iter().take(60) {
        if wire.write_all(&[*byte]).await.is_err() {
            break;
        }
        written += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(written < 60, "it was served for as long as it liked");
    assert_eq!(world.heard.failure(), "took too long");
    // Stops after the server's flight, and after a HelloRetryRequest.
    for mut client in [world.client(), world.retrying()] {
        let begun = Instant::now();
        let mut wire = world.connect();
        wire.write_all(&sent(&mut client)).await.unwrap();
        wire.read_to_end(&mut Vec::new()).await.unwrap();
        let reported = world.heard.handshakes.lock().unwrap().pop().unwrap();
        assert_eq!(reported.outcome, Outcome::Failed("took too long".into()));
        assert!(reported.offer.is_some());
        // The time counts from the first byte, which arrives some time after the limit has begun to run.
        let took = Duration::from_micros(reported.micros);
        assert!(took > Duration::ZERO && took <= begun.elapsed(), "{took:?}");
    }
    // A dropped handshake is reported too.
    let accepting = world.door.accept(tokio::io::duplex(9).1, None);
    drop(tokio::time::timeout(Duration::from_millis(1), accepting).await);
    let (mut client, server) = tokio::io::duplex(64);
    client.write_all(&[22]).await.unwrap();
    let accepting = world.door.accept(server, None);
    assert!(tokio::time::timeout(Duration::from_millis(20), accepting).await.is_err());
    assert_eq!(world.heard.failure(), "abandoned before it ended");
}
