//! The security policies.
//!
//! A row that has been released is never changed; `tests/catalogue.rs` holds them against a snapshot.

use outlast_crypto::versions::Version;

use crate::policy::{SecurityPolicy, SshRows, TlsRows};

const NO_SSH: SshRows = SshRows { key_exchanges: &[], ciphers: &[], macs: &[], host_keys: &[] };

const SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

const SCHEMES: &[&str] = &[
    "mldsa65",
    "mldsa87",
    "mldsa44",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp256r1_sha256",
    "ecdsa_secp521r1_sha512",
    "ed25519",
    "rsa_pss_rsae_sha512",
    "rsa_pss_rsae_sha384",
    "rsa_pss_rsae_sha256",
    "rsa_pkcs1_sha512",
    "rsa_pkcs1_sha384",
    "rsa_pkcs1_sha256",
];

/// Every policy. The first is the default.
pub static POLICIES: &[SecurityPolicy] = &[
    SecurityPolicy {
        name: "2026-11",
        summary: "Hybrids first, and classical groups for clients that have nothing better.",
        sources: &["RFC 10024", "RFC 8446", "RFC 9325, sections 4.1 and 4.2"],
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "X25519MLKEM768",
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "x25519",
                "secp256r1",
                "secp384r1",
            ],
            suites: SUITES,
            handshake_schemes: SCHEMES,
            certificate_schemes: SCHEMES,
        },
        ssh: NO_SSH,
    },
    SecurityPolicy {
        name: "classical-2026-11",
        summary: "Classical groups only: the control group of measurements.",
        sources: &["RFC 8446", "RFC 9325, sections 4.1 and 4.2"],
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &["x25519", "secp256r1", "secp384r1"],
            suites: SUITES,
            handshake_schemes: SCHEMES,
            certificate_schemes: SCHEMES,
        },
        ssh: NO_SSH,
    },
];
