//! s2n-tls as a client: its security policies by name, and the offer of each.

use std::sync::Arc;

use outlast_crypto::versions::Version;
use outlast_negotiate::Transport;
use serde_json::json;

use crate::common::peers::peer;
use crate::endpoints::clients::{ALL_SUITES, CLASSICAL_SCHEMES, Program, TLS13_SUITES};
use crate::endpoints::matrix::{Stack, Tally};
use crate::endpoints::world::World;
use crate::endpoints::{BOTH, Case, listeners};

const NAME: &str = "s2n-tls 0.3.47, TCP";

/// s2n-tls, if it is installed.
pub fn s2n() -> Option<Program> {
    Some(Program::new(peer("s2n")?.join("bin/s2n-peer"), &["client"]))
}

/// A policy of s2n-tls 0.3.47.
#[derive(Debug, Clone, Copy)]
struct Policy {
    name: &'static str,
    versions: &'static [Version],
    groups: &'static [&'static str],
    shares: &'static [&'static str],
    suites: &'static [&'static str],
    schemes: &'static [&'static str],
}

const NEWEST: &[Version] = &[Version::Tls13];
const OLD: &[Version] = &[Version::Tls12];

const PQ_SCHEMES: &[&str] = &[
    "mldsa44",
    "mldsa65",
    "mldsa87",
    "ecdsa_secp256r1_sha256",
    "ecdsa_secp384r1_sha384",
    "rsa_pss_rsae_sha256",
];

const P384_SCHEMES: &[&str] = &["ecdsa_secp384r1_sha384"];

/// Without ChaCha20 in TLS 1.2.
const AES_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
];

const FIPS_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
];

/// For servers with a key of RSA in TLS 1.2.
const RSA_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
];

const AES256_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
];

const ALL_GROUPS: &[&str] = &[
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
    "secp256r1",
    "x25519",
    "secp384r1",
    "secp521r1",
];

const CRT_GROUPS: &[&str] = &[
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
    "MLKEM1024",
    "secp256r1",
    "x25519",
    "secp384r1",
];

const POLICIES: &[Policy] = &[
    Policy {
        name: "default",
        versions: BOTH,
        groups: ALL_GROUPS,
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: AES_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "default_tls13",
        versions: BOTH,
        groups: &["secp256r1", "x25519", "secp384r1", "secp521r1"],
        shares: &["secp256r1"],
        suites: ALL_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "default_fips",
        versions: BOTH,
        groups: &[
            "X25519MLKEM768",
            "SecP256r1MLKEM768",
            "SecP384r1MLKEM1024",
            "secp256r1",
            "secp384r1",
            "secp521r1",
        ],
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: FIPS_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "default_pq",
        versions: BOTH,
        groups: ALL_GROUPS,
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: ALL_SUITES,
        schemes: PQ_SCHEMES,
    },
    Policy {
        name: "test_pq_only",
        versions: NEWEST,
        groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024", "MLKEM1024"],
        shares: &["X25519MLKEM768"],
        suites: TLS13_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "cnsa_2",
        versions: NEWEST,
        groups: &["MLKEM1024"],
        shares: &["MLKEM1024"],
        suites: &["TLS_AES_256_GCM_SHA384"],
        schemes: &["mldsa87"],
    },
    Policy {
        name: "cnsa_1_2_interop",
        versions: BOTH,
        groups: &["MLKEM1024", "secp384r1"],
        shares: &["MLKEM1024", "secp384r1"],
        suites: AES256_SUITES,
        schemes: &["mldsa87", "ecdsa_secp384r1_sha384"],
    },
    Policy {
        name: "rfc9151",
        versions: BOTH,
        groups: &["secp384r1"],
        shares: &["secp384r1"],
        suites: AES256_SUITES,
        schemes: P384_SCHEMES,
    },
    Policy {
        name: "PQ-TLS-1-2-2024-10-07",
        versions: BOTH,
        groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "x25519", "secp256r1", "secp384r1"],
        shares: &["X25519MLKEM768", "x25519"],
        suites: AES_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "AWS-CRT-SDK-TLSv1.2-2023",
        versions: BOTH,
        groups: &["secp256r1", "x25519", "secp384r1"],
        shares: &["secp256r1"],
        suites: ALL_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "AWS-CRT-SDK-TLSv1.2-2025-PQ",
        versions: BOTH,
        groups: CRT_GROUPS,
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: ALL_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "CloudFront-TLS-1-3-2025",
        versions: NEWEST,
        groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "x25519", "secp256r1", "secp384r1"],
        shares: &["X25519MLKEM768", "x25519"],
        suites: TLS13_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09",
        versions: NEWEST,
        groups: &[
            "X25519MLKEM768",
            "SecP256r1MLKEM768",
            "SecP384r1MLKEM1024",
            "secp256r1",
            "secp384r1",
            "secp521r1",
        ],
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: &["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"],
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "KMS-TLS-1-2-2023-06",
        versions: BOTH,
        groups: &["x25519", "secp256r1", "secp384r1"],
        shares: &["x25519"],
        suites: RSA_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "KMS-FIPS-TLS-1-2-2024-10",
        versions: BOTH,
        groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "secp256r1", "secp384r1", "secp521r1"],
        shares: &["X25519MLKEM768", "secp256r1"],
        suites: RSA_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    // TLS 1.2 only.
    Policy {
        name: "20240501",
        versions: OLD,
        groups: &["secp256r1", "x25519", "secp384r1", "secp521r1"],
        shares: &[],
        suites: AES_SUITES,
        schemes: CLASSICAL_SCHEMES,
    },
    Policy {
        name: "20210816",
        versions: OLD,
        groups: &["secp384r1"],
        shares: &[],
        suites: AES256_SUITES,
        schemes: P384_SCHEMES,
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn s2n_clients_get_what_the_policy_says() {
    let Some(program) = s2n() else { return };
    let world = World::new();
    let mut cases = Vec::new();
    let mut lines = Vec::new();
    for listener in listeners(&world).await {
        for policy in POLICIES {
            let stack = Stack {
                name: NAME,
                suites: policy.suites,
                schemes: policy.schemes,
                certificate_schemes: None,
            };
            let known = stack.offer(Transport::Tcp, policy.versions, policy.groups, policy.shares);
            let case = Case::new(&listener, cases.len(), known, policy.name);
            lines.push(json!({
                "address": listener.address.to_string(), "name": case.name, "ca": world.ca,
                "policy": policy.name,
            }));
            cases.push(case);
        }
    }
    // It handles one case after the other, so there are two of it.
    let program = Arc::new(program);
    let (first, second) = lines.split_at(lines.len() / 2);
    let run = |lines: &[serde_json::Value]| {
        let (program, lines) = (program.clone(), lines.to_vec());
        tokio::task::spawn_blocking(move || program.run(&lines))
    };
    let (first, second) = tokio::join!(run(first), run(second));
    let mut tally = Tally::default();
    for (case, report) in cases.iter().zip(first.unwrap().into_iter().chain(second.unwrap())) {
        tally.add(NAME, &case.label, case.judge(&report).await);
    }
    tally.settle();
}
