//! Plans: a user's own grid and endpoint, in TOML.
//!
//! [`fields`] has a row for each key, with its help. The whole plan is checked before anything is measured: names,
//! ranges, sizes. Relative paths in it are relative to the plan's folder.

mod fields;
mod read;
mod traces;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::link::{ClockStart, Link, Transfer};
use crate::model::{Kernel, PROFILES, Profile};
use crate::subject::{Authentication, KeyExchange, Kind, Subject};
use crate::trace::Contender;

/// Longest plan, in bytes.
const MAX_TEXT: u64 = 64 * 1024;
/// Most points of a grid; more would not fit into a report.
const MAX_POINTS: u64 = 20_000;
/// Longest run, by the estimate.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);
/// Connections per point in a quick run.
const QUICK_COUNT: u64 = 500;
/// Live connections per point in a quick run.
const QUICK_LIVE: u64 = 50;

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Heading of the report.
    pub title: String,
    /// Seed; the run's own if absent.
    pub seed: Option<u64>,
    /// Round-trip times in microseconds; empty if only an endpoint is measured.
    pub rtt_us: Vec<u64>,
    /// Shares of packets lost in each direction.
    pub loss: Vec<f64>,
    /// Bits per second in each direction.
    pub rate_bps: Option<u64>,
    /// Packets that may wait at the bottleneck.
    pub queue_packets: u32,
    /// Standard deviation of the one-way delay in microseconds.
    pub jitter_us: u64,
    /// Names of key exchanges.
    pub groups: Vec<String>,
    /// Names of signature algorithms.
    pub signatures: Vec<String>,
    /// Lengths of the server's chain, without the root.
    pub certificates: Vec<u8>,
    /// Kinds of handshakes.
    pub kinds: Vec<Kind>,
    /// Names of kernel profiles, for the model.
    pub profiles: Vec<String>,
    /// Bytes of the answers.
    pub bodies: Vec<u32>,
    /// Bytes of the request.
    pub request: u32,
    /// Path to request from an endpoint.
    pub path: String,
    /// When the clock of a handshake starts.
    pub clock: ClockStart,
    /// Engines.
    pub engines: Vec<PlanEngine>,
    /// Connections per point of the model.
    pub count: u64,
    /// Connections per live point, and to an endpoint for each group.
    pub live_count: u64,
    /// The baseline: key exchange and signature.
    pub baseline: (String, String),
    /// Handshakes of algorithms that are not built in.
    #[serde(default)]
    pub traces: Vec<Contender>,
    /// The trace that is the baseline, if it is none of the measured handshakes.
    #[serde(default)]
    pub baseline_trace: Option<String>,
    /// Kernels that are not in the table.
    #[serde(default)]
    pub own_kernels: Vec<Kernel>,
    /// The user's own server.
    pub endpoint: Option<Endpoint>,
}

/// An engine for a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanEngine {
    /// Linux TCP in virtual time.
    Model,
    /// Real stacks over an emulated link.
    Live,
}

/// The user's own server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Its address or command.
    pub at: Target,
    /// The name in its certificate.
    pub server_name: String,
    /// PEM file with the trusted CAs.
    pub ca_file: PathBuf,
}

/// Where an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A running server: measured from here over the existing network.
    Address(String),
    /// A program that is started at the server's end of the emulated link.
    Command {
        /// Program and arguments.
        command: Vec<String>,
        /// Port that it listens on.
        port: u16,
    },
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            title: String::new(),
            seed: None,
            rtt_us: Vec::new(),
            loss: vec![0.0],
            rate_bps: None,
            queue_packets: 1000,
            jitter_us: 0,
            groups: Vec::new(),
            signatures: Vec::new(),
            certificates: vec![2],
            kinds: vec![Kind::Full],
            profiles: PROFILES.first().map(|row| row.name.to_owned()).into_iter().collect(),
            bodies: vec![1000],
            request: 200,
            path: "/".into(),
            clock: ClockStart::Syn,
            engines: vec![PlanEngine::Model],
            count: 6000,
            live_count: 200,
            baseline: (String::new(), String::new()),
            traces: Vec::new(),
            baseline_trace: None,
            own_kernels: Vec::new(),
            endpoint: None,
        }
    }
}

