//! The policies of AWS Transfer Family, for servers and for connectors. They are for SSH alone.
//!
//! Algorithms are in the order in which AWS's documentation lists them. What has no row in
//! [`outlast_crypto::ssh::ALGORITHMS`] is left out, and a difference says so.
//!
//! Not here: `TransferSecurityPolicy-FIPS-2023-05`, which has finite-field groups only, so that a server with it could
//! serve nobody, and the two experimental policies of 2023-04 with drafts of Kyber: AWS has deprecated them, and its
//! documentation no longer has their lists. AWS does not document those of `TransferSecurityPolicy-Restricted-2024-06` either.

use std::sync::OnceLock;

use crate::row::{Mode, SecurityPolicy, SshRows, TlsRows};

/// A policy of Transfer Family.
pub(super) struct TransferRow {
    name: &'static str,
    summary: &'static str,
    sources: &'static [&'static str],
    differences: &'static [&'static str],
    ssh: SshRows,
}

impl TransferRow {
    /// The policy: in AWS's service hybrids are never required.
    pub(super) const fn policy(self) -> SecurityPolicy {
        SecurityPolicy {
            name: self.name,
            summary: self.summary,
            sources: self.sources,
            differences: self.differences,
            mode: Mode::Prefer,
            tls: TlsRows {
                versions: &[],
                groups: &[],
                suites: &[],
                handshake_schemes: &[],
                certificate_schemes: &[],
            },
            ssh: self.ssh,
            resolved: OnceLock::new(),
        }
    }
}

/// Where AWS documents the policy of a server.
macro_rules! servers {
    ($name:literal) => {
        concat!(
            "AWS, Transfer Family, \"Security policies for AWS Transfer Family servers\", ",
            $name
        )
    };
}

/// Where AWS documents the policy of a connector.
macro_rules! connectors {
    ($name:literal) => {
        concat!(
            "AWS, Transfer Family, \"Security policies for AWS Transfer Family SFTP connectors\", ",
            $name
        )
    };
}

const SSH_ONLY: &str = "AWS's policy also has TLS suites for FTPS and content encryption for AS2; here it is for SSH only.";

const NO_GROUP_EXCHANGE: &str = "Left out: diffie-hellman-group-exchange-sha256, whose groups are not those of \
     SP 800-56A (revision 3).";

const NO_SSH_RSA: &str = "Left out: ssh-rsa, which uses SHA-1.";

const NO_SHA1: &str = "Left out: diffie-hellman-group14-sha1, hmac-sha1, hmac-sha1-etm@openssh.com and ssh-rsa, \
     which use SHA-1.";

const NO_UMAC: &str = "Left out: umac-64-etm@openssh.com, umac-128-etm@openssh.com, umac-64@openssh.com and \
     umac-128@openssh.com, which are not implemented.";

const NO_UMAC_128: &str =
    "Left out: umac-128-etm@openssh.com and umac-128@openssh.com, which are not implemented.";

/// The host key algorithms of all policies of servers: AWS lists them once for all.
const HOST_KEYS: &[&str] = &[
    "rsa-sha2-256",
    "rsa-sha2-512",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-ed25519",
];

pub(super) const SERVER_2025_03: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2025-03",
    summary: "Of Transfer Family: SFTP with hybrids first.",
    sources: &[servers!("TransferSecurityPolicy-2025-03")],
    differences: &[SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "mlkem768x25519-sha256",
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group-exchange-sha256",
        ],
        ciphers: &[
            "aes256-gcm@openssh.com",
            "aes128-gcm@openssh.com",
            "aes128-ctr",
            "aes256-ctr",
            "aes192-ctr",
        ],
        macs: &["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_FIPS_2025_03: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-FIPS-2025-03",
    summary: "Of Transfer Family under FIPS 140-3: SFTP with hybrids first.",
    sources: &[servers!("TransferSecurityPolicy-FIPS-2025-03")],
    differences: &[NO_GROUP_EXCHANGE, SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "mlkem768x25519-sha256",
            "mlkem768nistp256-sha256",
            "mlkem1024nistp384-sha384",
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
        macs: &["hmac-sha2-512-etm@openssh.com", "hmac-sha2-256-etm@openssh.com"],
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_AS2_RESTRICTED_2025_07: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-AS2Restricted-2025-07",
    summary: "Of Transfer Family: SFTP with hybrids first, for servers that also have AS2.",
    sources: &[servers!("TransferSecurityPolicy-AS2Restricted-2025-07")],
    differences: &[
        "AWS's policy differs from TransferSecurityPolicy-2025-03 in algorithms for AS2 alone; here it is for SSH only, \
         where the two are the same.",
    ],
    ssh: SERVER_2025_03.ssh,
};

pub(super) const SERVER_SSH_AUDIT_2025_02: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-SshAuditCompliant-2025-02",
    summary: "Of Transfer Family: SFTP by older advice of ssh-audit, without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-SshAuditCompliant-2025-02")],
    differences: &[
        "ssh-audit 3.9 warns of classical key exchange methods, so that this policy is no longer green there: \
         sftp-strict-2026-11 is.",
        SSH_ONLY,
    ],
    ssh: SshRows {
        key_exchanges: &[
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group-exchange-sha256",
        ],
        ..SERVER_2024_01.ssh
    },
};

