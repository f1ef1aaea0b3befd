//! The ledger of a server: the records of real clients, and the reports on them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::peers::{openssl, peer};
use common::{Folder, Server, fail, outlast, run, runtime, stderr, stdout, succeed};
use outlast_api::ops::kms;
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
    let (nothing, _) = ledger("summary", &folder.data, &["--listener", "another"]);
    assert_eq!(nothing["total"]["connections"], 0);
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
