//! Published figures, as data with their sources: the experiments are compared with them.
//!
//! `lab/published/README.md` describes each data file and how it was measured.

#[cfg(test)]
mod description;

use crate::error::LabError;

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
    /// Where it was published.
    pub source: &'static str,
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
/// Kampanakis and Childs-Klein.
pub const LAST_BYTE_PAPER: &str = "Panos Kampanakis, Will Childs-Klein: \"The impact of data-heavy, post-quantum TLS 1.3 on the Time-To-Last-Byte of \
     real-world connections\" (MADweb 2024)";
/// Paquin, Stebila, Tamvada.
pub const PAQUIN_PAPER: &str = "Christian Paquin, Douglas Stebila, Goutam Tamvada: \"Benchmarking Post-Quantum Cryptography in TLS\" (PQCrypto 2020)";
/// The study of 2022.
pub const FUDAN_STUDY: &str = "Fudan University's study of TLS 1.3 with post-quantum algorithms (2022), data in gudengxia/TestOfPQFizz";

/// GenerateDataKey requests a second, a new connection each, P-256.
pub const KMS_CLASSICAL: Figure = Figure {
    value: 108.7,
    unit: "requests/s",
    per: "one thread; mean of 500 samples of a second",
    at: "rates without reuse of connections, P-256",
    source: KMS_ARTICLE,
};
/// The same with X25519MLKEM768.
pub const KMS_HYBRID: Figure = Figure {
    value: 106.2,
    unit: "requests/s",
    per: "one thread; mean of 500 samples of a second",
    at: "rates without reuse of connections, X25519MLKEM768",
    source: KMS_ARTICLE,
};
/// GenerateDataKey requests a second, connection kept, P-256.
pub const KMS_REUSE_CLASSICAL: Figure = Figure {
    value: 216.1,
    unit: "requests/s",
    per: "one thread; mean of 500 samples of a second",
    at: "rates with reuse of connections, P-256",
    source: KMS_ARTICLE,
};
/// The same, connection kept, with X25519MLKEM768.
pub const KMS_REUSE_HYBRID: Figure = Figure {
    value: 216.0,
    unit: "requests/s",
    per: "one thread; mean of 500 samples of a second",
    at: "rates with reuse of connections, X25519MLKEM768",
    source: KMS_ARTICLE,
};
/// What the Kyber hybrid adds on the client.
pub const CLIENT_COST: Figure = Figure {
    value: 0.25,
    unit: "ms",
    per: "one handshake, by the wall clock of the client",
    at: "split of the handshake into client, server and network: client",
    source: TUNING_ARTICLE,
};
/// What the Kyber hybrid adds on the server.
pub const SERVER_COST: Figure = Figure {
    value: 0.23,
    unit: "ms",
    per: "one handshake, by the wall clock of the server",
    at: "split of the handshake into client, server and network: server",
    source: TUNING_ARTICLE,
};
/// Approximate rate of the pool sweep.
pub const POOL_RATE: Figure = Figure {
    value: 200.0,
    unit: "requests/s",
    per: "all connections of a pool together",
    at: "text on maxConcurrency",
    source: TUNING_ARTICLE,
};
/// Connections with an idle timeout of 1 s, 10 threads with a burst every 5 s for a minute.
pub const IDLE_SHORT_CONNECTIONS: Figure = Figure {
    value: 100.0,
    unit: "connections",
    per: "all opened in the minute",
    at: "text on the idle timeout, 1 s",
    source: TUNING_ARTICLE,
};
/// Median latency with it.
pub const IDLE_SHORT_MEDIAN: Figure = Figure {
    value: 20.3,
    unit: "ms",
    per: "one request; median of the minute",
    at: "text on the idle timeout, 1 s",
    source: TUNING_ARTICLE,
};
/// Connections with an idle timeout of 10 s.
pub const IDLE_LONG_CONNECTIONS: Figure = Figure {
    value: 10.0,
    unit: "connections",
    per: "all opened in the minute",
    at: "text on the idle timeout, 10 s",
    source: TUNING_ARTICLE,
};
/// Median latency with it.
pub const IDLE_LONG_MEDIAN: Figure = Figure {
    value: 5.9,
    unit: "ms",
    per: "one request; median of the minute",
    at: "text on the idle timeout, 10 s",
    source: TUNING_ARTICLE,
};
/// Cycles of a TLS 1.2 handshake.
pub const CYCLES_CLASSICAL: Figure = Figure {
    value: 75_069_418.0,
    unit: "cycles",
    per: "one handshake by the text; a hundred times one here, so it may have more in it",
    at: "figures of perf, classical",
    source: ROUND_2_ARTICLE,
};
/// Cycles that the hybrid adds.
pub const CYCLES_HYBRID: Figure = Figure {
    value: 554_059.0,
    unit: "cycles",
    per: "one handshake",
    at: "figures of perf, hybrid less classical",
    source: ROUND_2_ARTICLE,
};
/// What post-quantum algorithms add to the time of the handshake.
pub const LAST_BYTE_HANDSHAKE: Figure = Figure {
    value: 32.0,
    unit: "%",
    per: "time of the classical handshake",
    at: "abstract",
    source: LAST_BYTE_PAPER,
};
/// What they add to the time to the last byte of 50 KiB: an upper bound.
pub const LAST_BYTE_50K: Figure = Figure {
    value: 15.0,
    unit: "%",
    per: "time to the last byte of 50 KiB with the classical handshake",
    at: "abstract",
    source: LAST_BYTE_PAPER,
};
/// All single figures.
pub const FIGURES: [Figure; 15] = [
    KMS_CLASSICAL,
    KMS_HYBRID,
    KMS_REUSE_CLASSICAL,
    KMS_REUSE_HYBRID,
    CLIENT_COST,
    SERVER_COST,
    POOL_RATE,
    IDLE_SHORT_CONNECTIONS,
    IDLE_SHORT_MEDIAN,
    IDLE_LONG_CONNECTIONS,
    IDLE_LONG_MEDIAN,
    CYCLES_CLASSICAL,
    CYCLES_HYBRID,
    LAST_BYTE_HANDSHAKE,
    LAST_BYTE_50K,
];

