//! The ledger of a server: the records of real clients, and the reports on them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::peers::{openssl, peer};
use common::pki::{New, issue};
use common::{Folder, Server, fail, outlast, run, runtime, stderr, stdout, succeed};
use outlast_api::ops::kms;
use outlast_ledger::{Handshake, Ledger, Observe, Options, Outcome, Served};
use outlast_negotiate::{Offer, Refusal, Transport};
use outlast_net::server::system_clock;
use outlast_store::Store;
use outlast_store::sqlite::SqliteStore;
use serde_json::{Value, json};

fn ledger(verb: &str, folder: &Path, arguments: &[&str]) -> (Value, i32) {
    let output = run(outlast()
        .args(["--output", "json", "ledger", verb, "--data"])
        .arg(folder)
        .args(arguments));
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    (value, output.status.code().unwrap())
}

/// A handshake of `openssl s_client`; returns whether it succeeded.
fn s_client(peer: &Path, server: &Server, folder: &Folder, arguments: &[&str]) -> bool {
    let connect = format!("127.0.0.1:{}", server.port);
    openssl(peer, &["s_client", "-connect", &connect, "-servername", "localhost", "-CAfile"])
        .arg(folder.data.join("client/ca.pem"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .status
        .success()
}

fn verdicts(summary: &Value) -> Value {
    summary["total"]["verdicts"].clone()
}

#[test]
fn real_clients_get_verdicts_and_dry_run_names_breakage() {
    let Some(peer) = peer("openssl") else { return };
    let folder = Folder::new();
    let mut server = folder.serve();
    for (arguments, served) in [
        (&[][..], true),
        (&["-groups", "X25519:X25519MLKEM768"], true),
        (&["-groups", "SecP384r1MLKEM1024"], true),
        (&["-groups", "X25519"], true),
        (&["-groups", "P-256:P-384"], true),
        (&["-tls1_2"], true),
        (&["-groups", "X448"], false),
    ] {
        assert_eq!(s_client(&peer, &server, &folder, arguments), served, "{arguments:?}");
    }
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let input = json!({ "NumberOfBytes": 8 });
        session.call::<kms::generate_random::GenerateRandom>(input).await.unwrap().unwrap();
    });
    assert_eq!(server.terminate(), Some(0));

    let (summary, code) = ledger("summary", &folder.data, &[]);
    assert_eq!(code, 0, "{summary}");
    assert_eq!(
        verdicts(&summary),
        json!({ "hybrid": 3, "hybrid-after-retry": 1, "never-offers": 2, "tls12": 1, "refused": 1 })
    );
    assert_eq!(summary["missed"], 0);
    assert_eq!(summary["unseen"]["lost"], 0);
    let clients = summary["clients"].as_array().unwrap();
    // Callers of operations are known by name.
    let known: Vec<_> = clients.iter().filter(|row| row["principal"].is_string()).collect();
    assert_eq!(known.len(), 1);
    assert!(known[0]["principal"].as_str().unwrap().contains(":user/"), "{}", known[0]);
    assert!(known[0]["received"].as_u64().unwrap() > 1000);
    let stock = clients
        .iter()
        .find(|row| row["fingerprint"]["software"] == "OpenSSL 3.5 or newer")
        .unwrap();
    assert_eq!(stock["verdict"], "hybrid");
    assert_eq!(stock["networks"], json!(["127.0.0.0/24"]));
    assert_eq!(stock["server_names"], json!(["localhost"]));
    assert!(stock["fingerprint"]["ja4"].as_str().unwrap().starts_with("t13d"));

    let (laggards, code) = ledger("laggards", &folder.data, &[]);
    assert_eq!((laggards.as_array().unwrap().len(), code), (4, 5));

    // The audit event of the call describes its connection in the same way.
    let store = SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let events = store.events(0, 1000).unwrap();
    let events = events.iter().map(|event| serde_json::from_slice::<Value>(&event.body).unwrap());
    let call = events.into_iter().find(|event| event["eventName"] == "GenerateRandom").unwrap();
    assert_eq!(
        call["tlsDetails"],
        json!({
            "tlsVersion": "TLSv1.3",
            "cipherSuite": "TLS_AES_256_GCM_SHA384",
            "clientProvidedHostHeader": call["tlsDetails"]["clientProvidedHostHeader"],
            "keyExchange": "X25519MLKEM768",
            "postQuantum": true,
            "handshake": "full",
        })
    );
    drop(store);

    // Under the policy in use nobody breaks.
    let (same, code) = ledger("dry-run", &folder.data, &["--policy", "2026-11"]);
    assert_eq!((&same["breaks"], &same["changes_group"], code), (&json!(0), &json!(0), 0));
    let (require, code) = ledger("dry-run", &folder.data, &["--mode", "require"]);
    assert_eq!((&require["breaks"], code), (&json!(3), 5));
    assert_eq!(require["clients"][0]["breaks"], 1);
    let (classical, code) = ledger("dry-run", &folder.data, &["--policy", "classical-2026-11"]);
    // A client that only offers a hybrid group breaks; the other three change.
    assert_eq!((&classical["breaks"], code), (&json!(1), 5));
    assert_eq!((&classical["changes_group"], &classical["hybrid"]), (&json!(3), &json!(0)));

    // A server behaves as the replay says.
    let mut server = Server::start(&folder.data, &["--mode", "require"]);
    for (arguments, served) in [
        (&["-groups", "X25519:X25519MLKEM768"][..], true),
        (&["-groups", "X25519"], false),
        (&["-tls1_2"], false),
    ] {
        assert_eq!(s_client(&peer, &server, &folder, arguments), served, "{arguments:?}");
    }
    assert_eq!(server.terminate(), Some(0));
    let (summary, _) = ledger("summary", &folder.data, &["--listener", "api"]);
    assert_eq!(summary["total"]["refused"], 3);
    let mut another = outlast();
    another.args(["ledger", "summary", "--listener", "another", "--data"]).arg(&folder.data);
    assert!(fail(&mut another, 2).contains("--listener another"));
    let (nothing, _) = ledger("summary", &folder.data, &["--until", "1d"]);
    assert_eq!(nothing["total"]["connections"], 0);
}

