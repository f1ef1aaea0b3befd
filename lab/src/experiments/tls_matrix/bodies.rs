//! Time to first and last byte: the weight of a handshake when an answer follows it (Kampanakis, Childs-Klein 2024).

use std::time::Duration;

use super::grid;
use crate::error::LabError;
use crate::experiments::play::Seen;
use crate::experiments::play::{self, Contender, GridPoint, Played};
use crate::experiments::tables::{self, above, megabits, place_words, rtt_ms, short};
use crate::link::{Link, Transfer};
use crate::model::Profile;
use crate::published;
use crate::result::{Axis, Chart, ClaimKind, Finding, Marks, Series, Verdict};
use crate::run::Run;

/// Bytes of the request: headers and a small body.
const REQUEST: u32 = 300;
/// The paper's narrow link: 1 Mbit/s, RTT 200 ms.
const NARROW_BPS: u64 = 1_000_000;
const NARROW_RTT: Duration = Duration::from_millis(200);
/// Answer sizes for which the paper has figures: 50 KiB and 200 KiB.
const PAPER: [u32; 2] = [51_200, 204_800];

/// Plays the chosen pairs with every body; the points of the narrow link come last.
pub(super) fn measure(
    run: &mut Run<'_>,
    profile: &'static Profile,
    contenders: &[Contender],
) -> Result<Vec<Seen>, LabError> {
    let shape = grid::bodies(run.quick());
    let mut places = Vec::new();
    for body in grid::BODIES {
        let transfer = Transfer { request: REQUEST, body };
        places.extend(grid::places("bodies", &shape, profile, transfer));
    }
    let narrow = Link { rate_bps: Some(NARROW_BPS), ..Link::new(NARROW_RTT, 0.0) };
    let mut sizes: Vec<u32> = grid::BODIES.into_iter().chain(PAPER).collect();
    sizes.sort_unstable();
    places.extend(sizes.into_iter().map(|body| GridPoint {
        part: "bodies",
        profile,
        link: narrow,
        transfer: Transfer { request: REQUEST, body },
        // Without loss all flows are equal.
        count: 20,
        seed: None,
        raw: false,
        bytes: true,
    }));
    for place in &mut places {
        place.bytes = true;
        if place.transfer.body >= 1_000_000 && place.link.rate_bps.is_none() {
            place.count = (place.count / 3).max(100);
        }
    }
    play::over(run, &places, contenders)
}

/// Table, chart, sentence and finding.
pub(super) fn tell(run: &mut Run<'_>, seen: &[Seen]) {
    run.table(tables::bytes_table(
        "bodies",
        "Time to first and last byte",
        &format!(
            "All times since the SYN, so the handshake has TCP's in it. A request of {REQUEST} bytes goes with the client's Finished."
        ),
        seen,
    ));
    run.chart(chart(seen));
    if let Some(sentence) = sentence(seen) {
        run.summary(sentence);
    }
    run.finding(finding(seen));
}

fn chart(seen: &[Seen]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    let close = |link: &Link| {
        link.loss == 0.0 && (link.rate_bps.is_some() || link.rtt_us == grid::CLOSE_RTT_US)
    };
    for point in seen.iter().filter(|point| close(&point.link)) {
        let Some(base) = point.played.rows.first() else { continue };
        for row in point.played.rows.iter().skip(1) {
            let (Some(last), Some(base_last)) = (&row.last_byte, &base.last_byte) else { continue };
            let name = match point.link.rate_bps {
                Some(rate) => {
                    format!("{}, {} ms, {} Mbit/s", row.name, rtt_ms(&point.link), megabits(rate))
                }
                None => format!("{}, {} ms", row.name, rtt_ms(&point.link)),
            };
            let at = [f64::from(point.transfer.body), above(last, base_last, 50)];
            match series.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(at),
                None => series.push(Series { name, points: vec![at], band: Vec::new() }),
            }
        }
    }
    for line in &mut series {
        line.points.sort_unstable_by(|one, other| one[0].total_cmp(&other[0]));
    }
    Chart {
        name: "bodies".to_owned(),
        title: "What is left of the handshake's cost in the time to the last byte".to_owned(),
        x: Axis::log("answer (bytes)"),
        y: Axis::linear("time to last byte over classical (%)"),
        marks: Marks::Lines { series },
        rules: Vec::new(),
        caption: "Medians without loss. The larger the answer, the smaller the share of the handshake in it. Where a larger server \
                  flight has opened the congestion window further, a long answer may even come sooner."
            .to_owned(),
    }
}

