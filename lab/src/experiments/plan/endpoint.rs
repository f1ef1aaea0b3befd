//! The user's own server: over the existing network, or started at the far end of the emulated link.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};

use super::Part;
use super::client::{self, Asker, Shot};
use crate::error::LabError;
use crate::experiments::play::{Spread, milliseconds, share};
use crate::experiments::tables::{interval_words, place_words, short, told};
use crate::link::Link;
use crate::live::Live;
use crate::plan::{Endpoint, Plan, Target, live_cost};
use crate::result::{Axis, Chart, Control, Marks, Series, Table};
use crate::run::Run;
use crate::site;
use crate::statistics::{bootstrap, quantile_of, sorted};
use crate::subject::{KeyExchange, Kind};
use crate::trace::Side;

/// Rounds that are stored together: so many are lost when a server dies.
const TOGETHER: u64 = 20;
/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(20);

/// Flow numbers of unmeasured connections begin here.
const UNCOUNTED: u64 = 1 << 40;

/// A request of each round: the first one is repeated at the end, as its own control.
#[derive(Debug, Clone)]
struct Ask {
    name: String,
    group: &'static KeyExchange,
    resume: bool,
}

/// Rounds with every request once.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rounds {
    shots: Vec<Vec<Shot>>,
}

pub(super) fn run(
    run: &mut Run<'_>,
    plan: &Plan,
    endpoint: &Endpoint,
    seed: u64,
) -> Result<Part, LabError> {
    let mut part = Part::default();
    let asks = asks(run, plan)?;
    let roots = client::roots(&endpoint.ca_file)?;
    let configs: Vec<Arc<ClientConfig>> = asks
        .iter()
        .map(|ask| client::config(ask.group, &roots, ask.resume))
        .collect::<Result<_, LabError>>()?;
    let name = ServerName::try_from(endpoint.server_name.clone())
        .map_err(|error| LabError::Plan(format!("[endpoint] `server_name`: {error}")))?;
    let request = client::request(&plan.path, &endpoint.server_name);
    let count = plan.live_connections(run.quick());
    match &endpoint.at {
        Target::Address(address) => {
            let asker = Asker { address: resolve(address)?, name, request };
            let cost = Duration::from_millis(60) * u32::try_from(asks.len()).unwrap_or(u32::MAX);
            let (rounds, trouble) = rounds(run, address, count, cost, |first, count, stop| {
                let connect = |_, config: &Arc<ClientConfig>| client::shoot(&asker, config);
                shoot(&connect, &configs, seed, first, count, stop)
            })?;
            tell(run, &asks, &rounds, "endpoint", &format!("{address} over the network from here"));
            part = Part { measured: true, trouble };
        }
        Target::Command { command, port } => {
            for (index, link) in plan.links().into_iter().enumerate() {
                let asker = Asker {
                    address: SocketAddr::from(([0, 0, 0, 0], *port)),
                    name: name.clone(),
                    request: request.clone(),
                };
                let job = Started { command, link, seed, asker, configs: &configs };
                let (rounds, trouble) = started(run, &job, count)?;
                part.trouble = part.trouble.or(trouble);
                let Some(rounds) = rounds else { continue };
                part.measured = true;
                let place = format!("{} behind {}", endpoint.server_name, place_words(&link));
                tell(run, &asks, &rounds, &format!("endpoint-{index}"), &place);
            }
        }
    }
    Ok(part)
}

fn asks(run: &mut Run<'_>, plan: &Plan) -> Result<Vec<Ask>, LabError> {
    let mut asks = Vec::new();
    let mut groups = vec![plan.baseline.0.as_str()];
    groups.extend(plan.groups.iter().map(String::as_str).filter(|name| *name != plan.baseline.0));
    for kind in &plan.kinds {
        let (resume, suffix) = match kind {
            Kind::Full => (false, ""),
            Kind::Resumed => (true, ", resumed"),
            Kind::HelloRetry | Kind::Mutual => {
                run.note(
                    "An endpoint is measured with full and resumed handshakes only: what else it does is its own choice.",
                );
                continue;
            }
        };
        for group in &groups {
            let row = KeyExchange::by_name(group)?;
            asks.push(Ask { name: format!("{}{suffix}", row.name), group: row, resume });
        }
    }
    // The control.
    asks.extend(asks.first().cloned());
    if asks.is_empty() {
        return Err(LabError::Plan("`kinds`: an endpoint needs `full` or `resumed`".to_owned()));
    }
    Ok(asks)
}

fn resolve(address: &str) -> Result<SocketAddr, LabError> {
    let unknown =
        |reason: String| LabError::Peer { peer: format!("the endpoint {address}"), reason };
    address
        .to_socket_addrs()
        .map_err(|error| unknown(error.to_string()))?
        .next()
        .ok_or_else(|| unknown("it has no address".to_owned()))
}

