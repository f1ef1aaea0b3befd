//! What operators ask: what a hybrid key exchange and ML-DSA certificates cost on links like theirs.

use std::time::Duration;

use crate::error::LabError;
use crate::experiments::play::{self, Contender, GridPoint, Seen};
use crate::experiments::tables::{NO_INTERVAL, OUTSIDE, hundred, interval_words, rtt_ms, short};
use crate::link::Link;
use crate::model::PROFILES;
use crate::model::validated::{self, Outside};
use crate::result::{Table, Value};
use crate::run::Run;
use crate::subject::{Kind, Subject};
use crate::tls::Stack;

use super::links::{LOSSES, RTTS_MS, TRANSFER};
use super::windows;

/// Name of the table, which the page's first paragraph finds by it.
const TABLE: &str = "operators";
/// The profile with which the model was compared with published data.
const PUBLISHED_WITH: &str = "linux-5.0-netem";

/// The baseline, and the handshake with the largest flight of the server.
const CLASSICAL: &str = "classical";
const LARGE: &str = "hybrid, ML-DSA-65, leaf and intermediate";
/// Who is compared: name in the table, key exchange, signature, certificates, kind.
const WHO: [(&str, &str, &str, u8, Kind); 6] = [
    (CLASSICAL, "x25519", "ECDSA P-256", 2, Kind::Full),
    ("hybrid", "X25519MLKEM768", "ECDSA P-256", 2, Kind::Full),
    ("hybrid, ML-DSA-65, leaf alone", "X25519MLKEM768", "ML-DSA-65", 1, Kind::Full),
    (LARGE, "X25519MLKEM768", "ML-DSA-65", 2, Kind::Full),
    ("hybrid, ML-DSA-44, leaf and intermediate", "X25519MLKEM768", "ML-DSA-44", 2, Kind::Full),
    ("hybrid, ML-DSA-65, resumed", "X25519MLKEM768", "ML-DSA-65", 2, Kind::Resumed),
];

fn count(quick: bool) -> u64 {
    if quick { 3000 } else { 20_000 }
}

pub(super) fn estimate(quick: bool) -> Duration {
    let handshakes = count(quick) * (RTTS_MS.len() * LOSSES.len() * WHO.len()) as u64;
    play::trace_cost(quick) * 6
        + Duration::from_micros(12 * handshakes)
        + windows::cost(count(quick))
}

/// Plays all of them and adds the table.
pub(super) fn run(run: &mut Run<'_>, stack: &dyn Stack) -> Result<(), LabError> {
    let mut subjects = Vec::new();
    for (_, group, signature, certificates, kind) in WHO {
        subjects.push(Subject::new(group, signature, certificates)?.kind(kind));
    }
    let measured = play::contenders(run, stack, &subjects)?;
    let contenders: Vec<Contender> = measured
        .into_iter()
        .filter_map(|(subject, contender)| {
            let place = subjects.iter().position(|one| one.name() == subject.name())?;
            let (name, ..) = WHO.get(place)?;
            Some(Contender { name: (*name).to_owned(), ..contender })
        })
        .collect();
    let profile = PROFILES.first().ok_or_else(|| LabError::failed("no profile"))?;
    let mut points = Vec::new();
    for rtt_ms in RTTS_MS {
        for loss in LOSSES {
            points.push(GridPoint {
                part: "operators",
                profile,
                link: Link::new(Duration::from_millis(rtt_ms), loss),
                transfer: TRANSFER,
                count: count(run.quick()),
                seed: None,
                raw: false,
                bytes: true,
            });
        }
    }
    let seen = play::over(run, &points, &contenders)?;
    let table = table(&seen, stack.name());
    run.table(table);
    let named = |wanted: &str| contenders.iter().find(|contender| contender.name == wanted);
    if let (Some(classical), Some(large)) = (named(CLASSICAL), named(LARGE)) {
        windows::run(run, classical, large, count(run.quick()))?;
    }
    Ok(())
}

