//! Counts a ledger's lines by client: its identity and its offer.
//!
//! The identity is known when a connection ends, so a connection is kept until then. Memory is bounded by the number
//! of different clients, which is limited, not by the number of lines.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use outlast_negotiate::ssh::{SshOffer, SshRules, is_certificate, served};
use outlast_negotiate::{Mode, Offer, SecurityPolicy};
use serde::Serialize;

use crate::event::{End, Handshake, Outcome, Outgoing, SshHandshake, SshOutcome};
use crate::known::{self, Ability, Software};
use crate::known_ssh;
use crate::limits::{
    MAX_CLIENTS, MAX_HOURS, MAX_NETWORKS, MAX_OFFERS, MAX_OPEN, MAX_REASONS, MAX_STRANGERS,
};
use crate::line::Line;
use crate::verdict::{Cause, Verdict};

/// Selects connections.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Handshakes from this time on, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Handshakes before this time.
    pub until_ms: Option<i64>,
    /// Handshakes at this listener.
    pub listener: Option<String>,
}

impl Filter {
    /// Whether a handshake passes the filter.
    pub fn takes(&self, time_ms: i64, listener: &str) -> bool {
        self.since_ms.is_none_or(|since| time_ms >= since)
            && self.until_ms.is_none_or(|until| time_ms < until)
            && self.listener.as_ref().is_none_or(|name| name == listener)
    }
}

/// Counts of connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All connections.
    pub connections: u64,
    /// Those with a post-quantum group.
    pub hybrid: u64,
    /// Those with a HelloRetryRequest.
    pub hello_retry: u64,
    /// Those that resumed a session.
    pub resumed: u64,
    /// Those that were refused by the policy.
    pub refused: u64,
    /// Those whose handshake failed otherwise.
    pub failed: u64,
    /// By verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
    /// The first handshake, milliseconds since 1970.
    pub first_ms: Option<i64>,
    /// The last one.
    pub last_ms: Option<i64>,
}

impl Counts {
    fn add(&mut self, facts: &Facts, end: Option<&End>) {
        self.connections += 1;
        let hybrid = matches!(facts.verdict, Verdict::Hybrid | Verdict::HybridAfterRetry);
        self.hybrid += u64::from(hybrid);
        self.hello_retry += u64::from(facts.hello_retry);
        self.resumed += u64::from(facts.resumed);
        self.refused += u64::from(facts.verdict == Verdict::Refused);
        self.failed += u64::from(facts.verdict == Verdict::Failed);
        *self.verdicts.entry(facts.verdict).or_default() += 1;
        if let Some(end) = end {
            self.received = self.received.saturating_add(end.received);
            self.sent = self.sent.saturating_add(end.sent);
        }
        let time = facts.time_ms;
        self.first_ms = Some(self.first_ms.map_or(time, |first| first.min(time)));
        self.last_ms = Some(self.last_ms.map_or(time, |last| last.max(time)));
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.hybrid += other.hybrid;
        self.hello_retry += other.hello_retry;
        self.resumed += other.resumed;
        self.refused += other.refused;
        self.failed += other.failed;
        for (verdict, count) in &other.verdicts {
            *self.verdicts.entry(*verdict).or_default() += count;
        }
        self.received = self.received.saturating_add(other.received);
        self.sent = self.sent.saturating_add(other.sent);
        self.first_ms = self.first_ms.into_iter().chain(other.first_ms).min();
        self.last_ms = self.last_ms.max(other.last_ms);
    }

    /// Number of connections that were served.
    pub fn served(&self) -> u64 {
        self.connections - self.refused - self.failed
    }

    /// Percentage of served connections with a post-quantum group; `None` if none was served.
    pub fn hybrid_percent(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a percentage")]
        let share = |part: u64, whole: u64| part as f64 * 100.0 / whole as f64;
        (self.served() > 0).then(|| share(self.hybrid, self.served()))
    }

    /// The verdict on all of them: the one that must not occur if it does, else the most frequent.
    pub fn verdict(&self) -> Option<Verdict> {
        if self.verdicts.contains_key(&Verdict::Missed) {
            return Some(Verdict::Missed);
        }
        self.verdicts.iter().max_by_key(|(_, count)| **count).map(|(verdict, _)| *verdict)
    }
}