fn sentence(seen: &[Seen]) -> Option<String> {
    let extra = |body: u32| {
        let point = seen.iter().find(|point| {
            point.link.rtt_us == grid::CLOSE_RTT_US
                && point.link.loss == 0.0
                && point.transfer.body == body
        })?;
        let row = point.played.row(&grid::name(grid::HYBRID_65))?;
        let base = point.played.rows.first()?;
        Some(short(above(row.last_byte.as_ref()?, base.last_byte.as_ref()?, 50)))
    };
    Some(format!(
        "Seen from the last byte the cost shrinks: {} is {:+} % for an answer of 1 kB, {:+} % for 100 kB and {:+} % for 1 MB (RTT 30 \
         ms, no loss, medians).",
        grid::name(grid::HYBRID_65),
        extra(1_000)?,
        extra(100_000)?,
        extra(1_000_000)?
    ))
}

/// The claim on the paper's narrow link. The paper times TLS's handshake, so the clock starts when TCP is connected.
fn finding(seen: &[Seen]) -> Finding {
    let narrow = |body: u32| {
        seen.iter().find(|point| point.link.rate_bps.is_some() && point.transfer.body == body)
    };
    let increases = |played: &Played| {
        let (row, base) = (played.row(&grid::name(grid::HYBRID_65))?, played.rows.first()?);
        let last = above(row.last_byte.as_ref()?, base.last_byte.as_ref()?, 50);
        Some((above(&row.connected, &base.connected, 50), above(&row.syn, &base.syn, 50), last))
    };
    let at = |body: u32| narrow(body).and_then(|point| increases(&point.played));
    let figures = at(PAPER[0]).zip(at(PAPER[1]));
    let (measured, verdict) = match figures {
        Some(((handshake, with_tcp, fifty), (_, _, two_hundred))) => (
            format!(
                "handshake {:+} % ({:+} % with TCP's), last byte {:+} % at 50 KiB, {:+} % at 200 KiB ({})",
                short(handshake),
                short(with_tcp),
                short(fifty),
                short(two_hundred),
                narrow(PAPER[0]).map_or_else(String::new, |point| place_words(&point.link))
            ),
            judge(handshake, fifty, two_hundred),
        ),
        None => ("not measured".to_owned(), Verdict::Undecided),
    };
    Finding {
        kind: ClaimKind::Published,
        source: published::LAST_BYTE_PAPER.to_owned(),
        claim: "The increase of the handshake shrinks to less than half of it in the time to the last byte.".to_owned(),
        published: format!(
            "+{} % of the handshake becomes less than {} % at 50 KiB on a narrow, stable network, and less than {} % at 200 KiB (abstract)",
            published::LAST_BYTE_HANDSHAKE.value,
            published::LAST_BYTE_50K.value,
            published::LAST_BYTE_200K.value
        ),
        measured,
        verdict,
        why: "It holds where both last bytes grow by less than half of what the handshake grows by and by less than the published bounds, and the \
              handshake's growth is like the paper's, up to a factor of two. The narrow network is played as 1 Mbit/s at RTT 200 ms. The paper's chain and stack (s2n-tls, ML-KEM-768 with ML-DSA-65) send other sizes, and how much of TCP's handshake is in \
              the figure moves it; ours is X25519MLKEM768 with ML-DSA-65 and two certificates."
            .to_owned(),
    }
}

/// Growth of the handshake in the paper, in per cent; ours is similar if it is within a factor of two.
const PUBLISHED: f64 = published::LAST_BYTE_HANDSHAKE.value;
/// The paper's bound at 200 KiB, in per cent.
const MOST_200K: f64 = published::LAST_BYTE_200K.value;

/// The claim holds if the last byte's increase is less than half of the handshake's and as small as published, where
/// the handshake's is similar to the published one; otherwise the case differs, and the claim holds in part.
fn judge(handshake: f64, fifty: f64, two_hundred: f64) -> Verdict {
    if handshake < 5.0 {
        return Verdict::Undecided;
    }
    let halved = fifty < handshake / 2.0 && two_hundred < handshake / 2.0;
    let like = (0.5..=2.0).contains(&(handshake / PUBLISHED));
    if halved && like && fifty < published::LAST_BYTE_50K.value && two_hundred < MOST_200K {
        Verdict::Holds
    } else if halved || (fifty < handshake && two_hundred < fifty) {
        Verdict::Partly
    } else {
        Verdict::Differs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_reaches_each_verdict() {
        assert_eq!(judge(32.0, 14.0, 9.0), Verdict::Holds);
        assert_eq!(judge(20.0, 14.0, 9.0), Verdict::Partly);
        assert_eq!(judge(32.0, 14.0, 10.5), Verdict::Partly, "beyond the published bound");
        assert_eq!(judge(103.0, 10.0, 5.0), Verdict::Partly);
        assert_eq!(judge(60.0, 20.0, 9.0), Verdict::Partly);
        assert_eq!(judge(20.0, 25.0, 9.0), Verdict::Differs);
        assert_eq!(judge(1.0, 1.0, 1.0), Verdict::Undecided);
        assert_eq!(finding(&[]).verdict, Verdict::Undecided);
    }
}
