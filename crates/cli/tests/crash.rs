//! kill -9 at random moments of a stream of writes: nothing that was acknowledged is lost.
//!
//! `OUTLAST_CRASH_ROUNDS` sets the number of kills (25 if absent).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Folder, Session};
use outlast_api::ops::kms::{create_alias, create_key, decrypt, generate_data_key, list_aliases};
use outlast_store::Store;
use outlast_store::sqlite::SqliteStore;
use serde_json::json;

const WRITERS: usize = 6;

/// What the server said it had done.
#[derive(Default)]
struct Acknowledged {
    aliases: Mutex<BTreeSet<String>>,
    data_keys: Mutex<Vec<(String, Vec<u8>)>>,
    calls: AtomicU64,
}

fn b64(bytes: &[u8]) -> String {
    serde_json::to_value(outlast_api::wire::Blob(bytes.to_vec())).unwrap().as_str().unwrap().into()
}

/// Writes until the connection breaks.
async fn write(
    mut session: Session,
    name: String,
    key: String,
    seen: Arc<Acknowledged>,
) -> Option<()> {
    for number in 0.. {
        let made = session.call::<create_key::CreateKey>(json!({})).await.ok()?.ok()?;
        seen.calls.fetch_add(1, Ordering::SeqCst);
        let alias = format!("alias/{name}-{number}");
        let request = json!({ "AliasName": alias, "TargetKeyId": made.key_metadata.key_id });
        session.call::<create_alias::CreateAlias>(request).await.ok()?.ok()?;
        seen.aliases.lock().unwrap().insert(alias);
        seen.calls.fetch_add(1, Ordering::SeqCst);
        let request = json!({ "KeyId": key, "KeySpec": "AES_256" });
        let data_key =
            session.call::<generate_data_key::GenerateDataKey>(request).await.ok()?.ok()?;
        let pair = (b64(&data_key.ciphertext_blob.0), data_key.plaintext.0);
        seen.data_keys.lock().unwrap().push(pair);
        seen.calls.fetch_add(1, Ordering::SeqCst);
    }
    None
}

#[test]
fn nothing_acknowledged_is_lost() {
    let rounds: u64 =
        std::env::var("OUTLAST_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let mut seed: u64 = std::env::var("OUTLAST_CRASH_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()));
    println!("replay with OUTLAST_CRASH_SEED={seed} OUTLAST_CRASH_ROUNDS={rounds}");
    let folder = Folder::new();
    let runtime = common::runtime();
    let seen = Arc::new(Acknowledged::default());
    let key = runtime.block_on(async {
        let server = folder.serve();
        let mut session = server.session().await.unwrap();
        let made = session.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        seen.calls.fetch_add(1, Ordering::SeqCst);
        made.key_metadata.key_id
    });
    for round in 0..rounds {
        let mut server = folder.serve();
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for writer in 0..WRITERS {
                let session = server.session().await.unwrap();
                let name = format!("r{round}-w{writer}");
                tasks.push(tokio::spawn(write(session, name, key.clone(), seen.clone())));
            }
            // A linear congruential step is random enough for a moment to die at.
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            tokio::time::sleep(Duration::from_micros((seed >> 33) % 150_000)).await;
            server.kill();
            for task in tasks {
                let _ = task.await;
            }
        });
    }
    let server = folder.serve();
    let lost = runtime.block_on(async {
        let mut session = server.session().await.unwrap();
        let mut found = BTreeSet::new();
        let mut marker: Option<String> = None;
        loop {
            let request = json!({ "Limit": 1000, "Marker": marker });
            let page = session.call::<list_aliases::ListAliases>(request).await.unwrap().unwrap();
            found.extend(page.aliases.into_iter().map(|alias| alias.alias_name));
            marker = page.next_marker;
            if marker.is_none() {
                break;
            }
        }
        let aliases = seen.aliases.lock().unwrap().clone();
        let mut lost = aliases.difference(&found).count();
        let data_keys = seen.data_keys.lock().unwrap().clone();
        for (blob, plaintext) in data_keys {
            let request = json!({ "CiphertextBlob": blob });
            let opened = session.call::<decrypt::Decrypt>(request).await.unwrap();
            lost += usize::from(!opened.is_ok_and(|opened| opened.plaintext.0 == plaintext));
        }
        lost
    });
    drop(server);
    // Every acknowledged call has its audit event, and the events have no gaps.
    let store = SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let mut events = Vec::new();
    let mut after = 0;
    loop {
        let page = store.events(after, 5000).unwrap();
        let Some(last) = page.last() else { break };
        after = last.sequence;
        events.extend(page);
    }
    let gaps = events.windows(2).filter(|pair| pair[1].sequence != pair[0].sequence + 1).count();
    let writes = events
        .iter()
        .filter(|event| {
            let event: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
            event["errorCode"].is_null()
                && ["CreateKey", "CreateAlias", "GenerateDataKey"]
                    .contains(&event["eventName"].as_str().unwrap())
        })
        .count() as u64;
    let acknowledged = seen.calls.load(Ordering::SeqCst);
    println!(
        "writes acknowledged: {acknowledged}, kills: {rounds}, lost: {lost}, audit gaps: {gaps}"
    );
    assert!(acknowledged > rounds, "the writers did not get going");
    assert_eq!((lost, gaps), (0, 0));
    assert!(writes >= acknowledged, "{writes} audit events for {acknowledged} acknowledged calls");
}
