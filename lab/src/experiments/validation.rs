//! The live engine next to the model: real kernels and real stacks at a handful of points, the same flows with the
//! same losses. Shared by the experiments that compare handshakes over links.

use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::experiments::play::{self, Contender, share};
use crate::experiments::tables::{place_words, short};
use crate::link::{Link, Outcome, Transfer};
use crate::live::{self, Live, Proof};
use crate::model::validation::agreement::{AGREES, Agreement, times};
use crate::model::{self, Profile};
use crate::plan::live_cost;
use crate::result::{Axis, Chart, Marks, Series, Table};
use crate::run::Run;
use crate::site;
use crate::statistics::{mean, quantile_of, sorted};
use crate::subject::Subject;
use crate::tls::Stack;

/// Consecutive flows of one subject.
const TURN: u64 = 10;
/// Time for namespaces, devices and calibration.
const SETUP: Duration = Duration::from_secs(4);

/// A live measurement.
#[derive(Debug, Clone)]
pub struct Job {
    /// The part of the experiment, for the point's key.
    pub part: String,
    /// The link.
    pub link: Link,
    /// Sizes of request and answer.
    pub transfer: Transfer,
    /// The subjects, interleaved.
    pub subjects: Vec<Subject>,
    /// Connections of each.
    pub count: u64,
}

/// Results over an emulated link.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beside {
    /// Sizes of request and answer.
    pub transfer: Transfer,
    /// The link.
    pub link: Link,
    /// Outcomes of each subject, by flow.
    pub outcomes: Vec<(String, Vec<Outcome>)>,
    /// The emulation's own figures.
    pub proof: Proof,
}

/// Duration of a job.
pub fn cost(job: &Job) -> Duration {
    let connections = u32::try_from(job.count * job.subjects.len() as u64).unwrap_or(u32::MAX);
    SETUP + live_cost(&job.link, job.transfer.body).saturating_mul(connections)
}

/// Measures each job. If the machine lacks something, that becomes a note, and nothing else is lost; the error names
/// what is missing.
pub fn measure(
    run: &mut Run<'_>,
    stack: &dyn Stack,
    seed: u64,
    jobs: &[Job],
) -> Result<(Vec<Beside>, Option<LabError>), LabError> {
    let (settings, stop, progress) = (run.settings(), run.stop_flag(), run.progress());
    let mut trouble = None;
    let mut live: Option<Live<'_>> = None;
    let mut found = Vec::new();
    for job in jobs {
        let link = job.link;
        let Transfer { request, body } = job.transfer;
        let Link { queue_packets, jitter_us, .. } = link;
        let who: Vec<String> = job.subjects.iter().map(Subject::name).collect();
        let key = format!(
            "live/{}/{}/{}/queue {queue_packets}, jitter {jitter_us} us/{request}+{body} B/{}/seed {seed}/{}",
            job.part,
            play::stack_words(stack)?,
            place_words(&link),
            job.count,
            who.join("; ")
        );
        let point = run.point(&key, cost(job), || {
            live::available()?;
            match &mut live {
                Some(live) => live.set_link(&link, seed)?,
                None => live = Some(site::live(settings, &link, seed, stop, Some(progress))?),
            }
            let Some(live) = &mut live else { return Err(LabError::failed("no live engine")) };
            in_turns(live, stack.name(), job, seed)
        });
        match point {
            Ok(point) => found.push(point),
            Err(error @ (LabError::Interrupted | LabError::Plan(_) | LabError::File { .. })) => {
                return Err(error);
            }
            Err(error) => {
                let lacking = matches!(error, LabError::Unavailable { .. });
                run.left_out(&if lacking {
                    format!("Nothing was measured live from {} on: {error}.", place_words(&link))
                } else {
                    format!("Nothing was measured live at {}: {error}.", place_words(&link))
                });
                if trouble.is_none() || !lacking {
                    trouble = Some(error);
                }
                if lacking {
                    break;
                }
                live = None;
            }
        }
    }
    Ok((found, trouble))
}

/// A few flows of each subject in turn, in random order.
fn in_turns(live: &mut Live<'_>, stack: &str, job: &Job, seed: u64) -> Result<Beside, LabError> {
    let Job { link, transfer, subjects, count, .. } = job;
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut outcomes: Vec<(String, Vec<Outcome>)> =
        subjects.iter().map(|subject| (subject.name(), Vec::new())).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let mut first = 0;
    while first < *count {
        let turn = TURN.min(*count - first);
        order.shuffle(&mut random);
        for &index in &order {
            let (Some(subject), Some((_, list))) = (subjects.get(index), outcomes.get_mut(index))
            else {
                continue;
            };
            list.extend(live.connections(stack, subject, *transfer, first, turn)?);
        }
        first += turn;
    }
    Ok(Beside { link: *link, transfer: *transfer, outcomes, proof: live.proof()? })
}