#[test]
fn downgraded_clients_make_the_report_fail() {
    let Some(peer) = peer("openssl") else { return };
    let folder = Folder::new();
    let mut server = Server::start(&folder.data, &["--mode", "off"]);
    assert!(s_client(&peer, &server, &folder, &[]));
    assert_eq!(server.terminate(), Some(0));
    // The operator has chosen so: the report says it, with the cause, and it is no failure.
    let text = succeed(outlast().args(["ledger", "summary", "--data"]).arg(&folder.data));
    assert!(text.contains("advertised but classical, by cause: 1: "), "{text}");
    assert!(text.contains("mode is allow or off"), "{text}");
    // Any other cause is a defect.
    let segment = segments(&folder.data.join("ledger")).remove(0);
    let lines = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, lines.replace("\"m\":\"off\"", "\"m\":\"prefer\"")).unwrap();
    let message = fail(outlast().args(["ledger", "summary", "--data"]).arg(&folder.data), 5);
    assert!(
        message.contains("1 connection advertised post-quantum but got classical"),
        "{message}"
    );
    assert!(message.contains("this is a bug"), "{message}");
}

#[test]
fn killed_server_loses_at_most_one_second_of_ledger() {
    let folder = Folder::new();
    let mut server = folder.serve();
    runtime().block_on(async {
        for _ in 0..20 {
            drop(server.session().await.unwrap());
        }
    });
    recorded(&folder.data, 20);
    server.kill();
    let (summary, code) = ledger("summary", &folder.data, &[]);
    assert_eq!((&summary["total"]["connections"], code), (&json!(20), 0));
    let software = &summary["clients"][0]["fingerprint"]["software"];
    assert!(software.as_str().unwrap().starts_with("Outlast"), "{software}");
    // A half-written line is skipped, and the next server starts a segment of its own.
    let segment = segments(&folder.data.join("ledger")).remove(0);
    let text = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &text[..text.len() - 10]).unwrap();
    let server = folder.serve();
    runtime().block_on(async { drop(server.session().await.unwrap()) });
    recorded(&folder.data, 21);
    let (summary, _) = ledger("summary", &folder.data, &[]);
    assert_eq!(summary["skipped"]["torn"], 1);
    assert_eq!(summary["total"]["connections"], 21);
    assert_eq!(segments(&folder.data.join("ledger")).len(), 2);
}

/// Waits until the ledger on disk has so many connections that have ended.
fn recorded(data: &Path, count: u64) {
    outlast_testing::until("the ledger is on disk", || {
        let (summary, _) = ledger("summary", data, &[]);
        summary["total"]["connections"].as_u64() >= Some(count)
    });
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut out: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    out.sort();
    out
}