pub(super) const SERVER_2024_01: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2024-01",
    summary: "Of Transfer Family, AWS's default for servers: SFTP without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-2024-01")],
    differences: &[SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group-exchange-sha256",
        ],
        ciphers: &[
            "aes128-gcm@openssh.com",
            "aes256-gcm@openssh.com",
            "aes128-ctr",
            "aes256-ctr",
            "aes192-ctr",
        ],
        macs: &["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_2023_05: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2023-05",
    summary: "Of Transfer Family: SFTP without hybrids and NIST curves.",
    sources: &[servers!("TransferSecurityPolicy-2023-05")],
    differences: &[SSH_ONLY],
    ssh: SshRows {
        macs: &["hmac-sha2-512-etm@openssh.com", "hmac-sha2-256-etm@openssh.com"],
        ..SERVER_2022_03.ssh
    },
};

pub(super) const SERVER_2022_03: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2022-03",
    summary: "Of Transfer Family: SFTP without hybrids and NIST curves, with older MACs.",
    sources: &[servers!("TransferSecurityPolicy-2022-03")],
    differences: &[SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group-exchange-sha256",
        ],
        ciphers: &["aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr", "aes192-ctr"],
        macs: &[
            "hmac-sha2-512-etm@openssh.com",
            "hmac-sha2-256-etm@openssh.com",
            "hmac-sha2-512",
            "hmac-sha2-256",
        ],
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_2020_06: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2020-06",
    summary: "Of Transfer Family: SFTP for old clients, without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-2020-06")],
    differences: &[NO_SSH_RSA, NO_UMAC_128, SSH_ONLY],
    ssh: SshRows { ciphers: SERVER_2018_11.ssh.ciphers, ..SERVER_RESTRICTED_2020_06.ssh },
};

pub(super) const SERVER_RESTRICTED_2020_06: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-Restricted-2020-06",
    summary: "Of Transfer Family: SFTP for old clients, without hybrids and ChaCha20-Poly1305.",
    sources: &[servers!("TransferSecurityPolicy-Restricted-2020-06")],
    differences: &[NO_SSH_RSA, NO_UMAC_128, SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "diffie-hellman-group-exchange-sha256",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group14-sha256",
        ],
        ciphers: &[
            "aes128-ctr",
            "aes192-ctr",
            "aes256-ctr",
            "aes128-gcm@openssh.com",
            "aes256-gcm@openssh.com",
        ],
        macs: &[
            "hmac-sha2-256-etm@openssh.com",
            "hmac-sha2-512-etm@openssh.com",
            "hmac-sha2-256",
            "hmac-sha2-512",
        ],
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_2018_11: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-2018-11",
    summary: "Of Transfer Family, CloudFormation's default: SFTP for the oldest clients, without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-2018-11")],
    differences: &[NO_SHA1, NO_UMAC, SSH_ONLY],
    ssh: SshRows {
        for_connectors: false,
        key_exchanges: &[
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "diffie-hellman-group-exchange-sha256",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group14-sha256",
        ],
        ciphers: &[
            "chacha20-poly1305@openssh.com",
            "aes128-ctr",
            "aes192-ctr",
            "aes256-ctr",
            "aes128-gcm@openssh.com",
            "aes256-gcm@openssh.com",
        ],
        macs: SERVER_RESTRICTED_2020_06.ssh.macs,
        host_keys: HOST_KEYS,
    },
};

pub(super) const SERVER_RESTRICTED_2018_11: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-Restricted-2018-11",
    summary: "Of Transfer Family: SFTP for the oldest clients, without hybrids and ChaCha20-Poly1305.",
    sources: &[servers!("TransferSecurityPolicy-Restricted-2018-11")],
    differences: &[NO_SHA1, NO_UMAC, SSH_ONLY],
    ssh: SshRows { ciphers: SERVER_RESTRICTED_2020_06.ssh.ciphers, ..SERVER_2018_11.ssh },
};

