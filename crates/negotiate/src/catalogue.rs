//! The security policies.
//!
//! A released row is never changed; `tests/catalogue.rs` compares them with a snapshot. Rows with AWS's names behave
//! like AWS's policies with these names, as far as their algorithms are implemented: `differences` lists the
//! exceptions.

mod lists;
mod transfer;

use std::sync::OnceLock;

use outlast_crypto::versions::Version;

use crate::row::{Mode, SecurityPolicy, TlsRows};

/// All policies. The first is the default.
pub static POLICIES: &[SecurityPolicy] = &ROWS;

static ROWS: [SecurityPolicy; 36] = [
    SecurityPolicy {
        name: "2026-11",
        summary: "Hybrids first, and classical groups for clients without hybrids.",
        sources: &["RFC 10024", "RFC 8446", "RFC 9325, sections 4.1 and 4.2", "RFC 10042"],
        differences: &[],
        mode: Mode::Prefer,
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
            suites: lists::SUITES,
            handshake_schemes: lists::SCHEMES,
            certificate_schemes: lists::SCHEMES,
        },
        ssh: lists::SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "2026-11-require-pq",
        summary: "Hybrids only: clients without them are refused.",
        sources: &["RFC 10024", "RFC 8446", "RFC 10042"],
        differences: &["TLS 1.2 is left out: it has no post-quantum key exchange."],
        mode: Mode::Require,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"],
            suites: lists::SUITES_13,
            handshake_schemes: lists::PSS_SCHEMES,
            certificate_schemes: lists::SCHEMES,
        },
        ssh: lists::SSH_REQUIRE,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "fips-2026-11",
        summary: "What FIPS 140-3 allows: hybrids first, NIST curves for the rest.",
        sources: &[
            "SP 800-52 (revision 2), section 3",
            "SP 800-56A (revision 3), appendix D",
            "SP 800-56C (revision 2), section 2",
            "SP 800-227, section 4.6",
            "FIPS 203",
            "FIPS 204",
            "FIPS 186-5",
        ],
        differences: &[
            "X25519MLKEM768 is in, after the hybrids of NIST curves: its shared secret is that of ML-KEM, then that of \
             X25519, and SP 800-56C (revision 2, section 2) allows a secret Z || T whose first part Z is from an approved scheme, \
             whatever T is. x25519 alone is out: SP 800-56A (revision 3) does not include it.",
            "ChaCha20-Poly1305 is out: it is not an approved cipher.",
            "A policy is a list of names: whether the module is validated is stated in its certificate, not here.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "X25519MLKEM768",
                "secp256r1",
                "secp384r1",
                "secp521r1",
            ],
            suites: lists::AES_SUITES,
            handshake_schemes: lists::SCHEMES,
            certificate_schemes: lists::SCHEMES,
        },
        ssh: lists::SSH_FIPS,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "cnsa2-2026-11",
        summary: "CNSA 2.0: ML-KEM-1024, ML-DSA-87 and AES-256, with nothing classical alone.",
        sources: &[
            "draft-becker-cnsa2-tls-profile-05",
            "draft-ietf-tls-mlkem",
            "RFC 10024",
            "draft-becker-cnsa2-ssh-profile-03",
        ],
        differences: &[
            "SecP384r1MLKEM1024 is in, after MLKEM1024, for clients that support ML-KEM-1024 in no other form; the \
             profile itself names MLKEM1024 only.",
            "The server needs an ML-DSA-87 certificate: with any other it refuses every client.",
        ],
        mode: Mode::Require,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: &["MLKEM1024", "SecP384r1MLKEM1024"],
            suites: &["TLS_AES_256_GCM_SHA384"],
            handshake_schemes: &["mldsa87"],
            certificate_schemes: &["mldsa87"],
        },
        ssh: lists::SSH_CNSA2,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "bsi-2026-11",
        summary: "BSI TR-02102: hybrids of the NIST curves, then those curves, with AES-GCM.",
        sources: &[
            "BSI TR-02102-2, version 2026-01",
            "BSI TR-02102-1, version 2026-01",
            "BSI TR-02102-4, version 2026-01",
        ],
        differences: &[
            "Made from public descriptions of TR-02102 and not compared with its text: compare it before you rely on \
             this policy.",
            "X25519MLKEM768 and x25519 are out: TR-02102 recommends NIST and Brainpool curves only. Browsers without \
             another hybrid get a classical group.",
            "Left out, because they are not implemented: Brainpool curves, finite-field groups, the suites with CCM or \
             CBC, keys of the type RSA-PSS (rsa_pss_pss_*).",
            "ML-DSA is in, although TR-02102-1 requires it to be combined with a classical signature: TLS has no such \
             schemes.",
            "PKCS #1 v1.5 signs no handshakes; certificates of older roots still use it.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "secp256r1",
                "secp384r1",
                "secp521r1",
            ],
            suites: lists::AES_SUITES,
            handshake_schemes: lists::BSI_SCHEMES,
            certificate_schemes: &[
                "mldsa65",
                "mldsa87",
                "ecdsa_secp384r1_sha384",
                "ecdsa_secp256r1_sha256",
                "ecdsa_secp521r1_sha512",
                "rsa_pss_rsae_sha512",
                "rsa_pss_rsae_sha384",
                "rsa_pss_rsae_sha256",
                "rsa_pkcs1_sha512",
                "rsa_pkcs1_sha384",
                "rsa_pkcs1_sha256",
            ],
        },
        ssh: lists::SSH_BSI,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "classical-2026-11",
        summary: "Classical groups only: the control group of measurements.",
        sources: &["RFC 8446", "RFC 9325, sections 4.1 and 4.2"],
        differences: &[],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &["x25519", "secp256r1", "secp384r1"],
            suites: lists::SUITES,
            handshake_schemes: lists::SCHEMES,
            certificate_schemes: lists::SCHEMES,
        },
        ssh: lists::SSH_CLASSICAL,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "legacy-2026-11",
        summary: "All that is implemented, for the most clients; post-quantum groups first.",
        sources: &["RFC 10024", "draft-ietf-tls-mlkem", "RFC 8446", "RFC 8422"],
        differences: &[
            "TLS 1.1 and before, CBC, RSA key transport and SHA-1 are not implemented: \
             clients that need them are not served.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "X25519MLKEM768",
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "MLKEM1024",
                "MLKEM768",
                "x25519",
                "secp256r1",
                "secp384r1",
                "secp521r1",
            ],
            suites: lists::SUITES,
            handshake_schemes: lists::SCHEMES,
            certificate_schemes: lists::SCHEMES,
        },
        ssh: lists::SSH_LEGACY,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09",
        summary: "What AWS recommends for load balancers: TLS 1.3 and 1.2, forward secrecy, no \
             CBC.",
        sources: &[
            "AWS, Elastic Load Balancing, \"Security policies for your Application Load \
             Balancer\", ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09",
            "s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_elb_tls13_1_2_Res_PQ_2025_09",
        ],
        differences: &[
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: lists::AWS_GROUPS,
            suites: lists::AWS_SUITES,
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-2-PQ-2025-09",
        summary: "Of load balancers: TLS 1.3 and 1.2, forward secrecy.",
        sources: &[
            "AWS, Elastic Load Balancing, \"Security policies for your Application Load \
             Balancer\", ELBSecurityPolicy-TLS13-1-2-PQ-2025-09",
            "s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_elb_tls13_1_2_PQ_2025_09",
        ],
        differences: &[
            "Left out: the suites with CBC, which are not implemented. What is left is \
             ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09.",
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: lists::AWS_GROUPS,
            suites: lists::AWS_SUITES,
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-3-PQ-2025-09",
        summary: "Of load balancers: TLS 1.3 only.",
        sources: &[
            "AWS, Elastic Load Balancing, \"Security policies for your Application Load \
             Balancer\", ELBSecurityPolicy-TLS13-1-3-PQ-2025-09",
            "s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_elb_tls13_1_3_PQ_2025_09",
        ],
        differences: &[
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: lists::AWS_GROUPS,
            suites: &[
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
            ],
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-2-Res-FIPS-PQ-2025-09",
        summary: "What AWS recommends for load balancers under FIPS 140-3: TLS 1.3 and 1.2, no \
             CBC.",
        sources: &[
            "AWS, Elastic Load Balancing, \"Security policies for your Application Load \
             Balancer\", ELBSecurityPolicy-TLS13-1-2-Res-FIPS-PQ-2025-09",
            "s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_elb_tls13_1_2_Res_FIPS_PQ_2025_09",
        ],
        differences: &[
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: lists::AWS_FIPS_GROUPS,
            suites: lists::AWS_FIPS_SUITES,
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09",
        summary: "Of load balancers under FIPS 140-3: TLS 1.3 only.",
        sources: &[
            "AWS, Elastic Load Balancing, \"Security policies for your Application Load \
             Balancer\", ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09",
            "s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_elb_tls13_1_3_FIPS_PQ_2025_09",
        ],
        differences: &[
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: lists::AWS_FIPS_GROUPS,
            suites: &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"],
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "ELBSecurityPolicy-TLS13-1-3-CNSA2-INTEROP1-FIPS-PQ-2026-07",
        summary: "Of load balancers on the way from CNSA 1.0 to 2.0: ML-KEM-1024, or P-384 for \
             clients without it.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, security_policy_20260720"],
        differences: &[
            "Left out: rsa_pss_pss_sha384, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: &["MLKEM1024", "secp384r1"],
            suites: &["TLS_AES_256_GCM_SHA384"],
            handshake_schemes: &[
                "mldsa87",
                "ecdsa_secp384r1_sha384",
                "rsa_pss_rsae_sha384",
                "rsa_pkcs1_sha384",
            ],
            certificate_schemes: &["mldsa87", "ecdsa_secp384r1_sha384", "rsa_pkcs1_sha384"],
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "PQ-TLS-1-2-2024-10-07",
        summary: "What AWS services offered with the first ML-KEM hybrids.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, \
             security_policy_pq_tls_1_2_2024_10_07"],
        differences: &[
            "Left out: the suites with CBC and those with RSA key transport, which are not \
             implemented.",
            "Left out: signatures with SHA-1 and SHA-224.",
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &["X25519MLKEM768", "SecP256r1MLKEM768", "x25519", "secp256r1", "secp384r1"],
            suites: lists::AWS_SUITES,
            handshake_schemes: lists::AWS_SCHEMES_2020,
            certificate_schemes: lists::AWS_SCHEMES_2020,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "20250721",
        summary: "What s2n-tls called default_pq in 0.3.47: three hybrids, and ML-DSA \
             certificates.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, security_policy_20250721"],
        differences: &[
            "Left out: the suites with CBC, which are not implemented.",
            "Left out: certificates signed with SHA-224.",
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "X25519MLKEM768",
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "secp256r1",
                "x25519",
                "secp384r1",
                "secp521r1",
            ],
            suites: &[
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            ],
            handshake_schemes: &[
                "mldsa44",
                "mldsa65",
                "mldsa87",
                "ecdsa_secp256r1_sha256",
                "ecdsa_secp384r1_sha384",
                "ecdsa_secp521r1_sha512",
                "rsa_pss_rsae_sha256",
                "rsa_pss_rsae_sha384",
                "rsa_pss_rsae_sha512",
                "rsa_pkcs1_sha256",
                "rsa_pkcs1_sha384",
                "rsa_pkcs1_sha512",
            ],
            certificate_schemes: &[
                "mldsa44",
                "mldsa65",
                "mldsa87",
                "rsa_pss_rsae_sha256",
                "rsa_pss_rsae_sha384",
                "rsa_pss_rsae_sha512",
                "rsa_pkcs1_sha256",
                "rsa_pkcs1_sha384",
                "rsa_pkcs1_sha512",
                "ecdsa_secp256r1_sha256",
                "ecdsa_secp384r1_sha384",
                "ecdsa_secp521r1_sha512",
            ],
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "20251014",
        summary: "What s2n-tls called default in 0.3.47: three hybrids, no ML-DSA.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, security_policy_20251014"],
        differences: &[
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: &[
                "X25519MLKEM768",
                "SecP256r1MLKEM768",
                "SecP384r1MLKEM1024",
                "secp256r1",
                "x25519",
                "secp384r1",
                "secp521r1",
            ],
            suites: &[
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            ],
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "20251015",
        summary: "What s2n-tls called default_fips in 0.3.47: three hybrids, then NIST curves.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, security_policy_20251015"],
        differences: &[
            "Left out: certificates signed with SHA-224.",
            "Left out: rsa_pss_pss_sha256, rsa_pss_pss_sha384 and rsa_pss_pss_sha512, which rustls does not support.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Prefer,
        tls: TlsRows {
            versions: &[Version::Tls13, Version::Tls12],
            groups: lists::AWS_FIPS_GROUPS,
            suites: &[
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            ],
            handshake_schemes: lists::AWS_SCHEMES,
            certificate_schemes: lists::AWS_SCHEMES_2020,
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    SecurityPolicy {
        name: "20260219",
        summary: "What s2n-tls called cnsa_2 in 0.3.47: ML-KEM-1024, ML-DSA-87 and AES-256, \
             nothing else.",
        sources: &["s2n-tls 0.3.47, tls/s2n_security_policies.c, security_policy_20260219"],
        differences: &[
            "The server needs an ML-DSA-87 certificate: with any other it refuses every client.",
            "AWS's policy does not cover SSH.",
        ],
        mode: Mode::Require,
        tls: TlsRows {
            versions: &[Version::Tls13],
            groups: &["MLKEM1024"],
            suites: &["TLS_AES_256_GCM_SHA384"],
            handshake_schemes: &["mldsa87"],
            certificate_schemes: &["mldsa87"],
        },
        ssh: lists::NO_SSH,
        resolved: OnceLock::new(),
    },
    transfer::SERVER_2025_03.policy(),
    transfer::SERVER_FIPS_2025_03.policy(),
    transfer::SERVER_AS2_RESTRICTED_2025_07.policy(),
    transfer::SERVER_SSH_AUDIT_2025_02.policy(),
    transfer::SERVER_2024_01.policy(),
    transfer::SERVER_2023_05.policy(),
    transfer::SERVER_2022_03.policy(),
    transfer::SERVER_2020_06.policy(),
    transfer::SERVER_RESTRICTED_2020_06.policy(),
    transfer::SERVER_2018_11.policy(),
    transfer::SERVER_RESTRICTED_2018_11.policy(),
    transfer::SERVER_FIPS_2024_05.policy(),
    transfer::SERVER_FIPS_2024_01.policy(),
    transfer::SERVER_FIPS_2020_06.policy(),
    transfer::CONNECTOR_2024_03.policy(),
    transfer::CONNECTOR_FIPS_2024_10.policy(),
    transfer::CONNECTOR_2023_07.policy(),
    SecurityPolicy {
        name: "sftp-strict-2026-11",
        summary: "Of SFTP: one hybrid without NIST curves, and nothing that ssh-audit warns of.",
        sources: &["RFC 10042", "ssh-audit 3.9"],
        differences: &[
            "The hybrids with NIST curves and ECDSA host keys are out: ssh-audit marks these curves. So is ssh-mldsa44-ed25519, which \
             it does not know.",
            "ChaCha20-Poly1305 is out: it is safe from the Terrapin attack only with peers that have strict key exchange.",
        ],
        mode: Mode::Require,
        tls: TlsRows {
            versions: &[],
            groups: &[],
            suites: &[],
            handshake_schemes: &[],
            certificate_schemes: &[],
        },
        ssh: lists::SSH_STRICT,
        resolved: OnceLock::new(),
    },
];