#[test]
fn the_ledger_can_be_elsewhere_or_off() {
    let folder = Folder::new();
    let mut server = Server::start(&folder.data, &["--ledger", "off"]);
    runtime().block_on(async { drop(server.session().await.unwrap()) });
    assert_eq!(server.terminate(), Some(0));
    assert!(!folder.data.join("ledger").exists());
    let elsewhere = folder.path("elsewhere");
    let settings = folder.data.join("outlast.toml");
    let mut text = std::fs::read_to_string(&settings).unwrap_or_default();
    text = format!("ledger = {elsewhere:?}\nledger_days = 30\nledger_bytes = 1000000\n{text}");
    std::fs::write(&settings, text).unwrap();
    let mut server = folder.serve();
    runtime().block_on(async { drop(server.session().await.unwrap()) });
    assert_eq!(server.terminate(), Some(0));
    let (summary, _) = ledger("summary", &folder.data, &[]);
    assert_eq!(summary["total"]["connections"], 1, "the settings say where it is");
    let file = folder.write("file", b"");
    let mut command = outlast();
    command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&folder.data);
    let message = fail(command.arg("--ledger").arg(&file), 2);
    assert!(message.contains("--ledger"), "{message}");
    fail(outlast().args(["ledger", "summary"]), 1);
    fail(
        outlast().args(["ledger", "summary", "--since", "tomorrow", "--data"]).arg(&folder.data),
        2,
    );
}

#[test]
fn exports_and_pictures_are_whole_files() {
    let folder = Folder::new();
    let mut server = folder.serve();
    runtime().block_on(async { drop(server.session().await.unwrap()) });
    assert_eq!(server.terminate(), Some(0));
    let export = |arguments: &[&str]| {
        succeed(outlast().args(["ledger", "export", "--data"]).arg(&folder.data).args(arguments))
    };
    let record: Value = serde_json::from_str(export(&[]).trim()).unwrap();
    assert_eq!((&record["group"], &record["listener"]), (&json!("X25519MLKEM768"), &json!("api")));
    let csv = export(&["--format", "csv"]);
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("time,process,connection,listener,address,principal,verdict,"));
    let out = folder.path("out.csv");
    let path = out.to_str().unwrap();
    assert_eq!(export(&["--format", "csv", "--out", path]), format!("wrote 1 record to {path}\n"));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), csv);
    let mut again = outlast();
    again.args(["ledger", "export", "--out", path, "--data"]).arg(&folder.data);
    assert!(fail(&mut again, 1).contains("exists already"));
    let picture = folder.path("picture.svg");
    let mut command = outlast();
    command.args(["ledger", "summary", "--data"]).arg(&folder.data).arg("--plot").arg(&picture);
    let text = succeed(&mut command);
    assert!(text.contains("advertised post-quantum but got classical            0"), "{text}");
    assert!(std::fs::read_to_string(&picture).unwrap().ends_with("</svg>\n"));
}

/// A client that offers these groups, in TLS 1.3.
fn offering(groups: &[u16]) -> Option<Offer> {
    Some(Offer {
        transport: Transport::Tcp,
        versions: vec![0x0304],
        suites: vec![0x1301, 0x1302],
        groups: groups.to_vec(),
        shares: Some(groups.to_vec()),
        schemes: vec![0x0403, 0x0906],
        certificate_schemes: None,
        sni: None,
        protocols: Vec::new(),
        extensions: vec![10, 13, 43, 51],
        resumes: false,
    })
}

fn served(group: &str) -> Outcome {
    Outcome::Served(Served {
        version: "TLSv1.3".into(),
        suite: "TLS_AES_256_GCM_SHA384".into(),
        group: Some(group.into()),
        post_quantum: group.contains("MLKEM"),
        hello_retry: false,
        resumed: false,
        scheme: Some("ecdsa_secp256r1_sha256".into()),
        certificate: Some("ecdsa-p256".into()),
        client: None,
    })
}

/// A ledger with these connections, at the listener `api`.
fn made_up(handshakes: impl IntoIterator<Item = (Option<Offer>, Outcome)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), Options::new(system_clock)).unwrap();
    for (connection, (offer, outcome)) in (1..).zip(handshakes) {
        ledger.handshake(&Handshake {
            connection,
            time_ms: system_clock(),
            listener: "api".into(),
            peer: None,
            policy: "2026-11".into(),
            mode: "prefer".into(),
            ja4: None,
            offer,
            outcome,
            micros: 1000,
        });
    }
    drop(ledger);
    folder
}

