//! Algorithms from the literature, on private code points: for the lab only, never in the service.
//!
//! No primitive is written here. Mechanisms ([`kem`]) become key exchanges of TLS ([`group`]), alone and as the
//! studies' hybrids; signature algorithms ([`signature`]) become certificates and handshakes ([`certificate`]), alone
//! and as the studies' hybrids ([`hybrid`]). Aigis comes from PQMagic, if it is installed ([`pqmagic`]).
//!
//! Code points are from the ranges for private use (RFC 8446, section 11): groups from 0xfe10, signature schemes from
//! 0xfe10. Key exchanges that were deployed before the standard have the code points of their deployment.

pub mod certificate;
pub mod group;
pub mod hybrid;
pub mod kem;
pub mod pqmagic;
pub mod signature;

use std::sync::LazyLock;

use outlast_crypto::groups::{Group, Strength};

use crate::subject::rows::{Authentication, KeyExchange};

/// First code point of single mechanisms; hybrids are [`HYBRID`] higher.
const GROUPS: u16 = 0xfe10;
/// First code point of single signature algorithms; hybrids are [`HYBRID`] higher.
const SCHEMES: u16 = 0xfe10;
const HYBRID: u16 = 0x60;

/// All mechanisms that can run here.
pub fn kems() -> &'static [kem::Kem] {
    static ROWS: LazyLock<Vec<kem::Kem>> = LazyLock::new(|| {
        let mut rows = kem::compiled();
        rows.extend(pqmagic::kems());
        rows
    });
    &ROWS
}

/// All signature algorithms that can run here.
pub fn signature_algorithms() -> &'static [signature::Signature] {
    static ROWS: LazyLock<Vec<signature::Signature>> = LazyLock::new(|| {
        let mut rows = signature::compiled();
        rows.extend(pqmagic::signatures());
        rows
    });
    &ROWS
}

/// The curve of the same level, by the 2022 study's pairing.
pub fn curve(level: u8) -> Curve {
    match level {
        0..=2 => Curve { prefix: "p256", group: "secp256r1", level: 1 },
        3 | 4 => Curve { prefix: "p384", group: "secp384r1", level: 3 },
        _ => Curve { prefix: "p521", group: "secp521r1", level: 5 },
    }
}

/// An elliptic curve of a hybrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve {
    /// Prefix in names of hybrids.
    pub prefix: &'static str,
    /// IANA's name of the group.
    pub group: &'static str,
    /// NIST's level of security, against classical computers.
    pub level: u8,
}

/// A key exchange that was deployed with Kyber before ML-KEM was a standard.
struct Deployed {
    name: &'static str,
    code_point: u16,
    curve: &'static str,
    kem: &'static str,
    /// Whether each part is preceded by its length, as until draft-ietf-tls-hybrid-design-01.
    length_prefixes: bool,
}

/// By s2n-tls and the Open Quantum Safe project, Chrome and Cloudflare (draft-tls-westerbaan-xyber768d00), and AWS
/// (draft-kwiatkowski-tls-ecdhe-kyber).
const DEPLOYED: &[Deployed] = &[
    Deployed {
        name: "x25519_kyber512",
        code_point: 0x2f39,
        curve: "x25519",
        kem: "kyber512_r3",
        length_prefixes: true,
    },
    Deployed {
        name: "p256_kyber512",
        code_point: 0x2f3a,
        curve: "secp256r1",
        kem: "kyber512_r3",
        length_prefixes: true,
    },
    Deployed {
        name: "p384_kyber768",
        code_point: 0x2f3c,
        curve: "secp384r1",
        kem: "kyber768_r3",
        length_prefixes: false,
    },
    Deployed {
        name: "p521_kyber1024",
        code_point: 0x2f3d,
        curve: "secp521r1",
        kem: "kyber1024_r3",
        length_prefixes: false,
    },
    Deployed {
        name: "X25519Kyber768Draft00",
        code_point: 0x6399,
        curve: "x25519",
        kem: "kyber768_r3",
        length_prefixes: false,
    },
    Deployed {
        name: "SecP256r1Kyber768Draft00",
        code_point: 0x639a,
        curve: "secp256r1",
        kem: "kyber768_r3",
        length_prefixes: false,
    },
];

/// All key exchanges from the literature that can run here.
pub fn key_exchanges() -> Vec<KeyExchange> {
    let mut rows = Vec::new();
    for (index, kem) in (0..).zip(kems()) {
        let alone = group::KemGroup {
            code_point: GROUPS + index,
            curve: None,
            kem,
            length_prefixes: false,
        };
        rows.push(row(kem.name.to_owned(), alone, Strength::PostQuantum));
        let curve = curve(kem.level);
        let hybrid = group::KemGroup {
            code_point: GROUPS + HYBRID + index,
            curve: Group::by_name(curve.group),
            kem,
            length_prefixes: false,
        };
        rows.push(row(format!("{}_{}", curve.prefix, kem.name), hybrid, Strength::Hybrid));
    }
    for deployed in DEPLOYED {
        if let Some(kem) = kems().iter().find(|row| row.name == deployed.kem) {
            let group = group::KemGroup {
                code_point: deployed.code_point,
                curve: Group::by_name(deployed.curve),
                kem,
                length_prefixes: deployed.length_prefixes,
            };
            rows.push(row(deployed.name.to_owned(), group, Strength::Hybrid));
        }
    }
    rows
}

fn row(name: String, group: group::KemGroup, strength: Strength) -> KeyExchange {
    KeyExchange {
        name: Box::leak(name.into_boxed_str()),
        code_point: group.code_point,
        strength,
        client_share_len: group.client_share_len(),
        server_share_len: group.server_share_len(),
        legacy: true,
        group: Box::leak(Box::new(group)),
    }
}

/// All signature algorithms from the literature that can run here.
pub fn authentications() -> Vec<Authentication> {
    certificate::schemes().iter().map(certificate::Scheme::authentication).collect()
}

/// Single signature algorithms, then their hybrids, with their code points.
pub(crate) fn signatures() -> &'static [(u16, signature::Signature)] {
    static ROWS: LazyLock<Vec<(u16, signature::Signature)>> = LazyLock::new(|| {
        let alone = (SCHEMES..).zip(signature_algorithms());
        let hybrids = (SCHEMES + HYBRID..).zip(signature_algorithms());
        let mut rows: Vec<_> = alone.map(|(code_point, row)| (code_point, row.clone())).collect();
        rows.extend(hybrids.filter_map(|(code_point, row)| Some((code_point, hybrid::of(row)?))));
        rows
    });
    &ROWS
}
