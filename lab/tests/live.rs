//! The lab's live engine: real TCP and TLS over an emulated link. Needs root and /dev/net/tun; says so if they are
//! missing.
//!
//! Only one emulation runs at a time on a machine: each test waits for its turn.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlast_lab::error::LabError;
use outlast_lab::link::{Link, Outcome, Transfer};
use outlast_lab::live::{Foreign, Live, Lost, available};
use outlast_lab::run::Settings;
use outlast_lab::subject::{Kind, Subject};
use outlast_lab::tls::chain;
use outlast_lab::trace::{Side, Step, Trace};
use outlast_testing::PATIENCE;

static GO_ON: AtomicBool = AtomicBool::new(false);
const NOTHING: Transfer = Transfer { request: 0, body: 0 };

fn settings() -> Settings {
    Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: "test".into(),
        executable: crate::common::executable(),
    }
}

/// The turn of a test; `None` if this machine does not support it.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    if let Err(error) = available() {
        let may = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
        assert!(
            !may || std::env::var_os("OUTLAST_REQUIRE_PEERS").is_none(),
            "root with /dev/net/tun, and yet: {error}"
        );
        outlast_testing::skip(error);
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// An emulation, after other programs' have ended.
fn open_with(link: &Link, seed: u64, stop: &'static AtomicBool) -> Live<'static> {
    let until = Instant::now() + Duration::from_secs(300);
    loop {
        match Live::open(&settings(), link, seed, stop) {
            Ok(live) => return live,
            Err(error) if is_busy(&error) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn open(link: &Link, seed: u64) -> Live<'static> {
    open_with(link, seed, &GO_ON)
}

fn is_busy(error: &LabError) -> bool {
    error.to_string().contains("another emulation is running")
}

fn milliseconds(rtt: u64) -> Duration {
    Duration::from_millis(rtt)
}

/// A handshake with so many bytes, without computation.
fn trace(client: u32, server: u32, finished: u32) -> Trace {
    let step = |from, bytes| Step { from, bytes, cpu_ns: 0 };
    Trace {
        steps: vec![
            step(Side::Client, client),
            step(Side::Server, server),
            step(Side::Client, finished),
        ],
        client_done: 2,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

/// Bounds are generous: other programs may run on this machine.
#[test]
fn times_are_those_of_the_link() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(20), 0.0), 1);
    let transfer = Transfer { request: 100, body: 1000 };
    let outcomes = live.play(&trace(1500, 6000, 80), transfer, 0, 15).unwrap();
    assert_eq!(outcomes.len(), 15);
    let least = |time: fn(&Outcome) -> u64| outcomes.iter().map(time).min().unwrap() / 100_000;
    // Tenths of a millisecond: one, two and three round trips.
    assert!((190..240).contains(&least(|one| one.connected_ns)), "{outcomes:?}");
    assert!((390..450).contains(&least(|one| one.handshake_ns)), "{outcomes:?}");
    assert!((590..660).contains(&least(|one| one.first_byte_ns)), "{outcomes:?}");
    for one in &outcomes {
        assert!(one.first_byte_ns <= one.last_byte_ns);
        assert!(one.handshake_retransmissions <= one.retransmissions);
    }
    // A flight larger than the first window of ten segments costs one more round trip.
    let outcomes = live.play(&trace(1500, 16_000, 80), NOTHING, 0, 5).unwrap();
    let least = outcomes.iter().map(|one| one.handshake_ns).min().unwrap() / 100_000;
    assert!((590..660).contains(&least), "{outcomes:?}");
    let proof = live.proof().unwrap();
    assert!(proof.calibrated_us.abs() < 5000.0, "{proof:?}");
    assert_eq!((proof.lost, proof.dropped), ([0, 0], [0, 0]));
    let control = proof.kernel.iter().find(|(name, _)| name == "tcp_congestion_control").unwrap();
    assert_eq!(control.1, "cubic");
    assert_eq!(proof.late_counts.len(), proof.late_edges_us.len() + 1);
    assert!(proof.late_counts.iter().sum::<u64>() > 200);
}

#[test]
fn every_kind_of_handshake_of_real_tls() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(10), 0.0), 1);
    let transfer = Transfer { request: 100, body: 5000 };
    for kind in [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual] {
        let subject = Subject::new("X25519MLKEM768", "ECDSA P-256", 2).unwrap().kind(kind);
        let outcomes = live.connections("rustls", &subject, transfer, 0, 5).unwrap();
        assert_eq!(outcomes.len(), 5);
        let trips = if kind == Kind::HelloRetry { 3 } else { 2 };
        let least = outcomes.iter().map(|one| one.handshake_ns).min().unwrap() / 1_000_000;
        assert!((trips * 10 - 1..trips * 10 + 9).contains(&least), "{kind:?}: {outcomes:?}");
    }
    let subject = Subject::new("X25519", "ECDSA P-256", 2).unwrap();
    let error = live.connections("nothing", &subject, transfer, 0, 1).unwrap_err();
    assert!(error.to_string().contains("no TLS implementation named nothing"), "{error}");
}

