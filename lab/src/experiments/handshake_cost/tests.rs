//! Flights from made-up traces.

use super::flights::{FIRST_WINDOW, Flights};
use super::*;
use crate::trace::{Side, Step, Trace};

fn trace(hello: u32, flight: u32) -> Trace {
    let step = |from, bytes, cpu_ns| Step { from, bytes, cpu_ns };
    Trace {
        steps: vec![
            step(Side::Client, hello, 20_000),
            step(Side::Server, flight, 100_000),
            step(Side::Client, 74, 200_000),
            step(Side::Server, 300, 1_000),
        ],
        client_done: 2,
        server_after_ns: 9_000,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

#[test]
fn flights_are_counted_up_to_the_clients_finished() {
    let flights = Flights::of(trace(230, 2_000)).unwrap();
    assert_eq!((flights.client_hello, flights.server_flight), (230, 2_000));
    assert_eq!(flights.bytes, [304, 2_000]);
    assert_eq!(flights.packets, [2, 2]);
    assert_eq!(flights.cpu_us, [220.0, 110.0]);
    assert_eq!(flights.ip_bytes(), 2_304 + 4 * 52);
    assert!(flights.passed().is_empty());
    let empty = Trace { steps: Vec::new(), ..trace(1, 1) };
    assert!(Flights::of(empty).is_err());
}

#[test]
fn limits_are_called_out_where_they_are_passed() {
    let passed = |hello, flight| Flights::of(trace(hello, flight)).unwrap().passed();
    assert_eq!(passed(1_448, 3_600), Vec::<String>::new());
    assert!(passed(1_449, 3_600)[0].contains("one MSS"));
    assert!(passed(230, 3_601)[0].contains("3x"));
    // Two datagrams from the client allow twice as much.
    assert!(passed(1_402, 7_200).is_empty());
    assert_eq!(passed(1_402, 7_201).len(), 1);
    let over = u32::try_from(FIRST_WINDOW + 1).unwrap();
    assert!(passed(1_402, over).iter().any(|limit| limit.contains("IW10")));
}

/// One millisecond is nearer than any published point.
#[test]
fn times_at_one_millisecond_are_marked() {
    let table = tables::flights_table(&[]);
    assert!(table.columns.iter().any(|name| name == "network at RTT 1 ms, not validated (ms)"));
    assert!(table.note.contains("outside the model's validated range"), "{}", table.note);
    let cost = Costs { stack: "rustls", version: String::new(), flights: Vec::new(), cpu: None };
    let chart = tables::stacked(&cost);
    assert!(chart.title.contains("not validated"), "{}", chart.title);
    assert!(chart.caption.contains("outside the model's validated range"), "{}", chart.caption);
}

#[test]
fn every_group_and_every_signature_takes_part() {
    let subjects = subjects(true, true).unwrap();
    for row in key_exchanges().iter().filter(|row| !row.legacy) {
        assert!(subjects.iter().any(|one| one.key_exchange.name == row.name), "{}", row.name);
    }
    for row in authentications().iter().filter(|row| !row.legacy) {
        assert!(subjects.iter().any(|one| one.authentication.name == row.name), "{}", row.name);
    }
    let names: Vec<String> = subjects.iter().map(Subject::name).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[index + 1..].contains(name), "{name} twice");
    }
}
