//! Tables and charts.

use super::flights::{Flights, IW10, MSS, THREE_TIMES, packets};
use super::keys::{Group, Mechanism, OUTLAST, Signing};
use super::primitives::{AGAIN, EXCHANGE, GENERATE, SIGN, Timing};
use super::published::{Kind, PUBLISHED, Published, SHARES};
use crate::result::{Axis, Chart, Control, Marks, Rule, Table, Value};
use crate::run::Run;
use crate::statistics::{mean, quantile_of, two_level};
use crate::subject::Authentication;

/// A figure of a table.
#[expect(clippy::cast_precision_loss, reason = "bytes and counts")]
pub fn number(value: impl TryInto<u64>) -> f64 {
    value.try_into().unwrap_or_default() as f64
}

fn cell(value: impl TryInto<u64>) -> Value {
    Value::Number(number(value))
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn agrees(measured: [usize; 2], published: Option<[usize; 2]>) -> Value {
    match published {
        None => "".into(),
        Some(published) if published == measured => "yes".into(),
        Some([first, second]) => format!("no: {first} and {second}").into(),
    }
}

/// Key exchanges.
pub fn groups(run: &mut Run<'_>, groups: &[Group]) {
    let classical = groups.iter().find(|row| row.name == "x25519");
    let rows = groups.iter().map(|row| {
        let published = SHARES.iter().find(|(name, ..)| *name == row.name);
        let sizes = [row.client_share, row.server_share];
        let more = classical.map_or("".into(), |other| {
            Value::Number(
                number(row.client_hello + row.server_flight)
                    - number(other.client_hello + other.server_flight),
            )
        });
        vec![
            row.name.as_str().into(),
            format!("0x{:04x}", row.code_point).into(),
            row.kind.as_str().into(),
            cell(row.client_share),
            cell(row.server_share),
            cell(row.client_hello),
            cell(packets(row.client_hello)),
            cell(row.server_flight),
            more,
            published.map_or("", |(.., source)| source).into(),
            agrees(sizes, published.map(|(_, sizes, _)| *sizes)),
        ]
    });
    run.table(Table {
        name: "key-exchanges".into(),
        title: "Key exchanges".into(),
        columns: columns(&[
            "key exchange",
            "code point",
            "kind",
            "client's share (bytes)",
            "server's share (bytes)",
            "ClientHello (bytes)",
            "ClientHello (packets)",
            "server's flight (bytes)",
            "more than x25519 (bytes)",
            "standard",
            "agrees",
        ]),
        rows: rows.collect(),
        note: format!(
            "ClientHello and the server's flight are records of a rustls handshake that offers this group alone, with one ECDSA P-256 \
             certificate, to the name localhost; packets carry {MSS} bytes."
        ),
    });
    let served: Vec<_> = groups.iter().filter(|row| !row.legacy).collect();
    let over: Vec<_> =
        served.iter().filter(|row| row.client_hello > MSS).map(|row| row.name.as_str()).collect();
    if let Some(hybrid) = served.iter().find(|row| row.name == "X25519MLKEM768") {
        run.summary(format!(
            "A rustls ClientHello to localhost with X25519MLKEM768 alone has {} bytes and {} into one packet of {MSS}; over one packet are: {}.",
            hybrid.client_hello,
            if hybrid.client_hello <= MSS { "fits" } else { "does not fit" },
            if over.is_empty() { "none".to_owned() } else { over.join(", ") },
        ));
    }
    run.chart(Chart {
        name: "client-hellos".into(),
        title: "ClientHello and the server's flight, by key exchange".into(),
        x: Axis::linear("key exchange"),
        y: Axis::linear("bytes"),
        marks: Marks::Bars {
            categories: served.iter().map(|row| row.name.clone()).collect(),
            parts: vec![
                ("ClientHello".into(), served.iter().map(|row| number(row.client_hello)).collect()),
                ("server's flight".into(), served.iter().map(|row| number(row.server_flight)).collect()),
            ],
            grouped: true,
        },
        rules: vec![Rule { label: format!("one packet, {MSS}"), at: number(MSS) }],
        caption: "One ECDSA P-256 certificate. A client that offers a classical share beside the hybrid one sends that much more."
            .into(),
    });
}

/// Mechanisms on their own, measured and published.
pub fn mechanisms(run: &mut Run<'_>, mechanisms: &[Mechanism]) {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut bars: Vec<(String, f64, f64)> = Vec::new();
    for row in mechanisms {
        let published = Published::by_name(&row.name);
        let sizes = published.map(|published| [published.public_key, published.output]);
        rows.push(vec![
            row.name.as_str().into(),
            row.source.as_str().into(),
            cell(row.public_key),
            cell(row.secret_key),
            cell(row.ciphertext),
            cell(row.public_key + row.ciphertext),
            published.map_or("", |published| published.source).into(),
            agrees([row.public_key, row.ciphertext], sizes),
        ]);
        bars.push((row.name.clone(), number(row.public_key), number(row.ciphertext)));
    }
    for published in not_run(Kind::Kem, mechanisms.iter().map(|row| row.name.as_str())) {
        rows.push(vec![
            published.name.into(),
            LITERATURE.into(),
            cell(published.public_key),
            cell(published.secret_key),
            cell(published.output),
            cell(published.public_key + published.output),
            published.source.into(),
            "".into(),
        ]);
        bars.push((
            published.name.to_owned(),
            number(published.public_key),
            number(published.output),
        ));
    }
    run.table(Table {
        name: "mechanisms".into(),
        title: "Key encapsulation mechanisms".into(),
        columns: columns(&[
            "mechanism",
            "implementation",
            "public key (bytes)",
            "secret key (bytes)",
            "ciphertext (bytes)",
            "public key and ciphertext (bytes)",
            "published in",
            "agrees",
        ]),
        rows,
        note: format!(
            "Secret keys of {OUTLAST} are PKCS #8 files, which have the seed beside or instead of the expanded key; the others are as the \
             libraries keep them. Agreement is of public key and ciphertext."
        ),
    });
    // The 90s variants have the same sizes.
    bars.retain(|(name, ..)| !name.contains("90s"));
    bars.sort_by(|a, b| (a.1 + a.2).total_cmp(&(b.1 + b.2)));
    run.chart(two_parts(
        "mechanism-sizes",
        "Public key and ciphertext of each mechanism",
        "ciphertext",
        &bars,
    ));
}

/// Mark of a row that is not measured.
const LITERATURE: &str = "from the literature";

fn not_run<'a>(
    kind: Kind,
    measured: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = &'static Published> {
    let measured: Vec<String> = measured.map(str::to_owned).collect();
    PUBLISHED
        .iter()
        .filter(move |row| row.kind == kind && !measured.iter().any(|name| name == row.name))
}

