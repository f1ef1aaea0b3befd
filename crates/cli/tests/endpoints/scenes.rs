//! Single scenes with real clients: refusals, old drafts, ML-DSA certificates, client certificates, resumption.

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast_crypto::versions::Version;
use outlast_ledger::Outcome;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::{Decision, Mode, Rules, Transport};
use outlast_net::client_auth::{self, ClientAuth};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::endpoints::clients::{GO, OPENSSL, Program, s_client};
use crate::endpoints::in_process::{
    RUSTLS, quinn, rustls, rustls_config, rustls_shares, traced_config,
};
use crate::endpoints::matrix::{Report, Tally, agree};
use crate::endpoints::s2n::s2n;
use crate::endpoints::world::{DOMAIN, KINDS, Listener, World};
use crate::endpoints::{BOTH, in_thread};

const CLASSICAL: &[&str] = &["x25519", "secp256r1", "secp384r1"];

fn rules(policy: &str, mode: Mode) -> Rules {
    Rules { mode, ..Rules::named(policy).unwrap() }
}

/// A case for a program, which connects to this listener.
fn line(world: &World, listener: &Listener, name: &str) -> Value {
    json!({ "address": listener.address.to_string(), "name": name, "ca": world.ca })
}

async fn run(program: Program, lines: Vec<Value>) -> Vec<Report> {
    tokio::task::spawn_blocking(move || program.run(&lines)).await.unwrap()
}

/// Go 1.27, if it is installed.
fn go() -> Option<Program> {
    Some(Program::new(peer("go127")?.join("bin/endpoints"), &[]))
}

/// The folder of the machine's own OpenSSL, if it is older than ML-KEM.
pub fn old_openssl() -> Option<PathBuf> {
    let output = std::process::Command::new("/usr/bin/openssl").arg("version").output().ok()?;
    let is_old = String::from_utf8_lossy(&output.stdout).starts_with("OpenSSL 3.0.");
    is_old.then(|| PathBuf::from("/usr"))
}

/// A client that names the classical group first and only sends a classical share ends up hybrid.
#[tokio::test(flavor = "multi_thread")]
async fn openssl_with_classical_first_ends_hybrid_over_tcp() {
    let Some(peer) = peer("openssl") else { return };
    let world = World::new();
    let listener = world.listen(Rules::default(), &["ecdsa-p256"]).await;
    let name = format!("one.{DOMAIN}");
    let extra = ["-groups", "X25519:X25519MLKEM768"].map(str::to_owned).to_vec();
    let report = in_thread(&peer, listener.address, &name, &world.ca, extra).await;
    is_upgraded(&listener, &name, &report).await;
}

async fn is_upgraded(listener: &Listener, name: &str, report: &Report) {
    assert_eq!(report.group.as_deref(), Some("X25519MLKEM768"), "{report:?}");
    assert_eq!(report.hello_retry, Some(true));
    let recorded = listener.recorded(name, 1).await.unwrap();
    let offer = recorded.offer.unwrap();
    assert_eq!(offer.groups, [0x1d, 0x11ec]);
    assert_eq!(offer.shares, Some(vec![0x1d]));
    let Outcome::Served(served) = recorded.outcome else { panic!("{:?}", recorded.outcome) };
    assert!(served.post_quantum && served.hello_retry);
}

/// The same over QUIC.
#[tokio::test(flavor = "multi_thread")]
async fn a_quic_client_with_classical_first_ends_hybrid() {
    let world = World::new();
    let listener = world.listen_quic(Rules::default(), &["ecdsa-p256"]);
    let name = format!("one.{DOMAIN}");
    let endpoint = ::quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let config = traced_config(&world, &["x25519", "X25519MLKEM768"], "x25519");
    let report = quinn(&endpoint, listener.address, &name, config).await;
    is_upgraded(&listener, &name, &report).await;
}

