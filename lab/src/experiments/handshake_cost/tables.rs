//! Tables, charts and sentences of `handshake-cost`.

use std::time::Duration;

use super::flights::{AMPLIFICATION, FIRST_WINDOW, Flights, INITIAL, MSS};
use super::{Costs, PAIRS};
use crate::experiments::tables::{interval_words, short};
use crate::result::{Axis, Chart, Marks, Rule, Table, Value};
use crate::run::Run;
use crate::subject::{Kind, Subject};
use crate::tls::rounds::Part;

/// RTT of the stacked bars: a neighbour in the same region, where processor time matters most.
const NEAR: Duration = Duration::from_millis(1);
/// What figures at that RTT are worth.
const UNSURE: &str = "At RTT 1 ms it is outside the model's validated range: the published points begin at 5.5 ms, and the model is 10 to \
                      40 % below real connections, whose processes wake up and share processors.";
/// RTT of the sentences about round trips.
const FAR: Duration = Duration::from_millis(30);

pub(super) fn tell(run: &mut Run<'_>, costs: &[Costs]) {
    run.table(flights_table(costs));
    let intervals = intervals(run, costs);
    if !intervals.rows.is_empty() {
        run.table(intervals);
    }
    if let Some(first) = costs.first() {
        run.chart(stacked(first));
        run.chart(bytes_chart(first));
    }
    run.table(thresholds(costs));
    for sentence in sentences(costs, run.seed()) {
        run.summary(sentence);
    }
    let versions: Vec<String> =
        costs.iter().map(|cost| format!("{} {}", cost.stack, cost.version)).collect();
    run.note(format!("Measured on {}.", versions.join(", ")));
    run.note(
        "Processor times of the large table are typical ones: the 10th percentile, or the mean where signing takes a random number of \
         tries (ML-DSA). Differences with intervals come from rounds in several processes, in the table of client and server.",
    );
}

fn number(value: u64) -> Value {
    Value::Number(count(value))
}

pub(super) fn count(value: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a handshake")]
    let value = value as f64;
    value
}

pub(super) fn flights_table(costs: &[Costs]) -> Table {
    let rows = costs
        .iter()
        .flat_map(|cost| {
            cost.flights.iter().map(move |(subject, flights)| (cost, subject, flights))
        })
        .map(|(cost, subject, flights)| {
            let network =
                flights.over(NEAR).map(|all| all - flights.cpu_us.iter().sum::<f64>() / 1e3);
            let [client, server] = flights.bytes;
            vec![
                cost.stack.into(),
                subject.name().into(),
                short(flights.cpu_us[0]).into(),
                short(flights.cpu_us[1]).into(),
                network.map_or_else(|| Value::from("-"), |network| short(network).into()),
                flights.over(FAR).map_or_else(|| Value::from("-"), |all| short(all).into()),
                number(client),
                number(server),
                number(flights.packets[0]),
                number(flights.packets[1]),
                number(flights.client_hello),
                number(flights.server_flight),
                flights.passed().join("; ").into(),
            ]
        })
        .collect();
    let columns = [
        "stack",
        "who",
        "client CPU (us)",
        "server CPU (us)",
        "network at RTT 1 ms, not validated (ms)",
        "handshake at RTT 30 ms (ms)",
        "client (bytes)",
        "server (bytes)",
        "client (packets)",
        "server (packets)",
        "ClientHello (bytes)",
        "server's flight (bytes)",
        "limits passed",
    ];
    Table {
        name: "flights".to_owned(),
        title: "Every pair: processor time, network, bytes, packets".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: format!(
            "Bytes of TLS records up to the client's Finished, without TCP and IP; packets of {MSS} bytes. Network: TCP and TLS over a \
             link without loss, by the model, less the processor times. {UNSURE} QUIC's limit is computed from the same flights, although in QUIC \
             they are a few bytes apart."
        ),
    }
}

