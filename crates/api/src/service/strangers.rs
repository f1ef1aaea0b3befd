//! OCSP responses that are signed for strangers, because no response in the cache fits. Each signature is announced
//! in the audit log before it leaves the server, counted, and summed up by the minute.
//!
//! An event for each would let anybody fill the disk. So one event announces that up to [`limits::OCSP_ANNOUNCED`]
//! responses of an authority follow within a minute, and is durable before the first of them is sent. At the end of
//! the minute a second event says how many there were, when, and for whom. An announcement without a sum comes from a
//! server that was killed: it stands for as many signatures as it announces.
//! `docs/decisions/0024-strangers-are-summed-up.md` gives the reasons.
//!
//! Calls with credentials are not counted here: each has an event of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Mutex;

use outlast_domain::arn::Scope;
use outlast_domain::work::Done;
use outlast_domain::{Fault, ids, limits};
use outlast_pki::time::rfc3339;
use outlast_store::NewEvent;
use outlast_store::Transaction;
use serde_json::json;

use super::Service;
use super::rates::{Rates, prefix};
use super::shared::lock;
use crate::audit::service_event_with;
use crate::ops::ACM_PCA;

/// Name of the event that announces responses.
const ANNOUNCEMENT: &str = "AnnounceOCSPResponses";
/// Name of the event that says how many there were.
const SUM: &str = "SumUpOCSPResponses";

/// What strangers have had signed, and how much more they may.
pub(super) struct Strangers {
    rates: Rates,
    windows: Mutex<Windows>,
}

#[derive(Default)]
struct Windows {
    /// By the ARN of the authority.
    open: BTreeMap<String, Window>,
    /// Windows that are over and not summed up yet.
    ended: Vec<Window>,
}

/// The responses of an authority in one minute.
#[derive(Debug, Clone)]
pub(super) struct Window {
    scope: Scope,
    arn: String,
    /// Ids of the events that announced them: several, if questions came at once or one announcement was not enough.
    announcements: Vec<String>,
    announced: u64,
    count: u64,
    from_ms: i64,
    until_ms: i64,
    first_ms: i64,
    last_ms: i64,
    peers: BTreeSet<IpAddr>,
    more_peers: bool,
}

impl Window {
    /// Announces responses, beginning with this one, and returns the event that must be durable before it is sent.
    pub(super) fn announce(
        scope: &Scope,
        arn: String,
        peer: IpAddr,
        now_ms: i64,
    ) -> Result<(Self, Vec<u8>), Fault> {
        let id = ids::event_id(now_ms)?;
        let until_ms = now_ms.saturating_add(limits::OCSP_WINDOW_MS);
        let done = Done { scope: scope.clone(), arn: arn.clone(), event: ANNOUNCEMENT };
        let about = json!({
            "upTo": limits::OCSP_ANNOUNCED,
            "until": rfc3339(until_ms.div_euclid(1000)),
        });
        let event = service_event_with(now_ms, &id, ACM_PCA.model.event_source, &done, Some(about));
        let window = Self {
            scope: scope.clone(),
            arn,
            announcements: vec![id],
            announced: limits::OCSP_ANNOUNCED,
            count: 1,
            from_ms: now_ms,
            until_ms,
            first_ms: now_ms,
            last_ms: now_ms,
            peers: BTreeSet::from([prefix(peer)]),
            more_peers: false,
        };
        Ok((window, event))
    }

    fn add(&mut self, peer: IpAddr, now_ms: i64) {
        self.count += 1;
        self.last_ms = self.last_ms.max(now_ms);
        let peer = prefix(peer);
        if self.peers.len() < limits::OCSP_PEERS_NAMED {
            self.peers.insert(peer);
        } else {
            self.more_peers |= !self.peers.contains(&peer);
        }
    }

    /// Joins two announcements that were made at the same time, to be summed up together.
    fn join(&mut self, other: Self) {
        self.announcements.extend(other.announcements);
        self.announced += other.announced;
        self.count += other.count;
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
        self.more_peers |= other.more_peers;
        for peer in other.peers {
            if self.peers.len() < limits::OCSP_PEERS_NAMED {
                self.peers.insert(peer);
            } else {
                self.more_peers |= !self.peers.contains(&peer);
            }
        }
    }

    fn covers(&self, now_ms: i64) -> bool {
        (self.from_ms..self.until_ms).contains(&now_ms)
    }

    fn sum(&self, now_ms: i64) -> Result<Vec<u8>, Fault> {
        let done = Done { scope: self.scope.clone(), arn: self.arn.clone(), event: SUM };
        let at = |ms: i64| rfc3339(ms.div_euclid(1000));
        let about = json!({
            "announcements": self.announcements,
            "count": self.count,
            "firstTime": at(self.first_ms),
            "lastTime": at(self.last_ms),
            "peers": self.peers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "morePeers": self.more_peers,
        });
        let id = ids::event_id(now_ms)?;
        Ok(service_event_with(now_ms, &id, ACM_PCA.model.event_source, &done, Some(about)))
    }
}

