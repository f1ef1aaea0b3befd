//! Lists that several policies share. A list is part of every row that uses it, and is as fixed as the row: a change
//! gets a new list.

use crate::policy::SshRows;

/// AES-256 first; ChaCha20-Poly1305 for clients without AES in hardware.
pub(super) const SUITES: &[&str] = &[
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

/// Those of TLS 1.3.
pub(super) const SUITES_13: &[&str] =
    &["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];

/// Without ChaCha20-Poly1305.
pub(super) const AES_SUITES: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
];

/// ML-DSA first: a server with such a certificate wants to use it.
pub(super) const SCHEMES: &[&str] = &[
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

/// Without the padding of PKCS #1 v1.5.
pub(super) const PSS_SCHEMES: &[&str] = &[
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
];

/// Without Ed25519, either.
pub(super) const BSI_SCHEMES: &[&str] = &[
    "mldsa65",
    "mldsa87",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp256r1_sha256",
    "ecdsa_secp521r1_sha512",
    "rsa_pss_rsae_sha512",
    "rsa_pss_rsae_sha384",
    "rsa_pss_rsae_sha256",
];

/// s2n-tls' `s2n_signature_preferences_20261013_no_sha224` and `s2n_signature_preferences_20240501`.
pub(super) const AWS_SCHEMES: &[&str] = &[
    "ecdsa_secp256r1_sha256",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp521r1_sha512",
    "rsa_pss_rsae_sha256",
    "rsa_pss_rsae_sha384",
    "rsa_pss_rsae_sha512",
    "rsa_pkcs1_sha256",
    "rsa_pkcs1_sha384",
    "rsa_pkcs1_sha512",
];

/// s2n-tls' `s2n_signature_preferences_20200207` and its certificate preferences of 2020-11-10.
pub(super) const AWS_SCHEMES_2020: &[&str] = &[
    "rsa_pss_rsae_sha256",
    "rsa_pss_rsae_sha384",
    "rsa_pss_rsae_sha512",
    "rsa_pkcs1_sha256",
    "rsa_pkcs1_sha384",
    "rsa_pkcs1_sha512",
    "ecdsa_secp256r1_sha256",
    "ecdsa_secp384r1_sha384",
    "ecdsa_secp521r1_sha512",
];

/// s2n-tls' `elb_security_policy_tls13_1_2_Res_2021_06`, and other policies once CBC is removed.
pub(super) const AWS_SUITES: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
];

/// s2n-tls' `elb_security_policy_tls13_1_2_Res_FIPS_2023_04`.
pub(super) const AWS_FIPS_SUITES: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
];

/// s2n-tls' `kem_preferences_pq_tls_1_3_ietf_2025_07` and `s2n_ecc_preferences_20240603`.
pub(super) const AWS_GROUPS: &[&str] = &[
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
    "x25519",
    "secp256r1",
    "secp384r1",
    "secp521r1",
];

/// s2n-tls' `kem_preferences_pq_tls_1_3_ietf_2025_07` and `s2n_ecc_preferences_20201021`.
pub(super) const AWS_FIPS_GROUPS: &[&str] = &[
    "X25519MLKEM768",
    "SecP256r1MLKEM768",
    "SecP384r1MLKEM1024",
    "secp256r1",
    "secp384r1",
    "secp521r1",
];

/// Nothing for SSH.
pub(super) const NO_SSH: SshRows =
    SshRows { for_connectors: false, key_exchanges: &[], ciphers: &[], macs: &[], host_keys: &[] };

/// Hybrids first, elliptic curves for clients that have nothing better.
pub(super) const SSH: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "mlkem768x25519-sha256",
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "sntrup761x25519-sha512",
        "sntrup761x25519-sha512@openssh.com",
        "curve25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
    ],
    ciphers: SSH_AEAD_AND_CTR,
    macs: SSH_ETM,
    host_keys: SSH_HOST_KEYS,
};