/// Points of a few rounds each; what was measured before a server died is kept, and reported.
fn rounds(
    run: &mut Run<'_>,
    place: &str,
    count: u64,
    cost: Duration,
    mut shoot: impl FnMut(u64, u64, &AtomicBool) -> Result<Rounds, LabError>,
) -> Result<(Rounds, Option<LabError>), LabError> {
    let mut all = Rounds { shots: Vec::new() };
    let mut first = 0;
    while first < count {
        let now = TOGETHER.min(count - first);
        let key = format!("endpoint/{place}/rounds {first} to {}", first + now);
        let stop = run.stop_flag();
        let cost = cost * u32::try_from(now).unwrap_or(u32::MAX);
        match run.point(&key, cost, || shoot(first, now, stop)) {
            Ok(rounds) => all.shots.extend(rounds.shots),
            Err(error @ LabError::Peer { .. }) if !all.shots.is_empty() => {
                run.left_out(&format!(
                    "{place}: {error}; the {} rounds before are kept, and the same command continues from there.",
                    all.shots.len()
                ));
                return Ok((all, Some(error)));
            }
            Err(error) => return Err(error),
        }
        first += now;
    }
    Ok((all, None))
}

/// Connects and asks; in numbered rounds, where every request meets the same losses, and before them with `None`.
type Connect<'a> = &'a dyn Fn(Option<u64>, &Arc<ClientConfig>) -> Result<Shot, LabError>;

fn shoot(
    connect: Connect<'_>,
    configs: &[Arc<ClientConfig>],
    seed: u64,
    first: u64,
    count: u64,
    stop: &AtomicBool,
) -> Result<Rounds, LabError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ first);
    // Unmeasured: fills caches on both sides, and gets tickets for resumption.
    for config in configs {
        connect(None, config)?;
    }
    let mut order: Vec<usize> = (0..configs.len()).collect();
    let mut rounds = Rounds { shots: Vec::new() };
    for round in 0..count {
        order.shuffle(&mut random);
        let mut shots: Vec<Option<Shot>> = vec![None; configs.len()];
        for &index in &order {
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            if let (Some(config), Some(shot)) = (configs.get(index), shots.get_mut(index)) {
                *shot = Some(connect(Some(first + round), config)?);
            }
        }
        rounds.shots.push(shots.into_iter().flatten().collect());
    }
    Ok(rounds)
}

/// A server that is started behind a link.
struct Started<'a> {
    command: &'a [String],
    link: Link,
    seed: u64,
    asker: Asker,
    configs: &'a [Arc<ClientConfig>],
}

