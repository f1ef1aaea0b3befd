//! Key-exchange groups of TLS as rows.
//!
//! The table is in Outlast's order of preference: hybrids first. A row's rustls object does the work. rustls lacks
//! two groups: [`hybrid`] composes one from two that it has, and [`p521`] takes the other from AWS-LC.

pub mod hybrid;
pub mod p521;

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;

/// Whether a group resists a quantum computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// An elliptic curve combined with ML-KEM: as strong as the stronger of the two.
    Hybrid,
    /// ML-KEM alone.
    PostQuantum,
    /// An elliptic curve alone.
    Classical,
}

impl Strength {
    /// Whether a quantum computer cannot recover the shared secret.
    pub fn is_post_quantum(self) -> bool {
        self != Self::Classical
    }
}

/// A named group.
#[derive(Debug)]
pub struct Group {
    /// Name in the IANA registry "TLS Supported Groups".
    pub name: &'static str,
    /// Code point in that registry.
    pub code_point: u16,
    /// Whether it resists a quantum computer.
    pub strength: Strength,
    /// Length in bytes of the client's key share.
    pub client_share_len: usize,
    /// Length in bytes of the server's key share.
    pub server_share_len: usize,
    /// Whether FIPS 140-3 allows it: SP 800-56A (revision 3) for curves, FIPS 203 for ML-KEM, SP 800-56C (revision 2,
    /// section 2) with SP 800-227 (section 4.6) for hybrids. In a hybrid one allowed part is enough; RFC 10024 puts
    /// that part first.
    pub fips: bool,
    /// The implementation.
    pub key_exchange: &'static dyn SupportedKxGroup,
}

/// Post-quantum groups in IANA's registry that are not served here: a client that offers one is ahead, not behind.
pub static UNSERVED: &[(u16, &str)] = &[(0x0200, "MLKEM512"), (0x11ee, "curveSM2MLKEM768")];

/// Every group, in order of preference. Hybrids: RFC 10024; ML-KEM alone: draft-ietf-tls-mlkem; curves: RFC 8446 and
/// RFC 8422.
pub static GROUPS: &[Group] = &[
    Group {
        name: "X25519MLKEM768",
        code_point: 0x11ec,
        strength: Strength::Hybrid,
        client_share_len: 1184 + 32,
        server_share_len: 1088 + 32,
        fips: true,
        key_exchange: kx_group::X25519MLKEM768,
    },
    Group {
        name: "SecP256r1MLKEM768",
        code_point: 0x11eb,
        strength: Strength::Hybrid,
        client_share_len: 65 + 1184,
        server_share_len: 65 + 1088,
        fips: true,
        key_exchange: kx_group::SECP256R1MLKEM768,
    },
    Group {
        name: "SecP384r1MLKEM1024",
        code_point: 0x11ed,
        strength: Strength::Hybrid,
        client_share_len: 97 + 1568,
        server_share_len: 97 + 1568,
        fips: true,
        key_exchange: &hybrid::SECP384R1_MLKEM1024,
    },
    Group {
        name: "MLKEM1024",
        code_point: 0x0202,
        strength: Strength::PostQuantum,
        client_share_len: 1568,
        server_share_len: 1568,
        fips: true,
        key_exchange: kx_group::MLKEM1024,
    },
    Group {
        name: "MLKEM768",
        code_point: 0x0201,
        strength: Strength::PostQuantum,
        client_share_len: 1184,
        server_share_len: 1088,
        fips: true,
        key_exchange: kx_group::MLKEM768,
    },
    Group {
        name: "x25519",
        code_point: 0x001d,
        strength: Strength::Classical,
        client_share_len: 32,
        server_share_len: 32,
        fips: false,
        key_exchange: kx_group::X25519,
    },
    Group {
        name: "secp256r1",
        code_point: 0x0017,
        strength: Strength::Classical,
        client_share_len: 65,
        server_share_len: 65,
        fips: true,
        key_exchange: kx_group::SECP256R1,
    },
    Group {
        name: "secp384r1",
        code_point: 0x0018,
        strength: Strength::Classical,
        client_share_len: 97,
        server_share_len: 97,
        fips: true,
        key_exchange: kx_group::SECP384R1,
    },
    Group {
        name: "secp521r1",
        code_point: 0x0019,
        strength: Strength::Classical,
        client_share_len: 133,
        server_share_len: 133,
        fips: true,
        key_exchange: &p521::SECP521R1,
    },
];

impl Group {
    /// The row with this IANA code point.
    pub fn by_code_point(code_point: u16) -> Option<&'static Self> {
        GROUPS.iter().find(|row| row.code_point == code_point)
    }

    /// The row with this IANA name; case does not matter, because OpenSSL writes `X25519` and IANA `x25519`.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        GROUPS.iter().find(|row| row.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_agrees_with_itself_and_has_the_stated_lengths() {
        for row in GROUPS {
            let group = row.key_exchange;
            assert_eq!(u16::from(group.name()), row.code_point, "{}", row.name);
            let client = group.start().unwrap();
            assert_eq!(client.pub_key().len(), row.client_share_len, "{}", row.name);
            let server = group.start_and_complete(client.pub_key()).unwrap();
            assert_eq!(server.pub_key.len(), row.server_share_len, "{}", row.name);
            assert_eq!(u16::from(server.group), row.code_point);
            let secret = client.complete(&server.pub_key).unwrap();
            assert_eq!(secret.secret_bytes(), server.secret.secret_bytes(), "{}", row.name);
            assert_eq!(
                row.strength.is_post_quantum(),
                !group.usable_for_version(rustls::ProtocolVersion::TLSv1_2),
                "{}: ML-KEM is for TLS 1.3 only",
                row.name
            );
        }
    }

    #[test]
    fn a_share_of_another_length_is_refused() {
        for row in GROUPS {
            for len in [0, 1, row.client_share_len - 1, row.client_share_len + 1] {
                assert!(
                    row.key_exchange.start_and_complete(&vec![4; len]).is_err(),
                    "{} took {len} bytes",
                    row.name
                );
            }
            let client = row.key_exchange.start().unwrap();
            assert!(client.complete(&vec![4; row.server_share_len - 1]).is_err());
        }
    }

    #[test]
    fn a_point_in_another_form_is_refused() {
        for row in GROUPS.iter().filter(|row| row.name.starts_with("secp")) {
            let share = row.key_exchange.start().unwrap().pub_key().to_vec();
            // A compressed point (SEC 1, 2.3.3), a hybrid encoding, and a point off the curve.
            let compressed =
                [&[2 + (share[share.len() - 1] & 1)], &share[1..share.len().div_ceil(2)]].concat();
            let mut hybrid = share.clone();
            hybrid[0] = 6 + (share[share.len() - 1] & 1);
            let mut off_curve = share.clone();
            *off_curve.last_mut().unwrap() ^= 1;
            for bad in [compressed, hybrid, off_curve] {
                assert!(
                    row.key_exchange.start_and_complete(&bad).is_err(),
                    "{} took {bad:x?}",
                    row.name
                );
                assert!(row.key_exchange.start().unwrap().complete(&bad).is_err(), "{}", row.name);
            }
        }
    }

    #[test]
    fn fips_is_what_the_row_says_where_the_module_is_one() {
        let module = aws_lc_rs::try_fips_mode().is_ok();
        for row in GROUPS {
            assert_eq!(row.key_exchange.fips(), row.fips && module, "{}", row.name);
        }
    }

    #[test]
    fn hybrids_come_first() {
        assert!(GROUPS.is_sorted_by_key(|row| row.strength == Strength::Classical));
    }
}