/// Table and chart of both engines; `close` chooses the links to draw.
pub fn tell(
    run: &mut Run<'_>,
    profile: &'static Profile,
    seed: u64,
    points: &[Beside],
    all: &[Contender],
    close: &dyn Fn(&Link) -> bool,
) {
    if points.is_empty() {
        return;
    }
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let mut verdicts = Vec::new();
    for point in points {
        for (name, live) in &point.outcomes {
            let Some(contender) = all.iter().find(|contender| contender.name == *name) else {
                continue;
            };
            let model = model::connections(
                profile,
                &point.link,
                &contender.trace,
                point.transfer,
                seed,
                live.len() as u64,
            );
            let found = Agreement::of(point.link.loss, live, &model);
            verdicts.push(found.refusal().is_none().then(|| found.verdict() == AGREES));
            let (live, model) = (times(live), times(&model));
            let p95 = |list: &[f64]| quantile_of(list, 0.95);
            let median = |list: &[f64]| quantile_of(list, 0.5);
            #[expect(clippy::cast_precision_loss, reason = "a number of flows")]
            let flows = found.flows as f64;
            rows.push(vec![
                place_words(&point.link).into(),
                name.as_str().into(),
                flows.into(),
                short(100.0 * found.late_share()).into(),
                short(median(&live)).into(),
                short(median(&model)).into(),
                short(mean(&live)).into(),
                short(mean(&model)).into(),
                short(found.mean_percent).into(),
                short(p95(&live)).into(),
                short(p95(&model)).into(),
                short(found.p95_percent).into(),
                found.verdict().into(),
            ]);
            if close(&point.link) {
                series.push(steps(format!("{name}, live"), &live));
                series.push(steps(format!("{name}, model"), &model));
            }
        }
    }
    let columns = [
        "link",
        "who",
        "flows",
        "flows with a late packet (%)",
        "median, live (ms)",
        "median, model (ms)",
        "mean, live (ms)",
        "mean, model (ms)",
        "mean, model over live (%)",
        "p95, live (ms)",
        "p95, model (ms)",
        "p95, model over live (%)",
        "within 10 % (mean) and 8 % (p95), no overhead added",
    ];
    run.table(Table {
        name: "live".to_owned(),
        title: "The model beside real kernels over the emulated link".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Handshakes since the SYN. The same flows lose the same packets in both engines. Late: delivered more than 50 \
               microseconds after its time by the emulation itself. Such flows are in all columns: they are those with many packets and many \
               losses, and without them the rest would be those that lost nothing. There is no verdict where more than 10 % of the flows are late, nor \
               on fewer than 1000 flows of a point with loss or 20 of one without. The model's times are taken as they are; `outlast lab selftest` has the \
               same limits, but first adds to the model's times what this machine takes longer without loss: what is beyond the limits here may be within them there. Live, processes wake up and share processors, which takes a fraction of a millisecond a handshake that the model does not \
               have: at RTTs of about 1 ms that is 10 to 40 % of the handshake, and the model is below the live figure; from some 5 ms on the \
               network decides."
            .to_owned(),
    });
    if !series.is_empty() {
        run.chart(Chart {
            name: "live".to_owned(),
            title: "The same flows in the model and over the emulated link".to_owned(),
            x: Axis::log("handshake since the SYN (ms)"),
            y: Axis::linear("handshakes (%)"),
            marks: Marks::Steps { series },
            rules: Vec::new(),
            caption: "Distributions of the handshake time. Where live and model lie on each other, the model agrees with this machine's TCP for these \
                      handshakes over these links. The table has all that was checked; nothing follows for RTTs, losses or flights beyond it."
                .to_owned(),
        });
    }
    run.note(sentence(&verdicts));
    for point in points {
        let proof = &point.proof;
        run.note(format!(
            "Live at {}: emulated by {}{}, connect median {} microseconds from the asked RTT after calibration ({} before).",
            place_words(&point.link),
            proof.emulator,
            if proof.real_time { ", with real-time priority" } else { ", without real-time priority" },
            short(proof.calibrated_us),
            short(proof.uncalibrated_us)
        ));
    }
}

/// How many of the comparisons agree; `None` are those without a verdict.
fn sentence(verdicts: &[Option<bool>]) -> String {
    let count = |wanted: Option<bool>| verdicts.iter().filter(|one| **one == wanted).count();
    format!(
        "The model beside this machine's TCP (table live): of {} comparisons {} agree, {} do not, and {} have no verdict, because the emulation \
         delivered packets late or there were too few flows.",
        verdicts.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}

fn steps(name: String, times: &[f64]) -> Series {
    let times = sorted(times.iter().copied());
    let points = times
        .iter()
        .enumerate()
        .map(|(index, time)| [*time, 100.0 * share(index + 1, times.len())])
        .collect();
    Series { name, points, band: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has no verdict counts neither for nor against.
    #[test]
    fn comparisons_without_a_verdict_are_told() {
        let said = sentence(&[Some(true), None, Some(false), None, None]);
        assert!(
            said.contains("of 5 comparisons 1 agree, 1 do not, and 3 have no verdict"),
            "{said}"
        );
    }
}
