//! The live engine of the lab: real TCP and TLS over an emulated link. Needs root and /dev/net/tun, and says so where they are missing.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use outlast_lab::error::LabError;
use outlast_lab::link::{Link, Transfer};
use outlast_lab::live::{Live, available};
use outlast_lab::run::Settings;
use outlast_lab::subject::Subject;
use outlast_lab::trace::{Side, Step, Trace};

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
    let subject = Subject::new("X25519MLKEM768", "ECDSA P-256", 2).unwrap();
    let transfer = Transfer { request: 100, body: 10000 };
    let outcomes = live.connections("rustls", &subject, transfer, 0, 20).unwrap();
    for outcome in &outcomes {
        println!("{outcome:?}");
    }
    let subject = subject.kind(outlast_lab::subject::Kind::Resumed);
    let outcomes = live.connections("rustls", &subject, transfer, 0, 5).unwrap();
    for outcome in &outcomes {
        println!("{outcome:?}");
    }
    println!("{:?}", live.proof().unwrap());
}
