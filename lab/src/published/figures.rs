//! Single figures of publications, one row each: value, unit, of what it is, where it stands, and by which clock.
//!
//! `lab/published/README.md` lists them for people; a test compares the two. An experiment takes its published figures
//! from here, and writes none of its own.

use crate::result::{Clock, Verdict};

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Of what it is: the denominator, and how it was averaged.
    pub per: &'static str,
    /// Where in the source it stands.
    pub at: &'static str,
    /// What it was timed by.
    pub clock: TimedBy,
    /// What of the source was read again when this list was made.
    pub read: &'static str,
    /// Where it was published.
    pub source: &'static str,
}

impl Figure {
    /// The value of a figure that counts something.
    pub const fn whole(self) -> u64 {
        self.value as u64
    }
}

/// What a published figure was timed by, as far as its source says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedBy {
    /// This clock.
    By(Clock),
    /// A clock that the source does not name.
    NotSaid,
    /// None: bytes, packets, a loss.
    Nothing,
}

impl TimedBy {
    /// It in a list.
    pub fn words(self) -> &'static str {
        match self {
            Self::By(clock) => clock.name(),
            Self::NotSaid => "not said",
            Self::Nothing => "-",
        }
    }

    /// The verdict about a figure by this clock, if one by `measured` may be compared with it. What was not measured stays
    /// undecided.
    #[must_use]
    pub fn judge(self, verdict: Verdict, measured: Clock) -> Verdict {
        match self {
            _ if verdict == Verdict::Undecided => verdict,
            Self::By(published) => verdict.of_clocks(published, measured),
            Self::NotSaid | Self::Nothing => Verdict::NotComparable,
        }
    }
}

/// The article on ML-KEM in KMS, ACM and Secrets Manager, with measurements of GenerateDataKey.
pub const KMS_ARTICLE: &str = "AWS Security Blog, \"ML-KEM post-quantum TLS now supported in AWS KMS, ACM, and Secrets Manager\" (2025)";
/// The article on tuning clients for hybrid key exchange, with separate figures for client, server and network, pools
/// and idle timeouts.
pub const TUNING_ARTICLE: &str =
    "AWS Security Blog, \"How to tune TLS for hybrid post-quantum cryptography with Kyber\" (2022)";
/// The article on post-quantum TLS 1.2 in KMS with BIKE and SIKE, and its measurements by perf.
pub const ROUND_2_ARTICLE: &str =
    "AWS Security Blog, \"Round 2 post-quantum TLS is now supported in AWS KMS\" (2020)";
/// The article on post-quantum key exchange in QUIC.
pub const QUIC_ARTICLE: &str = "AWS Security Blog, \"Enable post-quantum key exchange in QUIC with the s2n-quic library\" (2022)";
/// The reports of the rustls project on the cost of handshakes.
pub const RUSTLS_REPORTS: &str = "Reports of rustls.dev/perf, such as \"Measuring and (slightly) Improving Post-Quantum Handshake Performance\" (2024)";
/// Kampanakis and Childs-Klein.
pub const LAST_BYTE_PAPER: &str = "Panos Kampanakis, Will Childs-Klein: \"The impact of data-heavy, post-quantum TLS 1.3 on the Time-To-Last-Byte of \
     real-world connections\" (MADweb 2024)";
/// Paquin, Stebila, Tamvada.
pub const PAQUIN_PAPER: &str = "Christian Paquin, Douglas Stebila, Goutam Tamvada: \"Benchmarking Post-Quantum Cryptography in TLS\" (PQCrypto 2020)";
/// The study of 2022.
pub const FUDAN_STUDY: &str = "Fudan University's study of TLS 1.3 with post-quantum algorithms (2022), data in gudengxia/TestOfPQFizz";

const WALL: TimedBy = TimedBy::By(Clock::Wall);
const CPU: TimedBy = TimedBy::By(Clock::Cpu);
const CYCLES: TimedBy = TimedBy::By(Clock::Cycles);
/// The article's text was read, in a copy of it.
const TEXT: &str = "the text, in a copy";
/// Only the abstract was read.
const ABSTRACT: &str = "the abstract";
/// Only the beginning was read, which says what is measured, and not the figure.
const BEGINNING: &str = "the beginning, without the figure";
/// Nothing was read again: the figure is as it was noted earlier.
const NOT_AGAIN: &str = "not read again";

const SAMPLES: &str = "one thread, requests one after the other; mean of 500 samples of a second";