/// One row for each link: the classical handshake, and how much more the others take.
fn table(seen: &[Seen], stack: &str) -> Table {
    let mut columns: Vec<String> =
        ["RTT (ms)", "loss (%)", "classical, mean (ms)", "classical, p95 (ms)"]
            .map(str::to_owned)
            .to_vec();
    let others: Vec<&str> = WHO
        .iter()
        .skip(1)
        .map(|(name, ..)| *name)
        .filter(|name| seen.iter().any(|point| point.played.row(name).is_some()))
        .collect();
    for name in &others {
        columns.push(format!("{name}: more, mean (%)"));
        columns.push(format!("{name}: more, mean"));
    }
    columns.push(OUTSIDE.to_owned());
    let rows = seen
        .iter()
        .filter_map(|point| {
            let base = point.played.rows.first()?;
            let mut row: Vec<Value> = vec![
                rtt_ms(&point.link).into(),
                hundred(point.link.loss).into(),
                short(base.syn.mean).into(),
                short(base.syn.at(95)).into(),
            ];
            for name in &others {
                let Some(one) = point.played.row(name) else {
                    row.extend(["-".into(), "-".into()]);
                    continue;
                };
                row.push(short(100.0 * one.paired.value / base.syn.mean).into());
                row.push(interval_words(&one.paired, "ms").into());
            }
            row.push(point.outside().map_or("-", Outside::words).into());
            Some(row)
        })
        .collect();
    let profile = seen.first().map_or("-", |point| point.profile);
    let mut note = format!(
        "A handshake with TCP's, from the SYN to the client's Finished, with the flights and processor times of {stack}, by the model (TCP \
         of {profile}). Differences are paired: both met the same losses, flow by flow. Resumed: a ticket of an earlier connection, no \
         certificates. {NO_INTERVAL}"
    );
    if profile != PUBLISHED_WITH {
        note += &format!(
            " Published data are of other kernels: the profile that fits them best is {PUBLISHED_WITH}, and docs/lab-model.md has how far \
             each is off."
        );
    }
    if seen.iter().any(|point| point.outside().is_some()) {
        note += &format!(" {}", validated::SENTENCE);
    }
    Table {
        name: TABLE.to_owned(),
        title: "What does it cost us, on our links?".to_owned(),
        columns,
        rows,
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::play::measure;
    use crate::trace::{Side, Step, Trace};

    #[test]
    fn a_flight_over_the_first_window_shows() {
        let contender = |name: &str, flight: u32| Contender {
            name: name.to_owned(),
            trace: Trace {
                steps: vec![
                    Step { from: Side::Client, bytes: 300, cpu_ns: 0 },
                    Step { from: Side::Server, bytes: flight, cpu_ns: 0 },
                    Step { from: Side::Client, bytes: 74, cpu_ns: 0 },
                ],
                client_done: 2,
                server_after_ns: 0,
                hello_retry: false,
                resumed: false,
                cpu_spread: Vec::new(),
            },
        };
        let contenders = [contender(WHO[0].0, 2000), contender(WHO[3].0, 17_000)];
        let seen = [30, 1, 300].map(|rtt_ms| {
            let link = Link::new(Duration::from_millis(rtt_ms), 0.0);
            let point = GridPoint {
                part: "",
                profile: &PROFILES[0],
                link,
                transfer: TRANSFER,
                count: 100,
                seed: None,
                raw: false,
                bytes: true,
            };
            let played = measure(&point, &contenders, 1, &|| false).unwrap();
            Seen { profile: PROFILES[0].name, link, transfer: TRANSFER, played }
        });
        let calm = table(&seen[..1], "rustls");
        assert_eq!(calm.columns.len(), 4 + 2 + 1, "who was not measured has no column");
        assert_eq!(calm.rows[0][..3], [30.0.into(), 0.0.into(), 60.0.into()]);
        assert_eq!(calm.rows[0][4], 50.0.into(), "a third round trip");
        assert!(!calm.note.contains("validated range"), "{}", calm.note);
        // No published point is as near as 1 ms or as far as 300, nor of this kernel.
        let all = table(&seen, "rustls");
        assert_eq!(all.columns.last().map(String::as_str), Some(OUTSIDE));
        let marks = ["-", "all times: RTT below 5 ms", "all times: RTT above 200 ms"];
        for (row, mark) in all.rows.iter().zip(marks) {
            assert_eq!(row.last(), Some(&Value::from(mark)));
        }
        assert!(all.note.contains("validated range"), "{}", all.note);
        assert!(all.note.contains(PUBLISHED_WITH), "{}", all.note);
        assert!(PROFILES.iter().any(|profile| profile.name == PUBLISHED_WITH));
    }
}
