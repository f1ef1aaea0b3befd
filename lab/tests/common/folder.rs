//! A realistic results folder.

use std::path::Path;

use outlast_lab::result::{
    Chart, ClaimKind, Control, Finding, Findings, Table, Told, Value, Verdict,
};
use outlast_lab::run::Settings;
use outlast_lab::run::folder::Asked;
use outlast_lab::state::State;

use super::{SUBJECTS, usual};

fn state(pressure: f64) -> State {
    let facts = [
        ("processor", "AMD EPYC 9R14 (Zen 4)"),
        ("processors", "2"),
        ("processor flags", "aes avx avx2 avx512f avx512vl bmi2 adx sha_ni vaes vpclmulqdq"),
        ("kernel", "Linux 6.12.8"),
        ("congestion control", "cubic (default: bbr)"),
        ("clock source", "tsc"),
        ("rustls", "0.23.46"),
        ("aws-lc-rs", "1.19.0"),
        ("s2n-quic", "1.91.0"),
        ("OpenSSL", "3.5.7, library found"),
        ("build", "release, thin LTO"),
    ];
    State {
        at_ms: 1_795_275_420_000,
        facts: facts.map(|(name, value)| (name.into(), value.into())).to_vec(),
        cpu_pressure: Some(pressure),
        steal_seconds: Some(12.4),
        load: Some(1.31),
    }
}

fn charts(names: &[&str]) -> Vec<Chart> {
    usual().into_iter().filter(|chart| names.contains(&chart.name.as_str())).collect()
}

fn finding(claim: &str, published: &str, measured: &str, verdict: Verdict, why: &str) -> Finding {
    Finding {
        kind: ClaimKind::Published,
        source: "D. Sikeridis, P. Kampanakis, M. Devetsikiotis, Post-Quantum Authentication in TLS 1.3: A Performance Study, NDSS 2020, figure 4 (https://eprint.iacr.org/2020/071)".into(),
        claim: claim.into(),
        published: published.into(),
        measured: measured.into(),
        verdict,
        why: why.into(),
    }
}

fn told(name: &str, title: &str, question: &str, findings: Findings) -> Told {
    Told {
        experiment: name.into(),
        title: title.into(),
        question: question.into(),
        source: "S. Paquin, D. Stebila, G. Tamvada, Benchmarking post-quantum cryptography in TLS, 2019, https://eprint.iacr.org/2019/1447".into(),
        state: state(9.3),
        after: Some(state(14.8)),
        seconds: 147.2,
        findings,
        skipped: None,
        failed: None,
    }
}