pub(super) const SERVER_FIPS_2024_05: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-FIPS-2024-05",
    summary: "Of Transfer Family under FIPS: SFTP without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-FIPS-2024-05")],
    differences: &[NO_GROUP_EXCHANGE, SSH_ONLY],
    ssh: SshRows {
        key_exchanges: &[
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group16-sha512",
        ],
        ..SERVER_2024_01.ssh
    },
};

pub(super) const SERVER_FIPS_2024_01: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-FIPS-2024-01",
    summary: "Of Transfer Family under FIPS: SFTP without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-FIPS-2024-01")],
    differences: &[
        "Left out: ssh-rsa, which uses SHA-1. What is left is TransferSecurityPolicy-FIPS-2024-05.",
        NO_GROUP_EXCHANGE,
        SSH_ONLY,
    ],
    ssh: SERVER_FIPS_2024_05.ssh,
};

pub(super) const SERVER_FIPS_2020_06: TransferRow = TransferRow {
    name: "TransferSecurityPolicy-FIPS-2020-06",
    summary: "Of Transfer Family under FIPS: SFTP for old clients, without hybrids.",
    sources: &[servers!("TransferSecurityPolicy-FIPS-2020-06")],
    differences: &[NO_SSH_RSA, NO_GROUP_EXCHANGE, SSH_ONLY],
    ssh: SshRows {
        key_exchanges: &[
            "ecdh-sha2-nistp256",
            "ecdh-sha2-nistp384",
            "ecdh-sha2-nistp521",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group14-sha256",
        ],
        ..SERVER_RESTRICTED_2020_06.ssh
    },
};

pub(super) const CONNECTOR_2024_03: TransferRow = TransferRow {
    name: "TransferSFTPConnectorSecurityPolicy-2024-03",
    summary: "Of Transfer Family's connectors: outgoing SFTP without hybrids.",
    sources: &[connectors!("TransferSFTPConnectorSecurityPolicy-2024-03")],
    differences: &[
        "AWS's policy has no post-quantum key exchange: connectors to servers that have it use 2026-11.",
    ],
    ssh: SshRows {
        for_connectors: true,
        key_exchanges: &[
            "curve25519-sha256",
            "curve25519-sha256@libssh.org",
            "diffie-hellman-group16-sha512",
            "diffie-hellman-group18-sha512",
            "diffie-hellman-group-exchange-sha256",
        ],
        ciphers: &["aes128-gcm@openssh.com", "aes192-ctr", "aes256-ctr", "aes256-gcm@openssh.com"],
        macs: &[
            "hmac-sha2-512-etm@openssh.com",
            "hmac-sha2-256-etm@openssh.com",
            "hmac-sha2-512",
            "hmac-sha2-256",
        ],
        host_keys: &[
            "rsa-sha2-256",
            "rsa-sha2-512",
            "ecdsa-sha2-nistp256",
            "ecdsa-sha2-nistp384",
            "ecdsa-sha2-nistp521",
        ],
    },
};

pub(super) const CONNECTOR_FIPS_2024_10: TransferRow = TransferRow {
    name: "TransferSFTPConnectorSecurityPolicy-FIPS-2024-10",
    summary: "Of Transfer Family's connectors under FIPS 140-3: outgoing SFTP without hybrids.",
    sources: &[connectors!("TransferSFTPConnectorSecurityPolicy-FIPS-2024-10")],
    differences: &[
        "AWS's policy has no post-quantum key exchange: connectors to servers that have it use fips-2026-11.",
    ],
    ssh: SshRows {
        for_connectors: true,
        key_exchanges: &["ecdh-sha2-nistp256", "ecdh-sha2-nistp384", "ecdh-sha2-nistp521"],
        ciphers: &["aes128-gcm@openssh.com", "aes256-gcm@openssh.com"],
        macs: &["hmac-sha2-512", "hmac-sha2-256"],
        host_keys: &["rsa-sha2-256", "rsa-sha2-512", "ecdsa-sha2-nistp256"],
    },
};

pub(super) const CONNECTOR_2023_07: TransferRow = TransferRow {
    name: "TransferSFTPConnectorSecurityPolicy-2023-07",
    summary: "Of Transfer Family's connectors: outgoing SFTP to old servers, without hybrids.",
    sources: &[connectors!("TransferSFTPConnectorSecurityPolicy-2023-07")],
    differences: &[
        "Left out: diffie-hellman-group14-sha1, hmac-sha1, hmac-sha1-96 and ssh-rsa, which use SHA-1.",
    ],
    ssh: SshRows {
        ciphers: &[
            "aes128-ctr",
            "aes128-gcm@openssh.com",
            "aes192-ctr",
            "aes256-ctr",
            "aes256-gcm@openssh.com",
        ],
        ..CONNECTOR_2024_03.ssh
    },
};
