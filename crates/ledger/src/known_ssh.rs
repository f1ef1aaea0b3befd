//! What SSH clients and servers could do, and what their identification strings reveal of the software.
//!
//! An identification string is a claim, like everything that a peer sends. Advice depends on it, verdicts do not.

use outlast_crypto::ssh::{Algorithm, Kind};
use outlast_negotiate::ssh::SshOffer;

use crate::known::Ability;

/// Parts of the names of methods of abandoned drafts, which no server of today has: those of tinyssh before 2020, of
/// Open Quantum Safe and of AWS before ML-KEM.
const DRAFTS: [&str; 3] = ["sntrup4591761", "kyber", "frodo"];

/// The best that a peer with this offer could do.
pub fn ability(offer: &SshOffer) -> Ability {
    let served = |name: &str| {
        Algorithm::by_name(name)
            .is_some_and(|row| row.kind == Kind::KeyExchange && row.post_quantum && row.is_served())
    };
    let is_draft = |name: &str| DRAFTS.iter().any(|part| name.contains(part));
    let unserved =
        |name: &str| !is_draft(name) && ["mlkem", "sntrup"].iter().any(|part| name.contains(part));
    if offer.methods().next().is_none() {
        Ability::Unreadable
    } else if offer.methods().any(served) {
        Ability::PostQuantum
    } else if offer.methods().any(unserved) {
        Ability::Unserved
    } else if offer.methods().any(is_draft) {
        Ability::OldDraft
    } else {
        Ability::Classical
    }
}

/// Software that is recognised by its identification string.
#[derive(Debug)]
pub struct SshSoftware {
    /// Its name.
    pub name: &'static str,
    /// Beginning of the software's name and version in the identification string.
    prefix: &'static str,
    /// First version known to offer a served post-quantum method by default; `None` if there is none, or if the
    /// string does not tell.
    since: Option<&'static [u32]>,
    /// What to do about an older version.
    upgrade: &'static str,
    /// What to do about a version that could, and does not.
    configure: &'static str,
}

/// All known software. The first row that fits counts. Versions are those of which an offer was captured, or those of
/// the release notes.
pub static SOFTWARE: &[SshSoftware] = &[
    SshSoftware {
        name: "OpenSSH for Windows",
        prefix: "OpenSSH_for_Windows_",
        since: Some(&[10, 0]),
        upgrade: "upgrade OpenSSH for Windows to 10.0 or newer",
        configure: "remove KexAlgorithms from its ssh_config",
    },
    SshSoftware {
        name: "OpenSSH",
        prefix: "OpenSSH_",
        since: Some(&[9, 9]),
        upgrade: "upgrade OpenSSH to 9.9 or newer, which has mlkem768x25519-sha256",
        configure: "remove KexAlgorithms from its ssh_config: its version has mlkem768x25519-sha256 by default",
    },
    SshSoftware {
        name: "PuTTY",
        prefix: "PuTTY_Release_",
        since: Some(&[0, 83]),
        upgrade: "upgrade PuTTY to 0.83 or newer",
        configure: "move the ML-KEM hybrids above the warning line in its settings (Connection, SSH, Kex)",
    },
    SshSoftware {
        name: "WinSCP",
        prefix: "WinSCP_release_",
        since: None,
        upgrade: "upgrade WinSCP to a version whose SSH core is that of PuTTY 0.83 or newer, and leave its key exchange settings at their defaults",
        configure: "",
    },
    SshSoftware {
        name: "libssh2",
        prefix: "libssh2_",
        since: None,
        upgrade: "use a program with libssh 0.12 or OpenSSH 9.9 instead: libssh2 1.11 has no post-quantum key exchange",
        configure: "",
    },
    SshSoftware {
        name: "libssh",
        prefix: "libssh_",
        since: Some(&[0, 12]),
        upgrade: "upgrade libssh to 0.12 or newer",
        configure: "leave its key exchange methods at their defaults",
    },
    SshSoftware {
        name: "asyncssh",
        prefix: "AsyncSSH_",
        since: Some(&[2, 24]),
        upgrade: "upgrade asyncssh to 2.24 or newer",
        configure: "leave kex_algs at its default, and upgrade the package cryptography",
    },
    SshSoftware {
        name: "paramiko",
        prefix: "paramiko_",
        since: Some(&[5, 1]),
        upgrade: "upgrade paramiko to 5.1 or newer",
        configure: "leave its key exchange methods at their defaults, and upgrade the package cryptography",
    },
    SshSoftware {
        name: "rclone",
        prefix: "rclone/",
        since: None,
        upgrade: "upgrade rclone to a version that is built with golang.org/x/crypto 0.46 or newer, and leave key_exchange unset",
        configure: "",
    },
    SshSoftware {
        name: "golang.org/x/crypto/ssh",
        prefix: "Go",
        since: None,
        upgrade: "build it with golang.org/x/crypto 0.46 or newer, and leave KeyExchanges of ssh.Config unset",
        configure: "",
    },
    SshSoftware {
        name: "Apache MINA SSHD",
        prefix: "APACHE-SSHD-",
        since: Some(&[2, 20]),
        upgrade: "upgrade Apache MINA SSHD to 2.20 or newer, with BouncyCastle",
        configure: "add BouncyCastle to its class path, or leave its key exchange factories at their defaults",
    },
    SshSoftware {
        name: "JSch",
        prefix: "JSCH_",
        since: Some(&[2, 28]),
        upgrade: "upgrade JSch (com.github.mwiede) to 2.28 or newer, with Java 24 or BouncyCastle",
        configure: "run it with Java 24 or BouncyCastle, and leave its setting kex at its default",
    },
    SshSoftware {
        name: "SSH.NET",
        prefix: "Renci.SshNet",
        since: None,
        upgrade: "upgrade SSH.NET to 2025.0 or newer",
        configure: "",
    },
    SshSoftware {
        name: "Dropbear",
        prefix: "dropbear_",
        since: Some(&[2025, 87]),
        upgrade: "upgrade Dropbear to 2025.87 or newer",
        configure: "build it with ML-KEM (DROPBEAR_MLKEM768)",
    },
    SshSoftware {
        name: "russh",
        prefix: "russh_",
        since: Some(&[0, 65]),
        upgrade: "upgrade russh to 0.65 or newer",
        configure: "leave its preferred key exchange methods at their defaults",
    },
    SshSoftware {
        name: "Outlast",
        prefix: "Outlast_",
        since: None,
        upgrade: "give the connector a security policy with hybrids",
        configure: "",
    },
];

