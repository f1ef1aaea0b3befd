//! The anti-amplification limit: before the client's address is validated a server may send at most three times what
//! it has received (RFC 9000, section 8.1). Chains that exceed it wait for a round trip.

use std::time::Duration;

use super::{CLASSICAL, ECDSA, HYBRID, float, rounded};
use crate::error::LabError;
use crate::link::Link;
use crate::quic::{QuicOutcome, in_virtual_time};
use crate::result::{Axis, Chart, ClaimKind, Finding, Marks, Rule, Series, Table, Verdict};
use crate::run::Run;
use crate::subject::{Subject, authentications};
use crate::tls::chain;

const RTT_MS: u64 = 30;
/// Bytes of a client's Initial datagram, which is padded to this (RFC 9000, section 14.1).
const INITIAL: f64 = 1200.0;
/// ML-DSA's and ECDSA's are marked in the chart of flights.
const SHOWN: [(&str, u8); 8] = [
    (ECDSA, 1),
    (ECDSA, 2),
    ("ML-DSA-44", 1),
    ("ML-DSA-44", 2),
    ("ML-DSA-65", 1),
    ("ML-DSA-65", 2),
    ("ML-DSA-87", 1),
    ("ML-DSA-87", 2),
];
const LONGEST: u8 = 4;

pub(super) const ESTIMATE: Duration = Duration::from_secs(2);

/// RSA with longer keys is left out: generating them takes longer than everything else.
fn is_shown(name: &str, legacy: bool) -> bool {
    !legacy && (name == "RSA 2048" || !name.starts_with("RSA"))
}

/// A chain over a link without loss.
struct Row {
    subject: Subject,
    /// Bytes of the certificates that are sent.
    chain: f64,
    outcome: QuicOutcome,
}

impl Row {
    fn trips(&self) -> f64 {
        float(self.outcome.handshake_ns) / float(RTT_MS * 1_000_000)
    }

    /// Bytes that the server may send before it hears from the client again.
    fn credit(&self) -> u32 {
        if self.subject.key_exchange.name == HYBRID { 7200 } else { 3600 }
    }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let link = Link::new(Duration::from_millis(RTT_MS), 0.0);
    let mut rows = Vec::new();
    for group in [CLASSICAL, HYBRID] {
        for authentication in authentications().iter().filter(|row| is_shown(row.name, row.legacy))
        {
            for certificates in 1..=LONGEST {
                let subject = Subject::new(group, authentication.name, certificates)?;
                let chain = chain::server(authentication, certificates)?;
                let bytes: usize = chain.certificates.iter().map(Vec::len).sum();
                let seed = run.seed();
                let key = format!("chain, RTT {RTT_MS} ms, {}", subject.name());
                let outcome = run.point(&key, Duration::from_millis(10), || {
                    let done = in_virtual_time(&subject, &link, seed, 1)?;
                    let outcome = done.outcomes.first().copied();
                    outcome.ok_or_else(|| LabError::failed("no handshake without loss"))
                })?;
                rows.push(Row { subject, chain: float(bytes as u64), outcome });
            }
        }
    }
    table(run, &rows);
    steps(run, &rows);
    flights(run, &rows);
    findings(run, &rows);
    Ok(())
}

fn table(run: &mut Run<'_>, rows: &[Row]) {
    let columns = [
        "key exchange",
        "signatures",
        "certificates",
        "certificates (bytes)",
        "first flight of the server (bytes)",
        "all its flights (bytes)",
        "handshake (round trips)",
        "handshake at RTT 30 ms (ms)",
    ];
    run.table(Table {
        name: "quic-chains".to_owned(),
        title: "Chains, the limit of three times, and round trips".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows
            .iter()
            .map(|row| {
                vec![
                    row.subject.key_exchange.name.into(),
                    row.subject.authentication.name.into(),
                    f64::from(row.subject.certificates).into(),
                    row.chain.into(),
                    f64::from(row.outcome.first_flight).into(),
                    f64::from(row.outcome.flight).into(),
                    rounded(row.trips(), 2),
                    rounded(float(row.outcome.handshake_ns) / 1e6, 3),
                ]
            })
            .collect(),
        note: "In virtual time without loss, so exact. RSA with more than 2048 bits is left out, since its keys take long to make. Flights are contents of datagrams, padding and acknowledgements included.".to_owned(),
    });
}

