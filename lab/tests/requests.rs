//! The lab's callers of a real server: what they measure, and what happens if a process dies.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use outlast_lab::client::bursts::{self, Bursts, Idling};
use outlast_lab::client::pool::{self, Pools, Size};
use outlast_lab::client::turns::{Cycle, Mode, Slot, Turns};
use outlast_lab::client::{Caller, Work};
use outlast_lab::error::LabError;
use outlast_lab::link::Link;
use outlast_lab::live::Proof;
use outlast_lab::pinned::tied;
use outlast_lab::run::Settings;
use outlast_lab::site::Site;
use outlast_testing::PATIENCE;

fn settings() -> Settings {
    Settings {
        quick: true,
        seed: 7,
        plan: None,
        version: "test".into(),
        executable: crate::common::executable(),
    }
}

fn caller(target: usize, group: &str, sessions: bool) -> Caller {
    Caller { target, group: group.into(), sessions }
}

/// Properties that every way of calling must show: its connections, its requests, its handshake's bytes.
#[test]
fn turns_measure_what_they_say() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let mut site = Site::at(&settings, &stop, folder.path(), None, &["ecdsa-p256", "ml-dsa-65"]);
    let mode = |target, group: &str, sessions, cycle| Mode {
        caller: caller(target, group, sessions),
        cycle,
    };
    let (classical, hybrid) = ("X25519", "X25519MLKEM768");
    let modes = vec![
        mode(0, classical, false, Cycle::Requests(1)),
        mode(0, hybrid, false, Cycle::Requests(1)),
        mode(0, hybrid, true, Cycle::Requests(1)),
        mode(0, hybrid, false, Cycle::Requests(5)),
        mode(0, hybrid, false, Cycle::Kept),
        mode(0, hybrid, false, Cycle::Handshake),
        mode(1, hybrid, false, Cycle::Requests(1)),
    ];
    let turns = Turns { modes, rounds: 3, slot_us: 30_000, seed: 1 };
    let rounds: Vec<Vec<Slot>> = site.call(Work::Turns(turns)).unwrap();
    assert_eq!(rounds.len(), 3);
    for round in &rounds {
        let [classical, hybrid, resumed, five, kept, bare, ml_dsa] = round.as_slice() else {
            panic!("{} slots", round.len());
        };
        for (slot, each) in [(classical, 1), (hybrid, 1), (resumed, 1), (five, 5), (bare, 1)] {
            assert_eq!(slot.times_us.len(), slot.connections as usize * each);
            assert!(slot.connections > 0 && slot.tcp_ns > 0 && slot.tls_ns > 0);
        }
        assert!(kept.connections == 0 && !kept.times_us.is_empty());
        for slot in round {
            assert!(slot.nanos >= 30_000_000, "{slot:?}");
            let requests: u64 = slot.times_us.iter().map(|time| u64::from(*time) * 1000).sum();
            assert!(requests <= slot.nanos, "{slot:?}");
        }
        // Exactly the key shares (draft-ietf-tls-ecdhe-mlkem): 1184 and 1088 bytes; an ECDSA signature varies by a
        // few bytes.
        assert_eq!(hybrid.bytes[0], classical.bytes[0] + 1184);
        assert!((1080..1097).contains(&(hybrid.bytes[1] - classical.bytes[1])));
        assert!(resumed.bytes[1] + 500 < hybrid.bytes[1], "no certificate: {resumed:?}");
        assert!(ml_dsa.bytes[1] > hybrid.bytes[1] + 5000, "{ml_dsa:?}");
    }
    // A kept connection is faster than a new one for each request, whatever else the machine does.
    let fastest = |index: usize| {
        rounds.iter().map(|round| round[index].times_us.iter().min().copied().unwrap()).min()
    };
    assert!(fastest(4) < fastest(1));
}

#[test]
fn pools_open_no_more_than_they_may() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let mut site = Site::at(&settings, &stop, folder.path(), None, &["ecdsa-p256"]);
    let pools = [1, 2, 50]
        .map(|connections| Size { caller: caller(0, "X25519MLKEM768", false), connections });
    let pools = Pools { pools: pools.to_vec(), rate: 100.0, length_us: 500_000, seed: 3 };
    let served: Vec<pool::Served> = site.call(Work::Pools(pools)).unwrap();
    let [one, two, many] = served.as_slice() else { panic!("{served:?}") };
    assert_eq!(one.handshakes, 1);
    assert!((1..=2).contains(&two.handshakes));
    assert!((1..=50).contains(&many.handshakes));
    assert!(one.times_us.len() > 20 && one.times_us.len() == many.times_us.len());
}

#[test]
fn idle_connections_are_closed_after_their_timeout() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let mut site = Site::at(&settings, &stop, folder.path(), None, &["ecdsa-p256"]);
    let idling = |timeout_us| Idling { caller: caller(0, "X25519MLKEM768", false), timeout_us };
    let bursts = Bursts {
        pools: vec![idling(100_000), idling(5_000_000)],
        threads: 4,
        bursts: 3,
        period_us: 700_000,
        seed: 3,
    };
    let served: Vec<bursts::Served> = site.call(Work::Bursts(bursts)).unwrap();
    let [short, long] = served.as_slice() else { panic!("{served:?}") };
    // At most four new connections in each burst, against four in all. A request that arrives after another has ended
    // reuses its connection, but not that of an earlier burst if it was closed.
    assert!((3..=12).contains(&short.handshakes), "{short:?}");
    assert!((1..=4).contains(&long.handshakes), "{long:?}");
    assert!(short.bursts_us.iter().all(|burst| burst.len() == 4) && short.bursts_us.len() == 3);
}