impl Default for Strangers {
    fn default() -> Self {
        let rates = Rates::new(limits::OCSP_SIGNINGS, limits::OCSP_SIGNINGS_OF_PEER);
        Self { rates, windows: Mutex::default() }
    }
}

impl Strangers {
    /// Whether another response may be signed for this peer now.
    pub(super) fn admit(&self, peer: IpAddr, now_ms: i64) -> bool {
        self.rates.admit(peer, now_ms)
    }

    /// What [`Self::admit`] would answer now, without taking a token.
    pub(super) fn would_admit(&self, peer: IpAddr, now_ms: i64) -> bool {
        self.rates.would_admit(peer, now_ms)
    }

    /// Counts a response, if an event on disk has announced it.
    pub(super) fn count(&self, arn: &str, peer: IpAddr, now_ms: i64) -> bool {
        let mut windows = lock(&self.windows);
        let Some(window) = windows.open.get_mut(arn) else { return false };
        if window.covers(now_ms) {
            let covered = window.count < window.announced;
            if covered {
                window.add(peer, now_ms);
            }
            return covered;
        }
        windows.end(arn);
        false
    }

    /// Opens a window whose announcement is durable.
    pub(super) fn open(&self, new: Window) {
        let mut windows = lock(&self.windows);
        match windows.open.get_mut(&new.arn) {
            Some(window) if window.covers(new.last_ms) => return window.join(new),
            Some(_) => windows.end(&new.arn),
            None => {}
        }
        windows.open.insert(new.arn.clone(), new);
    }

    /// The windows to sum up, at most [`limits::OCSP_SUMS_AT_ONCE`].
    fn ended(&self, now_ms: i64, at_end: bool) -> Vec<Window> {
        let mut windows = lock(&self.windows);
        let over = |window: &&Window| at_end || !window.covers(now_ms);
        let over: Vec<_> = windows.open.values().filter(over).map(|w| w.arn.clone()).collect();
        for arn in over {
            windows.end(&arn);
        }
        windows.ended.iter().take(limits::OCSP_SUMS_AT_ONCE).cloned().collect()
    }

    fn forget(&self, summed: &[Window]) {
        let is_summed =
            |window: &Window| summed.iter().any(|one| one.announcements == window.announcements);
        lock(&self.windows).ended.retain(|window| !is_summed(window));
    }
}

impl Windows {
    fn end(&mut self, arn: &str) {
        self.ended.extend(self.open.remove(arn));
    }
}

impl Service {
    /// Sums up in the audit log what was signed for strangers in the minutes that are over, and the logins that they failed
    /// at; when the server ends, also in the current one.
    ///
    /// # Errors
    /// Sums that could not be written are kept for the next call.
    pub fn sum_up_strangers(&self, now_ms: i64, at_end: bool) -> Result<(), Fault> {
        self.sum_up_failures(now_ms, at_end)?;
        loop {
            let ended = self.revocation.strangers.ended(now_ms, at_end);
            if ended.is_empty() {
                return Ok(());
            }
            let sum = |window: &Window| Ok(NewEvent::new(window.sum(now_ms)?));
            let events = ended.iter().map(sum).collect::<Result<_, Fault>>()?;
            self.store.commit_and_wait(Transaction { events, ..Transaction::default() })?;
            self.revocation.strangers.forget(&ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded_and_expire() {
        let (strangers, peer) = (Strangers::default(), IpAddr::from([192, 0, 2, 1]));
        let scope = Scope { account: "123456789012".into(), region: "eu-west-1".into() };
        let announce =
            |now_ms| Window::announce(&scope, "ca".into(), peer, now_ms).map(|one| one.0);
        assert!(!strangers.count("ca", peer, 0), "nothing was announced");
        strangers.open(announce(0).unwrap_or_else(|fault| panic!("{fault}")));
        let counted = (0..2 * limits::OCSP_ANNOUNCED).filter(|_| strangers.count("ca", peer, 1));
        assert_eq!(counted.count() as u64, limits::OCSP_ANNOUNCED - 1);
        assert!(!strangers.count("other", peer, 1));
        strangers.open(announce(2).unwrap_or_else(|fault| panic!("{fault}")));
        assert!(strangers.count("ca", peer, 3));
        for outside in [-1, limits::OCSP_WINDOW_MS] {
            assert!(!strangers.count("ca", peer, outside));
        }
        let ended = strangers.ended(limits::OCSP_WINDOW_MS, false);
        let counts: Vec<_> = ended.iter().map(|w| (w.count, w.announcements.len())).collect();
        assert_eq!(counts, [(limits::OCSP_ANNOUNCED + 2, 2)]);
        strangers.forget(&ended);
        assert!(strangers.ended(limits::OCSP_WINDOW_MS, true).is_empty());
    }
}