/// A point of Paquin, Stebila, Tamvada: times from before TCP's connect, in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct PaquinPoint {
    /// `kex` or `sig`.
    pub experiment: String,
    /// Their name of the algorithm.
    pub algorithm: String,
    /// Round-trip time by `ping`.
    pub rtt_ms: f64,
    /// Loss in each direction.
    pub loss_percent: f64,
    /// Median.
    pub p50_ms: f64,
    /// 75th percentile.
    pub p75_ms: f64,
    /// 85th percentile.
    pub p85_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
}

/// Number of handshakes behind each of their points.
pub const PAQUIN_HANDSHAKES: u32 = 5000;

/// Their points, as far as they are kept here.
pub fn paquin() -> Result<Vec<PaquinPoint>, LabError> {
    rows(include_str!("../published/paquin2019.csv"), |row| {
        Some(PaquinPoint {
            experiment: row.text(0)?,
            algorithm: row.text(1)?,
            rtt_ms: row.number(2)?,
            loss_percent: row.number(3)?,
            p50_ms: row.number(4)?,
            p75_ms: row.number(5)?,
            p85_ms: row.number(6)?,
            p95_ms: row.number(7)?,
        })
    })
}

/// A quoted point of the 2022 study: times from after TCP's connect, in milliseconds.
///
/// The study names its losses `half_loss_rate`, from 0.00 to 10.00 % in steps of 0.5: the loss in each direction. Its
/// summaries have one row for each without naming it, so that the number of a row is twice the loss.
#[derive(Debug, Clone, PartialEq)]
pub struct FudanPoint {
    /// `near` or `medium`.
    pub network: String,
    /// Their name of the key exchange.
    pub kem: String,
    /// Their name of the signature algorithm.
    pub signature: String,
    /// Loss in each direction.
    pub loss_each_direction_percent: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Mean.
    pub mean_ms: f64,
}

/// The points of the 2022 study that are quoted here.
pub fn fudan() -> Result<Vec<FudanPoint>, LabError> {
    rows(include_str!("../published/fudan2022.csv"), |row| {
        Some(FudanPoint {
            network: row.text(0)?,
            kem: row.text(1)?,
            signature: row.text(2)?,
            loss_each_direction_percent: row.number(3)?,
            p50_ms: row.number(4)?,
            p95_ms: row.number(5)?,
            mean_ms: row.number(6)?,
        })
    })
}

/// A quoted point of the 2022 study on its longest link, `worst`: means of two passes, one with losses that rise from
/// point to point, one with losses that fall.
#[derive(Debug, Clone, PartialEq)]
pub struct FudanWorstPoint {
    /// Their name of the key exchange.
    pub kem: String,
    /// Their name of the signature algorithm.
    pub signature: String,
    /// Loss in each direction.
    pub loss_each_direction_percent: f64,
    /// Means of the two passes, of 3000 handshakes each.
    pub pass_means_ms: [f64; 2],
}

