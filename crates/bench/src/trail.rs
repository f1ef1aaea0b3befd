//! The audit trail as a log: time to prove one event among very many.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_domain::ids;
use outlast_harness::server::Folder;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{NewEvent, Store, Transaction};

use crate::Figure;
use crate::statistics::quantile;

/// Events that a server finds unsigned when it starts; it reads all of them first.
const PORTION: u64 = 500_000;
/// Events per transaction while the store is filled.
const TOGETHER: u64 = 10_000;
/// Milliseconds between the times of two events: ten thousand events a second.
const EVENTS_PER_MS: u64 = 10;
/// Longest time for the server to sign the head of a log that grew while it was stopped.
const SIGNING: Duration = Duration::from_secs(1800);

pub(crate) fn measure(quick: bool) -> Result<Vec<Figure>, String> {
    let (count, proofs) = if quick { (100_000, 11) } else { (10_000_000, 101) };
    let folder = crate::process::folder()?;
    let mut ids = Vec::new();
    for first in (0..count).step_by(usize::try_from(PORTION).unwrap_or(usize::MAX)) {
        let portion = first..(first + PORTION).min(count);
        let end = portion.end;
        fill(&folder.data().join("store.db"), portion, count, count / proofs, &mut ids)?;
        sign(&folder, end)?;
    }
    let mut times = Vec::new();
    let mut size = 0;
    for (number, id) in ids.iter().enumerate() {
        let file = folder.path(&format!("{number}.tlog-proof"));
        let begun = Instant::now();
        let proved = prove(&folder, &["--event", id], &file)?;
        times.push(begun.elapsed());
        if !proved {
            return Err(format!("the event {id} could not be proved"));
        }
        size = std::fs::metadata(&file).map_err(|error| error.to_string())?.len();
    }
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    Ok(vec![Figure {
        name: "outlast audit prove --event ID, one event among very many",
        value: format!("{:.1} ms", p50.as_secs_f64() * 1000.0),
        limit: "< 50 ms",
        met: p50 < Duration::from_millis(50),
        note: format!(
            "{count} events; the process from exec to its end; median of {} events from all over the log, p99 {:.1} ms; a proof has {size} bytes",
            times.len(),
            p99.as_secs_f64() * 1000.0
        ),
    }])
}

/// Appends these of `count` events to a store that no server has open; returns the ids of every `step`th.
fn fill(
    path: &Path,
    portion: Range<u64>,
    count: u64,
    step: u64,
    ids: &mut Vec<String>,
) -> Result<(), String> {
    let store = SqliteStore::open(path).map_err(|error| error.to_string())?;
    let end = outlast_net::server::system_clock();
    for first in portion.clone().step_by(usize::try_from(TOGETHER).unwrap_or(usize::MAX)) {
        let mut transaction = Transaction::default();
        for number in first..(first + TOGETHER).min(portion.end) {
            // Not later than what the server has written in the meantime.
            let before = i64::try_from((count - number) / EVENTS_PER_MS).unwrap_or(i64::MAX);
            let id = ids::event_id(end - before).map_err(|error| error.to_string())?;
            transaction.events.push(NewEvent::new(event(&id)));
            if number % step == 0 {
                ids.push(id);
            }
        }
        store.commit_and_wait(transaction).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// An event as long as that of a GenerateDataKey call.
fn event(id: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "eventVersion": "1.08",
        "userIdentity": { "type": "IAMUser", "principalId": "AIDAEXAMPLE", "arn": "arn:aws:iam::000000000000:user/admin" },
        "eventSource": "kms.amazonaws.com",
        "eventName": "GenerateDataKey",
        "awsRegion": "us-east-1",
        "sourceIPAddress": "127.0.0.1",
        "tlsDetails": { "tlsVersion": "TLSv1.3", "keyExchange": "X25519MLKEM768" },
        "eventID": id,
    });
    body.to_string().into_bytes()
}

/// Lets a server sign the whole log, and waits until the event `count` can be proved.
fn sign(folder: &Folder, count: u64) -> Result<(), String> {
    let mut server = folder.serve()?;
    let file = folder.path(&format!("{count}.tlog-proof"));
    let begun = Instant::now();
    let last = (count - 1).to_string();
    while !prove(folder, &["--index", &last], &file)? {
        server.check()?;
        if begun.elapsed() > SIGNING {
            return Err("the server did not sign the log".into());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Whether a proof could be made.
fn prove(folder: &Folder, which: &[&str], file: &Path) -> Result<bool, String> {
    let mut command: Command = crate::process::outlast()?;
    command.args(["audit", "prove"]).args(which).arg("--out").arg(file);
    command.arg("--data").arg(folder.data());
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(status.map_err(|error| error.to_string())?.success())
}
