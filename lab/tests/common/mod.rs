//! The program as a user runs it, and made-up charts, realistic and odd ones.
#![allow(dead_code, reason = "each test takes what it needs")]

pub mod folder;

use std::path::PathBuf;
use std::process::Command;

use outlast_lab::result::{Axis, Chart, Fan, Marks, Rule, Series};

/// A chart.
pub fn chart(name: &str, title: &str, x: Axis, y: Axis, marks: Marks) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x,
        y,
        marks,
        rules: Vec::new(),
        caption: "Made up.".into(),
    }
}

/// Names in the lab's style.
pub const SUBJECTS: [&str; 12] = [
    "X25519 + ECDSA P-256",
    "X25519MLKEM768 + ECDSA P-256",
    "X25519MLKEM768 + ML-DSA-44 x2",
    "X25519MLKEM768 + ML-DSA-65 x2",
    "SecP384r1MLKEM1024 + ML-DSA-87 x3, HelloRetryRequest",
    "secp256r1 + ECDSA P-256 x2",
    "SecP256r1MLKEM768 + ECDSA P-256",
    "MLKEM1024 + ML-DSA-87, mutual",
    "X25519 + RSA-2048, resumed",
    "X25519 + ML-DSA-65 x2",
    "Kyber768-R3 + Falcon-512 x2",
    "NTRU-HPS-2048-677 + Dilithium3-R3 x2",
];

fn noise(n: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let n = n as f64;
    ((n * 12.9898).sin() * 43_758.545).fract().abs()
}

fn name(name: &str) -> String {
    name.to_owned()
}

