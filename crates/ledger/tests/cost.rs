//! The cost of the ledger per connection. To be run by hand, in the release profile: `cargo test --release -p
//! outlast-ledger --test all cost:: -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::time::Duration;

use common::{NOW, end, handshake, offer, served};
use outlast_ledger::{Ledger, Observe, Options};
use outlast_negotiate::ja4::ja4;
use rustix::time::{ClockId, clock_gettime};

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
#[ignore = "a measurement, which says something in a release build only"]
fn a_connection_costs_some_microseconds() {
    const CONNECTIONS: u64 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let hello =
        offer(&[0x11ec, 0x001d, 0x0017, 0x001e, 0x0018, 0x0019, 0x0100, 0x0101], &[0x11ec, 0x001d]);
    let run = |what: &str, each: &dyn Fn(u64)| {
        let before = cpu();
        (0..CONNECTIONS).for_each(each);
        let each = (cpu() - before).as_nanos() as f64 / CONNECTIONS as f64 / 1000.0;
        println!("{what}: {each:.2} µs of CPU a connection");
        each
    };
    run("JA4 alone", &|_| {
        std::hint::black_box(ja4(std::hint::black_box(&hello)));
    });
    let begun = handshake(1, Some(hello.clone()), served("X25519MLKEM768", false));
    let mut line = Vec::new();
    outlast_ledger::line::encode_handshake(&begun, &mut line);
    println!("{} bytes a handshake", line.len());
    run("the event alone, with its JA4", &|connection| {
        let outcome = served("X25519MLKEM768", false);
        std::hint::black_box(handshake(connection, Some(hello.clone()), outcome));
    });
    run("the line alone", &|_| {
        let mut line = Vec::with_capacity(1024);
        outlast_ledger::line::encode_handshake(std::hint::black_box(&begun), &mut line);
        std::hint::black_box(line);
    });
    let options = Options { queue_bytes: 1 << 30, ..Options::new(|| NOW) };
    let ledger = Ledger::open(folder.path(), options).unwrap();
    let all = run("JA4, the event, both lines, and writing them", &|connection| {
        // As a door does it: the event owns its data.
        ledger.handshake(&handshake(
            connection,
            Some(hello.clone()),
            served("X25519MLKEM768", false),
        ));
        ledger.end(&end(connection, Some("arn:aws:iam::123456789012:user/alice")));
        if connection % 10_000 == 0 {
            ledger.flush();
        }
    });
    assert_eq!(ledger.lost(), 0);
    assert!(all < 10.0, "{all} µs");
}
