//! Published figures, as data with their sources: the experiments are compared with them.
//!
//! `lab/published/README.md` describes each data file and how it was measured.

#[cfg(test)]
mod description;
mod figures;

use crate::error::LabError;

pub use self::figures::{
    CLIENT_COST, CYCLES_CLASSICAL, CYCLES_HYBRID, CYCLES_HYBRID_TIME, FIGURES, FUDAN_STUDY, Figure,
    HYBRID_BYTES, IDLE_LONG_CONNECTIONS, IDLE_LONG_MEDIAN, IDLE_SHORT_CONNECTIONS,
    IDLE_SHORT_MEDIAN, KMS_ARTICLE, KMS_BYTES, KMS_CLASSICAL, KMS_HYBRID, KMS_REUSE_CLASSICAL,
    KMS_REUSE_HYBRID, KMS_TIME_LEAST, KMS_TIME_MOST, LAST_BYTE_50K, LAST_BYTE_200K,
    LAST_BYTE_HANDSHAKE, LAST_BYTE_PAPER, PAQUIN_LOSS_LEAST, PAQUIN_LOSS_MOST, PAQUIN_PAPER,
    POOL_RATE, QUIC_ARTICLE, QUIC_BIKE, QUIC_KYBER, QUIC_SIKE, RESUMPTION_LEAST, RESUMPTION_MOST,
    ROUND_2_ARTICLE, RUSTLS_REPORTS, SERVER_COST, STUDY_CROSSING, STUDY_PACKETS_DILITHIUM,
    STUDY_PACKETS_FALCON, TUNING_ARTICLE, TimedBy,
};

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
        // The lab plays the two with round-trip times that differ by 24.5 ms.
        let apart = median("p256_dilithium2", "medium") - median("p256_dilithium2", "near");
        assert!((apart - 25.53).abs() < 1e-9, "{apart}");
        // A mean is not a median: put equal to the one, a model does not have the other.
        let near = fudan().unwrap().into_iter().filter(|point| point.network == "near");
        let calm: Vec<FudanPoint> =
            near.filter(|point| point.loss_each_direction_percent == 0.0).collect();
        assert!(
            calm.len() == 2 && calm.iter().all(|point| point.mean_ms < point.p50_ms),
            "{calm:?}"
        );
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