/// `outlast ledger VERB` on a folder.
fn on(folder: &Path, verb: &str, arguments: &[&str]) -> std::process::Command {
    let mut command = outlast();
    command.args(["ledger", verb, "--ledger"]).arg(folder).args(arguments);
    command
}

/// Five connections that are post-quantum, eleven that are classical, eight that are refused and one that fails.
fn mixed() -> tempfile::TempDir {
    let hybrid = std::iter::repeat_n((offering(&[0x11ec, 0x1d]), served("X25519MLKEM768")), 5);
    let classical = std::iter::repeat_n((offering(&[0x1d]), served("x25519")), 11);
    let refused = (offering(&[0x1d]), Outcome::Refused(Refusal::Classical));
    let failed = (offering(&[0x1d]), Outcome::Failed("the client went away".into()));
    made_up(hybrid.chain(classical).chain(std::iter::repeat_n(refused, 8)).chain([failed]))
}

#[test]
fn percentages_say_what_they_are_of() {
    let folder = mixed();
    let text = succeed(&mut on(folder.path(), "summary", &[]));
    assert!(
        text.starts_with(
            "5 of 16 served connections (31.2 %) were post-quantum; 9 more were refused or failed; "
        ),
        "{text}"
    );
    assert!(text.contains("newest record: listener api, policy 2026-11 in mode prefer"), "{text}");
    let refused = made_up([(offering(&[0x1d]), Outcome::Refused(Refusal::Classical))]);
    let text = succeed(&mut on(refused.path(), "summary", &[]));
    assert!(text.starts_with("no connection was served; 1 more was refused or failed"), "{text}");
}

/// The table, the totals and the sentence count the same connections.
#[test]
fn dry_run_counts_one_thing() {
    let folder = mixed();
    let output = run(&mut on(folder.path(), "dry-run", &["--mode", "require"]));
    assert_eq!(output.status.code(), Some(5));
    let text = stdout(&output);
    assert!(text.starts_with("25 connections replayed under 2026-11 in mode require\n"), "{text}");
    assert!(text.contains("16 of them were served and can break; 9 were refused"), "{text}");
    assert!(text.contains("11 of 20"), "{text}");
    assert!(text.contains("  no post-quantum group"), "{text}");
    assert!(text.contains("unchanged"), "{text}");
    assert!(text.contains("--wide"), "{text}");
    assert_eq!(
        stderr(&output),
        "found: 1 client would break under 2026-11 in mode require: 11 of 16 replayed connections that were served would be refused\n"
    );
    let text = stdout(&run(&mut on(folder.path(), "dry-run", &["--policy", "2026-11"])));
    assert!(text.contains("would be served"), "{text}");
}

#[test]
fn certificates_that_the_policy_does_not_allow_are_named_once() {
    let folder = mixed();
    let output = run(&mut on(folder.path(), "dry-run", &["--policy", "cnsa2-2026-11"]));
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("does not allow the certificates there (ecdsa-p256)"), "{text}");
    assert!(stderr(&output).contains("--certificates ml-dsa-87"), "{}", stderr(&output));
    let more = ["--policy", "cnsa2-2026-11", "--certificates", "ml-dsa-87"];
    let text = stdout(&run(&mut on(folder.path(), "dry-run", &more)));
    assert!(!text.contains("does not allow"), "{text}");
}

#[test]
fn clients_with_unsupported_groups_are_not_said_to_have_none() {
    let folder = made_up([(offering(&[0x0200]), Outcome::Refused(Refusal::Group))]);
    let output = run(&mut on(folder.path(), "laggards", &[]));
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(
        stderr(&output),
        "found: 1 client only offers post-quantum groups that are not supported here\n"
    );
    let output = run(&mut on(folder.path(), "dry-run", &["--mode", "require", "--wide"]));
    assert!(stdout(&output).contains("post-quantum groups are not supported here"));
    assert!(!stdout(&output).contains("has no post-quantum group"));
}

#[test]
fn a_report_on_nothing_does_not_pass_for_a_good_one() {
    let folder = mixed();
    let message = fail(&mut on(folder.path(), "laggards", &["--listener", "apy"]), 2);
    assert!(message.contains("--listener apy"), "{message}");
    assert!(message.contains("did you mean api?"), "{message}");
    fail(&mut on(folder.path(), "export", &["--listener", "apy"]), 2);
    let range = ["--since", "7d", "--until", "30d"];
    let message = fail(&mut on(folder.path(), "dry-run", &range), 2);
    assert!(message.contains("--since") && message.contains("--until"), "{message}");
    // A listener that had no connection in this time is known all the same.
    let range = ["--listener", "api", "--until", "1d"];
    assert!(succeed(&mut on(folder.path(), "summary", &range)).contains("no connection"));
}

