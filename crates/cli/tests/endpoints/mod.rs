//! The negotiation matrix: orders of groups, shares sent, policies and modes, with clients of several stacks.
//!
//! In each case the policy determines the outcome of the client's offer; the client's own report and the listener's
//! record must match. The test prints the counts.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

mod as_they_are;
mod clients;
mod in_process;
mod matrix;
mod s2n;
mod scenes;
mod world;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use outlast_crypto::groups::GROUPS;
use outlast_crypto::versions::Version;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::{Decision, Mode, Offer, Rules, Transport};
use serde_json::json;

use clients::{GO, OPENSSL, Program, s_client};
use common::peers::peer;
use in_process::{QUINN, RUSTLS, quinn, rustls, rustls_config, rustls_shares, traced_config};
use matrix::{Report, Tally, agree, orders};
use world::{DOMAIN, Listener, World};

/// Clients in this process that run at once.
const AT_ONCE: usize = 8;
/// Processes that run at once.
const PROCESSES: usize = 4;

const BOTH: &[Version] = &[Version::Tls13, Version::Tls12];

/// Every policy of the catalogue in every mode that leaves it a group, the default policy first.
fn all_rules() -> impl Iterator<Item = Rules> {
    let modes = [Mode::Prefer, Mode::Require, Mode::Allow, Mode::Off];
    POLICIES
        .iter()
        .flat_map(move |policy| modes.map(|mode| Rules { policy, mode }))
        .filter(|rules| rules.groups().next().is_some() && rules.versions().next().is_some())
}

/// A TCP listener for each.
async fn listeners(world: &World) -> Vec<Arc<Listener>> {
    let mut out = Vec::new();
    for rules in all_rules() {
        out.push(Arc::new(world.listen(rules, &[World::kind_for(&rules)]).await));
    }
    out
}

/// A client: its offer, and the server name that identifies it.
struct Case {
    listener: Arc<Listener>,
    known: Offer,
    label: String,
    name: String,
}

impl Case {
    fn new(listener: &Arc<Listener>, id: usize, known: Offer, what: &str) -> Self {
        let label = format!("{}, {what}", listener.label());
        Self { listener: listener.clone(), known, label, name: format!("c{id}.{DOMAIN}") }
    }

    /// Whether everybody agrees with the client's report.
    async fn judge(&self, report: &Report) -> Result<Decision, String> {
        let recorded = self.listener.recorded(&self.name, 1).await?;
        agree(&self.listener, &self.known, report, &recorded)
    }
}

/// All of the long cases for the first listener, which has the default policy and mode, and for each of the others a
/// part of the short ones, a different part each time.
fn spread<T: Clone>(
    listeners: &[Arc<Listener>],
    long: &[T],
    short: &[T],
    step: usize,
) -> Vec<(Arc<Listener>, T)> {
    let mut out = Vec::new();
    for (index, listener) in listeners.iter().enumerate() {
        let (from, step) = if index == 0 { (long, 1) } else { (short, step) };
        for case in from.iter().skip(index % step).step_by(step) {
            out.push((listener.clone(), case.clone()));
        }
    }
    out
}