impl Plan {
    /// Reads and checks a plan file, for a run in this form.
    pub fn load(path: &Path, quick: bool) -> Result<Self, LabError> {
        let length = std::fs::metadata(path).map_err(|error| LabError::file(path, error))?.len();
        let named = |what: String| LabError::Plan(format!("{}: {what}", path.display()));
        if length > MAX_TEXT {
            return Err(named(format!("longer than {MAX_TEXT} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| LabError::file(path, error))?;
        let mut plan = Self::read(&text, quick).map_err(|error| named(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(endpoint) = &mut plan.endpoint {
            endpoint.ca_file = folder.join(&endpoint.ca_file);
            if let Err(error) = std::fs::metadata(&endpoint.ca_file) {
                let file = endpoint.ca_file.display();
                return Err(named(format!("[endpoint] `ca_file`: {file}: {error}")));
            }
        }
        Ok(plan)
    }

    /// Parses and checks a plan. Errors name the line, the key, what is wrong, and the known names.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        Self::read(text, false)
    }

    fn read(text: &str, quick: bool) -> Result<Self, LabError> {
        if text.len() as u64 > MAX_TEXT {
            return Err(LabError::Plan(format!("longer than {MAX_TEXT} bytes")));
        }
        let mut plan = Self::default();
        read::document(text, fields::PLAN, &mut plan)?;
        plan.complete()?;
        plan.check(quick)?;
        Ok(plan)
    }

    /// The keys of a plan, with their meaning: `(key, help)`, keys in tables with their table's name.
    pub fn help() -> Vec<(String, &'static str)> {
        fields::help()
    }

    /// Whether nothing is measured: only traces are played.
    pub fn only_traces(&self) -> bool {
        self.groups.is_empty()
    }

    fn complete(&mut self) -> Result<(), LabError> {
        let (named_group, named_signature) = &self.baseline;
        let names = [named_group, named_signature];
        let measured = !self.groups.is_empty()
            || !self.signatures.is_empty()
            || names.iter().any(|name| !name.is_empty());
        if self.traces.is_empty() || self.endpoint.is_some() || measured {
            let or = |list: &mut Vec<String>, others: &[&str]| {
                if list.is_empty() {
                    list.extend(others.iter().map(|&name| name.to_owned()));
                }
            };
            or(&mut self.groups, &["x25519", "X25519MLKEM768"]);
            or(&mut self.signatures, &["ECDSA P-256"]);
        }
        if self.only_traces() {
            return Ok(());
        }
        let (group, signature) = &mut self.baseline;
        if group.is_empty() {
            *group = self.groups.first().cloned().unwrap_or_default();
        }
        if signature.is_empty() {
            *signature = self.signatures.first().cloned().unwrap_or_default();
        }
        let known = |list: &[String], name: &str, key: &str| {
            if list.iter().any(|row| row == name) {
                return Ok(());
            }
            Err(LabError::Plan(format!(
                "[baseline] `{key}`: {name} is not among the plan's own: {}",
                list.join(", ")
            )))
        };
        known(&self.groups, group, "group")?;
        known(&self.signatures, signature, "signature")
    }

    fn check(&self, quick: bool) -> Result<(), LabError> {
        let fail = |what: String| Err(LabError::Plan(what));
        if self.title.is_empty() {
            return fail("`title` is missing: it is the heading of the report".into());
        }
        if self.rtt_us.is_empty() {
            match self.endpoint.as_ref().map(|endpoint| &endpoint.at) {
                None => return fail("`rtt_ms` is missing, and there is no [endpoint]".into()),
                Some(Target::Command { .. }) => {
                    return fail(
                        "`rtt_ms` is missing: a server that is started here needs a link".into(),
                    );
                }
                Some(Target::Address(_)) => {}
            }
        }
        for rtt in &self.rtt_us {
            // Three deviations must fit into half a round trip, or packets would arrive before they leave.
            if self.jitter_us * 6 > *rtt {
                return fail(format!(
                    "`jitter_ms` {} is too much for an RTT of {} ms: at most a sixth of it",
                    ms(self.jitter_us),
                    ms(*rtt)
                ));
            }
        }
        if let Some(rate) = self.rate_bps
            && self.engines.contains(&PlanEngine::Live)
            && rate > 1_000_000_000
        {
            return fail("`rate_mbps`: the live engine emulates up to 1000 Mbit/s".into());
        }
        if self.only_traces() && self.engines.contains(&PlanEngine::Live) {
            return fail(
                "`engines`: live measures real stacks, and this plan has traces only: leave `live` out, or add `groups`"
                    .into(),
            );
        }
        if self.endpoint.is_some() && self.kinds.contains(&Kind::Mutual) {
            return fail(
                "`kinds`: an endpoint cannot be measured with `mutual`: that would need a client certificate; leave it \
                 out, or make a second plan"
                    .into(),
            );
        }
        if self.endpoint.is_some()
            && !self.kinds.iter().any(|kind| matches!(kind, Kind::Full | Kind::Resumed))
        {
            return fail(
                "`kinds`: an endpoint needs `full` or `resumed` among them; whether it asks for another key share is \
                 its own choice"
                    .into(),
            );
        }
        let points = self.points();
        if points > MAX_POINTS {
            return fail(format!(
                "the grid has {points} points ({}); at most {MAX_POINTS} fit a report",
                self.shape()
            ));
        }
        let time = self.estimate(quick);
        if time > MAX_TIME {
            return fail(format!(
                "the plan would take about {} hours ({} x {} connections); a run of more than 24 hours is not started: \
                 lower `count`, `live_count`, `loss` or `bodies`, or make several plans",
                time.as_secs() / 3600,
                self.shape(),
                self.connections(quick)
            ));
        }
        Ok(())
    }

    /// Connections per point of the model.
    pub fn connections(&self, quick: bool) -> u64 {
        if quick { self.count.min(QUICK_COUNT) } else { self.count }
    }

    /// Connections per live point.
    pub fn live_connections(&self, quick: bool) -> u64 {
        if quick { self.live_count.min(QUICK_LIVE) } else { self.live_count }
    }

    /// Number of points of the grid.
    pub fn points(&self) -> u64 {
        let all = |rows: &[(&str, u64)]| rows.iter().map(|(_, n)| *n).fold(1, u64::saturating_mul);
        let handshakes = all(&self.measured()).saturating_add(self.traces.len() as u64);
        all(&self.places()).saturating_mul(handshakes)
    }

    fn places(&self) -> [(&'static str, u64); 4] {
        let count = |length: usize| length as u64;
        [
            ("RTTs", count(self.rtt_us.len())),
            ("losses", count(self.loss.len())),
            ("profiles", count(self.profiles.len())),
            ("bodies", count(self.bodies.len())),
        ]
    }

    fn measured(&self) -> [(&'static str, u64); 4] {
        let count = |length: usize| length as u64;
        [
            ("groups", count(self.groups.len())),
            ("signatures", count(self.signatures.len())),
            ("chain lengths", count(self.certificates.len())),
            ("kinds", count(self.kinds.len())),
        ]
    }

    fn lengths(&self) -> Vec<(&'static str, u64)> {
        let [rtts, losses, profiles, bodies] = self.places();
        let [groups, signatures, chains, kinds] = self.measured();
        let mut lengths = vec![rtts, losses];
        if !self.only_traces() {
            lengths.extend([groups, signatures, chains, kinds]);
        }
        lengths.extend([("traces", self.traces.len() as u64), profiles, bodies]);
        lengths
    }

    /// The grid in words: `2 RTTs x 3 losses x ...`.
    pub fn shape(&self) -> String {
        let parts: Vec<String> = self
            .lengths()
            .iter()
            .filter(|(_, length)| *length > 1)
            .map(|(name, length)| format!("{length} {name}"))
            .collect();
        if parts.is_empty() { "one point".into() } else { parts.join(" x ") }
    }

    /// All links of the grid.
    pub fn links(&self) -> Vec<Link> {
        let link = |rtt: &u64, loss: &f64| Link {
            rtt_us: *rtt,
            loss: *loss,
            rate_bps: self.rate_bps,
            queue_packets: self.queue_packets,
            jitter_us: self.jitter_us,
        };
        self.rtt_us
            .iter()
            .flat_map(|rtt| self.loss.iter().map(move |loss| link(rtt, loss)))
            .collect()
    }

    /// What is compared for one kind and chain length: key exchanges x signatures, the baseline first.
    pub fn subjects(&self, kind: Kind, certificates: u8) -> Result<Vec<Subject>, LabError> {
        let mut subjects = vec![Subject::new(&self.baseline.0, &self.baseline.1, certificates)?];
        for signature in &self.signatures {
            for group in &self.groups {
                if (group, signature) != (&self.baseline.0, &self.baseline.1) {
                    subjects.push(Subject::new(group, signature, certificates)?);
                }
            }
        }
        Ok(subjects.into_iter().map(|subject| subject.kind(kind)).collect())
    }

    /// The kernel profiles.
    pub fn kernels(&self) -> Result<Vec<&'static Profile>, LabError> {
        let own = |name: &str| self.own_kernels.iter().find(|kernel| kernel.name == name);
        self.profiles
            .iter()
            .map(|name| own(name).map_or_else(|| profile(name), |kernel| Ok(kernel.profile())))
            .collect()
    }

    /// The transfers, in order of `bodies`.
    pub fn transfers(&self) -> Vec<Transfer> {
        self.bodies.iter().map(|body| Transfer { request: self.request, body: *body }).collect()
    }

    /// The estimated duration, which is shown before the start.
    pub fn estimate(&self, quick: bool) -> Duration {
        let mut total = Duration::ZERO;
        let pairs = (self.groups.len() * self.signatures.len()) as u64;
        let measured = pairs * (self.certificates.len() * self.kinds.len()) as u64;
        let variants = measured + self.traces.len() as u64;
        // Traces: 100 handshakes of a millisecond or two, and the keys.
        total += Duration::from_millis(400) * u32::try_from(measured).unwrap_or(u32::MAX);
        let links = self.links();
        if self.engines.contains(&PlanEngine::Model) {
            let per_link: Duration = self.bodies.iter().map(|body| model_cost(*body)).sum();
            let count = self.connections(quick) * variants * self.profiles.len() as u64;
            // Each subject has a bootstrap interval in addition to its connections.
            total += times(per_link, count * links.len() as u64);
        }
        if self.engines.contains(&PlanEngine::Live) {
            for link in &links {
                total += LIVE_SETUP;
                for body in &self.bodies {
                    let count = self.live_connections(quick) * measured;
                    total += times(live_cost(link, *body), count);
                }
            }
        }
        if let Some(endpoint) = &self.endpoint {
            let count =
                self.live_connections(quick) * (self.groups.len() * self.kinds.len()) as u64;
            match &endpoint.at {
                Target::Address(_) => total += times(Duration::from_millis(60), count),
                Target::Command { .. } => {
                    for link in &links {
                        total += LIVE_SETUP + times(live_cost(link, ENDPOINT_BODY), count);
                    }
                }
            }
        }
        total
    }
}

/// Time to set up and calibrate an emulated link.
const LIVE_SETUP: Duration = Duration::from_secs(4);
/// Assumed size of an endpoint's answer in bytes, for the estimate only.
const ENDPOINT_BODY: u32 = 10_000;

/// Time of a connection in the model, with its share of the statistics.
pub(crate) fn model_cost(body: u32) -> Duration {
    Duration::from_nanos(12_000 + u64::from(body) / 3)
}

/// Time of a live connection: TCP, TLS, request, the answer's windows, a probe or a timeout for each lost packet, and
/// the processor.
pub(crate) fn live_cost(link: &Link, body: u32) -> Duration {
    let packets = 20 + body / 1448;
    let windows = f64::from(32 - (packets / 12).leading_zeros()) + 2.0;
    let mut seconds = windows * link.rtt().as_secs_f64() + 0.004;
    seconds += f64::from(packets.min(60)) * link.loss * (0.1 + link.rtt().as_secs_f64());
    if let Some(rate) = link.rate_bps {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let rate = rate as f64;
        seconds += f64::from(packets) * 1500.0 * 8.0 / rate;
    }
    Duration::from_secs_f64(seconds)
}

fn times(duration: Duration, count: u64) -> Duration {
    let nanoseconds = duration.as_nanos().saturating_mul(u128::from(count));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The kernel profile with this name.
pub(crate) fn profile(name: &str) -> Result<&'static Profile, LabError> {
    PROFILES
        .iter()
        .find(|row| row.name == name)
        .ok_or_else(|| LabError::Plan(read::unknown("kernel profile", name, &names::profiles())))
}

fn ms(microseconds: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a link")]
    let microseconds = microseconds as f64;
    microseconds / 1e3
}

/// Names that a plan may use.
mod names {
    use super::{Authentication, KeyExchange, Kind, PROFILES};

    pub(super) fn groups() -> Vec<&'static str> {
        crate::subject::key_exchanges().iter().map(|row: &KeyExchange| row.name).collect()
    }

    pub(super) fn signatures() -> Vec<&'static str> {
        crate::subject::authentications().iter().map(|row: &Authentication| row.name).collect()
    }

    pub(super) fn profiles() -> Vec<&'static str> {
        PROFILES.iter().map(|row| row.name).collect()
    }

    pub(super) const KINDS: &[(&str, Kind)] = &[
        ("full", Kind::Full),
        ("hello-retry", Kind::HelloRetry),
        ("resumed", Kind::Resumed),
        ("mutual", Kind::Mutual),
    ];
}

#[cfg(test)]
mod tests;
