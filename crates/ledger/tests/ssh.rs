//! SSH connections in the ledger: lines, verdicts, reports, dry runs, exports.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{NOW, begun, end, handshake, offer, open, served};
use outlast_ledger::dry_run::{Future, Reason, dry_run};
use outlast_ledger::export::{Exporter, FIELDS, SSH_FIELDS, csv};
use outlast_ledger::known::Ability;
use outlast_ledger::limits::MAX_LINE;
use outlast_ledger::line::LineError;
use outlast_ledger::report::{laggards, summary};
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::verdict::{Cause, Verdict};
use outlast_ledger::{Line, Outgoing, SshHandshake, SshOutcome, SshServed, plot};
use outlast_negotiate::ssh::{
    CROWD, SshOffer, SshRefusal, SshRules, decide_ssh, decide_ssh_server,
};
use outlast_negotiate::{Mode, Rules, SecurityPolicy};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn client(name: &str) -> SshOffer {
    CROWD.iter().find(|row| row.name.starts_with(name)).unwrap().offer.clone()
}

/// What the listener does to a client: the decision, recorded.
fn met(connection: u64, offer: SshOffer, policy: &str, mode: Mode) -> SshHandshake {
    let row = SecurityPolicy::by_name(policy).unwrap();
    let rules = SshRules::new(row, Some(mode), outlast_negotiate::ssh::served).unwrap();
    let outcome = match decide_ssh(&rules, &offer) {
        Ok(chosen) => SshOutcome::Served(SshServed::of(&chosen, offer.is_strict())),
        Err(refusal) => SshOutcome::Refused(refusal),
    };
    SshHandshake {
        connection,
        time_ms: NOW,
        listener: "sftp".into(),
        peer: Some("192.0.2.9:50000".parse().unwrap()),
        outgoing: None,
        policy: policy.into(),
        mode: mode.name().into(),
        offer: Some(offer),
        first_guess: None,
        blind: false,
        outcome,
        micros: 2500,
    }
}

fn line(handshake: SshHandshake) -> Line {
    Line::Ssh(Box::new(handshake))
}

fn tally(lines: Vec<Line>) -> Tally {
    let mut tally = Tally::new(Filter::default());
    lines.into_iter().for_each(|line| tally.add(line));
    tally.finish()
}

/// TLS and SSH clients of one server.
fn mixed() -> Vec<Line> {
    let ssh = |connection, name| line(met(connection, client(name), "2026-11", Mode::Prefer));
    let gone = SshHandshake {
        outcome: SshOutcome::Failed("the client went away".into()),
        offer: Some(SshOffer::new("SSH-2.0-scanner", [""; 8])),
        ..met(7, client("OpenSSH 10.0"), "2026-11", Mode::Prefer)
    };
    let silent = SshHandshake { connection: 8, offer: None, ..gone.clone() };
    vec![
        open("p"),
        begun(handshake(1, Some(offer(&[0x11ec], &[0x11ec])), served("X25519MLKEM768", false))),
        ssh(2, "OpenSSH 10.0"),
        ssh(3, "OpenSSH 9.2"),
        ssh(4, "libssh 0.11"),
        ssh(5, "libssh2 1.10"),
        ssh(6, "PuTTY 0.83"),
        line(gone),
        line(silent),
        Line::End(end(1, None)),
        Line::End(end(2, Some("alice"))),
        Line::End(end(3, Some("bob"))),
        Line::End(end(4, Some("carol"))),
    ]
}

