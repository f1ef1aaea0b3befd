//! Small grids from made-up traces.

use std::time::Duration;

use super::{grid, named, pairs, resolution};
use crate::experiments::play::{Contender, GridPoint, Played, Seen, apart, interval, measure};
use crate::experiments::tables;
use crate::link::{ClockStart, Link};
use crate::model::PROFILES;
use crate::result::{Control, Marks};
use crate::trace::{Side, Step, Trace};

fn contender(name: &str, hello: u32, flight: u32) -> Contender {
    let step = |from, bytes| Step { from, bytes, cpu_ns: 100_000 };
    let steps = vec![step(Side::Client, hello), step(Side::Server, flight), step(Side::Client, 80)];
    let trace = Trace {
        steps,
        client_done: 2,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    };
    Contender { name: name.to_owned(), trace }
}

fn place(rtt_ms: u64, loss: f64) -> GridPoint<'static> {
    GridPoint {
        part: "test",
        profile: grid::kernel().unwrap(),
        link: Link::new(Duration::from_millis(rtt_ms), loss),
        transfer: grid::HANDSHAKE,
        count: 400,
        seed: None,
        raw: true,
        bytes: false,
    }
}

fn played(rtt_ms: u64, loss: f64, seed: u64) -> Played {
    let contenders = [
        contender("small", 230, 1_200),
        contender("the same", 230, 1_200),
        contender("large", 1_416, 16_204),
    ];
    measure(&place(rtt_ms, loss), &contenders, seed, &|| false).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_and_another_seed_does_not() {
    assert_eq!(played(30, 0.05, 7), played(30, 0.05, 7));
    assert_ne!(played(30, 0.05, 7), played(30, 0.05, 8));
}

#[test]
fn flights_over_the_window_cost_a_round_trip() {
    let calm = played(30, 0.0, 7);
    let row = |name: &str| calm.row(name).unwrap();
    assert_eq!((row("the same").paired.low, row("the same").paired.high), (0.0, 0.0));
    assert!((row("large").paired.value - 30.0).abs() < 1.5, "{:?}", row("large").paired);
    assert_eq!(row("large").retransmitted, 0.0);
    assert!((row("small").handshake(ClockStart::Connected).at(50) - 30.3).abs() < 0.5);
}

#[test]
fn under_loss_pairing_tells_what_unpaired_runs_cannot() {
    let lossy = played(30, 0.05, 7);
    let (same, large) = (lossy.row("the same").unwrap(), lossy.row("large").unwrap());
    assert_eq!(same.paired.value, 0.0, "flow by flow the same losses");
    assert!(same.unpaired.high - same.unpaired.low > 10.0, "{:?}", same.unpaired);
    assert!(large.retransmitted > same.retransmitted);
    assert!(large.paired.low > 0.0);
    assert_eq!(large.raw_us.as_ref().unwrap().len(), 400);
}

#[test]
fn a_stop_leaves_nothing_half_done() {
    let contenders = [contender("small", 230, 1_200)];
    assert_eq!(measure(&place(30, 0.0), &contenders, 1, &|| true), None);
}

#[test]
fn tables_and_charts_have_everybody() {
    let seen: Vec<Seen> = [(1, 0.0), (1, 0.05), (30, 0.0), (30, 0.05)]
        .into_iter()
        .map(|(rtt_ms, loss)| Seen {
            profile: "linux",
            link: place(rtt_ms, loss).link,
            transfer: grid::HANDSHAKE,
            played: played(rtt_ms, loss, 7),
        })
        .collect();
    let table = tables::table("a", "b", "c", &seen);
    assert_eq!(table.rows.len(), 4 * 3);
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    let fans = tables::fans("a", "b", &seen, &["small", "large"], ClockStart::Syn);
    let Marks::Fans { panels } = fans.marks else { panic!("no fans") };
    assert_eq!(panels.len(), 2);
    assert_eq!((panels[0].x.len(), panels[0].values.len()), (2, 2));
    assert!(panels[0].values.iter().flatten().all(|list| list.is_sorted()));
    let Marks::Heat { rows, columns, values } = tables::heat("a", &seen, 0.05).marks else {
        panic!("no heat map")
    };
    assert_eq!((rows.len(), columns.len(), values.len()), (2, 2, 2));
    assert!(pairs::close_point(&seen).is_some());
    let ecdf = tables::difference_ecdf("a", &seen[3], &["large"]);
    let Marks::Steps { series } = ecdf.marks else { panic!("no steps") };
    assert!(series[0].points.is_sorted_by(|one, other| one[0] <= other[0]));
}

/// Above 10 % loss on a long link p95 is marked in tables, fans and captions; elsewhere nothing is.
#[test]
fn figures_outside_the_validated_range_are_marked() {
    let seen = |rtt_ms: u64, loss: f64| Seen {
        profile: PROFILES[0].name,
        link: place(rtt_ms, loss).link,
        transfer: grid::HANDSHAKE,
        played: played(rtt_ms, loss, 1),
    };
    let points = [seen(30, 0.05), seen(30, 0.15), seen(5, 0.15)];
    let table = tables::table("t", "T", "A note.", &points);
    let column = table.columns.iter().position(|name| name == tables::OUTSIDE).unwrap();
    let each = points[0].played.rows.len();
    for (index, row) in table.rows.iter().enumerate() {
        let expected = if index / each == 1 { "p95 and above" } else { "-" };
        assert_eq!(row[column], expected.into(), "row {index}");
    }
    assert!(table.note.contains("validated range"));
    assert_eq!(tables::table("t", "T", "A note.", &points[..1]).note, "A note.");
    let names = [points[0].played.rows[0].name.as_str()];
    let fans = tables::fans("f", "F", &points, &names, ClockStart::Syn);
    assert!(fans.caption.contains("validated range"));
    let Marks::Fans { panels } = fans.marks else { panic!("no fans") };
    assert_eq!(panels[0].title, "RTT 30 ms; not validated: p95 at 15 %");
    assert_eq!(panels[1].title, "RTT 5 ms");
    // A mean at 15 % is inside; that at a round-trip time of 1 ms is not.
    for (point, starred) in [(&points[1], false), (&seen(1, 0.15), true)] {
        let heat = tables::heat("h", std::slice::from_ref(point), point.link.loss);
        assert_eq!(heat.caption.contains("validated range"), starred);
        let Marks::Heat { columns, .. } = heat.marks else { panic!("no heat map") };
        assert_eq!(columns[0].ends_with(" *"), starred, "{columns:?}");
    }
}

#[test]
fn intervals_hold_what_they_should() {
    let constant = interval(&[2.0; 50], 1);
    assert_eq!((constant.value, constant.low, constant.high), (2.0, 2.0, 2.0));
    let values: Vec<f64> = (0..100).map(f64::from).collect();
    let around = interval(&values, 1);
    assert!(around.low < 49.5 && 49.5 < around.high && around.high - around.low < 15.0);
    let difference = apart(&values, &values);
    assert_eq!(difference.value, 0.0);
    assert!(difference.contains(0.0) && difference.high > 1.0);
    assert_eq!(apart(&[], &[]).value, 0.0);
}

#[test]
fn the_grids_are_what_was_published() {
    for quick in [true, false] {
        let study = grid::study(quick);
        assert_eq!(study.rtt_us, [1_000, 2_500, 5_500, 30_000, 197_000]);
        assert_eq!(study.count, 6_000);
        assert_eq!(study.loss.len(), if quick { 6 } else { 21 });
        assert!(study.loss.is_sorted());
        assert_eq!((study.loss.first(), study.loss.last()), (Some(&0.0), Some(&0.1)));
        assert_eq!(grid::subjects(quick).unwrap()[0].name(), grid::name(grid::CLASSICAL));
        let close = grid::pairs(quick);
        assert!(close.rtt_us.contains(&grid::CLOSE_RTT_US));
        assert!(close.loss.contains(&grid::CLOSE_LOSS));
    }
    assert!(grid::estimate(true) < Duration::from_secs(180), "{:?}", grid::estimate(true));
    // A thousand live connections of each at a point with loss take most of it.
    assert!(grid::estimate(false) < Duration::from_secs(3600), "{:?}", grid::estimate(false));
}

/// An unpaired control at 5 % loss sees nothing of the size that is judged, and says so.
#[test]
fn the_control_says_what_it_resolves() {
    let control =
        |half: f64| Control { what: String::new(), ratio: 1.01, low: 1.0 - half, high: 1.0 + half };
    let blind = resolution(&control(0.132), 100.0);
    assert!(blind.contains("beyond 13.2 % of 100 ms"), "{blind}");
    assert!(blind.contains("which are 13.2 ms, so much that it cannot fail"), "{blind}");
    let sees = resolution(&control(0.02), 100.0);
    assert!(sees.contains("beyond 2 % of 100 ms from noise, which are 2 ms. No verdict"), "{sees}");
}

#[test]
fn the_literatures_names_are_found_however_they_are_written() {
    assert!(named("p256_kyber512_r2", "Kyber512"));
    assert!(named("p256_ntru_hps2048509", "NTRU-hps2048509"));
    assert!(named("p256_falcon512", "Falcon-512"));
    assert!(!named("kyber512_r2", "Kyber512"), "the study joined it with P-256");
    assert!(!named("p256_kyber768_r2", "Kyber512"));
}
