//! The live engine of the lab: real TCP and TLS over an emulated link. Needs root and /dev/net/tun, and says so where they are missing.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outlast_lab::link::{Link, Transfer};
use outlast_lab::live::Live;
use outlast_lab::run::Settings;
use outlast_lab::subject::{Kind, Subject};

static GO_ON: AtomicBool = AtomicBool::new(false);

fn settings() -> Settings {
    Settings {
        quick: true,
        seed: 1,
        plan: None,
        version: "test".into(),
        executable: PathBuf::from(env!("CARGO_BIN_EXE_outlast")),
    }
}

#[test]
fn trial() {
    let link = Link::new(Duration::from_millis(20), 0.01);
    let mut live = Live::open(&settings(), &link, 7, &GO_ON).unwrap();
    println!("{:?}", live.proof().unwrap());
    let transfer = Transfer { request: 100, body: 10000 };
    for stack in ["rustls", "openssl"] {
        for kind in [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual] {
            let subject = Subject::new("X25519MLKEM768", "ML-DSA-44", 2).unwrap().kind(kind);
            println!("{stack} {kind:?}");
            match live.connections(stack, &subject, transfer, 0, 6) {
                Ok(outcomes) => {
                    for outcome in &outcomes {
                        println!("{outcome:?}");
                    }
                }
                Err(error) => println!("{error}"),
            }
        }
    }
    println!("{:?}", live.proof().unwrap());
}

#[test]
fn checks() {
    for check in outlast_lab::live::selftest::CHECKS {
        let begun = std::time::Instant::now();
        match (check.run)(&settings(), true) {
            Ok(all) => {
                for one in all {
                    println!("{}: {} [{}] {}", check.name, one.measured, one.limit, one.met)
                }
            }
            Err(error) => println!("{}: {error}", check.name),
        }
        println!("   {:?}", begun.elapsed());
    }
}