/// GenerateDataKey requests a second, a new connection each, P-256.
pub const KMS_CLASSICAL: Figure = Figure {
    value: 108.7,
    unit: "requests/s",
    per: SAMPLES,
    at: "figure 1, and the table's column Average: Classical (P256), reuse No",
    clock: WALL,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// The same with X25519MLKEM768.
pub const KMS_HYBRID: Figure = Figure {
    value: 106.2,
    unit: "requests/s",
    per: SAMPLES,
    at: "figure 1, and the table's column Average: Hybrid post-quantum (X25519MLKEM768), reuse No",
    clock: WALL,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// GenerateDataKey requests a second, connection kept, P-256.
pub const KMS_REUSE_CLASSICAL: Figure = Figure {
    value: 216.1,
    unit: "requests/s",
    per: SAMPLES,
    at: "figure 2, and the table's column Average: Classical (P256), reuse Yes",
    clock: WALL,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// The same, connection kept, with X25519MLKEM768.
pub const KMS_REUSE_HYBRID: Figure = Figure {
    value: 216.0,
    unit: "requests/s",
    per: SAMPLES,
    at: "figure 2, and the table's column Average: Hybrid post-quantum (X25519MLKEM768), reuse Yes",
    clock: WALL,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// Bytes that a hybrid adds, approximately.
pub const KMS_BYTES: Figure = Figure {
    value: 1600.0,
    unit: "bytes",
    per: "one handshake, hybrid less classical, approximately; what is counted is not said",
    at: "the paragraph before the benchmarks",
    clock: TimedBy::Nothing,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// Time that a hybrid adds, approximately, at least.
pub const KMS_TIME_LEAST: Figure = Figure {
    value: 80.0,
    unit: "us",
    per: "one handshake, least \"compute time\" of ML-KEM's operations; on one side or both is not said",
    at: "the paragraph before the benchmarks",
    clock: TimedBy::NotSaid,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// The same, at most.
pub const KMS_TIME_MOST: Figure = Figure {
    value: 150.0,
    unit: "us",
    per: "one handshake, most \"compute time\" of ML-KEM's operations; on one side or both is not said",
    at: "the paragraph before the benchmarks",
    clock: TimedBy::NotSaid,
    read: TEXT,
    source: KMS_ARTICLE,
};
/// What the Kyber hybrid adds on the client.
pub const CLIENT_COST: Figure = Figure {
    value: 0.25,
    unit: "ms",
    per: "one handshake, the client's CPU time, ECDHE + Kyber less ECDHE; 2000 connections, by perf",
    at: "figure 1 and the paragraph below figure 2",
    clock: CPU,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// What the Kyber hybrid adds on the server.
pub const SERVER_COST: Figure = Figure {
    value: 0.23,
    unit: "ms",
    per: "one handshake, the server's CPU time, ECDHE + Kyber less ECDHE; 2000 connections, by perf",
    at: "figure 1 and the paragraph below figure 2",
    clock: CPU,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Bytes that the Kyber hybrid adds.
pub const HYBRID_BYTES: Figure = Figure {
    value: 2356.0,
    unit: "bytes",
    per: "one handshake, sent and received as the client measured them, ECDHE + Kyber less ECDHE, \"on the wire\"",
    at: "figure 2 and the paragraph below it",
    clock: TimedBy::Nothing,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Approximate rate of the pool sweep.
pub const POOL_RATE: Figure = Figure {
    value: 200.0,
    unit: "requests/s",
    per: "all connections of a pool together, approximately",
    at: "section on connection pooling",
    clock: WALL,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Connections with an idle timeout of 1 s, 10 threads with a burst every 5 s for a minute.
pub const IDLE_SHORT_CONNECTIONS: Figure = Figure {
    value: 100.0,
    unit: "connections",
    per: "all that were formed in the minute",
    at: "section on connection timeouts, 1 s",
    clock: TimedBy::Nothing,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Median latency with it.
pub const IDLE_SHORT_MEDIAN: Figure = Figure {
    value: 20.3,
    unit: "ms",
    per: "one request; median of the minute",
    at: "section on connection timeouts, 1 s",
    clock: WALL,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Connections with an idle timeout of 10 s.
pub const IDLE_LONG_CONNECTIONS: Figure = Figure {
    value: 10.0,
    unit: "connections",
    per: "all that were formed in the minute",
    at: "section on connection timeouts, 10 s",
    clock: TimedBy::Nothing,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Median latency with it.
pub const IDLE_LONG_MEDIAN: Figure = Figure {
    value: 5.9,
    unit: "ms",
    per: "one request; median of the minute",
    at: "section on connection timeouts, 10 s",
    clock: WALL,
    read: TEXT,
    source: TUNING_ARTICLE,
};
/// Cycles of a TLS 1.2 handshake.
pub const CYCLES_CLASSICAL: Figure = Figure {
    value: 75_069_418.0,
    unit: "cycles",
    per: "one handshake by the text; a hundred times one here, so it may have more in it",
    at: "figures of perf, classical",
    clock: CYCLES,
    read: NOT_AGAIN,
    source: ROUND_2_ARTICLE,
};
/// Cycles that the hybrid adds.
pub const CYCLES_HYBRID: Figure = Figure {
    value: 554_059.0,
    unit: "cycles",
    per: "one handshake",
    at: "figures of perf, hybrid less classical",
    clock: CYCLES,
    read: NOT_AGAIN,
    source: ROUND_2_ARTICLE,
};
/// The same in time, approximately.
pub const CYCLES_HYBRID_TIME: Figure = Figure {
    value: 200.0,
    unit: "us",
    per: "one handshake, approximately; whether the article says it or it was reckoned from the cycles is not known",
    at: "beside the figures of perf",
    clock: TimedBy::NotSaid,
    read: NOT_AGAIN,
    source: ROUND_2_ARTICLE,
};
/// Connections a second that a hybrid with Kyber512 costs.
pub const QUIC_KYBER: Figure = Figure {
    value: 8.0,
    unit: "%",
    per: "fewer connections a second with X25519 + Kyber512 than with X25519; 10,000 one after the other, a byte each way",
    at: "figure 3 (sends a second against seconds) and the paragraph below it",
    clock: WALL,
    read: TEXT,
    source: QUIC_ARTICLE,
};
/// The same with BIKE.
pub const QUIC_BIKE: Figure = Figure {
    value: 37.0,
    unit: "%",
    per: "fewer connections a second with X25519 + BIKE-1 than with X25519; 10,000 one after the other, a byte each way",
    at: "figure 3 (sends a second against seconds) and the paragraph below it",
    clock: WALL,
    read: TEXT,
    source: QUIC_ARTICLE,
};
/// The same with SIKE.
pub const QUIC_SIKE: Figure = Figure {
    value: 95.0,
    unit: "%",
    per: "fewer connections a second with X25519 + SIKEp434 than with X25519; 10,000 one after the other, a byte each way",
    at: "figure 3 (sends a second against seconds) and the paragraph below it",
    clock: WALL,
    read: TEXT,
    source: QUIC_ARTICLE,
};
/// How much longer a resumption takes with a hybrid, at least.
pub const RESUMPTION_LEAST: Figure = Figure {
    value: 1.5,
    unit: "times",
    per: "the time of a resumption with X25519; the least of them",
    at: "resumption; in which of the reports is not known",
    clock: CPU,
    read: BEGINNING,
    source: RUSTLS_REPORTS,
};
/// The same, at most.
pub const RESUMPTION_MOST: Figure = Figure {
    value: 2.1,
    unit: "times",
    per: "the time of a resumption with X25519; the most of them",
    at: "resumption; in which of the reports is not known",
    clock: CPU,
    read: BEGINNING,
    source: RUSTLS_REPORTS,
};
/// What post-quantum algorithms add to the time of the handshake.
pub const LAST_BYTE_HANDSHAKE: Figure = Figure {
    value: 32.0,
    unit: "%",
    per: "time of the classical handshake; narrow, stable network",
    at: "abstract",
    clock: WALL,
    read: ABSTRACT,
    source: LAST_BYTE_PAPER,
};
/// What they add to the time to the last byte of 50 KiB: an upper bound.
pub const LAST_BYTE_50K: Figure = Figure {
    value: 15.0,
    unit: "%",
    per: "time to the last byte of 50 KiB or more with the classical handshake; an upper bound; narrow, stable network",
    at: "abstract",
    clock: WALL,
    read: ABSTRACT,
    source: LAST_BYTE_PAPER,
};
/// What they add to the time to the last byte of 200 KiB: an upper bound.
pub const LAST_BYTE_200K: Figure = Figure {
    value: 10.0,
    unit: "%",
    per: "time to the last byte of 200 KiB with the classical handshake; an upper bound, also where congestion control slows the handshake",
    at: "abstract",
    clock: WALL,
    read: ABSTRACT,
    source: LAST_BYTE_PAPER,
};
/// Loss from which on what needs many packets suffers, at least.
pub const PAQUIN_LOSS_LEAST: Figure = Figure {
    value: 3.0,
    unit: "%",
    per: "lost packets of each direction, least; of which percentile is not said",
    at: "abstract",
    clock: TimedBy::Nothing,
    read: ABSTRACT,
    source: PAQUIN_PAPER,
};
/// The same, at most.
pub const PAQUIN_LOSS_MOST: Figure = Figure {
    value: 5.0,
    unit: "%",
    per: "lost packets of each direction, most; of which percentile is not said",
    at: "abstract",
    clock: TimedBy::Nothing,
    read: ABSTRACT,
    source: PAQUIN_PAPER,
};
/// Loss from which on Dilithium2 is slower than Falcon-512.
pub const STUDY_CROSSING: Figure = Figure {
    value: 10.0,
    unit: "%",
    per: "lost packets, approximately; of one direction or of a round trip is not said",
    at: "text on Dilithium2 and Falcon-512",
    clock: TimedBy::Nothing,
    read: NOT_AGAIN,
    source: FUDAN_STUDY,
};
/// Packets of the server's flight with Dilithium2.
pub const STUDY_PACKETS_DILITHIUM: Figure = Figure {
    value: 8.0,
    unit: "packets",
    per: "the server's flight with two certificates, Dilithium2",
    at: "text on Dilithium2 and Falcon-512",
    clock: TimedBy::Nothing,
    read: NOT_AGAIN,
    source: FUDAN_STUDY,
};
/// The same with Falcon-512.
pub const STUDY_PACKETS_FALCON: Figure = Figure {
    value: 5.0,
    unit: "packets",
    per: "the server's flight with two certificates, Falcon-512",
    at: "text on Dilithium2 and Falcon-512",
    clock: TimedBy::Nothing,
    read: NOT_AGAIN,
    source: FUDAN_STUDY,
};

/// All single figures.
pub const FIGURES: &[Figure] = &[
    KMS_CLASSICAL,
    KMS_HYBRID,
    KMS_REUSE_CLASSICAL,
    KMS_REUSE_HYBRID,
    KMS_BYTES,
    KMS_TIME_LEAST,
    KMS_TIME_MOST,
    CLIENT_COST,
    SERVER_COST,
    HYBRID_BYTES,
    POOL_RATE,
    IDLE_SHORT_CONNECTIONS,
    IDLE_SHORT_MEDIAN,
    IDLE_LONG_CONNECTIONS,
    IDLE_LONG_MEDIAN,
    CYCLES_CLASSICAL,
    CYCLES_HYBRID,
    CYCLES_HYBRID_TIME,
    QUIC_KYBER,
    QUIC_BIKE,
    QUIC_SIKE,
    RESUMPTION_LEAST,
    RESUMPTION_MOST,
    LAST_BYTE_HANDSHAKE,
    LAST_BYTE_50K,
    LAST_BYTE_200K,
    PAQUIN_LOSS_LEAST,
    PAQUIN_LOSS_MOST,
    STUDY_CROSSING,
    STUDY_PACKETS_DILITHIUM,
    STUDY_PACKETS_FALCON,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that is declared and not listed would be read back by nobody.
    #[test]
    fn every_declared_figure_is_listed() {
        let declared = include_str!("figures.rs").matches("Figure = Figure {\n").count();
        assert_eq!(declared, FIGURES.len());
        for (index, figure) in FIGURES.iter().enumerate() {
            assert!(!FIGURES[..index].contains(figure), "listed twice: {figure:?}");
        }
    }

    /// The list that people read is this one: each row with its unit, denominator, place, clock and source, and no row more.
    #[test]
    fn single_figures_are_described() {
        let readme = include_str!("../../published/README.md");
        let rows: Vec<String> = FIGURES
            .iter()
            .map(|figure| {
                let Figure { value, unit, per, at, clock, read, source } = figure;
                for text in [unit, per, at, read, source] {
                    assert!(!text.is_empty() && !text.contains('|'), "{value} {unit}");
                }
                assert!(*value > 0.0 && (*unit != "%" || *value <= 100.0), "{value} {unit}");
                let clock = clock.words();
                format!("| {value} {unit} | {per} | {at} | {clock} | {read} | {source} |")
            })
            .collect();
        let (_, list) = readme.split_once("|---|---|---|---|---|---|\n").unwrap();
        let found: Vec<&str> = list.lines().take_while(|line| line.starts_with('|')).collect();
        assert_eq!(found, rows, "the list should be:\n{}", rows.join("\n"));
    }

    /// Times have a clock, or say that the source names none; what is counted has none.
    #[test]
    fn times_have_a_clock() {
        for figure in FIGURES {
            let is_time = ["ms", "us", "cycles", "requests/s"].contains(&figure.unit);
            let is_counted = ["bytes", "packets", "connections"].contains(&figure.unit);
            assert!(!(is_time && figure.clock == TimedBy::Nothing), "{figure:?}");
            assert!(!is_counted || figure.clock == TimedBy::Nothing, "{figure:?}");
        }
        // The tuning article: "the CPU time spent by the client and server", by perf.
        assert_eq!(CLIENT_COST.clock, TimedBy::By(Clock::Cpu));
        assert_eq!(HYBRID_BYTES.whole(), 2356);
    }

    #[test]
    fn figures_of_another_clock_or_of_none_are_not_compared() {
        let holds = |clock: TimedBy| clock.judge(Verdict::Holds, Clock::Cpu);
        assert_eq!(holds(CPU), Verdict::Holds);
        for clock in [WALL, TimedBy::NotSaid, TimedBy::Nothing] {
            assert_eq!(holds(clock), Verdict::NotComparable);
            assert_eq!(clock.judge(Verdict::Undecided, Clock::Cpu), Verdict::Undecided);
        }
    }
}