#[test]
fn openssl_serves_at_the_far_end() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(10), 0.0), 1);
    let subject = Subject::new("X25519MLKEM768", "ML-DSA-65", 2).unwrap();
    let transfer = Transfer { request: 200, body: 3000 };
    match live.connections("openssl", &subject, transfer, 0, 5) {
        Ok(outcomes) => {
            assert_eq!(outcomes.len(), 5);
            for one in outcomes {
                assert!(one.handshake_ns < one.first_byte_ns, "{one:?}");
            }
        }
        Err(error @ LabError::Unavailable { .. }) => outlast_testing::skip(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_link_that_loses_everything_connects_nothing() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(5), 1.0), 1);
    live.set_deadline(Duration::from_secs(3));
    let error = live.play(&trace(1500, 6000, 80), NOTHING, 0, 3).unwrap_err();
    assert!(matches!(error, LabError::Peer { .. }), "{error:?}");
    assert!(error.to_string().contains("no TCP connection within 3 s"), "{error}");
    let proof = live.proof().unwrap();
    assert!(proof.packets[0] >= 3 && proof.lost[0] == proof.packets[0], "{proof:?}");
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(2), 0.1), 7);
    let trace = trace(1500, 6000, 80);
    // First transmissions do not depend on any timeout; retransmissions, and when they come, may.
    let firsts = |live: &mut Live<'_>, first: u64| -> Vec<Vec<Lost>> {
        let outcomes = live.play_watched(&trace, NOTHING, first, 25).unwrap();
        for (outcome, flow) in &outcomes {
            assert!(usize::from(outcome.retransmissions) <= flow.resent_ns.len());
            assert!(flow.packets[0] >= 4 && flow.packets[1] >= 3, "{flow:?}");
        }
        outcomes
            .into_iter()
            .map(|(_, flow)| {
                let mut lost = flow.lost;
                lost.retain(|one| one.retransmission == 0);
                // A packet after the last byte may or may not be seen.
                lost.retain(|one| one.packet < 4);
                lost.sort_by_key(|one| (one.from == Side::Server, one.packet));
                lost
            })
            .collect()
    };
    let one = firsts(&mut live, 0);
    assert_eq!(one, firsts(&mut live, 0));
    assert_ne!(one, firsts(&mut live, 1000));
    live.set_link(&Link::new(milliseconds(2), 0.1), 8).unwrap();
    assert_ne!(one, firsts(&mut live, 0));
    // Only packets that were to be lost are lost.
    let lost: usize = one.iter().map(Vec::len).sum();
    assert!((5..50).contains(&lost), "{lost} of about 200");
}

#[test]
fn a_bottleneck_has_its_rate_and_its_queue() {
    let Some(_turn) = turn() else { return };
    let wide = Link::new(milliseconds(10), 0.0);
    let narrow = Link { rate_bps: Some(8_000_000), queue_packets: 5, ..wide };
    let mut live = open(&narrow, 1);
    let transfer = Transfer { request: 100, body: 200_000 };
    let time = |live: &mut Live<'_>| {
        let outcome = live.play(&trace(1500, 6000, 80), transfer, 0, 1).unwrap()[0];
        outcome.last_byte_ns / 1_000_000
    };
    // 200 kB are 1.6 million bits: 200 ms at 8 Mbit/s.
    let took = time(&mut live);
    assert!(took > 220, "{took} ms");
    assert!(live.proof().unwrap().dropped[1] > 0);
    live.set_link(&Link { queue_packets: 1000, ..narrow }, 1).unwrap();
    let took = time(&mut live);
    assert!((220..600).contains(&took), "{took} ms");
    assert_eq!(live.proof().unwrap().dropped, [0, 0]);
    live.set_link(&wide, 1).unwrap();
    assert!(time(&mut live) < 200);
}