/// What a peer sent first, by protocol; `None` if it could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hello {
    /// A ClientHello of TLS.
    Tls(Option<Offer>),
    /// Identification string and name-lists of an SSH client.
    Ssh(Option<SshOffer>),
    /// Those of an SSH server that this program connected to.
    SshServer(Option<SshOffer>),
}

impl Hello {
    fn is_readable(&self) -> bool {
        matches!(self, Self::Tls(Some(_)) | Self::Ssh(Some(_)) | Self::SshServer(Some(_)))
    }

    fn ability(&self) -> Ability {
        match self {
            Self::Tls(offer) => offer.as_ref().map_or(Ability::Unreadable, known::ability),
            Self::Ssh(offer) | Self::SshServer(offer) => {
                offer.as_ref().map_or(Ability::Unreadable, known_ssh::ability)
            }
        }
    }
}

/// What a kind of client offers.
#[derive(Debug)]
pub struct OfferRow {
    /// The offer without what differs between connections. In TLS: GREASE, the order of extensions, the server name,
    /// whether a session is resumed. In SSH: the order of host key algorithms, which depends on the known hosts.
    pub offer: Hello,
    /// JA4 of the first one.
    pub ja4: Option<String>,
    /// The best that it could do.
    pub ability: Ability,
    /// The software, if it is recognised by its ClientHello.
    pub software: Option<&'static Software>,
}

/// A client: identity, offer and listener.
#[derive(Debug, Default)]
pub struct Client {
    /// Principal, or subject of the client's certificate; `None` if it did not identify itself.
    pub who: Option<String>,
    /// Index in [`Tally::offers`]; `None` beyond the limit on those.
    pub offer: Option<usize>,
    /// Listener.
    pub listener: String,
    /// Its connections.
    pub counts: Counts,
    /// Connections by group.
    pub groups: BTreeMap<String, u64>,
    /// Networks of its addresses.
    pub networks: BTreeSet<String>,
    /// Whether there are more networks than are listed.
    pub more_networks: bool,
    /// Server names that it asked for; of a server, the destinations.
    pub names: BTreeSet<String>,
    /// Why it got a classical group although it offered a post-quantum one.
    pub causes: BTreeMap<Cause, u64>,
    /// Its SSH connections in which the server waited for its list and did not have it in time.
    pub late: u64,
    /// Those in which the server had it.
    pub in_time: u64,
    /// Its SSH connections that were served by a host key's certificate.
    pub certified: u64,
}

/// Under which policy the newest record was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Newest {
    /// When its handshake ended, milliseconds since 1970.
    pub time_ms: i64,
    /// Its listener.
    pub listener: String,
    /// The policy's name.
    pub policy: String,
    /// The mode's name.
    pub mode: String,
}

/// Events that were lost, or could not be assigned to a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// Events that the ledger reports as lost.
    pub lost: u64,
    /// Connections beyond the limits on clients and offers: they only count in the totals.
    pub beyond_limits: u64,
    /// Connections that are still open, or whose end is missing: their identity is unknown.
    pub open: u64,
}

/// What is kept of a connection until its end.
struct Facts {
    offer: Option<usize>,
    listener: String,
    time_ms: i64,
    verdict: Verdict,
    hello_retry: bool,
    resumed: bool,
    group: Option<String>,
    network: Option<String>,
    name: Option<String>,
    client: Option<String>,
    cause: Option<Cause>,
    late: bool,
    in_time: bool,
    certified: bool,
}

/// The counts of a ledger.
#[derive(Default)]
pub struct Tally {
    filter: Filter,
    process: String,
    open: HashMap<u64, Facts>,
    /// What [`Self::waits`] says of policies.
    waits: HashMap<String, bool>,
    offer_index: HashMap<Hello, usize>,
    /// Offers that first occurred in a failed handshake.
    strangers: usize,
    /// The row for those beyond their limit.
    other_strangers: Option<usize>,
    client_index: HashMap<(Option<String>, Option<usize>, String), usize>,
    /// Offers of clients.
    pub offers: Vec<OfferRow>,
    /// The clients.
    pub clients: Vec<Client>,
    /// All connections.
    pub total: Counts,
    /// By listener.
    pub listeners: BTreeMap<String, Counts>,
    /// By group; `-` for none.
    pub groups: BTreeMap<String, Counts>,
    /// Refusals and failures by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Connections that offered a post-quantum group and got a classical one, by cause.
    pub causes: BTreeMap<Cause, u64>,
    /// By hour since 1970 and verdict.
    pub hours: BTreeMap<i64, BTreeMap<Verdict, u64>>,
    /// Kinds of certificates by listener.
    pub certificates: BTreeMap<String, BTreeMap<String, u64>>,
    /// The newest record's listener, with its policy and mode then.
    pub newest: Option<Newest>,
    /// What is not known.
    pub unseen: Unseen,
}

