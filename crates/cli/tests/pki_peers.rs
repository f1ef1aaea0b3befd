//! Chains, CRLs and OCSP responses before other verifiers: OpenSSL, Go 1.27, JDK 25, BouncyCastle and pkilint.
//! `tests/interop/pki/STEPS.md` says what each step checks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

mod common;

use std::process::Command;

use common::peers::{Verdict, checkout, peer, verifiers};
use common::succeed;

/// What a step must end with.
#[derive(Clone, Copy)]
enum Want {
    Accepted,
    Revoked,
    Refused,
}
use Want::{Accepted, Refused, Revoked};

impl Want {
    fn is(self, verdict: &Verdict) -> bool {
        match self {
            Accepted => *verdict == Verdict::Accepted,
            Revoked => *verdict == Verdict::Revoked,
            Refused => matches!(verdict, Verdict::Refused(_)),
        }
    }
}

/// The folders of `material.sh`, and what becomes of the steps chain, crl and ocsp in each.
const MATERIAL: &[(&str, [Want; 3])] = &[
    ("good", [Accepted, Accepted, Accepted]),
    ("revoked", [Accepted, Revoked, Revoked]),
    ("stale", [Accepted, Refused, Accepted]),
    ("forged", [Accepted, Refused, Refused]),
    ("stranger", [Accepted, Refused, Refused]),
    ("purpose", [Accepted, Accepted, Refused]),
    ("missing", [Accepted, Refused, Refused]),
    ("root", [Refused, Refused, Refused]),
];

/// Nobody's verdict is worth anything who would not refuse.
#[test]
fn the_verifiers_tell_good_from_bad() {
    let (Some(openssl), Some(verifiers)) = (peer("openssl"), verifiers()) else { return };
    let temporary = tempfile::tempdir().unwrap();
    for (name, algorithm, cases) in [
        ("ml-dsa", &["ML-DSA-65"][..], MATERIAL),
        ("ec", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"][..], &MATERIAL[..2]),
    ] {
        let out = temporary.path().join(name);
        let mut make = Command::new(checkout().join("tests/interop/pki/material.sh"));
        succeed(make.arg(openssl.join("bin/openssl")).arg(&out).args(algorithm));
        for (case, wanted) in cases {
            for verifier in &verifiers {
                let steps = ["chain", "crl", "ocsp"];
                let verdicts = verifier.verdicts(&out.join(case), &steps);
                for ((step, want), verdict) in steps.iter().zip(wanted).zip(verdicts) {
                    let who = verifier.name;
                    assert!(want.is(&verdict), "{name}, {case}, {step}: {who} said {verdict:?}");
                }
            }
        }
    }
}