#[test]
fn ssh_connections_have_verdicts_beside_those_of_tls() {
    let tally = tally(mixed());
    let verdict = |verdict| tally.total.verdicts.get(&verdict).copied().unwrap_or_default();
    assert_eq!(verdict(Verdict::Hybrid), 3);
    // sntrup761 is post-quantum, but not served; libssh 0.11 has nothing; libssh2 has no common MAC.
    assert_eq!((verdict(Verdict::Unserved), verdict(Verdict::NeverOffers)), (1, 1));
    assert_eq!((verdict(Verdict::Refused), verdict(Verdict::Failed)), (1, 2));
    assert_eq!((verdict(Verdict::Missed), tally.total.served()), (0, 5));
    let found = summary(&tally);
    let group =
        |name: &str| found.groups.iter().find(|(found, _)| found == name).unwrap().1.clone();
    assert_eq!(group("mlkem768x25519-sha256").connections, 2);
    assert_eq!(group("curve25519-sha256").hybrid, 0);
    assert_eq!(found.listeners.iter().find(|(name, _)| name == "sftp").unwrap().1.connections, 7);
    let mut labels: Vec<_> = found.fingerprints.iter().map(|(row, _)| row.label()).collect();
    labels.sort();
    let expected = [
        "SSH without identification",
        "SSH: OpenSSH 10.0",
        "SSH: OpenSSH 9.2",
        "SSH: PuTTY 0.83",
        "SSH: libssh 0.11.5",
        "SSH: libssh2 1.10.0",
        "SSH: scanner",
        "X25519MLKEM768",
    ];
    assert_eq!(labels, expected);
    assert!(found.reasons.iter().any(|(reason, _)| reason == "no MAC in common"));
    let json = serde_json::to_value(&found).unwrap();
    let clients = json["clients"].as_array().unwrap();
    for row in clients {
        let is_ssh = row["listener"] == "sftp";
        assert_eq!(row["fingerprint"].get("identification").is_some(), is_ssh, "{row}");
    }
    assert!(plot::svg(&tally).is_some());
}

#[test]
fn laggards_name_the_version_that_has_hybrids() {
    let tally = tally(mixed());
    let found = laggards(&tally);
    let hint = |label: &str| {
        found.iter().find(|one| one.client.fingerprint.label() == label).map(|one| one.hint)
    };
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(hint("SSH: OpenSSH 9.2").unwrap().contains("9.9"));
    assert!(hint("SSH: libssh 0.11.5").unwrap().contains("0.12"));
    assert!(hint("SSH: libssh2 1.10.0").unwrap().contains("libssh 0.12"));
    let bob = found.iter().find(|one| one.client.principal.as_deref() == Some("bob")).unwrap();
    assert_eq!(bob.client.fingerprint.ability, Ability::Unserved);
    assert_eq!(bob.client.fingerprint.hash().unwrap().len(), 32);
}

#[test]
fn a_client_that_could_do_better_is_missed_with_its_cause() {
    let mut classical_first = client("OpenSSH 10.0");
    classical_first.key_exchanges.insert(0, "curve25519-sha256".into());
    let cause = |policy: &str, mode: Mode, blind: bool| {
        // As recorded, whatever the listener should have done.
        let classical = met(1, client("OpenSSH 8.4"), "2026-11", Mode::Prefer).outcome;
        let one = met(1, classical_first.clone(), policy, mode);
        let one = SshHandshake { blind, outcome: classical, ..one };
        let found = summary(&tally(vec![open("p"), line(one)]));
        assert_eq!(found.missed, 1);
        (found.clients[0].causes.keys().copied().next().unwrap(), found.defects)
    };
    assert_eq!(cause("2026-11", Mode::Allow, false), (Cause::Mode, 0));
    assert_eq!(cause("2026-11", Mode::Off, false), (Cause::Mode, 0));
    assert_eq!(cause("classical-2026-11", Mode::Prefer, false), (Cause::Policy, 0));
    assert_eq!(cause("2026-11", Mode::Prefer, true), (Cause::Order, 0));
    assert_eq!(cause("2026-11", Mode::Prefer, false), (Cause::Defect, 1));
    // The listener does give it a hybrid.
    let met = met(1, classical_first, "2026-11", Mode::Prefer);
    assert_eq!(Verdict::of_ssh(&met), Verdict::Hybrid);
}

