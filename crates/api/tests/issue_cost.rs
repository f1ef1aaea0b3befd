//! The cost of issuing without the signature: a measurement, not a check.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    clippy::disallowed_methods,
    reason = "a measurement looks at the clock and prints"
)]

use crate::common;

use std::time::{Duration, Instant};

use common::authorities::*;
use common::{Fixture, route_of};
use outlast_api::service::Step;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_65, Message};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
#[ignore = "a measurement for optimised builds: cargo test --release --test all issue_cost:: -- --ignored --nocapture"]
fn issuing_against_bare_signing() {
    let fixture = Fixture::new();
    let root = root(&fixture, ML_DSA);
    let sub = subordinate(&fixture, &root, ML_DSA, "SubordinateCACertificate_PathLen0");
    let spec = KeySpec::by_name("ML_DSA_65").unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let message = vec![7; 2500];
    for kind in ["ECC_NIST_P256", "ML_DSA_65"] {
        let (_, request) = leaf_request(kind, "leaf.example");
        let body = leaf_body(&sub, &request, "ML_DSA_65", "EndEntityCertificate").to_string();
        let signed = fixture.raw("acm-pca", "ACMPrivateCA.IssueCertificate", body.as_bytes());
        let (route, request) = (route_of(&signed), fixture.received(&signed));
        let (mut issue, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let begun = Instant::now();
            let step = fixture.service.prepare(route, &request);
            issue.push(begun.elapsed());
            assert!(matches!(step, Step::Commit(prepared) if prepared.response.status == 200));
            let begun = Instant::now();
            key.sign(&ML_DSA_65, Message::Raw(&message)).unwrap();
            bare.push(begun.elapsed());
        }
        let (issue, bare) = (median(issue), median(bare));
        println!("request of {kind}: {issue:?}, a bare signature {bare:?}");
    }
}