/// Sorted times of handshakes: most near the link's, some with a retransmission.
fn times(rtt: f64, loss: f64, extra: f64, many: usize) -> Vec<f64> {
    let mut times: Vec<f64> = (0..many)
        .map(|n| {
            let base = rtt * 2.0 + extra + noise(n) * 0.4;
            match noise(n * 7 + 3) / loss.max(1e-9) {
                share if share < 0.3 => base + 1000.0,
                share if share < 0.8 => base + 200.0 + rtt,
                share if share < 1.0 => base + rtt * 1.3,
                _ => base,
            }
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Charts of every kind with realistic data.
pub fn usual() -> Vec<Chart> {
    let mut charts = Vec::new();
    let loss = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0];

    charts.push(chart(
        "lines-few",
        "Hybrid costs a tenth of a millisecond at any loss; ML-DSA-65 with two certificates costs a round trip",
        Axis::linear("loss in each direction (%)"),
        Axis::linear("median time to last byte (ms)"),
        Marks::Lines {
            series: SUBJECTS[..4]
                .iter()
                .enumerate()
                .map(|(n, subject)| {
                    let shift = [0.0, 0.3, 2.0, 30.0][n];
                    let points: Vec<[f64; 2]> =
                        loss.map(|loss| [loss, 60.0 + shift + loss * loss * 0.3]).to_vec();
                    let band = points.iter().map(|[x, y]| [y - 1.0 - x * 0.3, y + 1.0 + x * 0.4]).collect();
                    Series { name: name(subject), points, band }
                })
                .collect(),
        },
    ));

    let mut pool = chart(
        "lines-pool",
        "The largest gain is from one connection to two",
        Axis::log("connections in the pool"),
        Axis::log("median latency (ms)"),
        Marks::Lines {
            series: ["classical", "hybrid", "hybrid with ML-DSA-65"]
                .iter()
                .enumerate()
                .map(|(n, what)| Series {
                    name: name(what),
                    points: [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
                        .map(|size: f64| [size, 4.6 + 18.0 / size.powi(2) + noise(n) * 0.8])
                        .to_vec(),
                    band: Vec::new(),
                })
                .collect(),
        },
    );
    pool.rules = vec![Rule { label: "without a pool".into(), at: 9.2 }];
    charts.push(pool);

    charts.push(chart(
        "lines-twelve",
        "Twelve subjects at once, with names as long as they come",
        Axis::linear("RTT (ms)"),
        Axis::log("p95 of the handshake (ms)"),
        Marks::Lines {
            series: SUBJECTS
                .iter()
                .enumerate()
                .map(|(n, subject)| {
                    #[expect(clippy::cast_precision_loss, reason = "small")]
                    let n = n as f64;
                    let at = |rtt: f64| [rtt, 1.2 + n * 0.35 + rtt * (1.0 + n * 0.14)];
                    Series {
                        name: name(subject),
                        points: [1.0, 2.5, 5.5, 30.0, 80.0, 196.0].map(at).to_vec(),
                        band: Vec::new(),
                    }
                })
                .collect(),
        },
    ));

    #[expect(clippy::cast_precision_loss, reason = "small")]
    let share = |n: usize, all: usize| (n + 1) as f64 / all as f64;
    let differences = |scale: f64, shift: f64| -> Vec<[f64; 2]> {
        let mut values: Vec<f64> = (0..2000)
            .map(|n| (noise(n) + noise(n + 9000) + noise(n + 77_777) - 1.5) * scale + shift)
            .collect();
        values.sort_by(f64::total_cmp);
        values.iter().enumerate().map(|(n, value)| [*value, share(n, 2000)]).collect()
    };
    let mut ecdf = chart(
        "steps-ecdf",
        "Paired differences: the hybrid's is 5 ms, and the same losses met twice make it visible",
        Axis::linear("hybrid minus classical (ms)"),
        Axis::linear("share of handshakes"),
        Marks::Steps {
            series: vec![
                Series { name: "paired".into(), points: differences(4.0, 4.95), band: Vec::new() },
                Series {
                    name: "not paired".into(),
                    points: differences(40.0, 4.95),
                    band: Vec::new(),
                },
                Series {
                    name: "classical with itself (A/A)".into(),
                    points: differences(3.0, 0.0),
                    band: Vec::new(),
                },
            ],
        },
    );
    ecdf.rules = vec![Rule { label: "median".into(), at: 0.5 }];
    charts.push(ecdf);

    charts.push(chart(
        "steps-sorted",
        "Sorted times jump where a packet was lost",
        Axis::linear("handshake, sorted"),
        Axis::log("time (ms)"),
        Marks::Steps {
            series: SUBJECTS[..4]
                .iter()
                .enumerate()
                .map(|(n, subject)| Series {
                    name: name(subject),
                    points: times(5.5, [0.1, 0.12, 0.2, 0.26][n], [0.0, 0.2, 0.8, 1.6][n], 6000)
                        .into_iter()
                        .enumerate()
                        .map(|(place, time)| {
                            #[expect(clippy::cast_precision_loss, reason = "small")]
                            let place = place as f64;
                            [place, time]
                        })
                        .collect(),
                    band: Vec::new(),
                })
                .collect(),
        },
    ));

    let shares = vec![0.05, 0.25, 0.5, 0.75, 0.95];
    let fan = |rtt: f64| Fan {
        title: format!("RTT {rtt} ms"),
        names: vec![name(SUBJECTS[0]), name(SUBJECTS[1]), name(SUBJECTS[3])],
        x: loss.to_vec(),
        shares: shares.clone(),
        values: [0.0, 0.2, 1.8]
            .iter()
            .map(|extra| {
                loss.iter()
                    .map(|loss| {
                        let times = times(rtt, loss / 18.0, *extra, 800);
                        shares
                            .iter()
                            .map(|share| outlast_lab::statistics::quantile(&times, *share))
                            .collect()
                    })
                    .collect()
            })
            .collect(),
    };
    charts.push(chart(
        "fans-log",
        "Quantiles of the handshake against loss, for each round-trip time",
        Axis::linear("loss (%)"),
        Axis::log("handshake (ms)"),
        Marks::Fans { panels: [1.0, 2.5, 5.5, 30.0].map(fan).to_vec() },
    ));
    charts.push(chart(
        "fans-linear",
        "The same on a linear axis",
        Axis::linear("loss (%)"),
        Axis::linear("handshake (ms)"),
        Marks::Fans { panels: [1.0, 30.0, 196.0].map(fan).to_vec() },
    ));

    charts.push(chart(
        "heat-rtt",
        "Median by pair and round-trip time",
        Axis::linear("RTT (ms)"),
        Axis::log("median handshake (ms)"),
        Marks::Heat {
            rows: SUBJECTS.iter().map(|subject| name(subject)).collect(),
            columns: ["1", "2.5", "5.5", "30", "80", "196"].map(name).to_vec(),
            values: (0..12)
                .map(|row: usize| {
                    [1.0, 2.5, 5.5, 30.0, 80.0, 196.0]
                        .iter()
                        .enumerate()
                        .map(|(column, rtt)| {
                            (row != 7 || column < 4).then_some(rtt * 2.0 + noise(row) * 3.0 + 0.8)
                        })
                        .collect()
                })
                .collect(),
        },
    ));
    charts.push(chart(
        "heat-signed",
        "Change of the median against X25519 + ECDSA P-256",
        Axis::linear("loss and RTT"),
        Axis::linear("difference of medians (%)"),
        Marks::Heat {
            rows: SUBJECTS[..6].iter().map(|subject| name(subject)).collect(),
            columns: (0..16)
                .map(|n| format!("{} % at {} ms", n % 4, [1, 5, 30, 196][n / 4]))
                .collect(),
            values: (0..6)
                .map(|row| {
                    (0..16).map(|column| Some((noise(row * 16 + column) - 0.35) * 40.0)).collect()
                })
                .collect(),
        },
    ));

    let mut flights = chart(
        "bars-flights",
        "Server flights: ML-DSA-65 with two certificates exceeds the first window",
        Axis::linear("key exchange + signature"),
        Axis::linear("bytes of the server's flight"),
        Marks::Bars {
            categories: SUBJECTS.iter().map(|subject| name(subject)).collect(),
            parts: vec![
                (
                    "ServerHello".into(),
                    (0..12).map(|n| if n % 3 == 0 { 122.0 } else { 1210.0 }).collect(),
                ),
                (
                    "Certificate".into(),
                    (0..12)
                        .map(|n| [700.0, 750.0, 8100.0, 11_200.0, 21_500.0, 1400.0][n % 6])
                        .collect(),
                ),
                (
                    "CertificateVerify".into(),
                    (0..12).map(|n| [80.0, 80.0, 2430.0, 3320.0, 4640.0, 80.0][n % 6]).collect(),
                ),
            ],
            grouped: false,
        },
    );
    flights.rules = vec![
        Rule { label: "MSS".into(), at: 1448.0 },
        Rule { label: "QUIC's limit of 3 x 1200".into(), at: 3600.0 },
        Rule { label: "IW10".into(), at: 14_480.0 },
    ];
    charts.push(flights);

    charts.push(chart(
        "bars-split",
        "Where the time of a handshake goes",
        Axis::linear("subject"),
        Axis::linear("time (ms)"),
        Marks::Bars {
            categories: ["classical", "hybrid", "hybrid + ML-DSA-65"].map(name).to_vec(),
            parts: vec![
                ("client CPU".into(), vec![0.21, 0.27, 0.41]),
                ("server CPU".into(), vec![0.18, 0.22, 0.46]),
                ("network".into(), vec![2.05, 2.07, 3.10]),
            ],
            grouped: false,
        },
    ));
    let mut rate = chart(
        "bars-rate",
        "QUIC connections a second",
        Axis::linear(""),
        Axis::linear("connections per CPU second"),
        Marks::Bars {
            categories: [
                "X25519 + ECDSA P-256",
                "X25519MLKEM768 + ECDSA P-256",
                "X25519MLKEM768 + ML-DSA-65",
            ]
            .map(name)
            .to_vec(),
            parts: vec![("connections".into(), vec![1234.5, 1135.2, 802.9])],
            grouped: false,
        },
    );
    rate.rules = vec![Rule { label: "published, hybrid".into(), at: 1135.0 }];
    charts.push(rate);
    charts.push(chart(
        "bars-grouped",
        "Requests a second with and without reuse",
        Axis::linear("percentile"),
        Axis::linear("requests a second"),
        Marks::Bars {
            categories: ["p1", "p10", "p50", "p90", "p99", "mean"].map(name).to_vec(),
            parts: [
                "classical, new connection",
                "hybrid, new connection",
                "classical, reused",
                "hybrid, reused",
            ]
            .iter()
            .enumerate()
            .map(|(part, what)| {
                (
                    name(what),
                    (0..6).map(|n| [98.0, 96.0, 201.0, 200.5][part] + noise(n) * 30.0).collect(),
                )
            })
            .collect(),
            grouped: true,
        },
    ));
    charts.push(chart(
        "bars-twenty",
        "Public keys, ciphertexts and signatures of twenty algorithms",
        Axis::linear("algorithm"),
        Axis::log("bytes"),
        Marks::Bars {
            categories: (0..20)
                .map(|n| {
                    let names = [
                        "ML-KEM-512",
                        "ML-KEM-768",
                        "ML-KEM-1024",
                        "X25519",
                        "P-256",
                        "Kyber768-R3",
                        "NTRU-HPS-2048-677",
                        "FireSaber-R3",
                        "ML-DSA-44",
                        "ML-DSA-65",
                        "ML-DSA-87",
                        "Falcon-512",
                        "Falcon-1024",
                        "SLH-DSA-SHA2-128s",
                        "SLH-DSA-SHAKE-256f",
                        "ECDSA P-256",
                        "RSA-3072",
                        "Ed25519",
                        "Dilithium2-R3",
                        "Aigis-sig II",
                    ];
                    name(names[n])
                })
                .collect(),
            parts: vec![
                ("public key".into(), (0..20).map(|n| 32.0 + noise(n) * 2600.0).collect()),
                (
                    "ciphertext or signature".into(),
                    (0..20).map(|n| 64.0 + noise(n + 50).powi(3) * 49_000.0).collect(),
                ),
            ],
            grouped: true,
        },
    ));
    charts
}

/// Charts that nobody means to draw.
pub fn odd() -> Vec<Chart> {
    let series =
        |name: &str, points: Vec<[f64; 2]>| Series { name: name.into(), points, band: Vec::new() };
    let lines = |name: &str, log: bool, series: Vec<Series>| {
        let axis = |label: &str| Axis { label: label.into(), log };
        chart(name, name, axis("x"), axis("y"), Marks::Lines { series })
    };
    let bars = |name: &str, log: bool, categories: &[&str], values: Vec<f64>, grouped: bool| {
        let marks = Marks::Bars {
            categories: categories.iter().map(|text| (*text).to_owned()).collect(),
            parts: vec![("one".into(), values.clone()), ("two".into(), values)],
            grouped,
        };
        chart(name, name, Axis::linear("what"), Axis { label: "value".into(), log }, marks)
    };
    vec![
        lines("odd-none", false, Vec::new()),
        lines("odd-empty", true, vec![series("nothing", Vec::new())]),
        lines("odd-point", false, vec![series("a point", vec![[3.0, 7.0]])]),
        lines("odd-point-log", true, vec![series("a point", vec![[3.0, 7.0]])]),
        lines(
            "odd-zero-log",
            true,
            vec![series(
                "with a zero",
                vec![[0.0, 1.0], [1.0, 0.0], [2.0, -3.0], [3.0, 5.0], [4.0, 50.0]],
            )],
        ),
        lines(
            "odd-huge",
            false,
            vec![series(
                "huge",
                vec![[1e15, 1e-300], [2e15, 1e300], [3e15, f64::NAN], [4e15, 5e14], [5e15, 9e14]],
            )],
        ),
        lines(
            "odd-tiny",
            false,
            vec![series("tiny", vec![[1e-9, 2e-12], [2e-9, 3e-12], [3e-9, 2.5e-12]])],
        ),
        bars("odd-bars-none", false, &[], Vec::new(), false),
        bars("odd-bars-negative", false, &["a", "b", "c"], vec![-3.0, 2.0, f64::INFINITY], false),
        bars("odd-bars-log", true, &["a", "b", "c"], vec![0.0, 2000.0, 3.0], false),
        bars("odd-bars-short", true, &["a", "b", "c"], vec![5.0], true),
        chart(
            "odd-heat",
            "odd-heat",
            Axis::linear("columns"),
            Axis::log("values"),
            Marks::Heat {
                rows: vec!["same".into(), "ragged".into(), "missing".into()],
                columns: vec!["a".into(), "b & <c>".into(), "\u{7}bell".into()],
                values: vec![vec![Some(5.0), Some(0.0), Some(-1.0)], vec![Some(5.0)]],
            },
        ),
        chart(
            "odd-heat-none",
            "odd-heat-none",
            Axis::linear(""),
            Axis::linear(""),
            Marks::Heat { rows: vec![], columns: vec![], values: vec![] },
        ),
        chart(
            "odd-fan",
            "odd-fan",
            Axis::linear("x"),
            Axis::log("y"),
            Marks::Fans {
                panels: vec![
                    Fan {
                        title: "empty".into(),
                        names: vec![],
                        x: vec![],
                        shares: vec![],
                        values: vec![],
                    },
                    Fan {
                        title: "ragged".into(),
                        names: vec!["a".into(), "b".into()],
                        x: vec![1.0, 2.0, 3.0],
                        shares: vec![0.1, 0.5, 0.9],
                        values: vec![vec![vec![1.0, 2.0, 3.0], vec![0.0, 2.0], vec![]]],
                    },
                ],
            },
        ),
    ]
}

/// The program, without variables of AWS or Outlast in its environment.
pub fn lab() -> Command {
    outlast_testing::program::command(env!("CARGO_BIN_EXE_outlast-lab"))
}

/// The program's path, next to `outlast`, which it measures.
pub fn executable() -> PathBuf {
    let place = PathBuf::from(env!("CARGO_BIN_EXE_outlast-lab"));
    let service = place.with_file_name("outlast");
    assert!(service.exists(), "{} is not built: cargo build --package outlast", service.display());
    place
}
