//! Commits per second of each durable engine. A measurement, not a test: `cargo test --release -p outlast-store
//! --test all throughput:: -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a measurement prints")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::Postgres;
use outlast_store::{Store, Transaction};

/// Each commit reads and writes a record of its thread, and appends an event of typical size.
fn measure(name: &str, stores: &[&dyn Store], threads: usize) {
    let (count, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (store, count, stop) = (stores[thread % stores.len()], &count, &stop);
            scope.spawn(move || {
                let key = format!("{name}/{threads}/{thread}");
                while !stop.load(Ordering::Relaxed) {
                    let version = store.read(&key).unwrap().map(|record| record.version);
                    store
                        .commit_and_wait(Transaction {
                            expectations: vec![(key.clone(), version)],
                            writes: vec![(key.clone(), Some(vec![7; 300]))],
                            events: vec![vec![b'e'; 900].into()],
                            ..Transaction::default()
                        })
                        .unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(4));
        stop.store(true, Ordering::Relaxed);
    });
    let count = count.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "a figure to be printed")]
    let each_second = count as f64 / begun.elapsed().as_secs_f64();
    eprintln!("{name}, {threads} threads: {each_second:.0} commits/s");
}

#[test]
#[ignore = "a measurement of some 30 s"]
fn commits_per_second() {
    // On the build's disk, not in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("store.db")).unwrap();
    for threads in [1, 16] {
        measure("SQLite", &[&sqlite], threads);
    }
    let Some(server) = Postgres::start() else { return };
    let stores = [(); 2].map(|()| PostgresStore::open(&server.url()).unwrap());
    for threads in [1, 16] {
        measure("PostgreSQL, one process", &[&stores[0]], threads);
    }
    for threads in [2, 16] {
        measure("PostgreSQL, two processes", &[&stores[0], &stores[1]], threads);
    }
}
