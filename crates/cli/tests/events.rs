//! Events of a running server: to a program, to a URL over TLS, to targets that hang or are gone, and through kills.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use crate::common;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use common::stub::Stub;
use common::{Folder, Server, Session, fail, outlast, runtime, succeed};
use outlast_api::ops::kms::{create_key::CreateKey, schedule_key_deletion::ScheduleKeyDeletion};
use outlast_domain::events::{By, Detail, KINDS};
use serde_json::{Value, json};

/// A program that appends each event to a file, one a line. Several run at a time: each writes its line at once.
fn appending(folder: &Folder, file: &Path) -> String {
    let script = format!("event=$(cat); printf '%s\\n' \"$event\" >> '{}'\n", file.display());
    let script = folder.write("append.sh", script.as_bytes());
    format!("program = ['/bin/sh', '{}']", script.display())
}

fn configure(folder: &Folder, targets: &str) {
    std::fs::write(folder.data.join("outlast.toml"), targets).unwrap();
}

/// The events in a file.
fn read(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The last line may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Makes a key and schedules its deletion: the key's id. `None` if the server was killed meanwhile.
async fn schedule(session: &mut Session) -> Option<String> {
    let made = session.call::<CreateKey>(json!({})).await.ok()?.ok()?;
    let id = made.key_metadata.key_id;
    session.call::<ScheduleKeyDeletion>(json!({ "KeyId": id })).await.ok()?.ok()?;
    Some(id)
}

fn scheduled(server: &Server, number: usize) -> BTreeSet<String> {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let mut ids = BTreeSet::new();
        for _ in 0..number {
            ids.insert(schedule(&mut session).await.unwrap());
        }
        ids
    })
}

/// Ids of the keys that are pending deletion, by what a target got.
fn keys(events: &[Value]) -> BTreeSet<String> {
    let pending = events.iter().filter(|event| event["detail-type"] == "KMS CMK Pending Deletion");
    pending.map(|event| event["detail"]["key-id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_program_gets_events_while_other_targets_hang_or_are_gone() {
    let folder = Folder::new();
    let file = folder.path("events");
    // The program that hangs ends with the server, even if a failed test kills it. Nobody accepts what connects to one URL, and
    // nobody listens at the other.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    configure(
        &folder,
        &format!(
            "[events.targets.file]\n{}\n\
             [events.targets.hanging]\nprogram = ['/bin/sh', '-c', 'while kill -0 $PPID; do sleep 1; done']\n\
             timeout_seconds = 300\n\
             [events.targets.silent]\nurl = 'http://{}/'\ntimeout_seconds = 300\n\
             [events.targets.gone]\nurl = 'http://{gone}/'\n\
             [events.targets.others]\nprogram = ['/bin/false']\nsources = ['aws.acm']\n",
            appending(&folder, &file),
            silent.local_addr().unwrap(),
        ),
    );
    let (mut server, log) =
        Server::start_logged(&folder.data, &["--metrics-listen", "127.0.0.1:0"]);
    // More than the hanging ones take at a time.
    let ids = scheduled(&server, 12);
    outlast_testing::until("all events are delivered", || keys(&read(&file)) == ids);
    let events = read(&file);
    let event = &events[0];
    assert_eq!((&event["version"], &event["source"]), (&json!("0"), &json!("aws.kms")));
    assert_eq!(
        (&event["region"], &event["account"]),
        (&json!("us-east-1"), &json!("123456789012"))
    );
    log.until("an event could not be delivered", 0);
    assert!(log.count("target_name=\"gone\"") > 0);
    assert_eq!(log.count("target_name=\"others\"") + log.count("target_name=\"file\""), 0);
    // The server does not wait for programs that hang.
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed().as_secs() < 250);
    // What was not delivered is still there for the next one.
    let left = succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    assert!(!left.contains("events/"), "{left}");
}

/// What an HTTPS target has received: the header with the token, and the body.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

fn target(received: &Received) -> Stub {
    let received = received.clone();
    Stub::new(Box::new(move |head, body| {
        let token = head.headers["authorization"].to_str().unwrap().to_owned();
        let event = serde_json::from_slice(body).unwrap();
        assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/a/b"));
        let mut received = received.lock().unwrap();
        received.push((token, event));
        // The first one is refused, and repeated with the same id.
        let status = if received.len() == 1 { 503 } else { 204 };
        Some((status, Vec::new(), String::new()))
    }))
}

#[test]
fn a_url_gets_events_over_tls_and_again_after_a_failure() {
    let received = Received::default();
    let stub = target(&received);
    let folder = Folder::new();
    folder.write("data/token", b"a-token-of-the-test\n");
    std::fs::copy(stub.path("ca.pem"), folder.data.join("target-ca.pem")).unwrap();
    configure(
        &folder,
        &format!(
            "[events.targets.pager]\nurl = 'https://localhost:{}/a/b'\nca_bundle = 'target-ca.pem'\n\
             bearer_token_file = 'token'\ndetail_types = ['KMS CMK Pending Deletion']\n",
            stub.port
        ),
    );
    let (server, log) = Server::start_logged(&folder.data, &[]);
    let ids = scheduled(&server, 1);
    outlast_testing::until("it is delivered again", || received.lock().unwrap().len() == 2);
    let received = received.lock().unwrap();
    assert_eq!(received[0], received[1]);
    assert_eq!(received[0].0, "Bearer a-token-of-the-test");
    assert_eq!(keys(&[received[0].1.clone()]), ids);
    log.until("the target answered 503", 0);
    assert_eq!(log.count("a-token-of-the-test"), 0);
}

