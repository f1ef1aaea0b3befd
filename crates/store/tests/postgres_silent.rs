//! A PostgreSQL that accepts connections but does not answer, and one that disappears just after it received a
//! COMMIT.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use outlast_store::postgres::PostgresStore;
use outlast_store::testing::{PASSWORD, Postgres};
use outlast_store::{Store, StoreError, Transaction, limits};
use outlast_testing::until;

fn put(key: &str) -> Transaction {
    Transaction { writes: vec![(key.into(), Some(vec![1]))], ..Transaction::default() }
}

#[test]
fn silent_database_holds_up_a_bounded_number_of_reads() {
    let Some(server) = Postgres::start() else { return };
    let store = PostgresStore::open(&server.url()).unwrap();
    store.commit_and_wait(put("a")).unwrap();
    for round in 1..=2 {
        server.freeze();
        let (refused, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..limits::WAITING_READS + 250 {
                scope.spawn(|| match store.read("a") {
                    Err(StoreError::Unavailable(why)) if why.contains("too many") => {
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                    Err(StoreError::Unavailable(why)) if why.contains("does not answer") => {
                        told.fetch_add(1, Ordering::SeqCst);
                    }
                    other => panic!("{other:?}"),
                });
            }
        });
        let (refused, told) = (refused.into_inner(), told.into_inner());
        println!("round {round}: {refused} refused at once, {told} told after a wait");
        assert!(refused > 0 || told > limits::WAITING_READS, "all have waited");
        // From now on nobody waits: these would take longer than any test may.
        for _ in 0..2000 {
            let error = store.read("a").unwrap_err().to_string();
            assert!(error.contains("does not answer"), "{error}");
        }
        server.thaw();
        until("reads succeed again", || store.read("a").is_ok());
        until("commits succeed again", || store.commit_and_wait(put("a")).is_ok());
    }
}

#[test]
fn clock_is_that_of_the_database() {
    let Some(server) = Postgres::shared() else { return };
    let store = PostgresStore::open_in(&server.url(), "clock").unwrap();
    let now_ms = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let (before, there, after) = (now_ms(), store.clock_ms().unwrap().unwrap(), now_ms());
    let there = u128::try_from(there).unwrap();
    // It is the same machine, and the database rounds.
    assert!((before - 1..=after + 1).contains(&there), "{before} {there} {after}");
}

/// Forwards bytes until it is told to disappear; then it cuts connections and closes new ones.
#[derive(Default)]
struct Between {
    gone: AtomicBool,
    /// Whether it disappears after forwarding a COMMIT.
    goes_at_commit: AtomicBool,
}

impl Between {
    fn start(port: u16) -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let between = Arc::new(Self::default());
        let shared = between.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if shared.gone.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let answers = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (one, other) = (shared.clone(), shared.clone());
                std::thread::spawn(move || one.carry(client, server));
                std::thread::spawn(move || other.answer(answers.0, answers.1));
            }
        });
        (between, own)
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 65536];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            let bytes = &buffer[..len];
            let is_commit = bytes.windows(7).any(|window| window == b"COMMIT\0");
            if is_commit && self.goes_at_commit.load(Ordering::SeqCst) {
                // Before the answer can pass.
                self.gone.store(true, Ordering::SeqCst);
                let _ = to.write_all(bytes);
                break;
            }
            if self.gone.load(Ordering::SeqCst) || to.write_all(bytes).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        // Bytes already written are read before the connection ends.
        let _ = to.shutdown(Shutdown::Write);
    }

    /// The way back. Reads the server's answers to the end even if the client is gone: an unread answer would reset
    /// the connection, and with it a COMMIT that the server has not read yet.
    fn answer(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 65536];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            if !self.gone.load(Ordering::SeqCst) {
                let _ = to.write_all(&buffer[..len]);
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn outcome_is_uncertain_only_after_commit_was_sent() {
    let Some(server) = Postgres::start() else { return };
    let (between, port) = Between::start(server.folder_and_port().1);
    let url = format!("postgres://outlast:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable");
    let store = PostgresStore::open(&url).unwrap();
    store.commit_and_wait(put("first")).unwrap();
    // It disappears before anything was sent: nothing happened, and that is certain.
    between.gone.store(true, Ordering::SeqCst);
    let outcome = store.commit_and_wait(put("before"));
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    between.gone.store(false, Ordering::SeqCst);
    until("it comes back", || store.commit_and_wait(put("second")).is_ok());
    // It disappears with the answer, for longer than the writer looks for the outcome.
    between.goes_at_commit.store(true, Ordering::SeqCst);
    let outcome = store.commit_and_wait(put("after"));
    assert!(matches!(outcome, Err(StoreError::Uncertain(_))), "{outcome:?}");
    println!("{}", outcome.unwrap_err());
    between.goes_at_commit.store(false, Ordering::SeqCst);
    between.gone.store(false, Ordering::SeqCst);
    until("it comes back", || store.commit_and_wait(put("third")).is_ok());
    let look = PostgresStore::open(&server.url()).unwrap();
    let there = ["before", "after"].map(|key| look.read(key).unwrap().is_some());
    assert_eq!(there, [false, true]);
}