/// Results of made-up experiments.
pub fn results(shift: f64) -> Vec<Told> {
    let matrix = Findings {
        summary: vec![
            "X25519MLKEM768 adds 0.14 ms to a handshake at RTT 1 ms and nothing that can be seen at 30 ms: a median of 61.3 against 61.2 ms.".into(),
            "ML-DSA-65 with two certificates sends 15.6 kB, more than the first window of 14,480 bytes, and pays one more round trip: 91 ms instead of 60 at RTT 30 ms.".into(),
            "At 5 % loss the hybrid's mean is 4.95 ms higher [3.1, 6.8], which only the paired runs can tell.".into(),
            "Resumption takes back most of what signatures cost, and none of what the key exchange costs.".into(),
        ],
        findings: vec![
            finding("Key exchanges cannot be told apart, but for NTRU", "below 1 %", "below 1.2 % [0.4, 1.9]", Verdict::Holds, ""),
            finding(
                "Dilithium2 is faster than Falcon-512 until about 10 % loss, then slower",
                "crossover at 10 %",
                "crossover at 7 to 8 %",
                Verdict::Partly,
                "Falcon-512 signs with floating point here, which costs 0.2 ms less than the reference code of the paper; the order of the two and its reversal are the same.",
            ),
            finding("A handshake over a lossy link waits for the retransmission timer of 1 s", "1.0 s", "203 ms [202, 205]", Verdict::Differs, "Kernels since 5.10 probe the tail (TLP, RFC 8985) and wait for 200 ms at least instead of a second."),
            finding("Hybrid key exchange never fails", "none of 6000", "none of 6000", Verdict::Undecided, "None of 6000 says only that fewer than 0.05 % fail."),
        ],
        controls: vec![
            Control { what: "X25519 + ECDSA P-256 against itself, p10 of CPU".into(), ratio: 1.0009, low: 0.9961, high: 1.0052 },
            Control { what: "X25519 + ECDSA P-256 against itself, median over the link at RTT 30 ms and 5 % loss".into(), ratio: 1.012, low: 1.004, high: 1.021 },
            Control { what: "X25519 + ECDSA P-256 against itself, wall clock of QUIC connections".into(), ratio: 0.94, low: 0.82, high: 1.06 },
        ],
        charts: charts(&["fans-log", "heat-rtt", "steps-ecdf", "steps-sorted", "lines-few"]),
        tables: vec![Table {
            name: "medians".into(),
            title: "Handshake by link".into(),
            columns: ["subject", "RTT (ms)", "loss (%)", "median (ms)", "p95 (ms)", "p99 (ms)", "low (ms)", "high (ms)", "handshakes"].map(String::from).to_vec(),
            rows: SUBJECTS
                .iter()
                .enumerate()
                .flat_map(|(n, subject)| {
                    [1.0, 30.0].iter().flat_map(move |rtt| {
                        [0.0, 1.0, 5.0].iter().map(move |loss| {
                            let n = f64::from(u8::try_from(n).unwrap());
                            let median = rtt * 2.0 + n * 0.3 + 0.7 + loss * 0.01 + shift * n;
                            vec![
                                Value::from(*subject),
                                (*rtt).into(),
                                (*loss).into(),
                                median.into(),
                                (median * 1.04 + loss * 40.0).into(),
                                (median * 1.2 + loss * 200.0).into(),
                                (median * 0.995).into(),
                                (median * 1.005).into(),
                                6000.0.into(),
                            ]
                        })
                    })
                })
                .collect(),
            note: "The clock starts at the first byte of the ClientHello. Intervals are 95 %, by bootstrap.".into(),
        }],
        pictures: Vec::new(),
        notes: vec![
            "Loss is independent for each packet; links lose in bursts, which favours whoever sends fewer packets.".into(),
            "The model was compared with the real kernel at six points, see its validation table.".into(),
        ],
    };
    let cost = Findings {
        summary: vec!["The hybrid sends exactly 2,272 bytes more (1184 + 1088) and costs the server 0.05 ms of CPU.".into()],
        findings: vec![finding("The hybrid adds 2,356 bytes", "2,356 bytes", "2,272 bytes of TLS, 2,375 at IP level", Verdict::Partly, "The published figure counts Kyber's round-3 framing and part of the headers.")],
        controls: vec![Control { what: "client CPU of X25519 against itself".into(), ratio: 0.9991, low: 0.9931, high: 1.0047 }],
        charts: charts(&["bars-flights", "bars-split"]),
        tables: vec![Table {
            name: "bytes".into(),
            title: "Bytes each way".into(),
            columns: ["subject", "ClientHello (bytes)", "server flight (bytes)", "fits IW10"].map(String::from).to_vec(),
            rows: vec![
                vec!["X25519 + ECDSA P-256".into(), 218.0.into(), 902.0.into(), "yes".into()],
                vec!["X25519MLKEM768 + ECDSA P-256".into(), 1402.0.into(), 1990.0.into(), "yes".into()],
                vec!["X25519MLKEM768 + ML-DSA-65 x2".into(), 1402.0.into(), 15_612.0.into(), "no".into()],
                vec!["<script>alert(1)</script> & \"quoted\", x".into(), f64::NAN.into(), 75_069_418.0.into(), "no".into()],
            ],
            note: String::new(),
        }],
        ..Findings::default()
    };
    let pool = Findings {
        summary: vec!["A pool of two takes away most of what new connections cost; more than four bring nothing.".into()],
        charts: charts(&["lines-pool", "bars-grouped", "bars-rate"]),
        pictures: vec![("flame.svg".into(), "Where the server's time goes, hybrid.".into()), ("missing.svg".into(), "A picture that is not there.".into())],
        ..Findings::default()
    };
    vec![
        told(
            "tls-matrix",
            "Handshakes over links",
            "What does it cost us, on our links, at our loss?",
            matrix,
        ),
        told(
            "handshake-cost",
            "What one handshake costs",
            "How many bytes, packets and microseconds, and whose?",
            cost,
        ),
        told(
            "pool",
            "Connection pools",
            "How large must a pool be for the key exchange not to matter?",
            pool,
        ),
        Told {
            skipped: Some(
                "the live engine is not available: it needs root and /dev/net/tun".into(),
            ),
            ..told(
                "idle",
                "Idle connections",
                "How long should connections be kept?",
                Findings::default(),
            )
        },
    ]
}

/// Writes a folder like a run's.
pub fn write(folder: &Path, results: &[Told]) {
    let settings = Settings {
        quick: true,
        seed: 42,
        plan: None,
        version: "0.1.0".into(),
        executable: "outlast".into(),
    };
    let json = |path: &str, text: String| std::fs::write(folder.join(path), text).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    let asked = Asked { begun_ms: 1_795_275_420_000, settings };
    json("run.json", serde_json::to_string(&asked).unwrap());
    json("state.json", serde_json::to_string(&state(9.3)).unwrap());
    for told in results {
        std::fs::create_dir_all(folder.join(&told.experiment)).unwrap();
        json(&format!("{}/result.json", told.experiment), serde_json::to_string(told).unwrap());
        json(&format!("{}/points.ndjson", told.experiment), "{}\n".into());
    }
    if folder.join("pool").is_dir() {
        json("pool/flame.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 60\"><rect width=\"880\" height=\"40\" x=\"10\" y=\"10\" fill=\"orange\"/><text x=\"30\" y=\"36\">aws_lc::mlkem768_decapsulate</text></svg>".into());
    }
}