/// Stops the server when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn started(
    run: &mut Run<'_>,
    job: &Started<'_>,
    count: u64,
) -> Result<(Option<Rounds>, Option<LabError>), LabError> {
    let (settings, stop, progress) = (run.settings(), run.stop_flag(), run.progress());
    let mut there: Option<(Live<'_>, Server)> = None;
    let port = job.asker.address.port();
    let cost = live_cost(&job.link, 10_000) * u32::try_from(job.configs.len()).unwrap_or(u32::MAX);
    let place = format!("{} port {port}, {}", job.command.join(" "), place_words(&job.link));
    let rounds = rounds(run, &place, count, cost, |first, count, stop_flag| {
        if there.is_none() {
            let live = site::live(settings, &job.link, job.seed, stop, Some(progress))?;
            let server = begin(&live, job.command)?;
            there = Some((live, server));
        }
        let Some((live, server)) = &mut there else {
            return Err(LabError::failed("no live engine"));
        };
        let asker = Asker { address: live.server_address(port), ..job.asker.clone() };
        wait(live, &asker, server, stop_flag)?;
        let live: &Live<'_> = live;
        let connect = |flow: Option<u64>, config: &Arc<ClientConfig>| {
            live.number_from(flow.unwrap_or(UNCOUNTED))?;
            live.within(Side::Client, || client::shoot(&asker, config))?
        };
        shoot(&connect, job.configs, job.seed, first, count, stop_flag)
    });
    match rounds {
        Ok((rounds, trouble)) => Ok((Some(rounds), trouble)),
        Err(
            error @ (LabError::Unavailable { .. } | LabError::Peer { .. } | LabError::Failed(_)),
        ) => {
            run.left_out(&format!("{place}: nothing was measured: {error}."));
            Ok((None, Some(error)))
        }
        Err(error) => Err(error),
    }
}

fn begin(live: &Live<'_>, words: &[String]) -> Result<Server, LabError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(LabError::Plan("[endpoint] `command` is empty".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    live.at(Side::Server, &command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Server)
        .map_err(|error| LabError::Peer { peer: program.clone(), reason: error.to_string() })
}

/// Waits until the server listens.
fn wait(
    live: &Live<'_>,
    asker: &Asker,
    server: &mut Server,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let begun = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let died =
            |reason: String| LabError::Peer { peer: "the command of [endpoint]".into(), reason };
        if let Ok(Some(status)) = server.0.try_wait() {
            return Err(died(format!("it ended: {status}")));
        }
        let address = asker.address;
        let reached = live.within(Side::Client, || {
            std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()
        })?;
        if reached {
            return Ok(());
        }
        if begun.elapsed() > START {
            return Err(died(format!(
                "nothing listens on port {} after {START:?}",
                address.port()
            )));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A time of a connection, in milliseconds.
type Time = fn(&Shot) -> u64;

const TIMES: [(&str, Time); 4] = [
    ("TCP connect", |shot| shot.connected_ns),
    ("handshake", |shot| shot.handshake_ns.saturating_sub(shot.connected_ns)),
    ("first byte", |shot| shot.first_byte_ns),
    ("last byte", |shot| shot.last_byte_ns),
];

fn column(rounds: &Rounds, index: usize, time: Time) -> Vec<f64> {
    rounds
        .shots
        .iter()
        .filter_map(|round| round.get(index))
        .map(|shot| milliseconds(time(shot)))
        .collect()
}

fn tell(run: &mut Run<'_>, asks: &[Ask], rounds: &Rounds, name: &str, place: &str) {
    let seed = run.seed();
    let handshake = TIMES[1].1;
    let base = column(rounds, 0, handshake);
    let mut rows = Vec::new();
    let mut series = Vec::new();
    let last = asks.len().saturating_sub(1);
    for (index, ask) in asks.iter().enumerate().take(last) {
        let mut row = vec![ask.name.as_str().into()];
        for (_, time) in TIMES {
            let spread = Spread::of(&column(rounds, index, time));
            row.extend([50, 95, 99].map(|percent| short(spread.at(percent)).into()));
        }
        let own = column(rounds, index, handshake);
        let less: Vec<f64> = own.iter().zip(&base).map(|(own, base)| own - base).collect();
        let difference = bootstrap(&less, seed, |list| quantile_of(list, 0.5));
        row.push(interval_words(&difference, "ms").into());
        let first = rounds.shots.first().and_then(|round| round.get(index));
        for of in [0, 1] {
            let bytes =
                first.and_then(|shot| shot.handshake_bytes.get(of)).copied().unwrap_or_default();
            row.push(bytes_value(bytes).into());
        }
        row.push(bytes_value(first.map_or(0, |shot| shot.answer)).into());
        rows.push(row);
        let times = sorted(own.iter().copied());
        let points = times
            .iter()
            .enumerate()
            .map(|(rank, time)| [*time, 100.0 * share(rank + 1, times.len())])
            .collect();
        series.push(Series { name: ask.name.clone(), points, band: Vec::new() });
        if index > 0 {
            run.summary(format!(
                "{place}: a handshake of {} less one of {}: {} (median of paired differences in {} rounds, TCP not counted).",
                ask.name,
                asks[0].name,
                told(&difference, "ms"),
                rounds.shots.len()
            ));
        }
        let shots: Vec<&Shot> = rounds.shots.iter().filter_map(|round| round.get(index)).collect();
        let resumed = shots.iter().filter(|shot| shot.resumed).count();
        if ask.resume && resumed < shots.len() {
            run.note(format!(
                "{place}: of {} connections that could resume a session {resumed} did.",
                shots.len()
            ));
        }
    }
    let again = column(rounds, last, handshake);
    let pairs: Vec<Vec<[f64; 2]>> =
        vec![again.iter().zip(&base).map(|(one, other)| [*one, *other]).collect()];
    let ratio = crate::statistics::two_level(&pairs, seed, |rounds| {
        let side = |index: usize| {
            quantile_of(&rounds.iter().map(|pair| pair[index]).collect::<Vec<_>>(), 0.5)
        };
        side(0) / side(1).max(f64::MIN_POSITIVE)
    });
    run.control(Control {
        what: format!("{}, asked twice in each round, medians ({place})", asks[0].name),
        ratio: ratio.value,
        low: ratio.low,
        high: ratio.high,
    });
    let mut columns = vec!["offered".to_owned()];
    for (what, _) in TIMES {
        columns
            .extend(["median", "p95", "p99"].map(|statistic| format!("{what}, {statistic} (ms)")));
    }
    columns.extend(
        [
            "handshake, paired difference, median",
            "handshake, sent (bytes)",
            "handshake, received (bytes)",
            "answer (bytes)",
        ]
        .map(str::to_owned),
    );
    run.table(Table {
        name: name.to_owned(),
        title: format!("Your endpoint: {place}"),
        columns,
        rows,
        note: "Every round asks each group once, in random order. The handshake is TLS's, without TCP's; first and last byte are since the \
               connect was begun. The certificates are the endpoint's own."
            .to_owned(),
    });
    run.chart(Chart {
        name: name.to_owned(),
        title: format!("TLS handshakes with {place}"),
        x: Axis::log("handshake since TCP was connected (ms)"),
        y: Axis::linear("handshakes (%)"),
        marks: Marks::Steps { series },
        rules: Vec::new(),
        caption: "Measured with real sockets from this machine.".to_owned(),
    });
}

fn bytes_value(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "bytes of an answer")]
    let bytes = bytes as f64;
    bytes
}