/// Every policy with each kind of client: its own groups, classical groups only, TLS 1.2 only.
#[tokio::test(flavor = "multi_thread")]
async fn every_policy_serves_or_refuses_as_it_says() {
    let (openssl, go) = (peer("openssl"), go());
    let world = World::new();
    let mut tally = Tally::default();
    let mut for_go = Vec::new();
    for policy in POLICIES {
        for mode in [Mode::Prefer, Mode::Require] {
            let rules = Rules { policy, mode };
            if rules.groups().next().is_none() {
                continue;
            }
            let kind = World::kind_for(&rules);
            let listener = world.listen(rules, &[kind]).await;
            let own = policy.tls.groups;
            let old = &BOTH[1..];
            let crowd: [(&str, &[&'static str], &[Version]); 3] =
                [("own", own, BOTH), ("classical", CLASSICAL, BOTH), ("tls12", CLASSICAL, old)];
            for (who, groups, versions) in crowd {
                let label = format!("{}, {who}", listener.label());
                let name = format!("rustls-{who}.{DOMAIN}");
                let shares = rustls_shares(groups, groups[0]);
                let known = RUSTLS.offer(Transport::Tcp, versions, groups, &shares);
                let config = rustls_config(&world, versions, groups, groups[0]);
                let report = rustls(listener.address, &name, config).await;
                let recorded = listener.recorded(&name, 1).await.unwrap();
                let outcome = agree(&listener, &known, &report, &recorded);
                check_refusal(who, mode, &listener, &outcome);
                tally.add(RUSTLS.name, &label, outcome);
                if let Some(openssl) = &openssl {
                    let name = format!("openssl-{who}.{DOMAIN}");
                    let known = OPENSSL.offer(Transport::Tcp, versions, groups, &groups[..1]);
                    let mut extra = vec!["-groups".to_owned(), groups.join(":")];
                    if versions == old {
                        extra.push("-tls1_2".into());
                    }
                    let report =
                        in_thread(openssl, listener.address, &name, &world.ca, extra).await;
                    let recorded = listener.recorded(&name, 1).await.unwrap();
                    let outcome = agree(&listener, &known, &report, &recorded);
                    tally.add(OPENSSL.name, &label, outcome);
                }
                if who != "own" {
                    let name = format!("go-{who}.{DOMAIN}");
                    let mut case = line(&world, &listener, &name);
                    case["groups"] = json!(groups);
                    if versions == old {
                        case["version"] = json!("TLSv1.2");
                    }
                    let known = GO.offer(Transport::Tcp, versions, groups, &groups[..1]);
                    for_go.push((case, known, name, label));
                }
            }
            if let Some(go) = &go {
                let lines: Vec<_> = for_go.iter().map(|(case, ..)| case.clone()).collect();
                for ((_, known, name, label), report) in for_go.drain(..).zip(go.run(&lines)) {
                    let recorded = listener.recorded(&name, 1).await.unwrap();
                    tally.add(GO.name, &label, agree(&listener, &known, &report, &recorded));
                }
            }
        }
    }
    tally.settle();
}

/// What must hold whatever the catalogue says.
fn check_refusal(who: &str, mode: Mode, listener: &Listener, outcome: &Result<Decision, String>) {
    let Ok(decision) = outcome else { return };
    let served = matches!(decision, Decision::Serve(_));
    assert!(who != "own" || served, "{}: a client of its own groups is refused", listener.label());
    assert!(who == "own" || mode != Mode::Require || !served, "{}: {who}", listener.label());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_an_old_draft_fall_back_to_classical() {
    let world = World::new();
    let draft = "X25519Kyber768Draft00";
    let prefer = world.listen(Rules::default(), &["ecdsa-p256"]).await;
    let require = world.listen(rules("2026-11", Mode::Require), &["ecdsa-p256"]).await;
    for (index, (listener, share)) in
        [(&prefer, draft), (&prefer, "x25519"), (&require, draft), (&require, "x25519")]
            .into_iter()
            .enumerate()
    {
        let groups = [draft, "x25519"];
        let name = format!("draft{index}.{DOMAIN}");
        let known = RUSTLS.offer(Transport::Tcp, &BOTH[..1], &groups, &[share]);
        let config = rustls_config(&world, &BOTH[..1], &groups, share);
        let report = rustls(listener.address, &name, config).await;
        let recorded = listener.recorded(&name, 1).await.unwrap();
        agree(listener, &known, &report, &recorded).unwrap();
        if listener.rules.mode == Mode::Prefer {
            assert_eq!(report.group.as_deref(), Some("x25519"), "{report:?}");
            assert_eq!(report.hello_retry, Some(share == draft));
        } else {
            assert_eq!(report.alert.as_deref(), Some("handshake_failure"), "{report:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_take_certificates_of_ml_dsa() {
    let (Some(openssl), Some(go), Some(s2n)) = (peer("openssl"), go(), s2n()) else { return };
    let world = World::new();
    let mut taken = Vec::new();
    for (kind, _, scheme) in KINDS.iter().filter(|row| row.0.starts_with("ml-dsa")) {
        let listener = world.listen(Rules::default(), &[kind]).await;
        let groups = ["X25519MLKEM768"];
        let mut reports = Vec::new();
        let config = rustls_config(&world, &BOTH[..1], &groups, groups[0]);
        let name = |who: &str| format!("{who}.{DOMAIN}");
        reports.push(("rustls", rustls(listener.address, &name("rustls"), config).await));
        let extra = ["-groups", "X25519MLKEM768"].map(str::to_owned).to_vec();
        let report =
            in_thread(&openssl, listener.address, &name("openssl"), &world.ca, extra).await;
        assert_eq!(report.signature.as_deref(), Some(*scheme), "{report:?}");
        reports.push(("openssl", report));
        // Go with its defaults, and with TLS 1.3 only: its offers for certificates differ.
        let case = |who: &str| line(&world, &listener, &name(who));
        let mut newest = case("go13");
        newest["version"] = json!("TLSv1.3");
        let both = go.run(&[case("go"), newest]);
        reports.extend(["go", "go13"].into_iter().zip(both));
        let mut for_s2n = case("s2n");
        for_s2n["policy"] = json!("20250721");
        reports.push(("s2n", s2n.run(&[for_s2n]).remove(0)));
        for (who, report) in reports {
            assert!(report.ok, "{kind}, {who}: {report:?}");
            assert_eq!(report.group.as_deref(), Some("X25519MLKEM768"), "{kind}, {who}");
            let recorded = listener.recorded(&name(who), 1).await.unwrap();
            let Outcome::Served(served) = recorded.outcome else { panic!("{kind}, {who}") };
            assert_eq!(served.scheme.as_deref(), Some(*scheme), "{kind}, {who}");
            assert_eq!(served.certificate.as_deref(), Some(*kind));
            taken.push(format!("{who} {kind}"));
        }
        // A client without ML-DSA is told so.
        let mut old = line(&world, &listener, &name("old"));
        old["policy"] = json!("default");
        let report = s2n.run(&[old]).remove(0);
        assert_eq!(report.alert.as_deref(), Some("handshake_failure"), "{report:?}");
    }
    println!("certificates of ML-DSA: {}", taken.join(", "));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_show_certificates_of_ml_dsa_and_ecdsa() {
    let (Some(openssl), Some(go)) = (peer("openssl"), go()) else { return };
    let world = World::new();
    let roots = outlast_pki::pem::read_certificates(&std::fs::read(&world.ca).unwrap()).unwrap();
    let clients = ClientAuth::new(client_auth::Mode::Require, &roots, Vec::new()).unwrap();
    let listener = world.listen_for(Rules::default(), &["ecdsa-p256"], Some(clients)).await;
    for (kind, ..) in KINDS {
        let who = format!("client-{kind}");
        let (certificate, key) = world.client(kind, &who);
        let name = format!("openssl-{kind}.{DOMAIN}");
        let extra = vec![
            "-cert".to_owned(),
            certificate.display().to_string(),
            "-key".to_owned(),
            key.display().to_string(),
        ];
        let report = in_thread(&openssl, listener.address, &name, &world.ca, extra).await;
        shown(&listener, &name, &who, &report).await;
        let name = format!("go-{kind}.{DOMAIN}");
        let mut case = line(&world, &listener, &name);
        case["cert"] = json!(certificate);
        case["key"] = json!(key);
        shown(&listener, &name, &who, &go.run(&[case])[0]).await;
    }
    // Without a certificate there is no connection, and the client learns why.
    let name = format!("none.{DOMAIN}");
    let report = s_client(&openssl, listener.address, &name, &world.ca, &[]);
    assert!(!report.ok);
    assert_eq!(report.alert.as_deref(), Some("certificate_required"), "{report:?}");
}

async fn shown(listener: &Listener, name: &str, who: &str, report: &Report) {
    assert!(report.ok, "{name}: {report:?}");
    assert_eq!(report.group.as_deref(), Some("X25519MLKEM768"), "{name}");
    let recorded = listener.recorded(name, 1).await.unwrap();
    let Outcome::Served(served) = recorded.outcome else { panic!("{name}: {recorded:?}") };
    assert!(served.client.is_some_and(|subject| subject.contains(who)), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_sessions_of_others_still_exchange_hybrid_keys() {
    let (Some(openssl), Some(go), Some(s2n)) = (peer("openssl"), go(), s2n()) else { return };
    let world = World::new();
    let listener = world.listen(Rules::default(), &["ecdsa-p256"]).await;
    let name = |who: &str| format!("{who}.{DOMAIN}");
    let session = world.path("session.pem").display().to_string();
    for (count, flag) in ["-sess_out", "-sess_in"].into_iter().enumerate() {
        let extra = vec![flag.to_owned(), session.clone()];
        let report =
            in_thread(&openssl, listener.address, &name("openssl"), &world.ca, extra).await;
        assert_eq!(report.resumed, Some(count == 1), "{report:?}");
        resumed(&listener, &name("openssl"), count + 1, count == 1, &report).await;
    }
    let mut case = line(&world, &listener, &name("go"));
    case["repeat"] = json!(2);
    let reports = run(go, vec![case.clone()]).await;
    resumed(&listener, &name("go"), 2, true, &reports[0]).await;
    case["name"] = json!(name("s2n"));
    case["policy"] = json!("default_pq");
    let reports = run(s2n, vec![case]).await;
    resumed(&listener, &name("s2n"), 2, true, &reports[0]).await;
}

async fn resumed(listener: &Listener, name: &str, count: usize, expected: bool, report: &Report) {
    assert_eq!(report.resumed, Some(expected), "{name}: {report:?}");
    assert_eq!(report.group.as_deref(), Some("X25519MLKEM768"), "{name}");
    let recorded = listener.recorded(name, count).await.unwrap();
    let Outcome::Served(served) = recorded.outcome else { panic!("{name}: {recorded:?}") };
    assert_eq!(served.resumed, expected, "{name}");
    assert_eq!(served.group.as_deref(), Some("X25519MLKEM768"), "{name}");
    assert_eq!(served.scheme.is_none(), expected, "{name}");
}

/// Two certificates at once: each client is shown the one that it can verify.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_certificates_each_client_is_shown_its_own() {
    let (Some(openssl), Some(go), Some(s2n)) = (peer("openssl"), go(), s2n()) else { return };
    let world = World::new();
    let listener = world.listen(Rules::default(), &["ml-dsa-65", "ecdsa-p256"]).await;
    let name = |who: &str| format!("{who}.{DOMAIN}");
    let address = listener.address;
    let config = |versions| {
        rustls_config(&world, versions, &["X25519MLKEM768", "x25519", "secp256r1"], "x25519")
    };
    let mut shown = Vec::new();
    shown.push(("rustls", rustls(address, &name("rustls"), config(BOTH)).await, "ml-dsa-65"));
    shown.push((
        "rustls12",
        rustls(address, &name("rustls12"), config(&BOTH[1..])).await,
        "ecdsa-p256",
    ));
    let scenes: [(&str, &[&str], &str); 3] = [
        ("openssl", &[], "ml-dsa-65"),
        ("openssl12", &["-tls1_2"], "ecdsa-p256"),
        ("openssl-ecdsa", &["-sigalgs", "ECDSA+SHA256"], "ecdsa-p256"),
    ];
    for (who, extra, expected) in scenes {
        let extra = extra.iter().map(|text| (*text).to_owned()).collect();
        shown.push((
            who,
            in_thread(&openssl, address, &name(who), &world.ca, extra).await,
            expected,
        ));
    }
    if let Some(old) = old_openssl() {
        let report = in_thread(&old, address, &name("openssl-old"), &world.ca, Vec::new()).await;
        shown.push(("openssl-old", report, "ecdsa-p256"));
    }
    let case = |who: &str| line(&world, &listener, &name(who));
    let mut newest = case("go13");
    newest["version"] = json!("TLSv1.3");
    // Go accepts ML-DSA, but leaves it out of `signature_algorithms_cert`.
    let expected = [("go", "ecdsa-p256"), ("go13", "ecdsa-p256")];
    for ((who, expected), report) in expected.into_iter().zip(go.run(&[case("go"), newest])) {
        shown.push((who, report, expected));
    }
    let policies = [("s2n-pq", "default_pq", "ml-dsa-65"), ("s2n", "default", "ecdsa-p256")];
    for (who, policy, expected) in policies {
        let mut case = case(who);
        case["policy"] = json!(policy);
        shown.push((who, s2n.run(&[case]).remove(0), expected));
    }
    for (who, report, expected) in shown {
        assert!(report.ok, "{who}: {report:?}");
        let recorded = listener.recorded(&name(who), 1).await.unwrap();
        let Outcome::Served(served) = recorded.outcome else { panic!("{who}") };
        assert_eq!(served.certificate.as_deref(), Some(expected), "{who}");
    }
}
