//! The engine repeats, and behaves as QUIC does.

use std::time::Duration;

use super::*;
use crate::subject::Kind;

const MS: u64 = 1_000_000;
/// How long a client waits for an answer to its first datagram: three times the assumed round trip (RFC 9002, section
/// 6.2.2).
const FIRST_TIMEOUT: u64 = 999 * MS;

fn link(rtt_ms: u64, loss: f64) -> Link {
    Link::new(Duration::from_millis(rtt_ms), loss)
}

fn subject(group: &str, signature: &str, certificates: u8) -> Subject {
    Subject::new(group, signature, certificates).unwrap()
}

fn classical() -> Subject {
    subject("X25519", "ECDSA P-256", 1)
}

/// Without loss all handshakes are the same.
fn one(subject: &Subject, rtt_ms: u64) -> QuicOutcome {
    let run = in_virtual_time(subject, &link(rtt_ms, 0.0), 1, 2).unwrap();
    let [first, second] = run.outcomes[..] else { panic!("{run:?}") };
    assert_eq!(first, second);
    assert_eq!((first.lost, first.declared_lost), ([0; 2], [0; 2]), "nothing is sent again");
    first
}

#[test]
fn each_cause_adds_one_round_trip() {
    let cases = [
        ("X25519", "ECDSA P-256", 1, Kind::Full, 1),
        ("X25519", "ECDSA P-256", 2, Kind::Full, 1),
        ("X25519MLKEM768", "ECDSA P-256", 2, Kind::Full, 1),
        ("X25519MLKEM768", "ECDSA P-256", 2, Kind::HelloRetry, 2),
        ("X25519MLKEM768", "ECDSA P-256", 2, Kind::Mutual, 1),
        // The limit of three times what came from the client (RFC 9000, section 8.1).
        ("X25519MLKEM768", "ML-DSA-44", 1, Kind::Full, 2),
        ("X25519MLKEM768", "ML-DSA-65", 2, Kind::Full, 2),
        // With one datagram from the client instead of two the limit is reached once more.
        ("X25519", "ML-DSA-65", 2, Kind::Full, 3),
        // No certificates, no limit.
        ("X25519MLKEM768", "ML-DSA-65", 2, Kind::Resumed, 1),
        // The second ClientHello gives the server more credit.
        ("X25519MLKEM768", "ML-DSA-44", 1, Kind::HelloRetry, 2),
    ];
    for rtt in [1, 30, 100] {
        for (group, signature, certificates, kind, trips) in cases {
            let subject = subject(group, signature, certificates).kind(kind);
            let outcome = one(&subject, rtt);
            assert_eq!(outcome.handshake_ns, trips * rtt * MS, "{} {outcome:?}", subject.name());
            assert!(outcome.echo_ns >= outcome.handshake_ns + rtt * MS);
        }
    }
}

#[test]
fn the_first_flight_keeps_to_three_times_what_came() {
    for (group, limit) in [("X25519", 3600), ("X25519MLKEM768", 7200)] {
        let outcome = one(&subject(group, "ML-DSA-65", 2), 30);
        assert_eq!(outcome.first_flight, limit, "{group}");
        assert!(one(&subject(group, "ECDSA P-256", 2), 30).first_flight < limit);
    }
}

#[test]
fn a_run_repeats_in_any_thread_and_beside_others() {
    let lossy = link(30, 0.1);
    let run =
        || in_virtual_time(&subject("X25519MLKEM768", "ML-DSA-44", 1), &lossy, 7, 40).unwrap();
    let first = run();
    assert!(first.outcomes.iter().any(|outcome| outcome.lost != [0; 2]));
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), first);
        }
    });
    let seeded =
        in_virtual_time(&subject("X25519MLKEM768", "ML-DSA-44", 1), &lossy, 8, 40).unwrap();
    assert_ne!(seeded.trace_hash, first.trace_hash);
    // A flow alone behaves as it does among others.
    let ready = Ready::new(&subject("X25519MLKEM768", "ML-DSA-44", 1)).unwrap();
    let tail = ready.run(&lossy, 7, 30, 10).unwrap();
    assert_eq!(tail.outcomes[..], first.outcomes[30..]);
}