#[test]
fn limits_that_leave_no_ledger_are_refused_and_removals_are_logged() {
    let folder = Folder::new();
    for (option, value) in [("--ledger-bytes", "1"), ("--ledger-days", "0")] {
        let mut command = outlast();
        command.args(["server", "--listen", "127.0.0.1:0", option, value, "--data"]);
        let message = fail(command.arg(&folder.data), 2);
        assert!(message.contains(option), "{message}");
    }
    let old = folder.data.join("ledger");
    std::fs::create_dir_all(&old).unwrap();
    // Age is counted up to the day after the last day but one with segments.
    for day in ["2020-01-01", "2021-01-01", "2021-01-02"] {
        std::fs::write(old.join(format!("{day}_4f3a9c21d0e7_0001.ndjson")), "").unwrap();
    }
    let log = folder.path("log");
    let mut command = outlast();
    command.args(["server", "--listen", "127.0.0.1:0", "--log", "info", "--ledger-days", "1"]);
    command
        .args(["--http3", "off", "--data"])
        .arg(&folder.data)
        .stderr(std::fs::File::create(&log).unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .take(4)
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it serves, and under which policy.
    assert!(lines[0].starts_with("listening on https://"), "{lines:?}");
    assert!(lines.contains(&"policy 2026-11 in mode prefer".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), &format!("ledger in {}", old.display()), "{lines:?}");
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("the ledger removed segments that are too old"), "{log}");
    assert!(!old.join("2020-01-01_4f3a9c21d0e7_0001.ndjson").exists());
}

#[test]
fn a_proxy_that_could_serve_nobody_does_not_start() {
    let folder = Folder::new();
    let now = system_clock().div_euclid(1000);
    let new =
        New { dns: &["localhost"], ..New::of("EndEntityServerAuthCertificate", "proxy", now) };
    let made = issue("ECC_NIST_P256", new, None);
    let cert = folder.write("proxy.pem", made.pem().as_bytes());
    let key = folder.write("proxy.key", made.key_pem().as_bytes());
    let mut command = outlast();
    command.args(["proxy", "--listen", "127.0.0.1:0", "--to", "http://127.0.0.1:1"]);
    command.args(["--policy", "cnsa2-2026-11", "--tls-cert-file"]).arg(&cert);
    let message = fail(command.arg("--tls-key-file").arg(&key), 1);
    assert!(message.contains("cnsa2-2026-11 allows none of the certificates"), "{message}");
    assert!(message.contains("hint: "), "{message}");
}

/// The reader may have gone away; the exit code still says how the command ended.
#[test]
fn a_full_stderr_does_not_change_the_exit_code() {
    let folder = mixed();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (verb, arguments, code) in [
        ("laggards", &[][..], 5),
        ("dry-run", &["--mode", "require"], 5),
        ("summary", &["--since", "tomorrow"], 2),
        ("summary", &["--rows", "many"], 2),
        ("summary", &["--listener", "apy"], 2),
    ] {
        let mut command = on(folder.path(), verb, arguments);
        let status = command.stderr(full()).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{verb} {arguments:?}");
    }
    let mut command = on(folder.path(), "laggards", &[]);
    assert_eq!(command.stderr(full()).stdout(full()).status().unwrap().code(), Some(5));
    // A log that cannot be written stops nothing: this one has a warning, before the connection fails.
    let now = system_clock().div_euclid(1000);
    let made = issue("ECC_NIST_P256", New::of("EndEntityClientAuthCertificate", "me", now), None);
    let (cert, key) = (folder.path().join("me.pem"), folder.path().join("me.key"));
    std::fs::write(&cert, made.pem()).unwrap();
    std::fs::write(&key, made.key_pem()).unwrap();
    let mut command = outlast();
    command.args(["forward", "--to", "https://127.0.0.1:1", "--ca-bundle"]).arg(&cert);
    command.arg("--client-cert").arg(&cert).arg("--client-key").arg(&key);
    assert_eq!(command.stderr(full()).status().unwrap().code(), Some(1));
}

#[test]
fn errors_about_files_name_the_file_that_was_asked_for() {
    let folder = mixed();
    for (verb, option) in [("summary", "--plot"), ("export", "--out")] {
        let message = fail(&mut on(folder.path(), verb, &[option, "/none/at/all"]), 1);
        assert!(message.contains("/none/at/all") && !message.contains(".tmp"), "{message}");
    }
}