impl SshSoftware {
    /// The row of a client, if its software is known.
    pub fn of(offer: &SshOffer) -> Option<&'static Self> {
        let software = offer.software();
        SOFTWARE.iter().find(|row| match row.prefix {
            "Go" => software == "Go",
            prefix => software.starts_with(prefix),
        })
    }

    /// The version's text in the identification string, up to the first character that is no digit or dot.
    fn version<'a>(&self, offer: &'a SshOffer) -> &'a str {
        let rest = offer.software().get(self.prefix.len()..).unwrap_or_default();
        let rest = rest.trim_start_matches('v');
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.')
    }

    /// Whether the client's version is said to offer a served post-quantum method.
    fn could(&self, offer: &SshOffer) -> bool {
        let version: Vec<u32> =
            self.version(offer).split('.').filter_map(|part| part.parse().ok()).collect();
        self.since.is_some_and(|since| version.as_slice() >= since)
    }
}

/// Name and version of a client's software, if it is known: `OpenSSH 9.2`.
pub fn software(offer: &SshOffer) -> Option<String> {
    let row = SshSoftware::of(offer)?;
    let version = row.version(offer);
    Some(if version.is_empty() { row.name.to_owned() } else { format!("{} {version}", row.name) })
}

/// What to do about a client that cannot do better.
pub fn hint(offer: &SshOffer) -> &'static str {
    if matches!(ability(offer), Ability::PostQuantum | Ability::Unreadable) {
        return "";
    }
    match SshSoftware::of(offer) {
        Some(row) if row.could(offer) => row.configure,
        Some(row) => row.upgrade,
        None if ability(offer) == Ability::Unserved => {
            "make it offer mlkem768x25519-sha256, too: its post-quantum methods are not supported here"
        }
        None => {
            "upgrade it to a version that has mlkem768x25519-sha256, or use a client such as OpenSSH 9.9, PuTTY 0.83 or rclone"
        }
    }
}

/// Advice about servers: beginning of the software's name and version in the identification string, and what their operators
/// should do.
static SERVERS: &[(&str, &str)] = &[
    (
        "OpenSSH_",
        "ask its operator for OpenSSH 9.9 or newer without KexAlgorithms in its sshd_config, which has mlkem768x25519-sha256",
    ),
    (
        "AWS_SFTP_",
        "ask its operator for a security policy of AWS Transfer Family with hybrids, such as TransferSecurityPolicy-2025-03",
    ),
    ("Outlast_", "ask its operator for a security policy with hybrids, such as 2026-11"),
];