fn steps(run: &mut Run<'_>, rows: &[Row]) {
    let series = |group: &str, name: &str| {
        let mut points: Vec<[f64; 2]> = rows
            .iter()
            .filter(|row| row.subject.key_exchange.name == group)
            .map(|row| {
                [f64::from(row.outcome.flight) / 1000.0, float(row.outcome.handshake_ns) / 1e6]
            })
            .collect();
        points.sort_unstable_by(|one, other| one[0].total_cmp(&other[0]));
        Series { name: name.to_owned(), points, band: Vec::new() }
    };
    run.chart(Chart {
        name: "quic-chain-steps".to_owned(),
        title: format!("QUIC handshake against what the server has to send, RTT {RTT_MS} ms"),
        x: Axis::linear("server's flights, datagrams' contents (kB)"),
        y: Axis::linear("handshake (ms)"),
        marks: Marks::Steps {
            series: vec![
                series(CLASSICAL, "X25519: ClientHello in one datagram, credit 3,600 bytes"),
                series(HYBRID, "X25519MLKEM768: ClientHello in two, credit 7,200 bytes"),
            ],
        },
        rules: (1..=3)
            .map(|trips| Rule {
                label: format!("{trips} round trip{}", if trips == 1 { "" } else { "s" }),
                at: f64::from(trips) * float(RTT_MS),
            })
            .collect(),
        caption: "Each point is a signature algorithm with one to four certificates. The server may send three times what it got; what does not fit waits for the client's answer. The larger ClientHello of a hybrid buys more credit, so that the same chain can be a round trip faster with it. Fractions of a round trip are pacing within the congestion window.".to_owned(),
    });
}

fn flights(run: &mut Run<'_>, rows: &[Row]) {
    let mut categories = Vec::new();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for (authentication, certificates) in SHOWN {
        for group in [CLASSICAL, HYBRID] {
            let found = rows.iter().find(|row| {
                let subject = &row.subject;
                (subject.key_exchange.name, subject.authentication.name, subject.certificates)
                    == (group, authentication, certificates)
            });
            let Some(row) = found else { continue };
            categories.push(row.subject.name());
            first.push(f64::from(row.outcome.first_flight));
            later.push(f64::from(row.outcome.flight.saturating_sub(row.outcome.first_flight)));
        }
    }
    run.chart(Chart {
        name: "quic-flights".to_owned(),
        title: "What the server sends at once, and what has to wait for the client's answer".to_owned(),
        x: Axis::linear("key exchange and chain"),
        y: Axis::linear("bytes of the server's flights"),
        marks: Marks::Bars {
            categories,
            parts: vec![
                ("at once".to_owned(), first),
                ("after the client's answer".to_owned(), later),
            ],
            grouped: false,
        },
        rules: vec![
            Rule { label: "3 x 1200: X25519".to_owned(), at: 3.0 * INITIAL },
            Rule { label: "3 x 2400: X25519MLKEM768".to_owned(), at: 6.0 * INITIAL },
        ],
        caption: "A ClientHello is padded to 1200 bytes; X25519MLKEM768's needs two datagrams. The first flight ends at three times that (RFC 9000, section 8.1).".to_owned(),
    });
}

