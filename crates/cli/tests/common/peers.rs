//! The peers, and their output.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

pub use outlast_testing::{checkout, peer};

pub fn openssl(peer: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(peer.join("bin/openssl"));
    command.args(arguments);
    command
}

pub fn java(peer: &Path, class: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("java");
    command.arg("-cp").arg(format!("{0}/classes:{0}/lib/*", peer.display()));
    command.arg(class).args(arguments);
    command
}

/// Tests of one program run at the same time, and write the page in turns.
static PAGE: Mutex<()> = Mutex::new(());

/// Compares the table between two marks of `docs/interop.md` with what was found; with `OUTLAST_BLESS` set, writes it.
#[track_caller]
pub fn hold_table(begin: &str, end: &str, table: &str) {
    let _turn = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = checkout().join("docs/interop.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let found = format!("{before}{begin}\n{table}{end}{after}");
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    assert!(found == text, "docs/interop.md is stale: run the test with OUTLAST_BLESS=1\n{table}");
}

/// A program of `tests/interop/pki`, which verifies certificates, CRLs and OCSP responses with another
/// implementation.
pub struct Verifier {
    pub name: &'static str,
    start: Vec<OsString>,
}

/// A verifier's verdict on one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// Valid, except that the certificate is revoked.
    Revoked,
    Refused(String),
}

/// OpenSSL, Go, the JDK and BouncyCastle, if they are all installed.
pub fn verifiers() -> Option<Vec<Verifier>> {
    let (openssl, go, jdk) = (peer("openssl")?, peer("go127")?, peer("jdk")?);
    let script = checkout().join("tests/interop/pki/openssl.sh");
    let classes = format!("{0}/classes:{0}/lib/*", jdk.display());
    let jvm = |verifier: &str| {
        let java = jdk.join("bin/java").into_os_string();
        [java, "-cp".into(), classes.clone().into(), "outlast.pki.Check".into(), verifier.into()]
            .to_vec()
    };
    Some(vec![
        Verifier {
            name: "OpenSSL",
            start: vec![script.into(), openssl.join("bin/openssl").into()],
        },
        Verifier { name: "Go", start: vec![go.join("bin/pki-check").into()] },
        Verifier { name: "JDK", start: jvm("jdk") },
        Verifier { name: "BouncyCastle", start: jvm("bouncycastle") },
    ])
}

impl Verifier {
    /// Its verdicts on a folder, one for each step, in order.
    pub fn verdicts(&self, folder: &Path, steps: &[&str]) -> Vec<Verdict> {
        let mut command = Command::new(&self.start[0]);
        command.args(&self.start[1..]).arg(folder).args(steps);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<_> = text.lines().collect();
        let said = || format!("{}: {text}{}", self.name, String::from_utf8_lossy(&output.stderr));
        assert_eq!(lines.len(), steps.len() + 1, "{}", said());
        steps
            .iter()
            .zip(lines)
            .map(|(step, line)| match line.split_once(' ') {
                Some(("ok", name)) if name == *step => Verdict::Accepted,
                Some(("FAIL", rest)) => match rest.split_once(' ') {
                    Some((name, "revoked")) if name == *step => Verdict::Revoked,
                    Some((name, reason)) if name == *step => Verdict::Refused(reason.to_owned()),
                    _ => panic!("{}", said()),
                },
                _ => panic!("{}", said()),
            })
            .collect()
    }
}