#[test]
fn jitter_spreads_times_and_keeps_order() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link { jitter_us: 5000, ..Link::new(milliseconds(40), 0.0) }, 1);
    let outcomes = live.play(&trace(1500, 12_000, 80), NOTHING, 0, 15).unwrap();
    let times: Vec<u64> = outcomes.iter().map(|one| one.connected_ns / 1_000_000).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    // Two draws of 5 ms each: about 24 ms between the ends of fifteen.
    assert!(most - least > 8, "{times:?}");
    // Packets out of order would look lost to TCP.
    let again: u32 = outcomes.iter().map(|one| u32::from(one.retransmissions)).sum();
    assert!(again <= 2, "{outcomes:?}");
}

#[test]
fn any_command_runs_at_an_end() {
    let Some(_turn) = turn() else { return };
    let before = fs::read_to_string(ALLOWED).unwrap();
    let live = open(&Link::new(milliseconds(10), 0.0), 1);
    for (side, device) in [(Side::Client, "outlast-lab-c"), (Side::Server, "outlast-lab-s")] {
        let mut command = Command::new("sh");
        command.args(["-c", "cat /proc/self/net/dev; echo $GIVEN; pwd"]).env("GIVEN", "given");
        command.current_dir("/");
        let output = live.at(side, &command).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(device) && said.contains(" lo:"), "{said}");
        assert!(said.ends_with("given\n/\n"), "{said}");
    }
    let missing = live.at(Side::Server, &Command::new("/nonexistent/program")).output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(said.contains("/nonexistent/program"), "{said}");
    // The initial namespace is as it was.
    assert_eq!(fs::read_to_string(ALLOWED).unwrap(), before);
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("outlast-lab"));
}

const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

#[test]
fn a_second_emulation_waits_for_its_turn() {
    let Some(_turn) = turn() else { return };
    let link = Link::new(milliseconds(5), 0.0);
    let live = open(&link, 1);
    let error = Live::open(&settings(), &link, 1, &GO_ON).err().unwrap();
    let expected = format!("another emulation is running (process {})", std::process::id());
    assert!(error.to_string().contains(&expected), "{error}");
    drop(live);
    drop(open(&link, 1));
}

#[test]
fn a_peer_that_dies_is_told_and_replaced() {
    let Some(_turn) = turn() else { return };
    let mut live = open(&Link::new(milliseconds(200), 0.0), 1);
    let trace = trace(1500, 6000, 80);
    live.play(&trace, NOTHING, 0, 1).unwrap();
    let victim = children("live-ends").pop().unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(milliseconds(600));
        assert!(Command::new("kill").args(["-9", &victim]).status().unwrap().success());
    });
    // Without the other end these would go on for hours.
    let error = live.play(&trace, NOTHING, 0, 100_000).unwrap_err();
    killer.join().unwrap();
    assert!(matches!(error, LabError::Peer { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("the ends of the emulated link") && said.contains("signal: 9"), "{said}");
    // The next one starts again.
    assert_eq!(live.play(&trace, NOTHING, 0, 1).unwrap().len(), 1);

    // A foreign server that does not exist.
    let subject = Subject::new("X25519", "ECDSA P-256", 2).unwrap();
    let server = Foreign {
        address: live.server_address(4000),
        name: "localhost".into(),
        roots: vec![chain::server(subject.authentication, 2).unwrap().root.clone()],
        path: None,
    };
    assert!(live.wait_for(server.address, milliseconds(300)).is_err());
    let error = live.connections_to(&server, &subject, NOTHING, 0, 1).unwrap_err().to_string();
    assert!(error.contains("10.0.0.1:4000") && error.contains("refused"), "{error}");
}

#[test]
fn a_long_run_ends_promptly() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let Some(_turn) = turn() else { return };
    let mut live = open_with(&Link::new(milliseconds(300), 0.0), 1, &STOP);
    std::thread::spawn(|| {
        std::thread::sleep(milliseconds(1000));
        STOP.store(true, Ordering::Relaxed);
    });
    // These would go on for hours.
    let error = live.play(&trace(1500, 6000, 80), NOTHING, 0, 100_000).unwrap_err();
    assert!(matches!(error, LabError::Interrupted), "{error:?}");
    drop(live);
}

