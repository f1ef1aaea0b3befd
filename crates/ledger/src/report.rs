//! Reports over a [`Tally`]: the summary, and the laggards.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use outlast_negotiate::ssh::SshOffer;
use serde::Serialize;

use crate::known::{self, Ability, group_name};
use crate::known_ssh;
use crate::tally::{Client, Counts, Hello, Newest, OfferRow, Tally, Unseen};
use crate::verdict::{Cause, Verdict};

/// A client's offer, described.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fingerprint {
    /// JA4, if it was recorded.
    pub ja4: Option<String>,
    /// The software, if it is recognised.
    pub software: Option<String>,
    /// Names of the groups that it offers; in SSH its key exchange methods.
    pub groups: Vec<String>,
    /// Names of the groups that it sends key shares for.
    pub shares: Vec<String>,
    /// The best that it could do.
    pub ability: Ability,
    /// Identification string of an SSH peer; empty if it sent none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identification: Option<String>,
    /// HASSH of an SSH client, or of an SSH server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hassh: Option<String>,
}

impl Fingerprint {
    fn of(row: Option<&OfferRow>) -> Self {
        let ability = row.map_or(Ability::Unreadable, |row| row.ability);
        let offer = match row.map(|row| &row.offer) {
            Some(hello @ (Hello::Ssh(offer) | Hello::SshServer(offer))) => {
                let offer = offer.as_ref();
                let is_server = matches!(hello, Hello::SshServer(_));
                return Self {
                    ja4: None,
                    software: offer.and_then(known_ssh::software),
                    groups: offer
                        .map(|offer| offer.methods().map(str::to_owned).collect())
                        .unwrap_or_default(),
                    shares: Vec::new(),
                    ability,
                    identification: Some(
                        offer.map(|offer| offer.identification.clone()).unwrap_or_default(),
                    ),
                    hassh: offer.and_then(if is_server {
                        SshOffer::hassh_server
                    } else {
                        SshOffer::hassh
                    }),
                };
            }
            Some(Hello::Tls(offer)) => offer.as_ref(),
            None => None,
        };
        let names = |codes: &[u16]| codes.iter().map(|code| group_name(*code)).collect();
        Self {
            ja4: row.and_then(|row| row.ja4.clone()),
            software: row.and_then(|row| row.software).map(|software| software.name.to_owned()),
            groups: offer.map(|offer| names(&offer.groups)).unwrap_or_default(),
            shares: offer.and_then(|offer| offer.shares.as_deref()).map(names).unwrap_or_default(),
            ability,
            identification: None,
            hassh: None,
        }
    }

    /// JA4, or HASSH of an SSH client.
    pub fn hash(&self) -> Option<&str> {
        self.ja4.as_deref().or(self.hassh.as_deref())
    }

    /// The software, or the first groups.
    pub fn label(&self) -> String {
        if let Some(text) = &self.identification {
            let known = self.software.clone();
            let claimed = || text.trim_start_matches("SSH-2.0-").chars().take(MAX_LABEL).collect();
            return match known.unwrap_or_else(claimed) {
                name if name.is_empty() => "SSH without identification".to_owned(),
                name => format!("SSH: {name}"),
            };
        }
        match &self.software {
            Some(name) => name.clone(),
            None if self.ability == Ability::Unreadable => "no readable ClientHello".to_owned(),
            // TLS 1.2 needs no such list (RFC 8422, section 4).
            None if self.groups.is_empty() => "a ClientHello that names no groups".to_owned(),
            None => {
                let more = if self.groups.len() > 4 { " ..." } else { "" };
                format!("{}{more}", self.groups[..self.groups.len().min(4)].join(":"))
            }
        }
    }
}

/// Characters of an unknown identification string in a label.
const MAX_LABEL: usize = 48;

/// A client in a report.
#[derive(Debug, Clone, Serialize)]
pub struct ClientRow {
    /// Principal, or subject of the client's certificate.
    pub principal: Option<String>,
    /// Its offer.
    pub fingerprint: Fingerprint,
    /// Listener.
    pub listener: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its connections.
    #[serde(flatten)]
    pub counts: Counts,
    /// Connections by group.
    pub groups: BTreeMap<String, u64>,
    /// Networks of its addresses.
    pub networks: Vec<String>,
    /// Whether there were more networks.
    pub more_networks: bool,
    /// Server names that it asked for.
    pub server_names: Vec<String>,
    /// Where it is, if it is a server that this program connected to: host and port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// Why it got a classical group although it offered a post-quantum one.
    pub causes: BTreeMap<Cause, u64>,
    /// SSH connections in which the server waited for its list, and had it in time or did not.
    #[serde(skip)]
    pub(crate) in_time: u64,
    #[serde(skip)]
    pub(crate) late: u64,
    /// SSH connections that were served by a host key's certificate.
    #[serde(skip)]
    pub(crate) certified: u64,
}

impl ClientRow {
    fn of(tally: &Tally, client: &Client) -> Self {
        let offer = tally.offer_of(client);
        let names = client.names.iter().cloned().collect();
        let is_server = offer.is_some_and(|row| matches!(row.offer, Hello::SshServer(_)));
        let (server_names, destinations) =
            if is_server { (Vec::new(), names) } else { (names, Vec::new()) };
        Self {
            principal: client.who.clone(),
            fingerprint: Fingerprint::of(offer),
            listener: client.listener.clone(),
            verdict: client.counts.verdict().unwrap_or(Verdict::Failed),
            counts: client.counts.clone(),
            groups: client.groups.clone(),
            networks: client.networks.iter().cloned().collect(),
            more_networks: client.more_networks,
            server_names,
            destinations,
            causes: client.causes.clone(),
            in_time: client.in_time,
            late: client.late,
            certified: client.certified,
        }
    }
}