fn findings(run: &mut Run<'_>, rows: &[Row]) {
    let of = |group: &str, authentication: &str, certificates: u8| {
        rows.iter().find(|row| {
            let subject = &row.subject;
            (subject.key_exchange.name, subject.authentication.name, subject.certificates)
                == (group, authentication, certificates)
        })
    };
    let (Some(ecdsa), Some(ml_dsa)) = (of(HYBRID, ECDSA, 2), of(HYBRID, "ML-DSA-65", 2)) else {
        return;
    };
    let ms = |row: &Row| float(row.outcome.handshake_ns) / 1e6;
    run.finding(Finding {
        kind: ClaimKind::Standard,
        source: "RFC 9000, section 8.1".to_owned(),
        claim: "A server that has not validated the client's address sends at most three times what it got: a long chain waits for a round trip".to_owned(),
        published: "one more round trip beyond 3 x 1200 bytes for each datagram of the ClientHello".to_owned(),
        measured: format!(
            "two certificates, RTT {RTT_MS} ms, X25519MLKEM768: {:.0} ms with ECDSA P-256 ({} bytes), {:.0} ms with ML-DSA-65 ({} bytes, {} of them at once)",
            ms(ecdsa), ecdsa.outcome.flight, ms(ml_dsa), ml_dsa.outcome.flight, ml_dsa.outcome.first_flight,
        ),
        verdict: judge(rows.iter().map(|row| (row.outcome.flight <= row.credit(), row.trips() < 1.5))),
        why: format!("Virtual time has no noise: these are exact. {} Resumption leaves the certificates out. It holds if every chain within the limit takes one round trip and every other one more. A second one more is probably the initial congestion window, ten datagrams (RFC 9002, section 7.2): it comes where more than about 12,000 bytes are left after the first flight. Over TCP the like limit is the initial window of ten segments.", avoided(rows)),
    });
    if let Some(classical) = of(CLASSICAL, "ML-DSA-65", 2) {
        run.summary(format!(
            "ML-DSA-65 with two certificates costs QUIC a round trip ({:.0} ms instead of {:.0} at RTT {RTT_MS} ms) by the limit of three times what the client sent; with a classical ClientHello of one datagram the same chain takes {:.0} ms: {} bytes may leave at once there and {} with the hybrid's two datagrams, and what is left then is probably held by the initial congestion window as well.",
            ms(ml_dsa), ms(ecdsa), ms(classical), classical.outcome.first_flight, ml_dsa.outcome.first_flight,
        ));
    }
}

/// Which signatures stay within a round trip with the hybrid, with how many certificates, and which never do.
fn avoided(rows: &[Row]) -> String {
    let mut most: Vec<(&str, u8)> = Vec::new();
    for row in rows.iter().filter(|row| row.subject.key_exchange.name == HYBRID) {
        let name = row.subject.authentication.name;
        let within = if row.trips() < 1.5 { row.subject.certificates } else { 0 };
        match most.iter_mut().find(|(known, _)| *known == name) {
            Some((_, certificates)) => *certificates = within.max(*certificates),
            None => most.push((name, within)),
        }
    }
    let list = |never: bool| {
        let found = most.iter().filter(|(_, certificates)| (*certificates == 0) == never);
        let words = found.map(|(name, certificates)| match certificates {
            0 => (*name).to_owned(),
            _ => format!("{name} (up to {certificates})"),
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let (within, never) = (list(false), list(true));
    let or_none = |list: String| if list.is_empty() { "none".to_owned() } else { list };
    format!(
        "Within one round trip under {HYBRID}, by certificates sent: {}; not even with one certificate: {}.",
        or_none(within),
        or_none(never)
    )
}

/// For each chain whether it is within the limit, and whether it took one round trip.
fn judge(chains: impl Iterator<Item = (bool, bool)>) -> Verdict {
    let (mut same, mut all) = (0_u32, 0_u32);
    for (within, one) in chains {
        same += u32::from(within == one);
        all += 1;
    }
    match (same, all) {
        (_, 0) => Verdict::Undecided,
        _ if same == all => Verdict::Holds,
        _ if 2 * same > all => Verdict::Partly,
        _ => Verdict::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_reaches_each_verdict() {
        let judge = |chains: &[(bool, bool)]| judge(chains.iter().copied());
        assert_eq!(judge(&[(true, true), (false, false)]), Verdict::Holds);
        assert_eq!(judge(&[(true, true), (false, false), (true, false)]), Verdict::Partly);
        assert_eq!(judge(&[(true, true), (false, true)]), Verdict::Differs);
        assert_eq!(judge(&[]), Verdict::Undecided);
    }
}