/// Not a test by itself: the process that [`nothing_is_left_after_a_kill`] kills.
#[test]
fn holds_an_emulation_if_asked() {
    if std::env::var_os("OUTLAST_TEST_HOLD").is_none() {
        return;
    }
    let mut live = open(&Link::new(milliseconds(5), 0.0), 1);
    live.play(&trace(1500, 6000, 80), NOTHING, 0, 1).unwrap();
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    let mut child = live.at(Side::Server, &sleep).spawn().unwrap();
    println!("holding");
    child.wait().unwrap();
}

#[test]
fn nothing_is_left_after_a_kill() {
    let Some(_turn) = turn() else { return };
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["live::holds_an_emulation_if_asked", "--exact", "--nocapture"])
        .env("OUTLAST_TEST_HOLD", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(holder.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("holding") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the holder ended");
    }
    let token = format!("OUTLAST_LAB_EMULATION={}-", holder.id());
    // While a program replaces another, its environment cannot be read.
    let begun = Instant::now();
    while with_environment(&token).len() < 2 {
        assert!(begun.elapsed() < PATIENCE, "the emulation's processes are not there");
        std::thread::sleep(Duration::from_millis(10));
    }
    let link = Link::new(milliseconds(5), 0.0);
    assert!(is_busy(&Live::open(&settings(), &link, 1, &GO_ON).err().unwrap()));
    holder.kill().unwrap();
    holder.wait().unwrap();
    // The processes hold namespaces and devices: with the last one they are gone.
    let until = Instant::now() + PATIENCE;
    while !with_environment(&token).is_empty() {
        assert!(Instant::now() < until, "{:?} are left", with_environment(&token));
        std::thread::sleep(milliseconds(50));
    }
    let mut live = open(&link, 1);
    assert_eq!(live.play(&trace(1500, 6000, 80), NOTHING, 0, 2).unwrap().len(), 2);
}

/// What the kernel cannot end, such as a server that a user's script has detached, the next start ends.
#[test]
fn the_next_start_sweeps_what_a_dead_emulation_left() {
    let Some(_turn) = turn() else { return };
    drop(open(&Link::new(milliseconds(5), 0.0), 1));
    let mut orphan =
        Command::new("sleep").arg("600").env("OUTLAST_LAB_EMULATION", "1-left").spawn().unwrap();
    let mut other =
        Command::new("sleep").arg("600").env("OUTLAST_LAB_EMULATION", "1-other").spawn().unwrap();
    let allowed = fs::read_to_string(ALLOWED).unwrap();
    let left =
        r#"{"pid":1,"token":"1-left","allowed_before":""#.to_owned() + allowed.trim() + "\"}";
    fs::write("/run/outlast-lab.lock", left).unwrap();
    drop(open(&Link::new(milliseconds(5), 0.0), 1));
    let status = orphan.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    // Only its own.
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(fs::read_to_string(ALLOWED).unwrap(), allowed);
}

/// The promises of `outlast lab selftest`, in their short form.
#[test]
#[ignore = "measures for a minute, and wants a machine that does nothing else: outlast lab selftest"]
fn the_promises_of_the_link_hold() {
    let Some(_turn) = turn() else { return };
    for check in outlast_lab::live::selftest::CHECKS {
        for one in (check.run)(&settings(), true, &GO_ON).unwrap() {
            println!("{}: {} (limit: {}) {:?}", check.name, one.measured, one.limit, one.met);
        }
    }
}

/// Child processes with this word in their command line.
fn children(word: &str) -> Vec<String> {
    let parent = format!("PPid:\t{}\n", std::process::id());
    processes(|pid| {
        fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains(&parent))
            && fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|text| text.contains(word))
    })
}

/// Processes with this in their environment.
fn with_environment(text: &str) -> Vec<String> {
    processes(|pid| {
        let mut environment = Vec::new();
        fs::File::open(format!("/proc/{pid}/environ"))
            .and_then(|mut file| file.read_to_end(&mut environment))
            .is_ok_and(|_| String::from_utf8_lossy(&environment).contains(text))
    })
}

fn processes(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && wanted(name))
        .collect()
}