impl Tally {
    /// An empty tally.
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Counts a line. Lines come process by process, in the order of [`crate::read::Reader`].
    pub fn add(&mut self, line: Line) {
        match line {
            Line::Open { process, .. } => {
                if process != self.process {
                    self.close_all();
                    self.process = process;
                }
            }
            Line::Handshake(handshake) => {
                if self.filter.takes(handshake.time_ms, &handshake.listener) {
                    self.handshake(*handshake);
                }
            }
            Line::Ssh(handshake) => {
                if self.filter.takes(handshake.time_ms, &handshake.listener) {
                    self.ssh_handshake(*handshake);
                }
            }
            Line::End(end) => {
                if let Some(facts) = self.open.remove(&end.connection) {
                    self.count(facts, Some(&end));
                }
            }
            // The listener of lost events is not known, so they count as lost at every listener.
            Line::Dropped { time_ms, count } => {
                let all = Filter { listener: None, ..self.filter.clone() };
                if all.takes(time_ms, "") {
                    self.unseen.lost = self.unseen.lost.saturating_add(count);
                }
            }
        }
    }

    /// Counts connections that are still open.
    pub fn finish(mut self) -> Self {
        self.close_all();
        self
    }

    fn close_all(&mut self) {
        for (_, facts) in std::mem::take(&mut self.open) {
            self.unseen.open += 1;
            self.count(facts, None);
        }
    }

    fn handshake(&mut self, handshake: Handshake) {
        let Handshake { time_ms, listener, policy, mode, .. } = &handshake;
        self.see(*time_ms, listener, policy, mode);
        let verdict = Verdict::of(&handshake);
        let cause = match &handshake.offer {
            Some(offer) if verdict == Verdict::Missed => Some(Cause::of(&handshake, offer)),
            _ => None,
        };
        let name = handshake.offer.as_ref().and_then(|offer| offer.sni.clone());
        let failed = matches!(handshake.outcome, Outcome::Failed(_));
        // A first handshake gives a better fingerprint than one that resumes a session.
        let resumes = handshake.offer.as_ref().is_some_and(|offer| offer.resumes);
        let ja4 = handshake.ja4.filter(|_| !resumes);
        let offer = self.offer(Hello::Tls(handshake.offer.map(canonical)), ja4, failed);
        let mut facts = Facts {
            offer,
            listener: handshake.listener,
            time_ms: handshake.time_ms,
            verdict,
            hello_retry: false,
            resumed: false,
            group: None,
            network: handshake.peer.map(|peer| network(peer.ip())),
            name,
            client: None,
            cause,
            late: false,
            in_time: false,
            certified: false,
        };
        match handshake.outcome {
            Outcome::Served(served) => {
                facts.hello_retry = served.hello_retry;
                facts.resumed = served.resumed;
                facts.group = Some(served.group.unwrap_or_else(|| "-".into()));
                facts.client = served.client;
                if let Some(kind) = served.certificate {
                    let kinds = self.certificates.entry(facts.listener.clone()).or_default();
                    bump(kinds, kind);
                }
                self.keep(handshake.connection, facts);
            }
            Outcome::Refused(refusal) => self.turned_away(facts, refusal.to_string()),
            Outcome::Failed(reason) => self.turned_away(facts, reason),
        }
    }

