//! The lab's QUIC: virtual time repeats across processes, and a real client reaches the real endpoint.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use outlast_lab::link::Link;
use outlast_lab::quic::client::{Client, endpoint, listens};
use outlast_lab::quic::{in_another_process, in_virtual_time, selftest};
use outlast_lab::run::Settings;
use outlast_lab::subject::{Kind, Subject};
use outlast_testing::PATIENCE;

fn program() -> PathBuf {
    crate::common::executable()
}

fn subject(group: &str, signature: &str) -> Subject {
    Subject::new(group, signature, 2).unwrap()
}

#[test]
fn handshake_traces_are_reproducible_across_processes() {
    let link = Link::new(Duration::from_millis(20), 0.05);
    for kind in [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual] {
        for signature in ["ECDSA P-256", "ML-DSA-44"] {
            let subject = subject("X25519MLKEM768", signature).kind(kind);
            let here = in_virtual_time(&subject, &link, 11, 40).unwrap();
            let there =
                in_another_process(&program(), &subject, &link, 11, 40, &AtomicBool::new(false))
                    .unwrap();
            assert!(here.outcomes.iter().any(|outcome| outcome.lost != [0; 2]));
            assert_eq!(here, there, "{}", subject.name());
        }
    }
}

#[test]
fn what_is_promised_of_virtual_time_holds() {
    let settings = Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: String::new(),
        executable: program(),
    };
    for check in selftest::CHECKS {
        for checked in (check.run)(&settings, true, &AtomicBool::new(false)).unwrap() {
            assert_eq!(checked.met, Some(true), "{}: {checked:?}", check.name);
        }
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path, subject: &Subject) -> (Server, std::net::SocketAddr) {
    let address = outlast_lab::pinned::free_address().unwrap();
    let mut command = endpoint(
        &outlast_lab::agent::Programs::beside(&program()).service,
        folder,
        subject,
        address,
    )
    .unwrap();
    let server = Server(command.stdout(std::process::Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while !listens(address.port()) {
        assert!(begun.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    (server, address)
}

#[test]
fn every_subject_reaches_the_echo_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    for signature in ["ECDSA P-256", "ML-DSA-44", "ML-DSA-65"] {
        let (_server, address) = serve(folder.path(), &subject("x25519", signature));
        for group in ["x25519", "X25519MLKEM768"] {
            let client = Client::new(&subject(group, signature)).unwrap();
            for fresh in [false, true] {
                let done = client.connect(address, 3, fresh, &never).unwrap();
                assert_eq!((done.times.len(), done.failed), (3, 0), "{group}, {signature}");
                assert!(
                    done.times.iter().all(|[handshake, echo]| 0 < *handshake && handshake < echo)
                );
                assert!(done.cpu_ns > 0 && done.wall_ns > done.cpu_ns / 2);
            }
        }
        // Another chain is not trusted.
        let stranger = Client::new(&subject("x25519", "ECDSA P-384")).unwrap();
        assert!(stranger.connect(address, 1, false, &never).is_err());
    }
    // A run that is told to stop stops.
    let (_server, address) = serve(folder.path(), &subject("x25519", "ECDSA P-256"));
    let client = Client::new(&subject("x25519", "ECDSA P-256")).unwrap();
    assert!(client.connect(address, 3, false, &AtomicBool::new(true)).is_err());
}
