//! Logins that failed, counted for each server: the first ones in a minute have an event each, the others are summed up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Mutex;

use outlast_domain::arn::Scope;
use outlast_domain::limits;

use super::Connection;
use crate::service::rates::prefix;
use crate::service::shared::lock;

/// The failures at a server in one minute.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) scope: Scope,
    pub(super) server_arn: String,
    from_ms: i64,
    recorded: u64,
    /// Failures without an event of their own.
    pub(super) count: u64,
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
    pub(super) users: BTreeSet<String>,
    pub(super) peers: BTreeSet<IpAddr>,
    pub(super) has_more: bool,
}

/// Counts failures.
#[derive(Default)]
pub(super) struct Failures(Mutex<Windows>);

#[derive(Default)]
struct Windows {
    /// By the ARN of the server.
    open: BTreeMap<String, Window>,
    ended: Vec<Window>,
}

impl Failures {
    /// Whether a failure may have an event of its own; otherwise it is counted.
    pub(super) fn may_record(&self, connection: &Connection, user: &str, now_ms: i64) -> bool {
        let mut windows = lock(&self.0);
        let arn = &connection.server_arn;
        let ends = |window: &Window| {
            !(window.from_ms..window.from_ms + limits::SFTP_FAILURES_WINDOW_MS).contains(&now_ms)
        };
        if windows.open.get(arn).is_some_and(ends) {
            windows.end(arn);
        }
        let window = windows.open.entry(arn.clone()).or_insert_with(|| Window {
            scope: connection.scope.clone(),
            server_arn: arn.clone(),
            from_ms: now_ms,
            recorded: 0,
            count: 0,
            first_ms: now_ms,
            last_ms: now_ms,
            users: BTreeSet::new(),
            peers: BTreeSet::new(),
            has_more: false,
        });
        if window.recorded < limits::SFTP_FAILURES_RECORDED {
            window.recorded += 1;
            return true;
        }
        window.add(connection.source_ip, user, now_ms);
        false
    }

    /// The windows to sum up. Those without a count are forgotten.
    pub(super) fn ended(&self, now_ms: i64, at_end: bool) -> Vec<Window> {
        let mut windows = lock(&self.0);
        let over = |window: &&Window| {
            let until_ms = window.from_ms.saturating_add(limits::SFTP_FAILURES_WINDOW_MS);
            at_end || !(window.from_ms..until_ms).contains(&now_ms)
        };
        let over: Vec<_> =
            windows.open.values().filter(over).map(|window| window.server_arn.clone()).collect();
        for arn in over {
            windows.end(&arn);
        }
        std::mem::take(&mut windows.ended)
    }

    /// Keeps a window that could not be summed up for the next time.
    pub(super) fn keep(&self, window: Window) {
        lock(&self.0).ended.push(window);
    }
}

impl Windows {
    fn end(&mut self, arn: &str) {
        self.ended.extend(self.open.remove(arn).filter(|window| window.count > 0));
    }
}

impl Window {
    fn add(&mut self, peer: IpAddr, user: &str, now_ms: i64) {
        if self.count == 0 {
            self.first_ms = now_ms;
        }
        self.count += 1;
        self.last_ms = now_ms;
        let user: String = user.chars().take(limits::SFTP_USER_QUOTED).collect();
        let most = limits::SFTP_FAILURES_NAMED;
        let (users, peers) = (self.users.len(), self.peers.len());
        if users < most || self.users.contains(&user) {
            self.users.insert(user);
        } else {
            self.has_more = true;
        }
        let peer = prefix(peer);
        if peers < most || self.peers.contains(&peer) {
            self.peers.insert(peer);
        } else {
            self.has_more = true;
        }
    }
}