/// All orders of one to `max` groups, each with a share of each.
fn orders_and_shares(max: usize) -> Vec<(Vec<&'static str>, &'static str)> {
    let names: Vec<_> = GROUPS.iter().map(|row| row.name).collect();
    orders(&names, max)
        .into_iter()
        .flat_map(|groups| groups.clone().into_iter().map(move |share| (groups.clone(), share)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rustls_clients_get_what_the_policy_says() {
    let world = World::new();
    let listeners = listeners(&world).await;
    let (long, short) = (orders_and_shares(3), orders_and_shares(2));
    let cases = spread(&listeners, &long, &short, 3);
    let world = &world;
    let outcomes = futures_util::stream::iter(cases.into_iter().enumerate())
        .map(|(id, (listener, (groups, share)))| async move {
            let versions = if id % 2 == 0 { BOTH } else { &BOTH[..1] };
            let shares = rustls_shares(&groups, share);
            let known = RUSTLS.offer(Transport::Tcp, versions, &groups, &shares);
            let case = Case::new(&listener, id, known, &format!("{groups:?}, share of {share}"));
            let config = rustls_config(world, versions, &groups, share);
            let report = rustls(listener.address, &case.name, config).await;
            let outcome = case.judge(&report).await;
            (case.label, outcome)
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let mut tally = Tally::default();
    for (label, outcome) in outcomes {
        tally.add(RUSTLS.name, &label, outcome);
    }
    assert!(tally.cases(RUSTLS.name) >= 1000);
    tally.settle();
}

#[tokio::test(flavor = "multi_thread")]
async fn quic_clients_get_what_the_policy_says() {
    let world = World::new();
    let tls13 = |rules: &Rules| rules.versions().any(|version| version == Version::Tls13);
    let listeners: Vec<_> = all_rules()
        .filter(tls13)
        .map(|rules| Arc::new(world.listen_quic(rules, &[World::kind_for(&rules)])))
        .collect();
    let (long, short) = (orders_and_shares(3), orders_and_shares(2));
    let long: Vec<_> = long.into_iter().step_by(3).collect();
    let cases = spread(&listeners, &long, &short, 7);
    let endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let (world, endpoint) = (&world, &endpoint);
    let outcomes = futures_util::stream::iter(cases.into_iter().enumerate())
        .map(|(id, (listener, (groups, share)))| async move {
            let shares = rustls_shares(&groups, share);
            let known = QUINN.offer(Transport::Quic, &BOTH[..1], &groups, &shares);
            let case = Case::new(&listener, id, known, &format!("{groups:?}, share of {share}"));
            let config = traced_config(world, &groups, share);
            let report = quinn(endpoint, listener.address, &case.name, config).await;
            let outcome = case.judge(&report).await;
            (case.label, outcome)
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let mut tally = Tally::default();
    for (label, outcome) in outcomes {
        tally.add(QUINN.name, &label, outcome);
    }
    assert!(tally.cases(QUINN.name) >= 300);
    tally.settle();
}

/// Values of OpenSSL's `-groups`: the text, the groups, and those with a share.
fn openssl_groups() -> Vec<(String, Vec<&'static str>, Vec<&'static str>)> {
    // One of them is in no policy.
    let names: Vec<_> = GROUPS.iter().map(|row| row.name).chain(["ffdhe2048"]).collect();
    let mut out = Vec::new();
    for (index, groups) in orders(&names, 3).into_iter().enumerate() {
        let starred = |marks: &[bool], separator: &str| {
            let names = groups.iter().zip(marks);
            let names = names.map(|(name, mark)| format!("{}{name}", if *mark { "*" } else { "" }));
            names.collect::<Vec<_>>().join(separator)
        };
        // Which are marked: none, which means the first; the last; all.
        let marks = match index % 3 {
            0 => vec![false; groups.len()],
            1 => groups.iter().map(|name| Some(name) == groups.last()).collect(),
            _ => vec![true; groups.len()],
        };
        let shares = match index % 3 {
            0 => groups[..1].to_vec(),
            1 => groups[groups.len() - 1..].to_vec(),
            _ => groups.clone(),
        };
        // Only OpenSSL's servers distinguish tuples; a client's offer is the same.
        let separator = if index % 5 == 4 { "/" } else { ":" };
        out.push((starred(&marks, separator), groups, shares));
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_clients_get_what_the_policy_says() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new();
    let listeners = listeners(&world).await;
    let all = openssl_groups();
    let long: Vec<_> = all.iter().step_by(2).cloned().collect();
    let short: Vec<_> = all.iter().filter(|case| case.1.len() <= 2).cloned().collect();
    let cases = spread(&listeners, &long, &short, 17);
    let (peer, ca) = (&peer, &world.ca);
    let outcomes = futures_util::stream::iter(cases.into_iter().enumerate())
        .map(|(id, (listener, (text, groups, shares)))| async move {
            let versions = if id % 2 == 0 { BOTH } else { &BOTH[..1] };
            let known = OPENSSL.offer(Transport::Tcp, versions, &groups, &shares);
            let case = Case::new(&listener, id, known, &text);
            let mut extra = vec!["-groups".to_owned(), text];
            if versions.len() == 1 {
                extra.push("-tls1_3".to_owned());
            }
            let report = in_thread(peer, listener.address, &case.name, ca, extra).await;
            let outcome = case.judge(&report).await;
            (case.label, outcome)
        })
        .buffer_unordered(PROCESSES)
        .collect::<Vec<_>>()
        .await;
    let mut tally = Tally::default();
    for (label, outcome) in outcomes {
        tally.add(OPENSSL.name, &label, outcome);
    }
    assert!(tally.cases(OPENSSL.name) >= 200);
    tally.settle();
}

/// Runs `s_client` in a thread of its own.
async fn in_thread(
    peer: &Path,
    address: SocketAddr,
    name: &str,
    ca: &Path,
    extra: Vec<String>,
) -> Report {
    let (peer, name, ca) = (peer.to_owned(), name.to_owned(), ca.to_owned());
    let wait = move || {
        let extra: Vec<_> = extra.iter().map(String::as_str).collect();
        s_client(&peer, address, &name, &ca, &extra)
    };
    tokio::task::spawn_blocking(wait).await.unwrap()
}

/// Go's offer for a set of groups: it has an order of its own, and sends a share of the first and of its curve.
fn go_groups() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let order = [
        "X25519MLKEM768",
        "SecP256r1MLKEM768",
        "SecP384r1MLKEM1024",
        "MLKEM1024",
        "x25519",
        "secp256r1",
        "secp384r1",
        "secp521r1",
    ];
    let sets = (1..1 << order.len()).map(|set: usize| {
        let names = order.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>()
    });
    sets.map(|groups| (groups.clone(), rustls_shares(&groups, groups[0]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn go_clients_get_what_the_policy_says() {
    let Some(peer) = peer("go127") else { return };
    let world = World::new();
    let listeners = listeners(&world).await;
    let all = go_groups();
    let mut cases = Vec::new();
    let mut lines = Vec::new();
    for (id, (listener, (groups, shares))) in
        spread(&listeners, &all, &all, 5).into_iter().enumerate()
    {
        let versions = if id % 2 == 0 { BOTH } else { &BOTH[..1] };
        let known = GO.offer(Transport::Tcp, versions, &groups, &shares);
        let case = Case::new(&listener, id, known, &format!("{groups:?}"));
        let version = (versions.len() == 1).then_some("TLSv1.3");
        // Go does not care in which order they are given.
        let given: Vec<_> = groups.iter().rev().collect();
        lines.push(json!({
            "address": listener.address.to_string(), "name": case.name, "ca": world.ca,
            "groups": given, "version": version,
        }));
        cases.push(case);
    }
    let program = Program::new(peer.join("bin/endpoints"), &[]);
    let reports = tokio::task::spawn_blocking(move || program.run(&lines)).await.unwrap();
    let mut tally = Tally::default();
    for (case, report) in cases.iter().zip(&reports) {
        tally.add(GO.name, &case.label, case.judge(report).await);
    }
    assert!(tally.cases(GO.name) >= 255);
    tally.settle();
}
