//! `requests`: the cost of hybrid key exchange for an application that calls a service, by how often it connects.

mod findings;
mod resumption;

use std::time::Duration;

use crate::client::Work;
use crate::client::turns::{Cycle, Mode, Slot, Turns};
use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::experiments::served::{
    CERTIFICATES, CLASSICAL, Contrast, HYBRID, ML_DSA, Who, X25519, contrast, seed,
};
use crate::link::Link;
use crate::live;
use crate::run::{Run, Settings};
use crate::site::{Site, links, note_proof, place_name};
use crate::statistics::{Estimate, bootstrap, quantile_of};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "requests",
    title: "Requests a second",
    question: "How many requests a second does hybrid key exchange cost a client, when it reuses connections and when it does not?",
    source: "Weibel, ML-KEM post-quantum TLS now supported in AWS KMS, ACM, and Secrets Manager, AWS Security Blog, 2025: KMS GenerateDataKey from one thread, 500 samples of a second each",
    engines: &[Engine::Server, Engine::Live],
    estimate,
    run,
};

/// Requests of a connection in the sweep.
const COUNTS: [u32; 5] = [1, 2, 5, 10, 100];

/// A way of calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    who: Who,
    /// Whether all connections but the first resume a session.
    resumed: bool,
    cycle: Cycle,
}

impl Way {
    fn mode(self) -> Mode {
        Mode { caller: self.who.caller(self.resumed), cycle: self.cycle }
    }

    fn name(self) -> String {
        let cycle = match self.cycle {
            Cycle::Handshake => "connection alone".into(),
            Cycle::Requests(1) if self.resumed => "new connection each, resumed".into(),
            Cycle::Requests(1) => "new connection each".into(),
            Cycle::Requests(count) => format!("{count} requests a connection"),
            Cycle::Kept => "kept connection".to_owned(),
        };
        format!("{}: {cycle}", self.who.name)
    }

    /// Approximate time of a cycle over this link.
    fn cycle_time(self, link: Option<&Link>) -> Duration {
        let rtt = link.map_or(Duration::ZERO, Link::rtt);
        let request = rtt + Duration::from_micros(900);
        let handshake = rtt * 2 + Duration::from_millis(2);
        match self.cycle {
            Cycle::Handshake => handshake,
            Cycle::Requests(count) => handshake + request * count,
            Cycle::Kept => request,
        }
    }
}

/// All ways of the sweep; the last one is the control.
fn sweep_ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for who in [CLASSICAL, HYBRID, ML_DSA] {
        let cycles = [Cycle::Handshake, Cycle::Kept].into_iter().chain(COUNTS.map(Cycle::Requests));
        ways.extend(cycles.map(|cycle| Way { who, resumed: false, cycle }));
        ways.push(Way { who, resumed: true, cycle: Cycle::Requests(1) });
    }
    ways.push(Way { who: X25519, resumed: false, cycle: Cycle::Requests(1) });
    ways.push(Way { who: HYBRID, resumed: false, cycle: Cycle::Requests(1) });
    ways
}

/// The ways of the published experiment; the last one is the control.
fn sample_ways() -> Vec<Way> {
    let way = |who, cycle| Way { who, resumed: false, cycle };
    vec![
        way(CLASSICAL, Cycle::Requests(1)),
        way(HYBRID, Cycle::Requests(1)),
        way(CLASSICAL, Cycle::Kept),
        way(HYBRID, Cycle::Kept),
        way(HYBRID, Cycle::Requests(1)),
    ]
}

/// Amount of measurements.
#[derive(Debug, Clone, Copy)]
struct Amount {
    processes: u32,
    rounds: u32,
    slot: Duration,
}

impl Amount {
    /// Duration of a process with these ways.
    fn process(self, ways: &[Way], link: Option<&Link>) -> Duration {
        let round: Duration = ways
            .iter()
            .map(|way| {
                // A slot ends with its cycle; a kept connection is made before it begins.
                let cycle = way.cycle_time(link);
                self.slot.max(cycle) + cycle / 2
            })
            .sum();
        // The start, and one warm-up of each way.
        round * self.rounds + Duration::from_millis(400) + round / 8
    }

    fn all(self, ways: &[Way], link: Option<&Link>) -> Duration {
        self.process(ways, link) * self.processes
    }
}

fn rtt(tenths_of_ms: u64) -> Link {
    Link::new(Duration::from_micros(tenths_of_ms * 100), 0.0)
}

/// The link of the published experiment, if links can be emulated.
fn main_link() -> Link {
    rtt(10)
}

fn other_links(quick: bool) -> Vec<Link> {
    if quick { Vec::new() } else { vec![rtt(55), rtt(300)] }
}

fn sweep_amount(quick: bool, link: Option<&Link>) -> Amount {
    let main = link == Some(&main_link());
    match (quick, main) {
        (true, true) => Amount { processes: 5, rounds: 2, slot: Duration::from_millis(100) },
        (true, false) => Amount { processes: 3, rounds: 2, slot: Duration::from_millis(100) },
        (false, true) => Amount { processes: 5, rounds: 6, slot: Duration::from_millis(250) },
        (false, false) => Amount { processes: 5, rounds: 3, slot: Duration::from_millis(250) },
    }
}

fn sample_amount(quick: bool) -> Amount {
    if quick {
        Amount { processes: 5, rounds: 10, slot: Duration::from_millis(100) }
    } else {
        Amount { processes: 20, rounds: 25, slot: Duration::from_secs(1) }
    }
}