/// The points of its longest link that are quoted here.
pub fn fudan_worst() -> Result<Vec<FudanWorstPoint>, LabError> {
    rows(include_str!("../published/fudan2022-worst.csv"), |row| {
        Some(FudanWorstPoint {
            kem: row.text(1)?,
            signature: row.text(2)?,
            loss_each_direction_percent: row.number(3)?,
            pass_means_ms: [row.number(4)?, row.number(5)?],
        })
    })
}

/// A row of a file.
pub(crate) struct Row(csv::StringRecord);

impl Row {
    pub(crate) fn text(&self, index: usize) -> Option<String> {
        self.0.get(index).map(str::to_owned)
    }

    pub(crate) fn number(&self, index: usize) -> Option<f64> {
        self.0.get(index)?.parse().ok()
    }
}

/// Reads all rows of a file.
pub(crate) fn rows<T>(data: &str, parse: impl Fn(&Row) -> Option<T>) -> Result<Vec<T>, LabError> {
    csv::Reader::from_reader(data.as_bytes())
        .into_records()
        .map(|record| {
            let row = Row(record.map_err(LabError::failed)?);
            parse(&row).ok_or_else(|| LabError::failed(format!("no such row: {:?}", row.0)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_whole_and_in_order() {
        let points = paquin().unwrap();
        assert_eq!(points.len(), 4 * 4 * 25);
        for point in &points {
            let percentiles = [point.p50_ms, point.p75_ms, point.p85_ms, point.p95_ms];
            assert!(percentiles.is_sorted(), "{point:?}");
            assert!(point.p50_ms > 2.0 * point.rtt_ms, "{point:?}");
        }
        let points = fudan().unwrap();
        // Two signatures over two networks at six loss rates, and two more KEMs without loss.
        assert_eq!(points.len(), 2 * 2 * 6 + 2);
        for point in &points {
            assert!(point.p50_ms <= point.p95_ms && point.mean_ms < point.p95_ms, "{point:?}");
        }
    }

    /// Each single figure is in the list that people read, with its unit, denominator and place.
    #[test]
    fn single_figures_are_described() {
        let readme = include_str!("../published/README.md");
        for Figure { value, unit, per, at, source } in FIGURES {
            for text in [unit, per, at, source] {
                assert!(!text.is_empty(), "{value} {unit}");
            }
            assert!(value > 0.0 && (unit != "%" || value <= 100.0), "{value} {unit}");
            let row = format!("| {value} {unit} | {per} | {at} |");
            assert!(readme.contains(&row), "no row in lab/published/README.md: {row}");
        }
    }

    #[test]
    fn the_study_s_points_are_found_by_their_names() {
        let median = |signature: &str, network: &str| {
            let found = fudan().unwrap().into_iter().find(|point| {
                point.network == network
                    && point.kem == "p256_kyber512"
                    && point.signature == signature
                    && point.loss_each_direction_percent == 0.0
            });
            found.map(|point| point.p50_ms).unwrap()
        };
        assert_eq!(median("p256_dilithium2", "near"), 23.041);
        assert_eq!(median("p256_falcon512", "medium"), 57.106);
    }

    /// The study's loss is that of each direction, at most 10 %: its files are named `0.00.log` to `10.00.log`, 0.5
    /// apart. A number of a row, such as 20, is no loss.
    #[test]
    fn the_study_s_losses_are_those_of_each_direction() {
        let mut losses: Vec<f64> =
            fudan().unwrap().iter().map(|point| point.loss_each_direction_percent).collect();
        losses.sort_by(f64::total_cmp);
        losses.dedup();
        assert_eq!(losses, [0.0, 1.0, 2.5, 5.0, 7.5, 10.0]);
        let mean = |loss: f64| {
            let found = fudan().unwrap().into_iter().find(|point| {
                point.network == "medium"
                    && point.signature == "p256_dilithium2"
                    && point.loss_each_direction_percent == loss
            });
            found.map(|point| point.mean_ms).unwrap()
        };
        // TestResult/NIST1: row 10 of 0 to 20 is 5 % in each direction, the last row is 10 %.
        assert_eq!([mean(5.0), mean(10.0)], [93.425, 184.825]);
        let worst = fudan_worst().unwrap();
        assert_eq!(worst.len(), 2 * 6);
        assert_eq!(worst[11].pass_means_ms, [599.324, 585.044]);
        assert_eq!(worst[11].loss_each_direction_percent, 10.0);
    }
}
