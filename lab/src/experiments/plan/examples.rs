//! The plans of `docs/plans` that play published experiments give the published figures, within the error that they
//! state.

use std::path::PathBuf;

use super::*;
use crate::experiments::play::{Contender, Spread, milliseconds};
use crate::link::{ClockStart, Transfer};
use crate::model::connections;
use crate::published::{PAQUIN_HANDSHAKES, fudan, fudan_worst, paquin};
use crate::statistics::quantile_of;

fn example(name: &str) -> Plan {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/plans");
    Plan::load(&folder.join(name), false).unwrap()
}

/// Times of a trace of the plan over one of its links.
struct Played {
    rtt_ms: f64,
    loss_percent: f64,
    name: String,
    times: Spread,
}

/// The plan's traces over each of its links up to this loss, so many handshakes of each.
fn play(plan: &Plan, most_loss: f64, count: u64) -> Vec<Played> {
    let profile = plan.kernels().unwrap()[0];
    let mut all = Vec::new();
    for link in plan.links().into_iter().filter(|link| link.loss <= most_loss) {
        for Contender { name, trace } in &plan.traces {
            let nothing = Transfer { request: 0, body: 0 };
            let outcomes = connections(profile, &link, trace, nothing, 2019, count);
            let times = outcomes.iter().map(|one| milliseconds(one.handshake_from(plan.clock)));
            all.push(Played {
                rtt_ms: link.rtt().as_secs_f64() * 1e3,
                loss_percent: 100.0 * link.loss,
                name: name.clone(),
                times: Spread::of(&times.collect::<Vec<_>>()),
            });
        }
    }
    all
}

#[test]
fn the_study_of_2022_is_reproduced() {
    let plan = example("study-2022.toml");
    assert_eq!(plan.clock, ClockStart::Connected);
    let mut published: Vec<(f64, String, f64, f64)> = fudan()
        .unwrap()
        .into_iter()
        .filter(|point| point.kem == "p256_kyber512")
        .map(|point| {
            let rtt = if point.network == "near" { 5.5 } else { 30.0 };
            (rtt, point.signature, point.loss_each_direction_percent, point.mean_ms)
        })
        .collect();
    published.extend(fudan_worst().unwrap().into_iter().map(|point| {
        let [rising, falling] = point.pass_means_ms;
        let mean = f64::midpoint(rising, falling);
        (197.0, point.signature, point.loss_each_direction_percent, mean)
    }));
    let mut errors = Vec::new();
    for played in play(&plan, 0.1, 3000) {
        let theirs = published.iter().find(|(rtt, signature, loss, _)| {
            (rtt - played.rtt_ms).abs() < 0.01
                && played.name.to_lowercase().ends_with(signature)
                && (loss - played.loss_percent).abs() < 0.01
        });
        let (.., theirs) = theirs.unwrap();
        errors.push(100.0 * (played.times.mean / theirs - 1.0).abs());
    }
    assert_eq!(errors.len(), 3 * 6 * 2);
    let (middle, most) = (quantile_of(&errors, 0.5), quantile_of(&errors, 1.0));
    assert!(
        middle < 5.0 && most < 25.0,
        "{middle:.1} % in the median, {most:.1} % at most: {errors:.1?}"
    );
}

