//! Algorithm names of SSH as rows: the names that security policies may use.
//!
//! Names are those of the IANA registry "SSH Protocol Parameters", or end with their owner's domain after an `@`. A
//! row only describes an algorithm; the SSH crates implement it.

/// Kind of algorithm (RFC 4253, section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Key exchange method.
    KeyExchange,
    /// Cipher, with or without built-in authentication.
    Cipher,
    /// Message authentication code.
    Mac,
    /// Host key algorithm.
    HostKey,
}

/// An SSH algorithm name.
#[derive(Debug)]
pub struct Algorithm {
    /// Name on the wire.
    pub name: &'static str,
    /// Kind of algorithm.
    pub kind: Kind,
    /// Whether it resists a quantum computer. Symmetric algorithms with 256-bit keys do.
    pub post_quantum: bool,
    /// Whether FIPS 140-3 allows it.
    pub fips: bool,
    /// Document that defines it.
    pub source: &'static str,
}

const fn row(
    name: &'static str,
    kind: Kind,
    post_quantum: bool,
    fips: bool,
    source: &'static str,
) -> Algorithm {
    Algorithm { name, kind, post_quantum, fips, source }
}

use Kind::{Cipher, HostKey, KeyExchange, Mac};

/// All names. Algorithms with SHA-1, CBC or less than 112 bits of strength have no row.
///
/// FIPS: hybrids with ML-KEM by SP 800-227 (section 4.6); groups 14, 16 and 18 by SP 800-56A (revision 3, appendix
/// D), but not groups that the server chooses (RFC 4419); Ed25519 by FIPS 186-5.
pub static ALGORITHMS: &[Algorithm] = &[
    row("mlkem768x25519-sha256", KeyExchange, true, true, "RFC 10042"),
    row("mlkem768nistp256-sha256", KeyExchange, true, true, "RFC 10042"),
    row("mlkem1024nistp384-sha384", KeyExchange, true, true, "RFC 10042"),
    row("mlkem1024-sha384", KeyExchange, true, true, "draft-harrison-sshm-mlkem"),
    row("sntrup761x25519-sha512", KeyExchange, true, false, "RFC 9941"),
    row("sntrup761x25519-sha512@openssh.com", KeyExchange, true, false, "RFC 9941"),
    row("curve25519-sha256", KeyExchange, false, false, "RFC 8731"),
    row("curve25519-sha256@libssh.org", KeyExchange, false, false, "RFC 8731"),
    row("ecdh-sha2-nistp256", KeyExchange, false, true, "RFC 5656"),
    row("ecdh-sha2-nistp384", KeyExchange, false, true, "RFC 5656"),
    row("ecdh-sha2-nistp521", KeyExchange, false, true, "RFC 5656"),
    row("diffie-hellman-group14-sha256", KeyExchange, false, true, "RFC 8268"),
    row("diffie-hellman-group16-sha512", KeyExchange, false, true, "RFC 8268"),
    row("diffie-hellman-group18-sha512", KeyExchange, false, true, "RFC 8268"),
    row("diffie-hellman-group-exchange-sha256", KeyExchange, false, false, "RFC 4419"),
    row("aes256-gcm@openssh.com", Cipher, true, true, "RFC 5647, as in OpenSSH's PROTOCOL, 1.6"),
    row(
        "chacha20-poly1305@openssh.com",
        Cipher,
        true,
        false,
        "OpenSSH's PROTOCOL.chacha20poly1305",
    ),
    row("aes128-gcm@openssh.com", Cipher, false, true, "RFC 5647, as in OpenSSH's PROTOCOL, 1.6"),
    row("aes256-ctr", Cipher, true, true, "RFC 4344"),
    row("aes192-ctr", Cipher, false, true, "RFC 4344"),
    row("aes128-ctr", Cipher, false, true, "RFC 4344"),
    row("hmac-sha2-512-etm@openssh.com", Mac, true, true, "RFC 6668, OpenSSH's PROTOCOL, 1.5"),
    row("hmac-sha2-256-etm@openssh.com", Mac, true, true, "RFC 6668, OpenSSH's PROTOCOL, 1.5"),
    row("hmac-sha2-512", Mac, true, true, "RFC 6668"),
    row("hmac-sha2-256", Mac, true, true, "RFC 6668"),
    row(
        "ssh-mldsa44-ed25519",
        HostKey,
        true,
        true,
        "draft-miller-sshm-mldsa44-ed25519-composite-sigs",
    ),
    row("ssh-mldsa-87", HostKey, true, true, "draft-sfluhrer-ssh-mldsa"),
    row("ssh-ed25519", HostKey, false, true, "RFC 8709"),
    row("ecdsa-sha2-nistp256", HostKey, false, true, "RFC 5656"),
    row("ecdsa-sha2-nistp384", HostKey, false, true, "RFC 5656"),
    row("ecdsa-sha2-nistp521", HostKey, false, true, "RFC 5656"),
    row("rsa-sha2-512", HostKey, false, true, "RFC 8332"),
    row("rsa-sha2-256", HostKey, false, true, "RFC 8332"),
];

/// Names that have a row, but that the transport leaves out: policies may name them, and clients offer them.
pub static UNSERVED: &[&str] = &[
    "mlkem1024-sha384",
    "sntrup761x25519-sha512",
    "sntrup761x25519-sha512@openssh.com",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha256",
    "ssh-mldsa-87",
];

impl Algorithm {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ALGORITHMS.iter().find(|row| row.name == name)
    }

    /// Whether the transport has it.
    pub fn is_served(&self) -> bool {
        !UNSERVED.contains(&self.name)
    }

    /// Whether this cipher authenticates, so that no MAC is negotiated (OpenSSH's PROTOCOL, 1.6, and
    /// PROTOCOL.chacha20poly1305).
    pub fn authenticates(&self) -> bool {
        self.kind == Cipher && (self.name.contains("-gcm@") || self.name.contains("-poly1305@"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_be_sent() {
        for (index, row) in ALGORITHMS.iter().enumerate() {
            assert!(
                !ALGORITHMS[..index].iter().any(|other| other.name == row.name),
                "{}",
                row.name
            );
            // RFC 4251, section 6: at most 64 printable characters of US-ASCII, no comma.
            assert!(row.name.len() <= 64 && row.name.bytes().all(|byte| byte.is_ascii_graphic()));
            assert!(!row.name.contains(','));
            assert!(!row.name.contains("sha1") && !row.name.contains("cbc"));
        }
    }

    #[test]
    fn names_that_are_not_served_have_rows() {
        assert!(UNSERVED.iter().all(|name| Algorithm::by_name(name).is_some()));
        let authenticating: Vec<_> =
            ALGORITHMS.iter().filter(|row| row.authenticates()).map(|row| row.name).collect();
        let expected =
            ["aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com"];
        assert_eq!(authenticating, expected);
    }

    #[test]
    fn what_a_name_says_agrees_with_its_row() {
        for row in ALGORITHMS {
            let name = row.name;
            if matches!(row.kind, KeyExchange | HostKey) {
                let lattice = ["mlkem", "sntrup", "mldsa"].iter().any(|part| name.contains(part));
                assert_eq!(row.post_quantum, lattice, "{name}");
            }
            if name.contains("chacha") || name.contains("sntrup") || name.starts_with("curve25519")
            {
                assert!(!row.fips, "{name}");
            }
        }
    }
}
