//! The policies of AWS Transfer Family compared with AWS's lists, and what clients get under them.

use outlast_crypto::ssh::Algorithm;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::ssh::{CROWD, SshRules, decide_ssh, explain_ssh, served};
use outlast_negotiate::{Mode, SecurityPolicy};

const GROUP_EXCHANGE: &str = "diffie-hellman-group-exchange-sha256";
const HOST_KEYS: &str = "rsa-sha2-256,rsa-sha2-512,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-ed25519";
const WITH_SSH_RSA: &str = "rsa-sha2-256,rsa-sha2-512,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-ed25519,ssh-rsa";

/// A policy as AWS has it.
struct Listed {
    name: &'static str,
    key_exchanges: &'static str,
    ciphers: &'static str,
    macs: &'static str,
    host_keys: &'static str,
}

/// From AWS's page "Security policies for AWS Transfer Family servers", with what is left out here.
const AWS: &[Listed] = &[
    Listed {
        name: "TransferSecurityPolicy-2025-03",
        key_exchanges: "mlkem768x25519-sha256,mlkem768nistp256-sha256,mlkem1024nistp384-sha384,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-FIPS-2025-03",
        key_exchanges: "mlkem768x25519-sha256,mlkem768nistp256-sha256,mlkem1024nistp384-sha384,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512",
        ciphers: "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr",
        macs: "hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-AS2Restricted-2025-07",
        key_exchanges: "mlkem768x25519-sha256,mlkem768nistp256-sha256,mlkem1024nistp384-sha384,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-SshAuditCompliant-2025-02",
        key_exchanges: "curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group18-sha512,diffie-hellman-group16-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-2024-01",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group18-sha512,diffie-hellman-group16-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-2023-05",
        key_exchanges: "curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-2022-03",
        key_exchanges: "curve25519-sha256,curve25519-sha256@libssh.org,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512,hmac-sha2-256",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-2020-06",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256",
        ciphers: "chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        macs: "umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512",
        host_keys: WITH_SSH_RSA,
    },
    Listed {
        name: "TransferSecurityPolicy-Restricted-2020-06",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256",
        ciphers: "aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        macs: "umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512",
        host_keys: WITH_SSH_RSA,
    },
    Listed {
        name: "TransferSecurityPolicy-2018-11",
        key_exchanges: "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256,diffie-hellman-group14-sha1",
        ciphers: "chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        macs: "umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-64@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512,hmac-sha1",
        host_keys: WITH_SSH_RSA,
    },
    Listed {
        name: "TransferSecurityPolicy-Restricted-2018-11",
        key_exchanges: "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256,diffie-hellman-group14-sha1",
        ciphers: "aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        macs: "umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-64@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512,hmac-sha1",
        host_keys: WITH_SSH_RSA,
    },
    Listed {
        name: "TransferSecurityPolicy-FIPS-2024-05",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group18-sha512,diffie-hellman-group16-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: HOST_KEYS,
    },
    Listed {
        name: "TransferSecurityPolicy-FIPS-2024-01",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group18-sha512,diffie-hellman-group16-sha512,diffie-hellman-group-exchange-sha256",
        ciphers: "aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr,aes192-ctr",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com",
        host_keys: WITH_SSH_RSA,
    },
    Listed {
        name: "TransferSecurityPolicy-FIPS-2020-06",
        key_exchanges: "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256",
        ciphers: "aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
        macs: "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512",
        host_keys: WITH_SSH_RSA,
    },
];

/// AWS's other policies for servers: the methods of the first are not served, and AWS no longer documents the rest.
const MISSING: [&str; 4] = [
    "TransferSecurityPolicy-Restricted-2024-06",
    "TransferSecurityPolicy-FIPS-2023-05",
    "TransferSecurityPolicy-PQ-SSH-Experimental-2023-04",
    "TransferSecurityPolicy-PQ-SSH-FIPS-Experimental-2023-04",
];

#[test]
fn rows_have_the_lists_of_aws_in_its_order() {
    for listed in AWS {
        let row = SecurityPolicy::by_name(listed.name).unwrap();
        for (list, here) in [
            (listed.key_exchanges, row.ssh.key_exchanges),
            (listed.ciphers, row.ssh.ciphers),
            (listed.macs, row.ssh.macs),
            (listed.host_keys, row.ssh.host_keys),
        ] {
            let fips = listed.name.contains("FIPS");
            let is_here = |name: &&str| {
                Algorithm::by_name(name).is_some() && !(fips && *name == GROUP_EXCHANGE)
            };
            let (kept, left): (Vec<&str>, Vec<&str>) = list.split(',').partition(is_here);
            assert_eq!(here, kept, "{}", row.name);
            for name in left {
                let said = row.differences.iter().any(|text| text.contains(name));
                assert!(said, "{}: {name}", row.name);
            }
        }
        assert_eq!(row.mode, Mode::Prefer, "{}", row.name);
        assert!(!row.has_tls() && !row.ssh.for_connectors, "{}", row.name);
    }
}

#[test]
fn every_policy_of_aws_for_servers_is_here_or_known_to_be_missing() {
    let of_servers = |name: &&str| name.starts_with("TransferSecurityPolicy-");
    let here: Vec<_> = POLICIES.iter().map(|row| row.name).filter(of_servers).collect();
    let listed: Vec<_> = AWS.iter().map(|row| row.name).collect();
    assert_eq!(here, listed);
    for name in MISSING {
        assert!(SecurityPolicy::by_name(name).is_err(), "{name}");
    }
}

#[test]
fn listeners_can_have_each_policy_and_explanations_say_what_it_lacks() {
    let openssh = CROWD.iter().find(|row| row.name.starts_with("OpenSSH 10.0")).unwrap();
    for listed in AWS {
        let row = SecurityPolicy::by_name(listed.name).unwrap();
        let rules = SshRules::new(row, None, served).unwrap();
        let hybrid = listed.key_exchanges.contains("mlkem");
        let chosen = decide_ssh(&rules, &openssh.offer).unwrap();
        assert_eq!(chosen.post_quantum, hybrid, "{}", row.name);
        let found = explain_ssh(row, row.mode).unwrap();
        let lacks = found.meaning.iter().any(|text| text.starts_with("No key exchange of SSH"));
        assert_eq!(lacks, !hybrid, "{}", row.name);
        assert!(found.not_served.contains(&"diffie-hellman-group16-sha512"), "{}", row.name);
    }
}