fn two_parts(name: &str, title: &str, second: &str, bars: &[(String, f64, f64)]) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("algorithm, the smallest sum first"),
        y: Axis::log("bytes"),
        marks: Marks::Bars {
            categories: bars.iter().map(|(name, ..)| name.clone()).collect(),
            parts: vec![
                ("public key".into(), bars.iter().map(|row| row.1).collect()),
                (second.into(), bars.iter().map(|row| row.2).collect()),
            ],
            grouped: true,
        },
        rules: vec![Rule { label: format!("one packet, {MSS}"), at: number(MSS) }],
        caption: format!(
            "Logarithmic. Each of the two travels in another direction or another message; {MSS} bytes fit into a packet."
        ),
    }
}

/// Signature algorithms, measured and published.
pub fn signatures(run: &mut Run<'_>, signatures: &[Signing]) {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut bars: Vec<(String, f64, f64)> = Vec::new();
    for row in signatures {
        let published = Published::by_name(&row.name);
        let sizes = published.map(|published| [published.public_key, published.output]);
        rows.push(vec![
            row.name.as_str().into(),
            row.source.as_str().into(),
            cell(row.public_key),
            cell(row.secret_key),
            cell(row.signature),
            cell(row.leaf),
            cell(row.root),
            if row.tls { "yes" } else { "no" }.into(),
            published.map_or("", |published| published.source).into(),
            agrees([row.public_key, row.signature], sizes),
        ]);
        bars.push((row.name.clone(), number(row.public_key), number(row.signature)));
    }
    for published in not_run(Kind::Signature, signatures.iter().map(|row| row.name.as_str())) {
        rows.push(vec![
            published.name.into(),
            LITERATURE.into(),
            cell(published.public_key),
            cell(published.secret_key),
            cell(published.output),
            "".into(),
            "".into(),
            "".into(),
            published.source.into(),
            "".into(),
        ]);
        bars.push((
            published.name.to_owned(),
            number(published.public_key),
            number(published.output),
        ));
    }
    run.table(Table {
        name: "signatures".into(),
        title: "Signature algorithms and their certificates".into(),
        columns: columns(&[
            "algorithm",
            "implementation",
            "public key (bytes)",
            "secret key (bytes)",
            "signature at most (bytes)",
            "leaf (bytes)",
            "root (bytes)",
            "scheme in TLS",
            "published in",
            "agrees",
        ]),
        rows,
        note: "Certificates are DER, with the extensions of a private CA: two names, key identifiers, usages, addresses of CRL and OCSP; \
               issuer and subject have the same algorithm. Agreement is of public key and signature."
            .into(),
    });
    // The literature's hybrids are the sums of two that are shown.
    bars.retain(|(name, ..)| !is_hybrid(name));
    bars.sort_by(|a, b| (a.1 + a.2).total_cmp(&(b.1 + b.2)));
    run.chart(two_parts(
        "signature-sizes",
        "Public key and signature of each algorithm",
        "signature",
        &bars,
    ));
    certificates(run, signatures);
}

