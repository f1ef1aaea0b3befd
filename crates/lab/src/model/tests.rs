//! Timelines computed by hand, and properties.

use super::*;
use crate::trace::{Side, Step};

fn step(from: Side, bytes: u32, cpu_ns: u64) -> Step {
    Step { from, bytes, cpu_ns }
}

fn trace() -> Trace {
    Trace {
        steps: vec![
            step(Side::Client, 500, 100_000),
            step(Side::Server, 4_000, 300_000),
            step(Side::Client, 80, 200_000),
            step(Side::Server, 500, 0),
        ],
        client_done: 2,
        server_after_ns: 50_000,
        hello_retry: false,
        resumed: false,
    }
}

#[test]
fn without_loss_times_are_those_of_a_sum() {
    let link = Link::new(std::time::Duration::from_millis(30), 0.0);
    let one = connect(&PROFILES[0], &link, &trace(), Transfer { request: 100, body: 1000 }, 1, 1);
    assert_eq!(one.connected_ns, 30_000_000);
    assert_eq!(one.handshake_ns, 60_600_000);
    assert_eq!(one.first_byte_ns, 90_650_000);
    assert_eq!(one.last_byte_ns, 90_650_000);
    assert_eq!(one.retransmissions, 0);
}
