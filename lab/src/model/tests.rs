//! Timelines computed by hand, and properties.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::link::lost;
use crate::trace::{Side, Step};

const NOTHING: Transfer = Transfer { request: 0, body: 0 };
const MS: u64 = 1_000_000;

fn step(from: Side, bytes: u32, cpu_ns: u64) -> Step {
    Step { from, bytes, cpu_ns }
}

/// A full handshake whose server sends so many bytes, with CPU times of 0.1, 0.3 and 0.2 ms, and tickets after 0.05
/// ms.
fn trace(flight: u32) -> Trace {
    Trace {
        steps: vec![
            step(Side::Client, 500, 100_000),
            step(Side::Server, flight, 300_000),
            step(Side::Client, 80, 200_000),
            step(Side::Server, 500, 0),
        ],
        client_done: 2,
        server_after_ns: 50_000,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

fn link(rtt_ms: u64, loss: f64) -> Link {
    Link::new(Duration::from_millis(rtt_ms), loss)
}

/// Finds a seed with which exactly these data packets of a flow are lost, as (side, number, how often sent before).
/// Packets that matter have numbers up to 12, and are sent up to 6 times.
fn flow_that_loses(loss: f64, wanted: &[(Side, u32, u32)], numbers: [u32; 2]) -> u64 {
    let fits = |flow: &u64| {
        [Side::Client, Side::Server].into_iter().zip(numbers).all(|(side, numbers)| {
            (0..numbers).all(|number| {
                (0..7).all(|again| {
                    let sent = again == 0 || wanted.contains(&(side, number, again - 1));
                    !sent
                        || lost(SEED, *flow, side, number, again, loss)
                            == wanted.contains(&(side, number, again))
                })
            })
        })
    };
    (0..5_000_000).find(fits).expect("a flow with these losses")
}

const SEED: u64 = 6;

/// A connection that loses exactly these packets, at RTT 30 ms.
fn losing(
    profile: &'static Profile,
    flight: u32,
    transfer: Transfer,
    wanted: &[(Side, u32, u32)],
) -> Outcome {
    // Numbers of the packets that matter: SYN, ClientHello, Finished; SYN-ACK and the flight.
    let packets = [3, 1 + flight.div_ceil(1448)];
    let loss = if wanted.len() > 3 { 0.5 } else { 0.1 };
    let flow = flow_that_loses(loss, wanted, packets);
    connect(profile, &link(30, loss), &trace(flight), transfer, SEED, flow)
}

fn new() -> &'static Profile {
    &PROFILES[0]
}

fn between(value_ns: u64, low_ms: f64, high_ms: f64) {
    let ms = value_ns as f64 / 1e6;
    assert!((low_ms..=high_ms).contains(&ms), "{ms} is not in {low_ms}..={high_ms}");
}

#[test]
fn without_loss_times_are_those_of_a_sum() {
    let one =
        connect(new(), &link(30, 0.0), &trace(4000), Transfer { request: 100, body: 1000 }, 1, 1);
    assert_eq!(one.connected_ns, 30 * MS);
    assert_eq!(one.handshake_ns, 60 * MS + 600_000);
    assert_eq!(one.first_byte_ns, 90 * MS + 650_000);
    assert_eq!(one.last_byte_ns, one.first_byte_ns);
    assert_eq!((one.retransmissions, one.handshake_retransmissions), (0, 0));
}

#[test]
fn without_a_body_there_are_no_bytes_to_wait_for() {
    let one = connect(new(), &link(30, 0.0), &trace(4000), NOTHING, 1, 1);
    assert_eq!((one.first_byte_ns, one.last_byte_ns), (one.handshake_ns, one.handshake_ns));
}

#[test]
fn a_flight_beyond_the_first_window_costs_a_round_trip() {
    let handshake =
        |flight| connect(new(), &link(30, 0.0), &trace(flight), NOTHING, 1, 1).handshake_ns;
    assert_eq!(handshake(14_480), 60 * MS + 600_000);
    assert_eq!(handshake(14_481), 90 * MS + 600_000);
}

#[test]
fn a_body_takes_the_round_trips_of_slow_start() {
    // 10, 20, 40 ... packets a round trip; the tickets are in the first.
    let last = |body| {
        let transfer = Transfer { request: 100, body };
        connect(new(), &link(30, 0.0), &trace(4000), transfer, 1, 1).last_byte_ns
    };
    let base = 90 * MS + 650_000;
    assert_eq!(last(10_000), base);
    // The window has grown by the handshake's three packets, each of which was acknowledged.
    assert_eq!(last(20_000), base + 30 * MS);
    assert_eq!(last(60_000), base + 60 * MS);
    assert!(last(1_000_000) < base + 210 * MS);
}

#[test]
fn a_lost_syn_costs_a_second() {
    // A second is 250 ticks, kept with a granularity of 8 ticks.
    let one = losing(new(), 1000, NOTHING, &[(Side::Client, 0, 0)]);
    between(one.connected_ns, 1030.0, 1062.0);
    assert_eq!(one.handshake_ns - one.connected_ns, 30 * MS + 600_000);
    assert_eq!(one.handshake_retransmissions, 1);
}

#[test]
fn five_lost_syns_cost_5_seconds_now_and_31_before() {
    let wanted: Vec<_> = (0..5).map(|again| (Side::Client, 0, again)).collect();
    let connected = |profile| losing(profile, 1000, NOTHING, &wanted).connected_ns;
    between(connected(new()), 5030.0, 5190.0);
    let old = Profile::by_name("linux-5.4").unwrap();
    // 1 + 2 + 4 + 8 + 16 seconds; the granularity of the later ones is 256 ms and 2 s.
    between(connected(old), 31_030.0, 36_000.0);
}

#[test]
fn lost_client_hello_is_probed_without_back_off() {
    // 30 + 200 ms are 58 ticks: 232 to 236 ms.
    let once = losing(new(), 1000, NOTHING, &[(Side::Client, 1, 0)]);
    between(once.handshake_ns, 60.6 + 232.0, 60.6 + 236.0);
    // The probe is lost, too: the timeout comes after the same interval again, not a doubled one.
    let twice = losing(new(), 1000, NOTHING, &[(Side::Client, 1, 0), (Side::Client, 1, 1)]);
    between(twice.handshake_ns, 60.6 + 2.0 * 232.0, 60.6 + 2.0 * 236.0);
    // The next one backs off: 116 ticks, in steps of 8.
    let wanted: Vec<_> = (0..3).map(|again| (Side::Client, 1, again)).collect();
    let thrice = losing(new(), 1000, NOTHING, &wanted);
    between(thrice.handshake_ns, 60.6 + 2.0 * 232.0 + 464.0, 60.6 + 2.0 * 236.0 + 496.0);
}

#[test]
fn the_lost_end_of_a_flight_waits_for_the_timeout() {
    // Three packets; the first two are acknowledged after a round trip, then one is out: 58 ticks.
    let one = losing(new(), 4000, NOTHING, &[(Side::Server, 3, 0)]);
    between(one.handshake_ns, 60.6 + 30.0 + 232.0, 60.6 + 30.0 + 236.0);
    assert_eq!(one.handshake_retransmissions, 1);
}

#[test]
fn lost_flight_is_probed_after_two_round_trips() {
    // Two packets: 60 ms and 2 ms are 16 ticks, 64 to 68 ms. The probe is the second packet; the answer to it shows
    // that the first is lost.
    let wanted = [(Side::Server, 1, 0), (Side::Server, 2, 0)];
    let one = losing(new(), 2000, NOTHING, &wanted);
    let quick = 60.6 + 64.0 + 30.0;
    // Unless that answer was faster than all before, which makes it ambiguous: then 58 ticks after the probe.
    let late = 60.6 + 64.0 + 232.0;
    let ms = one.handshake_ns as f64 / 1e6;
    assert!((quick..=quick + 4.0).contains(&ms) || (late..=late + 8.0).contains(&ms), "{ms}");
}

#[test]
fn a_hole_is_filled_after_a_round_trip_and_a_quarter() {
    // Two packets after it are fewer than three duplicates: RACK waits for a quarter of the round trip and 2 ms, 9.5 ms or 3 ticks.
    let one = losing(new(), 4000, NOTHING, &[(Side::Server, 1, 0)]);
    between(one.handshake_ns, 60.6 + 30.0 + 12.0, 60.6 + 30.0 + 16.1);
    // Three after it: at once.
    let one = losing(new(), 5000, NOTHING, &[(Side::Server, 1, 0)]);
    assert_eq!(one.handshake_ns, 90 * MS + 600_000);
    assert_eq!(one.handshake_retransmissions, 1);
}

#[test]
fn a_lost_finished_delays_the_answer_and_not_the_handshake() {
    let one = losing(new(), 1000, Transfer { request: 100, body: 100 }, &[(Side::Client, 2, 0)]);
    assert_eq!(one.handshake_ns, 60 * MS + 600_000);
    assert_eq!(one.handshake_retransmissions, 0);
    between(one.first_byte_ns, 90.65 + 232.0, 90.65 + 236.0);
    assert_eq!(one.retransmissions, 1);
}

#[test]
fn a_bottleneck_spreads_packets_and_drops_what_does_not_fit() {
    // 1500 bytes at 12 Mbit/s take 1 ms. The flight's ten packets.
    let slow = |queue_packets| Link { rate_bps: Some(12_000_000), queue_packets, ..link(30, 0.0) };
    let one = connect(new(), &slow(100), &trace(14_480), NOTHING, 1, 1);
    // SYN 60 bytes, SYN-ACK 60, ClientHello 552, ten of 1500; the client's acknowledgement of 52 bytes is before the ClientHello's 0.1 ms.
    let bytes = 60.0 + 60.0 + 552.0 + 15_000.0;
    between(one.handshake_ns, 60.6 + bytes / 1500.0 - 0.01, 60.6 + bytes / 1500.0 + 0.05);
    assert_eq!(one.retransmissions, 0);
    let one = connect(new(), &slow(4), &trace(14_480), NOTHING, 1, 1);
    assert!(one.handshake_retransmissions >= 4, "{one:?}");
    assert!(one.handshake_ns > 90 * MS);
}

#[test]
fn a_connection_that_loses_everything_is_given_up() {
    let one = connect(new(), &link(30, 1.0), &trace(1000), Transfer { request: 1, body: 1 }, 1, 1);
    assert_eq!(one.connected_ns, simulation::LIMIT_NS);
    assert_eq!(one.last_byte_ns, simulation::LIMIT_NS);
    assert!((30..60).contains(&one.retransmissions), "{one:?}");
}

#[test]
fn retransmissions_are_those_that_losses_make_necessary() {
    // With the same losses, a gap in a larger body is filled without timeouts.
    let count = 2_000;
    let transfer = Transfer { request: 100, body: 100_000 };
    let outcomes = connections(new(), &link(30, 0.01), &trace(4000), transfer, 3, count);
    let sent: u32 = outcomes.iter().map(|one| u32::from(one.retransmissions)).sum();
    // About 77 data packets of which one in a hundred is lost; a few retransmissions are spurious.
    let each = f64::from(sent) / 2_000.0;
    assert!((0.75..1.4).contains(&each), "{each}");
}

#[test]
fn flows_pair() {
    // The same losses for a classical and a hybrid handshake: their difference varies much less than either.
    let classical = trace(3000);
    let mut hybrid = trace(4100);
    hybrid.steps[0].bytes = 1400;
    let link = link(30, 0.05);
    let times = |trace: &Trace, seed| -> Vec<f64> {
        let outcomes = connections(new(), &link, trace, NOTHING, seed, 6_000);
        outcomes.iter().map(|one| one.handshake_ns as f64 / 1e6).collect()
    };
    let variance = |one: &[f64], other: &[f64]| {
        let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        differences.iter().map(|each| (each - mean).powi(2)).sum::<f64>() / differences.len() as f64
    };
    let base = times(&classical, 1);
    let paired = variance(&times(&hybrid, 1), &base);
    let unpaired = variance(&times(&hybrid, 2), &base);
    assert!(paired * 20.0 < unpaired, "{paired} {unpaired}");
}

#[test]
fn threads_do_not_change_results() {
    let transfer = Transfer { request: 100, body: 5_000 };
    let all = connections(new(), &link(30, 0.05), &trace(4000), transfer, 5, PARALLEL);
    for flow in [0, 1, PARALLEL / 2 - 1, PARALLEL / 2, PARALLEL - 1] {
        let index = usize::try_from(flow).unwrap();
        assert_eq!(all[index], connect(new(), &link(30, 0.05), &trace(4000), transfer, 5, flow));
    }
}

/// What a client's kernel saves of a connection whose SYN-ACK was lost gives the next one its first timeout.
#[test]
fn a_saved_round_trip_postpones_the_first_timeout() {
    let saving = Kernel {
        tcp: Tcp { client_saves: true, ..Tcp::default() },
        ..Kernel::like_the_default("saving")
    };
    let trace = trace(1000);
    let flow = |wanted: &[(Side, u32, u32)]| flow_that_loses(0.1, wanted, [3, 2]);
    let (late, lost) = (flow(&[(Side::Server, 0, 0)]), flow(&[(Side::Client, 1, 0)]));
    let run = |profile: &'static Profile, before: &[u64]| {
        let mut simulation = Simulation::new(profile, &link(30, 0.1));
        let script = Script::new(&trace, NOTHING);
        for flow in before {
            simulation.run(&script, SEED, *flow);
        }
        simulation.run(&script, SEED, lost).handshake_ns
    };
    // Without it the timeout, 230 ms, comes before the probe, which waits for two round trips and 200 ms: 65 ticks.
    between(run(new(), &[late]), 60.6 + 232.0, 60.6 + 236.0);
    between(run(saving.profile(), &[]), 60.6 + 232.0, 60.6 + 236.0);
    // They are kept with a granularity of 8.
    between(run(saving.profile(), &[late]), 60.6 + 260.0, 60.6 + 296.0);
    // An eighth of the difference is forgotten with each connection: after forty it is below 30 ms.
    let calm = flow(&[]);
    let mut before = vec![late];
    before.extend([calm; 40]);
    between(run(saving.profile(), &before), 60.6 + 232.0, 60.6 + 240.0);
}