/// `OUTLAST_EVENT_KILLS` sets the number of kills.
#[test]
fn kills_lose_no_event() {
    let kills: u64 = std::env::var("OUTLAST_EVENT_KILLS").map_or(8, |text| text.parse().unwrap());
    let folder = Folder::new();
    let file = folder.path("events");
    configure(&folder, &format!("[events.targets.file]\n{}\n", appending(&folder, &file)));
    let mut acknowledged = BTreeSet::new();
    for kill in 0..kills {
        let mut server = folder.serve();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        runtime().block_on(async {
            let mut session = server.session().await.unwrap();
            let keys = seen.clone();
            let writing = tokio::spawn(async move {
                while let Some(id) = schedule(&mut session).await {
                    keys.lock().unwrap().insert(id);
                }
            });
            // Between any two steps of the deliveries: each kill after another number of writes.
            let enough = 3 + usize::try_from(kill * 7 % 19).unwrap();
            outlast_testing::until("keys are scheduled", || seen.lock().unwrap().len() >= enough);
            server.kill();
            writing.await.unwrap();
        });
        acknowledged.extend(seen.lock().unwrap().clone());
    }
    let server = folder.serve();
    outlast_testing::until("every event is delivered", || {
        acknowledged.is_subset(&keys(&read(&file)))
    });
    // At least once: the same event has the same id.
    let events = read(&file);
    let ids: BTreeSet<_> = events.iter().map(|event| event["id"].to_string()).collect();
    let pending = events.iter().filter(|event| event["detail-type"] == "KMS CMK Pending Deletion");
    assert_eq!(ids.len(), keys(&events).len());
    println!("{kills} kills, {} keys, {} deliveries", acknowledged.len(), pending.count());
    drop(server);
}

#[test]
fn targets_are_tried_without_a_server() {
    let folder = Folder::new();
    let file = folder.path("events");
    let tries = |more: &[&str]| {
        let mut command = outlast();
        command.args(["events", "test", "--data"]).arg(&folder.data).args(more);
        command
    };
    let said = fail(&mut tries(&[]), 1);
    assert!(said.contains("names no target") && said.contains("hint:"), "{said}");
    configure(
        &folder,
        &format!(
            "[events.targets.file]\n{}\nsources = ['aws.kms']\n\
             [events.targets.broken]\nprogram = ['/bin/sh', '-c', 'echo no >&2; exit 3']\n",
            appending(&folder, &file),
        ),
    );
    let said = fail(&mut tries(&[]), 1);
    assert!(said.contains("not delivered: broken") && said.contains("hint:"), "{said}");
    let shown = succeed(&mut tries(&["--target", "file", "--output", "json"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["targets"][0]["isDelivered"], true);
    let events = read(&file);
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["id"], shown["targets"][0]["id"]);
    assert_eq!(
        (&events[1]["account"], &events[1]["source"]),
        (&json!("000000000000"), &json!("aws.kms"))
    );
    let said = fail(&mut tries(&["--target", "pager"]), 1);
    assert!(said.contains("has no target pager"), "{said}");
    // A server refuses what it could not deliver to.
    for (target, expected) in [
        ("url = 'https://a.example/'", "ca_bundle is missing"),
        ("url = 'http://a.example/'", "plain HTTP"),
        ("program = ['a']\nsources = ['aws.kmss']", "did you mean aws.kms?"),
        ("program = ['a']\nurls = 'a'", "unknown field"),
    ] {
        configure(&folder, &format!("[events.targets.pager]\n{target}\n"));
        let said = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
        assert!(said.contains(expected) && said.contains("hint:"), "{said}");
        assert!(said.contains("outlast.toml"), "{said}");
    }
}

#[test]
fn the_page_lists_every_event() {
    let page = outlast_testing::checkout().join("docs/guide/events.md");
    let page = std::fs::read_to_string(page).unwrap();
    for kind in KINDS {
        let name = match kind.detail {
            Detail::Trail(name) => format!("{}`, `{name}", kind.detail_type),
            Detail::Facts(_) => kind.detail_type.to_owned(),
        };
        let by = if kind.by == By::Aws { "AWS" } else { "Outlast" };
        let row = format!("| `{}` | `{name}` | {} | {by} |\n", kind.source, kind.cause());
        assert!(page.contains(&row), "docs/guide/events.md needs the row\n{row}");
    }
    assert_eq!(
        page.matches("| AWS |\n").count() + page.matches("| Outlast |\n").count(),
        KINDS.len()
    );
}