    fn ssh_handshake(&mut self, handshake: SshHandshake) {
        let SshHandshake { time_ms, listener, policy, mode, .. } = &handshake;
        self.see(*time_ms, listener, policy, mode);
        let verdict = Verdict::of_ssh(&handshake);
        let cause = match &handshake.offer {
            Some(offer) if verdict == Verdict::Missed => Some(Cause::of_ssh(&handshake, offer)),
            _ => None,
        };
        let failed = matches!(handshake.outcome, SshOutcome::Failed(_));
        let has_list = handshake.offer.as_ref().is_some_and(|it| !it.key_exchanges.is_empty());
        let in_time = has_list
            && !handshake.blind
            && handshake.mode == Mode::Prefer.name()
            && handshake.outgoing.is_none()
            && self.waits(&handshake.policy);
        let offer = handshake.offer.map(canonical_ssh);
        let (offer, destination, principal) = match handshake.outgoing {
            Some(Outgoing { destination, principal }) => {
                (Hello::SshServer(offer), Some(destination), Some(principal))
            }
            None => (Hello::Ssh(offer), None, None),
        };
        let mut facts = Facts {
            offer: self.offer(offer, None, failed),
            listener: handshake.listener,
            time_ms: handshake.time_ms,
            verdict,
            hello_retry: false,
            resumed: false,
            group: None,
            network: handshake.peer.map(|peer| network(peer.ip())),
            name: destination,
            client: principal,
            cause,
            late: false,
            in_time: false,
            certified: false,
        };
        (facts.late, facts.in_time) = (handshake.blind, in_time);
        match handshake.outcome {
            SshOutcome::Served(served) => {
                facts.certified = is_certificate(&served.host_key);
                facts.group = Some(served.key_exchange);
                self.keep(handshake.connection, facts);
            }
            SshOutcome::Refused(refusal) => self.turned_away(facts, refusal.to_string()),
            SshOutcome::Failed(reason) => self.turned_away(facts, reason),
        }
    }

    /// Whether an SSH server with this policy waits for its clients' lists, in the mode `prefer`.
    fn waits(&mut self, policy: &str) -> bool {
        if let Some(known) = self.waits.get(policy) {
            return *known;
        }
        let row = SecurityPolicy::by_name(policy).ok();
        let rules = row.and_then(|row| SshRules::new(row, Some(Mode::Prefer), served).ok());
        let waits = rules.is_some_and(|rules| rules.waits());
        // Names that are not in the catalogue come from the file, and could be any number.
        if row.is_some() {
            self.waits.insert(policy.to_owned(), waits);
        }
        waits
    }

    /// Notes under which policy the newest record was made.
    fn see(&mut self, time_ms: i64, listener: &str, policy: &str, mode: &str) {
        if self.newest.as_ref().is_none_or(|newest| time_ms >= newest.time_ms) {
            self.newest = Some(Newest {
                time_ms,
                listener: listener.to_owned(),
                policy: policy.to_owned(),
                mode: mode.to_owned(),
            });
        }
    }

    /// Keeps a connection until its end, if there is room.
    fn keep(&mut self, connection: u64, facts: Facts) {
        if self.open.len() < MAX_OPEN {
            if let Some(before) = self.open.insert(connection, facts) {
                self.unseen.open += 1;
                self.count(before, None);
            }
            return;
        }
        self.unseen.open += 1;
        self.count(facts, None);
    }

    /// Counts a handshake without a connection.
    fn turned_away(&mut self, facts: Facts, reason: String) {
        bump(&mut self.reasons, reason);
        self.count(facts, None);
    }

    fn offer(&mut self, offer: Hello, ja4: Option<String>, failed: bool) -> Option<usize> {
        if let Some(index) = self.offer_index.get(&offer) {
            if let Some(row) = self.offers.get_mut(*index)
                && row.ja4.is_none()
            {
                row.ja4 = ja4;
            }
            return Some(*index);
        }
        let index = self.offers.len();
        if failed && offer.is_readable() {
            if self.strangers >= MAX_STRANGERS {
                if self.other_strangers.is_none() {
                    self.other_strangers = Some(index);
                    self.offers.push(OfferRow {
                        offer: Hello::Tls(None),
                        ja4: None,
                        ability: Ability::Unreadable,
                        software: Some(&known::STRANGERS),
                    });
                }
                return self.other_strangers;
            }
            self.strangers += 1;
        } else if index >= MAX_OFFERS + self.strangers {
            return None;
        }
        let software = match &offer {
            Hello::Tls(offer) => offer.as_ref().and_then(known::software),
            Hello::Ssh(_) | Hello::SshServer(_) => None,
        };
        let row = OfferRow { ja4, ability: offer.ability(), software, offer: offer.clone() };
        self.offers.push(row);
        self.offer_index.insert(offer, index);
        Some(index)
    }