#[test]
fn a_dry_run_replays_ssh_offers_under_the_ssh_part_of_a_policy() {
    let tally = tally(mixed());
    let named = |name: &str| Rules::named(name).unwrap();
    let same = dry_run(&tally, &named("2026-11"), &[]);
    assert_eq!((same.breaks, same.mends, same.changes_group), (0, 0, 0));
    assert_eq!((same.replayed, same.not_replayed, same.unknown, same.uncovered), (6, 2, 0, 0));
    assert_eq!((same.certificates.len(), same.hybrid), (1, 3));
    let require = dry_run(&tally, &Rules { mode: Mode::Require, ..Rules::default() }, &[]);
    assert_eq!(require.breaks, 2);
    let reasons: Vec<_> = require
        .clients
        .iter()
        .filter(|change| change.breaks > 0)
        .map(|change| match &change.future {
            Future::Refused { reason: Reason::Ssh(reason), .. } => *reason,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(reasons.contains(&SshRefusal::Classical) && reasons.contains(&SshRefusal::KeyExchange));
    // AWS's policy for SFTP has no part for TLS, and the other way round.
    let transfer = dry_run(&tally, &named("TransferSecurityPolicy-2025-03"), &[]);
    assert_eq!((transfer.uncovered, transfer.replayed, transfer.breaks), (1, 5, 0));
    assert!(transfer.certificates.is_empty() && transfer.useless_certificates.is_empty());
    let elb = dry_run(&tally, &named("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09"), &[]);
    assert_eq!((elb.uncovered, elb.replayed), (7, 1));
    // A policy that no SSH listener can have breaks all of them.
    let cnsa = dry_run(&tally, &named("cnsa2-2026-11"), &[]);
    let ssh = cnsa.clients.iter().filter(|change| change.client.listener == "sftp");
    assert_eq!(ssh.clone().map(|change| change.breaks).sum::<u64>(), 4);
    // The reason is that of the listener: it has no host key for the policy.
    assert!(ssh.filter(|change| change.breaks > 0).all(|change| matches!(
        change.future,
        Future::Refused { reason: Reason::Ssh(SshRefusal::HostKey), .. }
    )));
    let json = serde_json::to_value(&require).unwrap();
    let reason = &json["clients"][0]["future"]["refused"]["reason"];
    assert!(["classical", "key-exchange"].contains(&reason.as_str().unwrap()), "{reason}");
}

/// A client that takes host keys with certificates only is served as before where it was served, and is refused as before elsewhere.
#[test]
fn a_dry_run_knows_clients_that_want_host_certificates() {
    let certified = SshOffer {
        host_keys: vec!["ssh-ed25519-cert-v01@openssh.com".into()],
        ..client("OpenSSH 10")
    };
    let refused = met(1, certified.clone(), "2026-11", Mode::Prefer);
    assert_eq!(refused.outcome, SshOutcome::Refused(SshRefusal::HostKey));
    let mut served = met(2, client("OpenSSH 10"), "2026-11", Mode::Prefer);
    served.offer = Some(certified.clone());
    if let SshOutcome::Served(what) = &mut served.outcome {
        what.host_key = certified.host_keys[0].clone();
    }
    // One that also takes plain keys, and was served by one, is not served by a certificate elsewhere.
    let mut both = met(3, client("OpenSSH 10"), "2026-11", Mode::Prefer);
    let offered = &mut both.offer.as_mut().unwrap().host_keys;
    *offered = vec!["rsa-sha2-512-cert-v01@openssh.com".into(), "ssh-ed25519".into()];
    let tally_of_both = tally(vec![line(both)]);
    let other = dry_run(&tally_of_both, &Rules::named("bsi-2026-11").unwrap(), &[]);
    assert_eq!((other.replayed_served, other.breaks), (1, 1));
    for (handshake, mends) in [(refused, 0), (served, 0)] {
        let tally = tally(vec![line(handshake)]);
        let named = |name| dry_run(&tally, &Rules::named(name).unwrap(), &[]);
        let same = named("2026-11");
        assert_eq!((same.replayed, same.breaks, same.mends), (1, 0, mends));
        // This one has no Ed25519 host keys, with or without certificates.
        let other = named("bsi-2026-11");
        assert_eq!(other.breaks, same.replayed_served);
    }
}

/// A client that always waits for the server's list gets what its order chooses, or nothing where that is less than it offers.
#[test]
fn a_dry_run_knows_clients_that_wait_for_the_list() {
    let mut classical_first = client("OpenSSH 10.0");
    classical_first.key_exchanges.insert(0, "curve25519-sha256".into());
    let order = Some(Reason::Ssh(SshRefusal::Order));
    for (offer, waits, refused) in [
        (&classical_first, false, None),
        (&classical_first, true, order),
        (&client("OpenSSH 10.0"), true, None),
        (&client("OpenSSH 8.4"), true, None),
    ] {
        // As older servers recorded it, which served them.
        let mut met = met(1, offer.clone(), "2026-11", Mode::Prefer);
        met.blind = waits;
        // Where the server did not wait, the record does not say it.
        let earlier = self::met(2, offer.clone(), "2026-11", Mode::Allow);
        let tally = tally(vec![line(earlier), line(met)]);
        let found = dry_run(&tally, &Rules::named("2026-11").unwrap(), &[]);
        assert_eq!(found.breaks, if refused.is_some() { 2 } else { 0 }, "{offer:?}");
        let reason = match &found.clients[0].future {
            Future::Refused { reason, .. } => Some(*reason),
            Future::Served { .. } => None,
        };
        assert_eq!(reason, refused, "{offer:?}");
        let all = dry_run(&tally, &Rules { mode: Mode::Allow, ..Rules::default() }, &[]);
        assert_eq!(all.breaks, 0, "nobody waits there");
        // One that was held up once and came in time otherwise.
        let mut late = self::met(1, offer.clone(), "2026-11", Mode::Prefer);
        late.blind = waits;
        let in_time = self::met(2, offer.clone(), "2026-11", Mode::Prefer);
        let found = dry_run(&self::tally(vec![line(late), line(in_time)]), &Rules::default(), &[]);
        assert_eq!(found.breaks, 0, "{offer:?}");
    }
}

/// A server that a connector has reached, with these methods.
fn reached(connection: u64, software: &str, methods: &str, policy: &str) -> SshHandshake {
    let gcm = "aes256-gcm@openssh.com";
    // Different MACs, so that the fingerprint of a server differs from that of a client.
    let lists =
        [methods, "ssh-ed25519", gcm, gcm, "hmac-sha2-256", "hmac-sha2-512", "none", "none"];
    let offer = SshOffer::new(&format!("SSH-2.0-{software}"), lists);
    let row = SecurityPolicy::by_name(policy).unwrap();
    let rules = SshRules::new(row, None, outlast_negotiate::ssh::served).unwrap();
    let outcome = match decide_ssh_server(&rules, &offer) {
        Ok(chosen) => SshOutcome::Served(SshServed::of(&chosen, false)),
        Err(refusal) => SshOutcome::Refused(refusal),
    };
    SshHandshake {
        listener: "connectors".into(),
        outgoing: Some(Outgoing {
            destination: format!("{}.example:22", software.to_lowercase()),
            principal: format!("arn:aws:transfer:us-east-1:111111111111:connector/c-{connection}"),
        }),
        policy: policy.into(),
        mode: rules.mode.name().into(),
        offer: Some(offer),
        outcome,
        ..met(connection, client("OpenSSH 10.0"), "2026-11", Mode::Prefer)
    }
}

/// Which partner's server holds up the others: with its name, and what to ask its operator for.
#[test]
fn servers_of_connectors_are_laggards_by_their_destination() {
    let hybrid = "curve25519-sha256,mlkem768x25519-sha256";
    let lines = vec![
        open("p"),
        line(reached(1, "OpenSSH_9.2", "curve25519-sha256", "2026-11")),
        // Our order decides, whatever the server prefers.
        line(reached(2, "OpenSSH_10.0", hybrid, "2026-11")),
        line(reached(3, "AWS_SFTP_1.1", "curve25519-sha256", "2026-11-require-pq")),
        // The same lists from a client are another row.
        line(SshHandshake {
            connection: 4,
            listener: "sftp".into(),
            outgoing: None,
            ..reached(4, "OpenSSH_9.2", "curve25519-sha256", "2026-11")
        }),
        Line::End(end(1, Some("arn:aws:transfer:us-east-1:111111111111:connector/c-1"))),
    ];
    let tally = tally(lines.clone());
    let verdict = |verdict| tally.total.verdicts.get(&verdict).copied().unwrap_or_default();
    assert_eq!((verdict(Verdict::Hybrid), verdict(Verdict::Refused)), (1, 1));
    assert_eq!((verdict(Verdict::NeverOffers), verdict(Verdict::Missed)), (2, 0));
    let found = laggards(&tally);
    let servers: Vec<_> = found.iter().filter(|one| !one.client.destinations.is_empty()).collect();
    assert_eq!((found.len(), servers.len()), (3, 2), "{found:?}");
    for (at, connector, hint) in [
        ("openssh_9.2.example:22", "connector/c-1", "9.9"),
        ("aws_sftp_1.1.example:22", "connector/c-3", "TransferSecurityPolicy-2025-03"),
    ] {
        let one = servers.iter().find(|one| one.client.destinations == [at]).unwrap();
        assert!(one.hint.starts_with("ask its operator") && one.hint.contains(hint), "{one:?}");
        assert!(one.client.principal.as_ref().unwrap().ends_with(connector), "{one:?}");
        assert!(one.client.server_names.is_empty());
        let server = &lines.iter().find_map(|line| match line {
            Line::Ssh(one) if one.outgoing.as_ref().is_some_and(|to| to.destination == at) => {
                one.offer.clone()
            }
            _ => None,
        });
        let server = server.as_ref().unwrap();
        assert_eq!(one.client.fingerprint.hassh, server.hassh_server());
        assert_ne!(server.hassh_server(), server.hassh());
    }
    let json = serde_json::to_value(&found).unwrap();
    assert!(json.to_string().contains(r#""destinations":["openssh_9.2.example:22"]"#), "{json}");
    // What another policy of the connectors would do: the refused one would be served.
    let other = dry_run(&tally, &Rules::named("2026-11").unwrap(), &[]);
    assert_eq!((other.mends, other.breaks, other.replayed), (1, 0, 4));
    let strict = Rules { mode: Mode::Require, ..Rules::default() };
    assert_eq!(dry_run(&tally, &strict, &[]).breaks, 2);
    // And for other programs.
    let mut exporter =
        Exporter::new(Filter { listener: Some("connectors".into()), ..Filter::default() });
    let mut records: Vec<_> = lines.into_iter().flat_map(|line| exporter.add(line)).collect();
    records.extend(exporter.finish());
    let named: Vec<_> =
        records.iter().map(|record| record["serverName"].as_str().unwrap()).collect();
    assert_eq!(records.len(), 3);
    assert!(named.contains(&"aws_sftp_1.1.example:22"), "{named:?}");
    assert!(
        records.iter().all(|record| record["principal"].as_str().unwrap().contains("connector/"))
    );
}

#[test]
fn a_server_that_could_do_better_is_missed_with_its_cause() {
    let hybrid = "mlkem768x25519-sha256,curve25519-sha256";
    let cause = |policy: &str, mode: &str| {
        let classical = reached(1, "x", "curve25519-sha256", "2026-11").outcome;
        let one = reached(1, "OpenSSH_10.0", hybrid, policy);
        let one = SshHandshake { outcome: classical, mode: mode.into(), ..one };
        summary(&tally(vec![open("p"), line(one)])).clients[0].causes.keys().copied().next()
    };
    assert_eq!(cause("2026-11", "allow"), Some(Cause::Mode));
    assert_eq!(cause("classical-2026-11", "prefer"), Some(Cause::Policy));
    assert_eq!(cause("2026-11", "prefer"), Some(Cause::Defect));
}

#[test]
fn half_a_destination_is_no_line() {
    let mut out = Vec::new();
    line(reached(1, "OpenSSH_10.0", "curve25519-sha256", "2026-11")).encode(&mut out);
    let text = String::from_utf8(out).unwrap();
    let cut = text.replacen("\"d\":\"openssh_10.0.example:22\",", "", 1);
    assert!(cut.len() < text.len(), "{text}");
    assert!(matches!(Line::parse(cut.as_bytes()), Err(LineError::Malformed(_))));
}

#[test]
fn known_hosts_do_not_make_another_client() {
    let mut reordered = client("OpenSSH 10.0");
    reordered.host_keys.rotate_left(3);
    let lines = [client("OpenSSH 10.0"), reordered].into_iter().zip(1..);
    let lines = lines.map(|(offer, number)| line(met(number, offer, "2026-11", Mode::Prefer)));
    assert_eq!(tally(lines.collect()).clients.len(), 1);
}

#[test]
fn exports_have_the_same_columns_and_more_in_json() {
    let mut exporter = Exporter::new(Filter::default());
    let mut records: Vec<_> = mixed().into_iter().flat_map(|line| exporter.add(line)).collect();
    records.extend(exporter.finish());
    assert_eq!(records.len(), 8);
    let find = |who: &str| records.iter().find(|record| record["principal"] == who).unwrap();
    let alice = find("alice");
    let names: Vec<_> = FIELDS.iter().chain(SSH_FIELDS).collect();
    assert_eq!(alice.keys().collect::<Vec<_>>(), names);
    let text = |field: &str| alice[field].as_str().unwrap_or_default();
    assert_eq!(text("group"), "mlkem768x25519-sha256");
    assert_eq!((text("transport"), text("version")), ("ssh", "SSH-2.0"));
    assert_eq!(text("identification"), "SSH-2.0-OpenSSH_10.0p2 Debian-7+deb13u4");
    assert_eq!(text("hostKeyAlgorithm"), "ssh-ed25519");
    assert_eq!(alice["strict"], true);
    assert!(alice["offeredGroups"].as_array().unwrap().len() > 5 && alice["sent"] == 5000);
    let columns = |record| csv(record).matches(',').count();
    let tls = records.iter().find(|record| record["transport"] == "tcp").unwrap();
    assert_eq!(tls.keys().collect::<Vec<_>>(), FIELDS);
    assert_eq!(columns(alice), columns(tls));
}

#[test]
fn a_line_of_ssh_is_newer_for_older_readers() {
    let mut out = Vec::new();
    line(met(1, client("OpenSSH 10.0"), "2026-11", Mode::Prefer)).encode(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with(r#"{"v":2,"k":"s","c":1,"#), "{text}");
    assert!(text.len() < 2500, "{} bytes", text.len());
    // The lists to the client are the same.
    assert!(!text.contains(r#""d":"#) && !text.contains(r#""n":"#), "{text}");
    let of = |text: &str| Line::parse(text.as_bytes());
    assert!(matches!(of(&text), Ok(Line::Ssh(_))));
    assert!(matches!(of(&text.replace("\"v\":2", "\"v\":1")), Err(LineError::Malformed(_))));
    assert_eq!(of(&text.replace("\"k\":\"s\"", "\"k\":\"x\"")), Err(LineError::Newer(2)));
    assert_eq!(of(&text.replace("\"v\":2", "\"v\":3")), Err(LineError::Newer(3)));
    assert!(matches!(
        of(&text.replace("\"u\":", "\"f\":\"x\",\"u\":")),
        Err(LineError::Malformed(_))
    ));
}

fn names() -> impl Strategy<Value = Vec<String>> {
    vec("[a-zA-Z0-9@.+=_-]{1,64}", 0..8)
}

prop_compose! {
    fn any_offer()(
        identification in "SSH-2.0-[a-zA-Z0-9_. ]{0,60}",
        lists in [names(), names(), names(), names(), names(), names(), names(), names()],
    ) -> SshOffer {
        let lists = lists.map(|list| list.join(","));
        SshOffer::new(&identification, lists.each_ref().map(String::as_str))
    }
}

fn any_served() -> impl Strategy<Value = SshServed> {
    let name = || "[a-z0-9@.-]{1,64}";
    (name(), name(), name(), name(), of(name()), of(name()), any::<bool>(), any::<bool>()).prop_map(
        |(key_exchange, host_key, up, down, mac_up, mac_down, post_quantum, strict)| SshServed {
            key_exchange,
            post_quantum,
            host_key,
            cipher_to_server: up,
            cipher_to_client: down,
            mac_to_server: mac_up,
            mac_to_client: mac_down,
            strict,
        },
    )
}

fn any_outcome() -> impl Strategy<Value = SshOutcome> {
    prop_oneof![
        any_served().prop_map(SshOutcome::Served),
        prop::sample::select(SshRefusal::ALL.to_vec()).prop_map(SshOutcome::Refused),
        ".{0,80}".prop_map(SshOutcome::Failed),
    ]
}

prop_compose! {
    fn any_handshake()(
        connection: u64,
        time_ms: i64,
        listener in "[a-z]{1,10}",
        peer in of((any::<std::net::IpAddr>(), any::<u16>())),
        outgoing in of(("[a-z.]{1,250}:[0-9]{1,5}", "arn:[a-z0-9:/-]{1,80}")),
        policy in "[a-z0-9-]{1,30}",
        mode in "[a-z]{1,8}",
        offer in of(any_offer()),
        first_guess: Option<bool>,
        blind: bool,
        outcome in any_outcome(),
        micros: u64,
    ) -> SshHandshake {
        let peer = peer.map(std::net::SocketAddr::from);
        let outgoing = outgoing.map(|(destination, principal)| Outgoing { destination, principal });
        SshHandshake {
            connection, time_ms, listener, peer, outgoing, policy, mode, offer, first_guess, blind, outcome, micros,
        }
    }
}

proptest! {
    #[test]
    fn handshakes_are_read_as_they_are_written(handshake in any_handshake()) {
        let line = line(handshake);
        let mut bytes = Vec::new();
        line.encode(&mut bytes);
        prop_assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert!(bytes.len() <= MAX_LINE, "{} bytes", bytes.len());
        prop_assert_eq!(Line::parse(&bytes).unwrap(), line);
    }

    #[test]
    fn what_is_cut_anywhere_is_an_error(handshake in any_handshake(), at: prop::sample::Index) {
        let mut bytes = Vec::new();
        line(handshake).encode(&mut bytes);
        let bytes = &bytes[..bytes.len() - 1];
        prop_assert!(Line::parse(&bytes[..at.index(bytes.len())]).is_err());
    }

    /// As in the fuzz target.
    #[test]
    fn mutated_lines_never_break_a_report(
        handshake in any_handshake(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = Vec::new();
        line(handshake).encode(&mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(line) = Line::parse(&bytes) {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            line.encode(&mut first);
            Line::parse(&first).unwrap().encode(&mut second);
            prop_assert_eq!(&first, &second);
            let mut exporter = Exporter::new(Filter::default());
            let mut records = exporter.add(line.clone());
            records.extend(exporter.finish());
            prop_assert!(records.iter().all(|record| !csv(record).is_empty()));
            let tally = tally(vec![line]);
            prop_assert!(serde_json::to_string(&summary(&tally)).is_ok());
            laggards(&tally);
            dry_run(&tally, &Rules::default(), &[]);
            prop_assert!(plot::svg(&tally).is_some());
        }
    }

    /// A client decides what its lists contain and how long they are; a door may pass on what it did not check.
    #[test]
    fn hostile_names_get_neither_into_a_line_nor_into_a_report(
        name in "[\u{0}-\u{1f}\"\\\\\u{7f}-\u{9f}a-z,]{0,300}",
        count in 0_usize..3000,
        identification in "[\u{0}-\u{9f}]{0,400}",
    ) {
        let list = vec![name.clone(); count];
        let checked = SshOffer::new(&identification, [&list.join(","); 8]);
        let unchecked = SshOffer {
            identification: identification.clone(),
            key_exchanges: list.clone(),
            host_keys: list.clone(),
            ciphers_to_server: list.clone(),
            ciphers_to_client: vec![name.clone(); count / 2],
            macs_to_server: list.clone(),
            macs_to_client: vec![name.clone(); count / 3],
            compressions_to_server: list.clone(),
            compressions_to_client: vec![name; count / 4],
            cut: false,
        };
        let long = "\u{1}".repeat(4000);
        for offer in [checked, unchecked] {
            let mut one = met(1, client("OpenSSH 10.0"), "2026-11", Mode::Prefer);
            one.offer = Some(offer);
            one.listener = long.clone();
            one.outcome = SshOutcome::Failed(long.clone());
            let mut bytes = Vec::new();
            line(one).encode(&mut bytes);
            prop_assert!(bytes.len() <= MAX_LINE, "{} bytes", bytes.len());
            let text = std::str::from_utf8(&bytes[..bytes.len() - 1]).unwrap();
            prop_assert!(!text.contains(char::is_control));
            let read = Line::parse(&bytes).unwrap();
            let found = summary(&tally(vec![read]));
            let label = found.fingerprints[0].0.label();
            prop_assert!(!label.contains(char::is_control) && label.len() < 60, "{label:?}");
            let groups = &found.fingerprints[0].0.groups;
            prop_assert!(groups.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_graphic())));
        }
    }
}