/// A client that has seen reordering waits where one that has not repairs at once.
#[test]
fn saved_reordering_makes_a_client_wait() {
    let patient = Kernel {
        tcp: Tcp { client_reordering: 7, ..Tcp::default() },
        ..Kernel::like_the_default("patient")
    };
    let mut long = trace(1000);
    long.steps[0].bytes = 9_856;
    let flow = flow_that_loses(0.1, &[(Side::Client, 1, 0)], [9, 2]);
    let handshake =
        |profile| connect(profile, &link(30, 0.1), &long, NOTHING, SEED, flow).handshake_ns;
    // Six packets after the gap are acknowledged.
    assert_eq!(handshake(new()), 90 * MS + 600_000);
    between(handshake(patient.profile()), 60.6 + 30.0 + 12.0, 60.6 + 30.0 + 16.1);
}

#[test]
fn a_first_window_as_large_as_the_flight_saves_its_round_trip() {
    let wide = Kernel {
        tcp: Tcp { first_window: 20, ..Tcp::default() },
        ..Kernel::like_the_default("wide")
    };
    let handshake = |flight| {
        connect(wide.profile(), &link(30, 0.0), &trace(flight), NOTHING, 1, 1).handshake_ns
    };
    assert_eq!(handshake(28_960), 60 * MS + 600_000);
    assert_eq!(handshake(28_961), 90 * MS + 600_000);
}