/// The summary.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// All connections.
    pub total: Counts,
    /// By principal and offer; the most frequent first.
    pub clients: Vec<ClientRow>,
    /// By principal; `-` for unknown ones.
    pub principals: Vec<(String, Counts)>,
    /// By offer.
    pub fingerprints: Vec<(Fingerprint, Counts)>,
    /// By listener.
    pub listeners: Vec<(String, Counts)>,
    /// By group.
    pub groups: Vec<(String, Counts)>,
    /// Refusals and failures by reason.
    pub reasons: Vec<(String, u64)>,
    /// Connections that offered a post-quantum group and got a classical one.
    pub missed: u64,
    /// The same by cause.
    pub causes: BTreeMap<Cause, u64>,
    /// Those of them that the operator did not choose: there must be none.
    pub defects: u64,
    /// Under which policy the newest record was made.
    pub newest: Option<Newest>,
    /// What the report does not know.
    pub unseen: Unseen,
}

fn by_count<K: Ord>(counts: impl IntoIterator<Item = (K, Counts)>) -> Vec<(K, Counts)> {
    let mut out: Vec<_> = counts.into_iter().collect();
    out.sort_by(|a, b| b.1.connections.cmp(&a.1.connections).then_with(|| a.0.cmp(&b.0)));
    out
}

fn rows(tally: &Tally) -> Vec<ClientRow> {
    let mut rows: Vec<_> =
        tally.clients.iter().map(|client| ClientRow::of(tally, client)).collect();
    rows.sort_by(order);
    rows
}

/// What needs attention first, then the most frequent.
fn order(a: &ClientRow, b: &ClientRow) -> Ordering {
    let key = |row: &ClientRow| (row.verdict != Verdict::Missed, u64::MAX - row.counts.connections);
    key(a)
        .cmp(&key(b))
        .then_with(|| (&a.principal, &a.fingerprint).cmp(&(&b.principal, &b.fingerprint)))
}

/// Summarises a ledger.
pub fn summary(tally: &Tally) -> Summary {
    let mut principals: BTreeMap<String, Counts> = BTreeMap::new();
    let mut fingerprints: BTreeMap<Fingerprint, Counts> = BTreeMap::new();
    for client in &tally.clients {
        let who = client.who.clone().unwrap_or_else(|| "-".into());
        principals.entry(who).or_default().merge(&client.counts);
        let fingerprint = Fingerprint::of(tally.offer_of(client));
        fingerprints.entry(fingerprint).or_default().merge(&client.counts);
    }
    let mut reasons: Vec<_> = tally.reasons.clone().into_iter().collect();
    reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Summary {
        clients: rows(tally),
        principals: by_count(principals),
        fingerprints: by_count(fingerprints),
        listeners: by_count(tally.listeners.clone()),
        groups: by_count(tally.groups.clone()),
        reasons,
        missed: tally.total.verdicts.get(&Verdict::Missed).copied().unwrap_or_default(),
        causes: tally.causes.clone(),
        defects: tally
            .causes
            .iter()
            .filter(|(cause, _)| !cause.is_chosen())
            .map(|(_, count)| count)
            .sum(),
        newest: tally.newest.clone(),
        unseen: tally.unseen.clone(),
        total: tally.total.clone(),
    }
}

/// A client that never offers a post-quantum group, and what to do about it.
#[derive(Debug, Serialize)]
pub struct Laggard {
    /// The client.
    #[serde(flatten)]
    pub client: ClientRow,
    /// What to do.
    pub hint: &'static str,
}

/// The clients that never offer a post-quantum group of today; the most frequent first.
pub fn laggards(tally: &Tally) -> Vec<Laggard> {
    let never = |row: &ClientRow| {
        !matches!(row.fingerprint.ability, Ability::PostQuantum | Ability::Unreadable)
            // A client that failed every time may be a scanner, and was never served.
            && row.counts.served() + row.counts.refused > 0
    };
    let mut laggards: Vec<_> = rows_with_offers(tally)
        .into_iter()
        .filter(|(row, _)| never(row))
        .map(|(client, offer)| Laggard { hint: hint(&client, offer), client })
        .collect();
    laggards.sort_by(|a, b| order(&a.client, &b.client));
    laggards
}

fn hint(row: &ClientRow, offer: Option<&OfferRow>) -> &'static str {
    match offer.map(|offer| &offer.offer) {
        Some(Hello::Ssh(Some(offer))) => known_ssh::hint(offer),
        Some(Hello::SshServer(Some(offer))) => known_ssh::server_hint(offer),
        Some(Hello::Ssh(None) | Hello::SshServer(None)) => "",
        _ => known::hint(row.fingerprint.ability, offer.and_then(|offer| offer.software)),
    }
}

/// All clients with their offers, the most frequent first.
pub(crate) fn rows_with_offers(tally: &Tally) -> Vec<(ClientRow, Option<&OfferRow>)> {
    let mut out: Vec<_> = tally
        .clients
        .iter()
        .map(|client| (ClientRow::of(tally, client), tally.offer_of(client)))
        .collect();
    out.sort_by_key(|(row, _)| u64::MAX - row.counts.connections);
    out
}