    fn count(&mut self, facts: Facts, end: Option<&End>) {
        self.total.add(&facts, end);
        self.listeners.entry(facts.listener.clone()).or_default().add(&facts, end);
        if let Some(cause) = facts.cause {
            *self.causes.entry(cause).or_default() += 1;
        }
        if let Some(group) = &facts.group {
            // The server chooses the group, so there are few.
            self.groups.entry(group.clone()).or_default().add(&facts, end);
        }
        let hour = facts.time_ms.div_euclid(3_600_000);
        if self.hours.len() < MAX_HOURS || self.hours.contains_key(&hour) {
            *self.hours.entry(hour).or_default().entry(facts.verdict).or_default() += 1;
        }
        let who = end.and_then(|end| end.principal.clone()).or_else(|| facts.client.clone());
        let key = (who, facts.offer, facts.listener.clone());
        let index = match self.client_index.get(&key) {
            Some(index) => *index,
            None if self.clients.len() >= MAX_CLIENTS || facts.offer.is_none() => {
                self.unseen.beyond_limits += 1;
                return;
            }
            None => {
                let index = self.clients.len();
                let (who, offer, listener) = key.clone();
                self.clients.push(Client { who, offer, listener, ..Client::default() });
                self.client_index.insert(key, index);
                index
            }
        };
        let Some(client) = self.clients.get_mut(index) else { return };
        client.counts.add(&facts, end);
        client.late += u64::from(facts.late);
        client.in_time += u64::from(facts.in_time);
        client.certified += u64::from(facts.certified);
        if let Some(group) = facts.group {
            *client.groups.entry(group).or_default() += 1;
        }
        if let Some(cause) = facts.cause {
            *client.causes.entry(cause).or_default() += 1;
        }
        if let Some(network) = facts.network {
            let room = client.networks.len() < MAX_NETWORKS;
            if room || client.networks.contains(&network) {
                client.networks.insert(network);
            } else {
                client.more_networks = true;
            }
        }
        if let Some(name) = facts.name
            && client.names.len() < MAX_NETWORKS
        {
            client.names.insert(name);
        }
    }

    /// The offer of a client.
    pub fn offer_of(&self, client: &Client) -> Option<&OfferRow> {
        self.offers.get(client.offer?)
    }
}

fn bump(counts: &mut BTreeMap<String, u64>, key: String) {
    if counts.len() < MAX_REASONS || counts.contains_key(&key) {
        *counts.entry(key).or_default() += 1;
    } else {
        *counts.entry("others".into()).or_default() += 1;
    }
}

/// Extensions that depend on sessions and retries: padding, cookie, early data, pre_shared_key; and the server name,
/// which depends on the server's address.
const VOLATILE: [u16; 5] = [0, 21, 41, 42, 44];

/// The offer without what differs between connections of the same software.
fn canonical(mut offer: Offer) -> Offer {
    // The presence of GREASE among the groups distinguishes browsers.
    let plain = |values: &mut Vec<u16>| values.retain(|code| !known::is_grease(*code));
    plain(&mut offer.versions);
    plain(&mut offer.suites);
    plain(&mut offer.schemes);
    plain(&mut offer.extensions);
    for code in &mut offer.groups {
        if known::is_grease(*code) {
            *code = 0x0a0a;
        }
    }
    if let Some(shares) = &mut offer.shares {
        plain(shares);
    }
    offer.extensions.retain(|code| !VOLATILE.contains(code));
    offer.extensions.sort_unstable();
    offer.sni = None;
    offer.resumes = false;
    offer
}

/// The same for SSH. Which host key algorithm comes first depends on the keys that the client knows of the server.
fn canonical_ssh(mut offer: SshOffer) -> SshOffer {
    offer.host_keys.sort_unstable();
    offer
}

/// The network of an address: 24 bits of IPv4, 64 of IPv6.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(v6) => {
            let network = u128::from(v6) >> 64 << 64;
            format!("{}/64", std::net::Ipv6Addr::from(network))
        }
    }
}