#[test]
fn profiles_have_names_of_their_own_and_sources() {
    for (index, profile) in PROFILES.iter().enumerate() {
        assert!(!profile.source.is_empty());
        assert!(PROFILES[..index].iter().all(|other| other.name != profile.name));
        assert!(std::ptr::eq(Profile::by_name(profile.name).unwrap(), profile));
    }
}

prop_compose! {
    fn links()(rtt_us in 100_u64..300_000, loss in 0.0..0.3_f64, slow in any::<bool>(),
        jitter_us in prop_oneof![Just(0_u64), 0_u64..5_000], queue_packets in 1_u32..200) -> Link {
        Link { rtt_us, loss, rate_bps: slow.then_some(10_000_000), queue_packets, jitter_us }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn times_rise_and_repeat(
        link in links(), flight in 100_u32..40_000, body in 0_u32..300_000, seed: u64, flow: u64,
        profile in 0..PROFILES.len(),
    ) {
        let profile = &PROFILES[profile];
        let transfer = Transfer { request: 200, body };
        let one = connect(profile, &link, &trace(flight), transfer, seed, flow);
        prop_assert!(one.connected_ns <= one.handshake_ns);
        prop_assert!(one.handshake_ns <= one.first_byte_ns);
        prop_assert!(one.first_byte_ns <= one.last_byte_ns);
        // With much loss timeouts back off to two minutes: some connections are abandoned, below a tenth very few.
        prop_assert!(link.loss > 0.1 || one.last_byte_ns < simulation::LIMIT_NS, "{one:?}");
        prop_assert!(one.handshake_retransmissions <= one.retransmissions);
        prop_assert_eq!(one, connect(profile, &link, &trace(flight), transfer, seed, flow));
    }

    #[test]
    fn a_longer_way_is_never_faster(rtt_us in 1_000_u64..200_000, more in 1_u64..100_000, flight in 100_u32..60_000) {
        let handshake = |rtt_us| {
            let link = Link { rtt_us, ..link(1, 0.0) };
            connect(new(), &link, &trace(flight), NOTHING, 1, 1).handshake_ns
        };
        prop_assert!(handshake(rtt_us) < handshake(rtt_us + more));
    }

    #[test]
    fn without_loss_there_is_a_closed_form(rtt_us in 1_000_u64..200_000, flight in 1_u32..14_480, cpu in 0_u64..10_000_000) {
        let mut trace = trace(flight);
        trace.steps[1].cpu_ns = cpu;
        let one = connect(new(), &Link { rtt_us, ..link(1, 0.0) }, &trace, NOTHING, 1, 1);
        prop_assert_eq!(one.handshake_ns, 2 * rtt_us * 1000 + 300_000 + cpu);
        prop_assert_eq!(one.retransmissions, 0);
    }
}