fn is_hybrid(name: &str) -> bool {
    ["p256_", "p384_", "p521_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Larger ones would flatten the rest.
const SHOWN: usize = 15_000;

fn certificates(run: &mut Run<'_>, signatures: &[Signing]) {
    let mut shown: Vec<_> =
        signatures.iter().filter(|row| row.leaf <= SHOWN && !is_hybrid(&row.name)).collect();
    shown.sort_by_key(|row| row.leaf);
    let left: Vec<String> = signatures
        .iter()
        .filter(|row| row.leaf > SHOWN)
        .map(|row| format!("{} ({} bytes)", row.name, row.leaf))
        .collect();
    let part = |of: fn(&Signing) -> usize| shown.iter().map(|row| number(of(row))).collect();
    run.chart(Chart {
        name: "certificates".into(),
        title: "A leaf's certificate, by algorithm".into(),
        x: Axis::linear("algorithm of the leaf and of its issuer"),
        y: Axis::linear("bytes of DER"),
        marks: Marks::Bars {
            categories: shown.iter().map(|row| row.name.clone()).collect(),
            parts: vec![
                (
                    "names, extensions, encoding".into(),
                    part(|row| row.leaf.saturating_sub(row.public_key + row.signature)),
                ),
                ("public key".into(), part(|row| row.public_key)),
                ("signature".into(), part(|row| row.signature)),
            ],
            grouped: false,
        },
        rules: vec![],
        caption: if left.is_empty() {
            String::new()
        } else {
            format!("Not shown: {}.", left.join(", "))
        },
    });
}

/// Whether Outlast serves it; the literature's are only in the tables.
fn is_served(name: &str) -> bool {
    Authentication::by_name(name).is_ok_and(|row| !row.legacy)
}

/// Flights of chains.
pub fn flights(run: &mut Run<'_>, flights: &[Flights]) {
    let rows = flights.iter().map(|row| {
        vec![
            row.authentication.as_str().into(),
            cell(row.certificates),
            cell(row.client_hello),
            cell(row.server),
            cell(packets(row.server)),
            Value::Number(number(row.server) / number(IW10)),
            cell(row.tcp_round_trips),
            cell(row.quic),
            cell(row.quic_round_trips),
            cell(row.client_finished),
            if row.arithmetic == row.server {
                "yes".into()
            } else {
                format!("no: {}", row.arithmetic).into()
            },
        ]
    });
    run.table(Table {
        name: "flights".into(),
        title: "Flights under X25519MLKEM768, by chain".into(),
        columns: columns(&[
            "algorithm",
            "certificates sent",
            "ClientHello (bytes)",
            "server's flight (bytes)",
            "server's flight (packets)",
            "share of IW10",
            "more round trips over TCP",
            "server's flight in QUIC (bytes)",
            "more round trips over QUIC (three-times limit alone)",
            "client's second flight (bytes)",
            "arithmetic agrees",
        ]),
        rows: rows.collect(),
        note: format!(
            "The root stays at home. IW10 is {IW10} bytes: ten packets of {MSS}. Over QUIC a server may send three times what it has \
             received before the client's address is validated; the ClientHello takes two datagrams of 1200 bytes. Round trips over QUIC are \
             arithmetic of that limit alone: congestion control may add some (`quic-rate` measures them). The arithmetic is made \
             from the sizes of the certificates, the signature and the share, with no handshake."
        ),
    });
    let over: Vec<_> = flights
        .iter()
        .filter(|row| row.server > IW10 && is_served(&row.authentication))
        .map(|row| format!("{} x{} ({} bytes)", row.authentication, row.certificates, row.server))
        .collect();
    if !over.is_empty() {
        run.summary(format!(
            "More than the first ten packets of TCP ({IW10} bytes), and so one more round trip: {}.",
            over.join(", ")
        ));
    }
    let quic: Vec<_> = flights
        .iter()
        .filter(|row| row.quic_round_trips > 0 && is_served(&row.authentication))
        .map(|row| {
            format!("{} x{} ({})", row.authentication, row.certificates, row.quic_round_trips)
        })
        .collect();
    if !quic.is_empty() {
        run.summary(format!(
            "Round trips that QUIC adds by arithmetic of the three-times limit alone, without congestion control (measured in quic-rate): {}.",
            quic.join(", ")
        ));
    }
    let mut names: Vec<&str> = Vec::new();
    for row in flights {
        if !names.contains(&row.authentication.as_str()) && !is_hybrid(&row.authentication) {
            names.push(&row.authentication);
        }
    }
    let bytes = |name: &str, certificates| {
        let mut found = flights
            .iter()
            .filter(|row| row.authentication == name && row.certificates == certificates);
        found.next().map_or(0.0, |row| number(row.server))
    };
    let whole: Vec<&str> = names.iter().copied().filter(|name| bytes(name, 3) > 0.0).collect();
    let part = |certificates| whole.iter().map(|name| bytes(name, certificates)).collect();
    run.chart(Chart {
        name: "server-flights".into(),
        title: "The server's first flight under X25519MLKEM768".into(),
        x: Axis::linear("algorithm of all certificates"),
        y: Axis::linear("bytes of records"),
        marks: Marks::Bars {
            categories: whole.iter().map(ToString::to_string).collect(),
            parts: vec![
                ("1 certificate".into(), part(1)),
                ("2 certificates".into(), part(2)),
                ("3 certificates".into(), part(3)),
            ],
            grouped: true,
        },
        rules: vec![
            Rule { label: format!("one packet, {MSS}"), at: number(MSS) },
            Rule { label: format!("IW10, {IW10}"), at: number(IW10) },
            Rule { label: "QUIC's 3x of two datagrams, 7200".into(), at: number(2 * THREE_TIMES) },
        ],
        caption: "What is above a line needs an acknowledgement, and so a round trip, before its rest is sent.".into(),
    });
}

/// Processor time of the primitives.
pub fn primitives(run: &mut Run<'_>, timings: &[Timing]) {
    for exchange in [true, false] {
        table(run, timings, exchange);
        chart(run, timings, exchange);
    }
    control(run, timings);
}

/// The 10th percentile and the mean in microseconds.
fn figures(timings: &[Timing], name: &str, operation: &str) -> Option<(f64, f64, usize)> {
    timings.iter().filter(|timing| timing.name == name).find_map(|timing| {
        let part = timing.parts.iter().position(|part| part == operation)?;
        let micros: Vec<f64> = timing
            .samples
            .iter()
            .filter_map(|sample| sample.get(part))
            .map(|nanos| f64::from(*nanos) / 1000.0)
            .collect();
        Some((quantile_of(&micros, 0.1), mean(&micros), micros.len()))
    })
}

fn operations(exchange: bool) -> Vec<&'static str> {
    if exchange { EXCHANGE.to_vec() } else { [GENERATE, SIGN].concat() }
}

fn names(timings: &[Timing], exchange: bool) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for timing in timings.iter().filter(|timing| timing.exchange == exchange) {
        if timing.name != AGAIN && !names.contains(&timing.name.as_str()) {
            names.push(&timing.name);
        }
    }
    names
}