/// Post-quantum key exchange only.
pub(super) const SSH_REQUIRE: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "mlkem768x25519-sha256",
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "sntrup761x25519-sha512",
        "sntrup761x25519-sha512@openssh.com",
    ],
    ciphers: &["aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr"],
    macs: SSH_ETM,
    host_keys: SSH_HOST_KEYS,
};

/// What ssh-audit marks in no way.
pub(super) const SSH_STRICT: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &["mlkem768x25519-sha256"],
    ciphers: &["aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr"],
    macs: SSH_ETM,
    host_keys: &["ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"],
};

/// What FIPS 140-3 allows.
pub(super) const SSH_FIPS: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "mlkem768x25519-sha256",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group16-sha512",
        "diffie-hellman-group18-sha512",
    ],
    ciphers: &[
        "aes256-gcm@openssh.com",
        "aes128-gcm@openssh.com",
        "aes256-ctr",
        "aes192-ctr",
        "aes128-ctr",
    ],
    macs: SSH_ETM,
    host_keys: &[
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "rsa-sha2-512",
        "rsa-sha2-256",
    ],
};

/// ML-KEM-1024 and ML-DSA-87 with AES-256.
pub(super) const SSH_CNSA2: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &["mlkem1024-sha384", "mlkem1024nistp384-sha384"],
    ciphers: &["aes256-gcm@openssh.com"],
    macs: &["hmac-sha2-512-etm@openssh.com", "hmac-sha2-512"],
    host_keys: &["ssh-mldsa-87"],
};

/// The recommendations of TR-02102-4, and hybrids with its curves.
pub(super) const SSH_BSI: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group16-sha512",
    ],
    ciphers: &[
        "aes256-gcm@openssh.com",
        "aes128-gcm@openssh.com",
        "aes256-ctr",
        "aes192-ctr",
        "aes128-ctr",
    ],
    macs: &[
        "hmac-sha2-512-etm@openssh.com",
        "hmac-sha2-256-etm@openssh.com",
        "hmac-sha2-512",
        "hmac-sha2-256",
    ],
    host_keys: &["ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"],
};

/// No post-quantum key exchange, no post-quantum host keys.
pub(super) const SSH_CLASSICAL: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "curve25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
    ],
    ciphers: SSH_AEAD_AND_CTR,
    macs: SSH_ETM,
    host_keys: &["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"],
};

/// Everything without SHA-1 and CBC.
pub(super) const SSH_LEGACY: SshRows = SshRows {
    for_connectors: false,
    key_exchanges: &[
        "mlkem768x25519-sha256",
        "mlkem768nistp256-sha256",
        "mlkem1024nistp384-sha384",
        "sntrup761x25519-sha512",
        "sntrup761x25519-sha512@openssh.com",
        "curve25519-sha256",
        "curve25519-sha256@libssh.org",
        "ecdh-sha2-nistp256",
        "ecdh-sha2-nistp384",
        "ecdh-sha2-nistp521",
        "diffie-hellman-group16-sha512",
        "diffie-hellman-group18-sha512",
        "diffie-hellman-group14-sha256",
        "diffie-hellman-group-exchange-sha256",
    ],
    ciphers: &[
        "aes256-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
        "aes128-gcm@openssh.com",
        "aes256-ctr",
        "aes192-ctr",
        "aes128-ctr",
    ],
    macs: &[
        "hmac-sha2-512-etm@openssh.com",
        "hmac-sha2-256-etm@openssh.com",
        "hmac-sha2-512",
        "hmac-sha2-256",
    ],
    host_keys: &[
        "ssh-mldsa44-ed25519",
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "rsa-sha2-512",
        "rsa-sha2-256",
    ],
};

const SSH_AEAD_AND_CTR: &[&str] = &[
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-gcm@openssh.com",
    "aes256-ctr",
];

const SSH_ETM: &[&str] = &["hmac-sha2-512-etm@openssh.com", "hmac-sha2-256-etm@openssh.com"];

const SSH_HOST_KEYS: &[&str] =
    &["ssh-mldsa44-ed25519", "ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"];