/// Over an emulated link, where that is possible, a request takes its round trip, and the servers stay when the link
/// changes.
#[test]
fn a_link_is_between_client_and_server() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let link = |ms| Some(Link::new(Duration::from_millis(ms), 0.0));
    let mut site = Site::at(&settings, &stop, folder.path(), link(5), &["ecdsa-p256"]);
    let mode = |cycle| Mode { caller: caller(0, "X25519MLKEM768", false), cycle };
    let modes = vec![mode(Cycle::Kept), mode(Cycle::Requests(1))];
    let mut fastest = || -> Result<[u32; 2], LabError> {
        let turns = Turns { modes: modes.clone(), rounds: 2, slot_us: 50_000, seed: 1 };
        let rounds: Vec<Vec<Slot>> = site.call(Work::Turns(turns))?;
        let least = |index: usize| {
            rounds.iter().flat_map(|round| round[index].times_us.clone()).min().unwrap()
        };
        Ok([least(0), least(1)])
    };
    let measured = match fastest() {
        // Without root, or while another process emulates.
        Err(LabError::Unavailable { .. }) => return,
        other => other.unwrap(),
    };
    // TCP, TLS and the request are a round trip each. No packet comes earlier, however busy the machine is.
    let round_trip = |ms: f64, proof: Option<Proof>| ms * 1000.0 - proof.unwrap().removed_us - 10.0;
    let least = round_trip(5.0, site.proof().unwrap());
    assert!(f64::from(measured[0]) > least, "{measured:?} {least}");
    assert!(f64::from(measured[1]) > 3.0 * least, "{measured:?} {least}");
    let server = site.server(0).unwrap().child.id();
    site.over(link(20));
    let turns = Turns { modes, rounds: 1, slot_us: 50_000, seed: 1 };
    let rounds: Vec<Vec<Slot>> = site.call(Work::Turns(turns)).unwrap();
    let proof = site.proof().unwrap();
    assert!(proof.as_ref().is_some_and(|proof| proof.packets[0] > 10));
    let least = round_trip(20.0, proof);
    assert!(
        rounds[0][0].times_us.iter().all(|time| f64::from(*time) > least),
        "{rounds:?} {least}"
    );
    assert_eq!(site.server(0).unwrap().child.id(), server);
}

/// A server that dies during a measurement is blamed at once, so that its failure can be told from a client's.
#[test]
fn a_server_that_dies_is_named() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let mut site = Site::at(&settings, &stop, folder.path(), None, &["ecdsa-p256"]);
    let work = |length_us| {
        Work::Pools(Pools {
            pools: vec![Size { caller: caller(0, "X25519", false), connections: 1 }],
            rate: 50.0,
            length_us,
            seed: 3,
        })
    };
    let _: Vec<pool::Served> = site.call(work(100_000)).unwrap();
    let pid = rustix::process::Pid::from_child(&site.server(0).unwrap().child);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    let error = site.call::<Vec<pool::Served>>(work(36_000_000_000)).unwrap_err();
    killer.join().unwrap();
    let LabError::Peer { peer, reason } = &error else { panic!("{error}") };
    assert_eq!(peer, "the Outlast server");
    assert!(reason.contains("signal: 9"), "{reason}");
}

#[test]
fn a_client_that_fails_says_why() {
    let (folder, settings, stop) =
        (tempfile::tempdir().unwrap(), settings(), AtomicBool::new(false));
    let mut site = Site::at(&settings, &stop, folder.path(), None, &["ecdsa-p256"]);
    let turns = Turns {
        modes: vec![Mode { caller: caller(0, "no-such-group", false), cycle: Cycle::Kept }],
        rounds: 1,
        slot_us: 1000,
        seed: 1,
    };
    let error = site.call::<Vec<Vec<Slot>>>(Work::Turns(turns)).unwrap_err().to_string();
    assert!(error.contains("no group is named no-such-group"), "{error}");
    // The same site can be used again.
    let turns = Turns {
        modes: vec![Mode { caller: caller(0, "X25519", false), cycle: Cycle::Kept }],
        rounds: 1,
        slot_us: 1000,
        seed: 1,
    };
    assert_eq!(site.call::<Vec<Vec<Slot>>>(Work::Turns(turns)).unwrap().len(), 1);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = site.call::<Vec<String>>(Work::Keys).unwrap_err();
    assert!(matches!(stopped, LabError::Interrupted), "{stopped}");
}

/// A killed lab leaves no processes: the kernel ends those that it started.
#[test]
fn what_is_tied_ends_with_the_program_that_started_it() {
    let program = crate::common::executable();
    // The agent is told its parent, so that it refuses another process.
    let mut sleep = Command::new("sleep");
    sleep.arg("60");
    let mut stranger = tied(&program, &sleep, None).unwrap();
    let argument = stranger.get_args().last().unwrap().to_str().unwrap().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\"; exit $?", "sh"]).arg(&program).args(["agent", "exec"]);
    let refused = shell.arg(&argument).output().unwrap();
    assert!(!refused.status.success());
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("the program that measures has ended")
    );
    // A killed parent: a shell that starts the agent in its own name, and waits.
    let script = "argument=$(echo \"$2\" | sed \"s/\\\"parent\\\":[0-9]*/\\\"parent\\\":$$/\"); \
                  \"$1\" agent exec \"$argument\" & echo $!; wait";
    let mut parent = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&program)
        .arg(&argument)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let child = PathBuf::from(format!("/proc/{}/cmdline", line.trim()));
    let runs = |what: &str| std::fs::read_to_string(&child).is_ok_and(|text| text.contains(what));
    until(|| runs("sleep\0"));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until(|| !runs("sleep\0"));
    // An agent that its parent outlives is a child like any other.
    let mut child = stranger.spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it never came to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}