#[test]
fn what_is_lost_is_sent_again() {
    let run = in_virtual_time(&classical(), &link(30, 0.1), 3, 400).unwrap();
    assert_eq!((run.outcomes.len(), run.failed), (400, 0));
    let share = |side: usize| {
        let sum = |of: fn(&QuicOutcome) -> [u32; 2]| {
            run.outcomes.iter().map(|outcome| of(outcome)[side]).sum::<u32>()
        };
        f64::from(sum(|outcome| outcome.lost)) / f64::from(sum(|outcome| outcome.datagrams))
    };
    // More than a thousand datagrams each way: the standard error is below 0.01.
    assert!((share(0) - 0.1).abs() < 0.03 && (share(1) - 0.1).abs() < 0.03);
    let undisturbed = run.outcomes.iter().filter(|outcome| outcome.lost == [0; 2]);
    for outcome in undisturbed.clone() {
        assert_eq!((outcome.handshake_ns, outcome.declared_lost), (30 * MS, [0; 2]));
    }
    assert!(undisturbed.count() > 100);
    // The client's only datagram, or the server's only answer: the round-trip time is not known yet.
    let late: Vec<_> =
        run.outcomes.iter().filter(|outcome| outcome.handshake_ns > 30 * MS).collect();
    assert!(!late.is_empty());
    for outcome in late {
        assert!(outcome.handshake_ns >= FIRST_TIMEOUT, "{outcome:?}");
    }
}

#[test]
fn a_client_hello_in_two_datagrams_is_mended_sooner() {
    let lossy = link(30, 0.05);
    let [classical, hybrid] = ["X25519", "X25519MLKEM768"]
        .map(|group| in_virtual_time(&subject(group, "ECDSA P-256", 1), &lossy, 5, 300).unwrap());
    let late = |run: &VirtualRun| {
        let late = run.outcomes.iter().filter(|outcome| outcome.handshake_ns > 30 * MS);
        late.map(|outcome| outcome.handshake_ns >= FIRST_TIMEOUT).collect::<Vec<_>>()
    };
    assert!(late(&classical).iter().all(|timeout| *timeout), "all is in one datagram");
    // The other datagram is acknowledged, so the loss is detected after a round trip.
    let hybrid = late(&hybrid);
    assert!(hybrid.iter().filter(|timeout| !**timeout).count() * 2 > hybrid.len(), "{hybrid:?}");
}

#[test]
fn a_bottleneck_delays_and_drops_and_jitter_spreads() {
    let mut slow = link(30, 0.0);
    slow.rate_bps = Some(1_000_000);
    let subject = subject("X25519MLKEM768", "ECDSA P-256", 2);
    let outcome = in_virtual_time(&subject, &slow, 1, 1).unwrap().outcomes[0];
    // Two datagrams of 1228 bytes there and 3 kB back, at 8 microseconds a byte.
    assert!((70 * MS..90 * MS).contains(&outcome.handshake_ns), "{outcome:?}");
    slow.queue_packets = 0;
    let dropping = in_virtual_time(&subject, &slow, 1, 1).unwrap();
    assert!(dropping.outcomes.iter().all(|outcome| outcome.lost != [0; 2]), "{dropping:?}");
    let mut shaky = link(30, 0.0);
    shaky.jitter_us = 1000;
    let run = in_virtual_time(&classical(), &shaky, 1, 50).unwrap();
    let times: Vec<f64> =
        run.outcomes.iter().map(|outcome| outcome.handshake_ns as f64 / 1e6).collect();
    let deviation = {
        let mean = crate::statistics::mean(&times);
        (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 49.0).sqrt()
    };
    assert!((1.0..2.0).contains(&deviation), "two ways of 1 ms: {deviation}");
}

#[test]
fn an_impossible_link_is_refused() {
    for loss in [-0.1, 1.0, f64::NAN] {
        let refused = in_virtual_time(&classical(), &link(1, loss), 1, 1);
        assert!(matches!(refused, Err(LabError::Plan(_))), "{loss}");
    }
}