/// What to do about a server that cannot do better.
pub fn server_hint(offer: &SshOffer) -> &'static str {
    if matches!(ability(offer), Ability::PostQuantum | Ability::Unreadable) {
        return "";
    }
    let software = offer.software();
    SERVERS.iter().find(|(prefix, _)| software.starts_with(prefix)).map_or(
        "ask its operator for a server that has mlkem768x25519-sha256, such as OpenSSH 9.9",
        |(_, advice)| advice,
    )
}

#[cfg(test)]
mod tests {
    use outlast_negotiate::ssh::CROWD;

    use super::*;

    #[test]
    fn captured_clients_are_recognised() {
        let known: Vec<_> = CROWD.iter().map(|client| software(&client.offer).unwrap()).collect();
        for expected in [
            "OpenSSH 10.6",
            "OpenSSH 9.2",
            "golang.org/x/crypto/ssh",
            "asyncssh 2.24.1",
            "paramiko 5.1.0",
            "JSch 2.28.8",
            "Apache MINA SSHD 2.20.0",
            "PuTTY 0.83",
            "libssh 0.12.2",
            "libssh2 1.10.0",
            "Dropbear 2022.83",
        ] {
            assert!(known.iter().any(|name| name == expected), "{expected}: {known:?}");
        }
    }

    /// What the rows say of versions agrees with what was captured of them.
    #[test]
    fn versions_that_could_do_and_the_others_have_an_upgrade() {
        for client in CROWD.iter() {
            let row = SshSoftware::of(&client.offer).unwrap();
            let able = ability(&client.offer) == Ability::PostQuantum;
            if row.since.is_some() {
                assert_eq!(row.could(&client.offer), able, "{}", client.name);
            }
            let hint = hint(&client.offer);
            assert_eq!(hint, if able { "" } else { row.upgrade }, "{}", client.name);
            // The same version without its hybrids was configured.
            let mut without = client.offer.clone();
            without
                .key_exchanges
                .retain(|name| !name.contains("mlkem") && !name.contains("sntrup"));
            assert_eq!(ability(&without), Ability::Classical);
            assert!(!super::hint(&without).is_empty());
            if row.since.is_some() && able {
                assert_eq!(super::hint(&without), row.configure, "{}", client.name);
            }
        }
    }

    #[test]
    fn operators_of_servers_are_asked() {
        let hint = |identification: &str, methods: &str| {
            server_hint(&SshOffer::new(identification, [methods, "", "", "", "", "", "", ""]))
        };
        let classical = "curve25519-sha256";
        for (software, expected) in [
            ("OpenSSH_9.2p1 Debian-2", "sshd_config"),
            ("AWS_SFTP_1.1", "TransferSecurityPolicy-2025-03"),
            ("Outlast_0.1", "2026-11"),
            ("mod_sftp", "OpenSSH 9.9"),
        ] {
            let hint = hint(&format!("SSH-2.0-{software}"), classical);
            assert!(hint.contains(expected) && hint.starts_with("ask"), "{software}: {hint}");
        }
        assert_eq!(hint("SSH-2.0-OpenSSH_10.0", "mlkem768x25519-sha256"), "");
        assert_eq!(hint("SSH-2.0-OpenSSH_9.2", ""), "");
    }

    #[test]
    fn methods_are_told_apart() {
        let of =
            |list: &str| ability(&SshOffer::new("SSH-2.0-x", [list, "", "", "", "", "", "", ""]));
        assert_eq!(of("curve25519-sha256,mlkem768nistp256-sha256"), Ability::PostQuantum);
        assert_eq!(of("sntrup761x25519-sha512,curve25519-sha256"), Ability::Unserved);
        assert_eq!(of("mlkem1024-sha384"), Ability::Unserved);
        assert_eq!(of("sntrup4591761x25519-sha512@tinyssh.org"), Ability::OldDraft);
        assert_eq!(
            of("ecdh-nistp256-kyber-512r3-sha256-d00@openquantumsafe.org"),
            Ability::OldDraft
        );
        assert_eq!(of("ecdh-sha2-nistp256"), Ability::Classical);
        assert_eq!(of("ext-info-c,kex-strict-c-v00@openssh.com"), Ability::Unreadable);
        assert_eq!(of(""), Ability::Unreadable);
    }
}