/// Client and server separately, with intervals; records the controls.
fn intervals(run: &mut Run<'_>, costs: &[Costs]) -> Table {
    let seed = run.seed();
    let (base_group, base_signature) = PAIRS[0];
    let mut rows = Vec::new();
    for cost in costs {
        let (Some(base), Some((_, measured))) =
            (cost.place(base_group, base_signature, false), &cost.cpu)
        else {
            continue;
        };
        for (group, signature) in PAIRS.iter().take(4) {
            let Some(index) = cost.place(group, signature, false) else { continue };
            let mut row: Vec<Value> =
                vec![cost.stack.into(), format!("{group} + {signature}").into()];
            for part in [Part::Client, Part::Server] {
                let own = measured.cost(index, part, seed);
                row.push(
                    format!("{} [{}, {}]", short(own.value), short(own.low), short(own.high))
                        .into(),
                );
                row.push(if index == base {
                    "baseline".into()
                } else {
                    interval_words(&measured.difference(index, base, part, seed), "us").into()
                });
            }
            let ratio = measured.ratio(index, base, Part::Both, seed);
            row.push(
                format!("{} [{}, {}]", digits(ratio.value), digits(ratio.low), digits(ratio.high))
                    .into(),
            );
            rows.push(row);
        }
        if let Some(again) = cost.place(base_group, base_signature, true) {
            let what =
                format!("{}: {base_group} + {base_signature}, client and server", cost.stack);
            run.control(measured.control(&what, again, base, Part::Both, seed));
        }
    }
    Table {
        name: "cpu".to_owned(),
        title: "Processor time of client and server, with intervals".to_owned(),
        columns: [
            "stack",
            "who",
            "client (us)",
            "client, more than classical",
            "server (us)",
            "server, more than classical",
            "both over classical (ratio)",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: "Several processes, rounds with everybody once in random order; 95 % intervals by a bootstrap of processes and rounds."
            .to_owned(),
    }
}

/// A ratio with four digits.
fn digits(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

fn chosen(cost: &Costs) -> Vec<(&Subject, &Flights)> {
    cost.flights
        .iter()
        .filter(|(subject, _)| {
            PAIRS.iter().any(|(group, signature)| {
                subject.key_exchange.name == *group && subject.authentication.name == *signature
            })
        })
        .map(|(subject, flights)| (subject, flights))
        .collect()
}

pub(super) fn stacked(cost: &Costs) -> Chart {
    let rows = chosen(cost);
    let part =
        |of: &dyn Fn(&Flights) -> f64| rows.iter().map(|(_, flights)| short(of(flights))).collect();
    let cpu = |side: usize| {
        move |flights: &Flights| flights.cpu_us.get(side).copied().unwrap_or_default() / 1e3
    };
    let network = |flights: &Flights| {
        flights.over(NEAR).unwrap_or_default() - flights.cpu_us.iter().sum::<f64>() / 1e3
    };
    Chart {
        name: "time".to_owned(),
        title: format!(
            "Client, server and network of a handshake at RTT 1 ms, network not validated ({})",
            cost.stack
        ),
        x: Axis::linear("pair and kind"),
        y: Axis::linear("handshake since the SYN (ms)"),
        marks: Marks::Bars {
            categories: rows.iter().map(|(subject, _)| subject.name()).collect(),
            parts: vec![
                ("client's processor".to_owned(), part(&cpu(0))),
                ("server's processor".to_owned(), part(&cpu(1))),
                ("network".to_owned(), part(&network)),
            ],
            grouped: false,
        },
        rules: Vec::new(),
        caption: format!(
            "Even within one region most of a handshake is waiting, by the model. A HelloRetryRequest shows as one more round trip; so would a \
             flight over TCP's first window. {UNSURE}"
        ),
    }
}

fn bytes_chart(cost: &Costs) -> Chart {
    let rows: Vec<&(Subject, Flights)> =
        cost.flights.iter().filter(|(subject, _)| subject.kind == Kind::Full).collect();
    let part =
        |of: fn(&Flights) -> u64| rows.iter().map(|(_, flights)| count(of(flights))).collect();
    Chart {
        name: "bytes".to_owned(),
        title: format!("Bytes of each flight against the limits of TCP and QUIC ({})", cost.stack),
        x: Axis::linear("pair, chain of two certificates"),
        y: Axis::log("bytes"),
        marks: Marks::Bars {
            categories: rows.iter().map(|(subject, _)| subject.name()).collect(),
            parts: vec![
                ("ClientHello".to_owned(), part(|flights| flights.client_hello)),
                ("server's flight".to_owned(), part(|flights| flights.server_flight)),
            ],
            grouped: true,
        },
        rules: vec![
            Rule { label: format!("one packet: MSS {MSS}"), at: count(MSS) },
            Rule {
                label: format!("QUIC: 3 x {INITIAL} = {}", AMPLIFICATION * INITIAL),
                at: count(AMPLIFICATION * INITIAL),
            },
            Rule { label: format!("TCP's first window: {FIRST_WINDOW}"), at: count(FIRST_WINDOW) },
        ],
        caption: "Over its line a flight costs a packet (MSS) or a round trip (QUIC's limit, TCP's first window). In QUIC a ClientHello of \
                  two datagrams doubles what the server may send."
            .to_owned(),
    }
}

fn thresholds(costs: &[Costs]) -> Table {
    let mut rows = Vec::new();
    for cost in costs {
        for (subject, flights) in &cost.flights {
            for limit in flights.passed() {
                rows.push(vec![
                    cost.stack.into(),
                    subject.name().into(),
                    limit.into(),
                    flights.over(FAR).map_or_else(|| Value::from("-"), |all| short(all).into()),
                ]);
            }
        }
    }
    Table {
        name: "thresholds".to_owned(),
        title: "Who passes which limit".to_owned(),
        columns: ["stack", "who", "limit", "handshake at RTT 30 ms, TCP (ms)"].map(str::to_owned).to_vec(),
        rows,
        note: "Pairs that are not listed fit into one ClientHello packet, TCP's first window and QUIC's limit.".to_owned(),
    }
}

fn sentences(costs: &[Costs], seed: u64) -> Vec<String> {
    let mut sentences = Vec::new();
    for cost in costs {
        let (Some(classical), Some(hybrid)) =
            (cost.flights(PAIRS[0].0, PAIRS[0].1), cost.flights(PAIRS[1].0, PAIRS[1].1))
        else {
            continue;
        };
        let added = match cost.differences(seed) {
            Some(both) => {
                let [client, server] = both.map(|one| interval_words(&one, "us"));
                format!(
                    "costs the client {client} and the server {server} of processor time more than {}",
                    PAIRS[0].0
                )
            }
            None => "was not measured in turns with the classical exchange".to_owned(),
        };
        let fits = if hybrid.client_hello > MSS { "does not fit" } else { "fits" };
        sentences.push(format!(
            "On {} the hybrid {added}; it adds {} bytes of TLS. Its ClientHello of {} bytes {fits} one packet of {MSS}.",
            cost.stack,
            signed(hybrid.bytes.iter().sum::<u64>(), classical.bytes.iter().sum::<u64>()),
            hybrid.client_hello,
        ));
        let Some(large) = cost.flights(PAIRS[3].0, PAIRS[3].1) else { continue };
        if let (Some(before), Some(after)) = (hybrid.over(FAR), large.over(FAR)) {
            let over = if large.server_flight > FIRST_WINDOW { "over" } else { "within" };
            sentences.push(format!(
                "On {} with {} and two certificates the server's flight is {} bytes, {over} TCP's first window of {FIRST_WINDOW}: {} ms \
                 become {} ms at RTT 30 ms.",
                cost.stack,
                PAIRS[3].1,
                large.server_flight,
                short(before),
                short(after)
            ));
        }
    }
    sentences
}

/// A difference of counts with its sign.
pub(super) fn signed(one: u64, other: u64) -> String {
    if one >= other { format!("+{}", one - other) } else { format!("-{}", other - one) }
}
