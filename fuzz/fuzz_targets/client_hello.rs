//! The first bytes of a connection: through the collector, the parser and the decision, and through the door.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outlast_domain::seal::RootKey;
use outlast_domain::work::Work;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::offer::{Collected, Collector, check_second, collect};
use outlast_negotiate::{Decision, Mode, Offer, Rules, Transport, decide};
use outlast_net::certificate::{ensure, kinds_by_name};
use outlast_net::door::{Door, Settings};
use outlast_net::server::system_clock;
use outlast_store::memory::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A door for each policy.
static DOORS: LazyLock<Vec<Door>> = LazyLock::new(|| {
    let store = MemoryStore::new();
    let root = RootKey::generate().unwrap();
    let mut work = Work::new(&store, &root, system_clock());
    let names = ["localhost".to_owned()];
    let mut certificates = Vec::new();
    for kind in kinds_by_name("dual").unwrap() {
        certificates.push(ensure(&mut work, kind, &names).unwrap().certificate(kind));
    }
    let door = |policy| {
        let rules = Rules { policy, mode: Mode::Prefer };
        let settings = Settings { rules, ..Settings::with_protocols(&["h2"]) };
        Door::new(settings, certificates.clone(), None).unwrap()
    };
    POLICIES.iter().map(door).collect()
});

static FACTS: LazyLock<Vec<CertificateFacts>> = LazyLock::new(|| DOORS[0].facts());

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let door = &DOORS[usize::from(*which) % DOORS.len()];
    serve(door, bytes);
    look(bytes);
    // The same bytes as a message, so that the fuzzer need not guess the record layer.
    let message = message(bytes);
    let records = records(&message, usize::from(*which) + 1);
    assert!(!matches!(collect(&records), Collected::Incomplete));
    look(&records);
    serve(door, &records);
    parse(&message);
    let half = bytes.len() / 2;
    let _ = check_second(&bytes[..half], &bytes[half..], 0x11ec);
});

/// Adds the header of a ClientHello.
fn message(body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &len[1..], body].concat()
}

fn records(message: &[u8], max: usize) -> Vec<u8> {
    let record = |piece: &[u8]| {
        let len = u16::try_from(piece.len()).unwrap().to_be_bytes();
        [&[22, 3, 1], &len[..], piece].concat()
    };
    message.chunks(max).flat_map(record).collect()
}

/// However the bytes are split, the ClientHello is the same.
fn look(bytes: &[u8]) {
    let whole = collect(bytes);
    let mut collector = Collector::first();
    let mut held = Vec::new();
    let mut piecewise = Collected::Incomplete;
    for piece in bytes.chunks(7) {
        held.extend_from_slice(piece);
        match collector.advance(&held) {
            Ok(false) => collector.trim(&mut held),
            Ok(true) => {
                piecewise = Collected::Complete(collector.message().to_vec());
                break;
            }
            Err(error) => {
                piecewise = Collected::Malformed(error);
                break;
            }
        }
    }
    assert_eq!(whole, piecewise);
    if let Collected::Complete(message) = whole {
        parse(&message);
    }
}

/// Decisions are consistent with the offer.
fn parse(message: &[u8]) {
    for transport in [Transport::Tcp, Transport::Quic] {
        let Ok(offer) = Offer::parse(message, transport) else { continue };
        for policy in POLICIES {
            for mode in Mode::ALL {
                let rules = Rules { policy, mode };
                let Decision::Serve(choice) = decide(&rules, &offer, &FACTS) else { continue };
                let group = choice.group.code_point;
                assert!(offer.groups.contains(&group));
                assert!(offer.suites.contains(&choice.suite.code_point));
                assert!(offer.schemes.contains(&choice.scheme.code_point));
                assert!(rules.groups().any(|row| row.code_point == group));
                let sent = offer.shares.as_ref().is_some_and(|shares| shares.contains(&group));
                let is_13 = choice.version.code_point() == 0x0304;
                assert_eq!(choice.hello_retry, is_13 && !sent);
                let is_post_quantum = choice.group.strength.is_post_quantum();
                let could = is_13
                    && rules.groups().any(|row| {
                        row.strength.is_post_quantum() && offer.groups.contains(&row.code_point)
                    });
                match mode {
                    Mode::Require => assert!(is_post_quantum),
                    Mode::Prefer => assert_eq!(is_post_quantum, could),
                    Mode::Off => assert!(!is_post_quantum),
                    Mode::Allow => {}
                }
                check_second(message, message, group).ok();
            }
        }
    }
}

fn serve(door: &Door, bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let _ = client.write_all(bytes).await;
        let _ = client.shutdown().await;
        let reading = async {
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            answer
        };
        let (accepted, answer) = tokio::join!(
            async {
                // Dropped here, so that the client sees the end of the connection.
                door.accept(server, None).await.is_ok()
            },
            reading
        );
        assert!(!accepted, "nobody can finish a handshake without keys");
        // A TLS record, a message for plain HTTP, or nothing.
        let kind = answer.first();
        assert!(matches!(kind, None | Some(21 | 22 | b'H')), "{answer:?}");
    });
}