#[test]
fn paquins_grid_is_reproduced() {
    let plan = example("paquin-2019.toml");
    assert_eq!(plan.points(), 4 * 25 * 4);
    let published = paquin().unwrap();
    let (mut good, mut all, mut beyond) = (0, 0, Vec::new());
    for Played { rtt_ms, loss_percent, name, times } in play(&plan, 0.1, 1500) {
        let theirs = published.iter().find(|point| {
            (point.rtt_ms - rtt_ms).abs() < 0.2
                && point.algorithm == name
                && (point.loss_percent - loss_percent).abs() < 0.01
        });
        let theirs = theirs.unwrap();
        for (percent, share, theirs) in
            [(75, 0.75, theirs.p75_ms), (85, 0.85, theirs.p85_ms), (95, 0.95, theirs.p95_ms)]
        {
            // Percentiles of 5000 there and of 1500 here: two standard errors of the rank, in whole per cent.
            let samples: f64 = 1.0 / f64::from(PAQUIN_HANDSHAKES) + 1.0 / 1500.0;
            let error = (200.0 * (share * (1.0 - share) * samples).sqrt()).ceil() as usize;
            let (low, high) = (times.at(percent - error), times.at((percent + error).min(100)));
            all += 1;
            if (low * 0.95..=high * 1.05).contains(&theirs) {
                good += 1;
            } else {
                beyond.push((
                    rtt_ms,
                    loss_percent,
                    name.clone(),
                    percent,
                    theirs,
                    times.at(percent),
                ));
            }
        }
    }
    assert_eq!(all, 4 * 15 * 4 * 3);
    assert!(good * 100 >= all * 97, "{good} of {all}: {beyond:?}");
}

/// A handshake that the lab cannot make is played beside those that it measures, over the plan's own kernel, too.
#[test]
fn algorithms_that_are_not_built_in_are_played() {
    let mut plan = example("own-algorithms.toml");
    plan.rtt_us = vec![30_000];
    plan.loss = vec![0.0, 0.03];
    plan.count = 200;
    plan.profiles.push("slow-clock".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let findings = tests::perform(folder.path(), plan).unwrap();
    let table = findings.tables.iter().find(|table| table.name == "grid-full-x2").unwrap();
    let column = |name: &str| table.columns.iter().position(|column| column == name).unwrap();
    let median = |who: &str, loss: f64, kernel: &str| {
        let row = table.rows.iter().find(|row| {
            row[column("who")] == who.into()
                && row[column("loss (%)")] == loss.into()
                && row[column("TCP of")] == kernel.into()
        });
        match row.unwrap_or_else(|| panic!("{who} {loss} {kernel}"))
            [column("median since SYN (ms)")]
        {
            crate::result::Value::Number(number) => number,
            crate::result::Value::Text(_) => panic!("{who}"),
        }
    };
    let names = ["X25519 and HQC-1 (sizes)", "X25519 and BIKE-L1 (sizes)"];
    // Two round trips and the processor times; the unit is ms.
    for (name, cpu) in names.into_iter().zip([1.0, 1.45]) {
        for kernel in ["linux-6.18", "slow-clock"] {
            let took = median(name, 0.0, kernel);
            assert!((took - 60.0 - cpu).abs() < 0.1, "{name} {kernel}: {took}");
        }
    }
    let busy = median("X25519 and FrodoKEM-640 (sizes), busy", 0.0, "linux-6.18");
    assert!((busy - 62.4).abs() < 0.3, "{busy}");
    assert!(
        findings
            .notes
            .iter()
            .any(|note| note.contains("were not measured here") && note.contains(names[0]))
    );
    assert!(findings.notes.iter().any(|note| note.contains("CONFIG_HZ=100")));
    assert_eq!(findings.summary.len(), 1 + 4, "{:?}", findings.summary);
}

/// Without groups and signatures only the traces are played.
#[test]
fn a_plan_of_traces_alone_measures_nothing() {
    let text = "title = \"Ours\"\nrtt_ms = [30]\ncount = 100\n[baseline]\ntrace = \"b\"\n\
                [[trace]]\nname = \"a\"\nclient_hello = 300\nserver_flight = 20000\n\
                [[trace]]\nname = \"b\"\nclient_hello = 300\nserver_flight = 900";
    let folder = tempfile::tempdir().unwrap();
    let findings = tests::perform(folder.path(), Plan::parse(text).unwrap()).unwrap();
    assert_eq!(findings.tables[0].name, "grid-traces");
    let who: Vec<_> = findings.tables[0].rows.iter().map(|row| row[4].clone()).collect();
    assert_eq!(who, ["b".into(), "a".into()], "the baseline first");
    assert!(findings.summary[1].contains("a in the mean"), "{:?}", findings.summary);
}