fn table(run: &mut Run<'_>, timings: &[Timing], exchange: bool) {
    let operations = operations(exchange);
    let mut titles = vec!["algorithm".to_owned()];
    for operation in &operations {
        titles.extend([format!("{operation}, p10 (us)"), format!("{operation}, mean (us)")]);
    }
    titles.push("samples".to_owned());
    let rows = names(timings, exchange).into_iter().map(|name| {
        let mut row: Vec<Value> = vec![name.into()];
        let mut least = usize::MAX;
        for operation in &operations {
            let (p10, mean, samples) = figures(timings, name, operation).unwrap_or_default();
            row.extend([Value::Number(round(p10)), Value::Number(round(mean))]);
            least = least.min(samples);
        }
        row.push(cell(least));
        row
    });
    run.table(Table {
        name: if exchange { "primitives-key-exchange" } else { "primitives-signatures" }.into(),
        title: if exchange { "Primitives of key exchanges" } else { "Primitives of signatures" }.into(),
        columns: titles,
        rows: rows.collect(),
        note: if exchange {
            "CPU time of the thread in microseconds, through rustls' interface: the client makes a key pair, the server answers \
             (encapsulation; with a curve also its key pair and the agreement), the client finishes (decapsulation). All rows in turn, \
             in random order, in one process. The 10th percentile is the cost without disturbance."
                .into()
        } else {
            "CPU time of the thread in microseconds for a message as long as what CertificateVerify signs. Where signing repeats until \
             something fits (ML-DSA, Dilithium, Falcon) the mean is the cost, and the 10th percentile understates it. `samples` is the \
             fewest of the operations: what takes long, such as making RSA keys, has few."
                .into()
        },
    });
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn chart(run: &mut Run<'_>, timings: &[Timing], exchange: bool) {
    let operations = operations(exchange);
    // Making a key is not part of a handshake's signature; the literature's hybrids are sums.
    let shown: Vec<&str> = if exchange { operations.clone() } else { SIGN.to_vec() };
    let figure = |name: &str, operation: &str| {
        let (p10, mean, _) = figures(timings, name, operation).unwrap_or_default();
        if exchange { p10 } else { mean }
    };
    let mut names: Vec<&str> =
        names(timings, exchange).into_iter().filter(|name| !is_hybrid(name)).collect();
    let sum = |name: &str| shown.iter().map(|operation| figure(name, operation)).sum::<f64>();
    names.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
    let part =
        |operation: &str| names.iter().map(|name| figure(name, operation).max(0.1)).collect();
    run.chart(Chart {
        name: if exchange { "primitives-key-exchange" } else { "primitives-signatures" }.into(),
        title: if exchange { "What a key exchange costs" } else { "What signing and verifying cost" }.into(),
        x: Axis::linear("algorithm, the cheapest first"),
        y: Axis::log(if exchange { "CPU time, p10 (us)" } else { "CPU time, mean (us)" }),
        marks: Marks::Bars {
            categories: names.iter().map(ToString::to_string).collect(),
            parts: shown.iter().map(|operation| ((*operation).to_owned(), part(operation))).collect(),
            grouped: true,
        },
        rules: vec![],
        caption: "Logarithmic. One thread, no network; libraries differ in how much of them is written for this processor.".into(),
    });
}

/// The same group, measured as if it were two.
fn control(run: &mut Run<'_>, timings: &[Timing]) {
    let samples = |name: &str| -> Vec<f64> {
        let found = timings.iter().find(|timing| timing.name == name);
        let sum = |parts: &Vec<u32>| parts.iter().copied().map(f64::from).sum();
        found.map_or_else(Vec::new, |timing| timing.samples.iter().map(sum).collect())
    };
    let pairs: Vec<[f64; 2]> = samples("x25519")
        .into_iter()
        .zip(samples(AGAIN))
        .map(|(first, second)| [first, second])
        .collect();
    if pairs.is_empty() {
        return;
    }
    let ratio = |pairs: &[[f64; 2]]| {
        let of = |index: usize| {
            let values: Vec<f64> = pairs.iter().map(|pair| pair[index]).collect();
            quantile_of(&values, 0.1)
        };
        of(1) / of(0).max(1.0)
    };
    let estimate = two_level(&[pairs], run.seed(), ratio);
    run.control(Control {
        what: "x25519 twice, all three operations, by the 10th percentile".into(),
        ratio: estimate.value,
        low: estimate.low,
        high: estimate.high,
    });
}