/// Time to start two servers, and the link.
const SET_UP: Duration = Duration::from_secs(2);

fn estimate(settings: &Settings) -> Duration {
    let (quick, ways) = (settings.quick, sweep_ways());
    let mut places = vec![None];
    if live::available().is_ok() {
        places.push(Some(main_link()));
        places.extend(other_links(quick).into_iter().map(Some));
    }
    let main = places.get(1).copied().flatten();
    let sweeps: Duration = places
        .iter()
        .map(|link| sweep_amount(quick, link.as_ref()).all(&ways, link.as_ref()) + SET_UP)
        .sum();
    sweeps + sample_amount(quick).all(&sample_ways(), main.as_ref())
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let missing = "Over a link with a round-trip time the handshake would cost two round trips more, which both ways share, and the figures would be those of a service in a network.";
    let emulated = links(run, &[main_link()], missing);
    let main = emulated.first().copied().flatten();
    let mut site = Site::new(run, main, CERTIFICATES);
    let samples =
        measure(run, &mut site, main, "samples", &sample_ways(), sample_amount(run.quick()))?;
    findings::samples(run, &place_name(main.as_ref()), &samples);
    let mut places = vec![main];
    if main.is_some() {
        places.extend(other_links(run.quick()).into_iter().map(Some));
        places.push(None);
    }
    let mut sweeps = Vec::new();
    for link in places {
        site.over(link);
        let amount = sweep_amount(run.quick(), link.as_ref());
        sweeps.push((
            place_name(link.as_ref()),
            measure(run, &mut site, link, "sweep", &sweep_ways(), amount)?,
        ));
        if link.is_some() {
            let name = site.name();
            let proof =
                run.point(&format!("{name}: the link's proof"), Duration::ZERO, || site.proof())?;
            note_proof(run, &name, proof.as_ref());
        }
    }
    findings::sweeps(run, &sweeps, &samples);
    Ok(())
}

/// Measures these ways in several processes, each a point.
fn measure(
    run: &mut Run<'_>,
    site: &mut Site<'_>,
    link: Option<Link>,
    what: &str,
    ways: &[Way],
    amount: Amount,
) -> Result<Measured, LabError> {
    let cost = amount.process(ways, link.as_ref());
    let mut processes = Vec::new();
    for process in 0..amount.processes {
        let key = format!(
            "{}: {what}, {} ways, slots of {} ms, {} rounds, process {} of {}",
            place_name(link.as_ref()),
            ways.len(),
            amount.slot.as_millis(),
            amount.rounds,
            process + 1,
            amount.processes
        );
        let turns = Turns {
            modes: ways.iter().map(|way| way.mode()).collect(),
            rounds: amount.rounds,
            slot_us: u64::try_from(amount.slot.as_micros()).unwrap_or(u64::MAX),
            seed: seed(run.seed(), u64::from(process)),
        };
        processes.push(run.point(&key, cost, || site.call(Work::Turns(turns)))?);
    }
    Ok(Measured { ways: ways.to_vec(), processes, seed: run.seed(), slot: amount.slot })
}

/// The quantile of a slot's requests that is compared. The 10th percentile shows the machine undisturbed; a median is
/// needed where the work itself varies, as ML-DSA's signing does (FIPS 204, rejection sampling).
fn share(who: &[Option<Who>]) -> f64 {
    if who.contains(&Some(ML_DSA)) { 0.5 } else { 0.1 }
}

/// Results at a point.
pub(crate) struct Measured {
    ways: Vec<Way>,
    /// Results by process, round and way.
    processes: Vec<Vec<Vec<Slot>>>,
    seed: u64,
    slot: Duration,
}

impl Measured {
    /// Index of a way; the first if it occurs twice.
    fn index(&self, who: Who, resumed: bool, cycle: Cycle) -> usize {
        let wanted = Way { who, resumed, cycle };
        self.ways.iter().position(|way| *way == wanted).unwrap_or(usize::MAX)
    }

    fn slots(&self, index: usize) -> impl Iterator<Item = &Slot> {
        self.processes.iter().flatten().filter_map(move |round| round.get(index))
    }

    /// Slots of each way.
    fn count(&self) -> usize {
        self.processes.iter().map(Vec::len).sum()
    }

    /// Seconds per request, median of the slots, with its interval.
    fn time(&self, index: usize, share: f64) -> Estimate {
        let seconds: Vec<f64> = self.slots(index).map(|slot| slot.typical(share)).collect();
        bootstrap(&seconds, self.seed, |values| quantile_of(values, 0.5))
    }

    /// The second compared with the first, paired by round.
    fn compare(&self, first: usize, second: usize) -> Contrast {
        let who = |index: usize| self.ways.get(index).map(|way| way.who);
        let share = share(&[who(first), who(second)]);
        let rounds: Vec<Vec<[f64; 2]>> = self
            .processes
            .iter()
            .map(|rounds| {
                let pair = |round: &Vec<Slot>| {
                    Some([round.get(first)?.typical(share), round.get(second)?.typical(share)])
                };
                rounds.iter().filter_map(pair).collect()
            })
            .collect();
        contrast(&rounds, self.seed)
    }

    /// The control: a way that was measured twice, compared with itself.
    fn control(&self) -> Contrast {
        let last = self.ways.len().saturating_sub(1);
        self.compare(self.index(HYBRID, false, Cycle::Requests(1)), last)
    }
}
