//! Signature schemes of TLS as rows.
//!
//! Sources: RFC 8446 (section 4.2.3), draft-ietf-tls-mldsa (0x0904 to 0x0906 in IANA's registry "TLS
//! SignatureScheme"). The schemes for RSA keys whose OID is RSASSA-PSS (`rsa_pss_pss_sha256` and the like) have no
//! row, because rustls can neither sign nor verify them. Schemes with SHA-1 or SHA-224 have none either.

/// Signature algorithm of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ML-DSA, which resists a quantum computer. TLS 1.3 only.
    MlDsa,
    /// ECDSA, in TLS 1.3 on the curve in the name.
    Ecdsa,
    /// Ed25519.
    Ed25519,
    /// RSA with PSS padding.
    RsaPss,
    /// RSA with PKCS #1 v1.5 padding; in handshakes only in TLS 1.2.
    RsaPkcs1,
}

/// A signature scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Name in the IANA registry "TLS SignatureScheme".
    pub name: &'static str,
    /// Code point in that registry.
    pub code_point: u16,
    /// Signature algorithm.
    pub kind: Kind,
    /// Whether FIPS 186-5 or FIPS 204 approves it.
    pub fips: bool,
}

/// All schemes, in order of preference.
pub static SCHEMES: &[Scheme] = &[
    Scheme { name: "mldsa65", code_point: 0x0905, kind: Kind::MlDsa, fips: true },
    Scheme { name: "mldsa87", code_point: 0x0906, kind: Kind::MlDsa, fips: true },
    Scheme { name: "mldsa44", code_point: 0x0904, kind: Kind::MlDsa, fips: true },
    Scheme { name: "ecdsa_secp384r1_sha384", code_point: 0x0503, kind: Kind::Ecdsa, fips: true },
    Scheme { name: "ecdsa_secp256r1_sha256", code_point: 0x0403, kind: Kind::Ecdsa, fips: true },
    Scheme { name: "ecdsa_secp521r1_sha512", code_point: 0x0603, kind: Kind::Ecdsa, fips: true },
    Scheme { name: "ed25519", code_point: 0x0807, kind: Kind::Ed25519, fips: true },
    Scheme { name: "rsa_pss_rsae_sha512", code_point: 0x0806, kind: Kind::RsaPss, fips: true },
    Scheme { name: "rsa_pss_rsae_sha384", code_point: 0x0805, kind: Kind::RsaPss, fips: true },
    Scheme { name: "rsa_pss_rsae_sha256", code_point: 0x0804, kind: Kind::RsaPss, fips: true },
    Scheme { name: "rsa_pkcs1_sha512", code_point: 0x0601, kind: Kind::RsaPkcs1, fips: true },
    Scheme { name: "rsa_pkcs1_sha384", code_point: 0x0501, kind: Kind::RsaPkcs1, fips: true },
    Scheme { name: "rsa_pkcs1_sha256", code_point: 0x0401, kind: Kind::RsaPkcs1, fips: true },
];

impl Scheme {
    /// The row with this IANA name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        SCHEMES.iter().find(|row| row.name == name)
    }

    /// The row with this code point.
    pub fn by_code_point(code_point: u16) -> Option<&'static Self> {
        SCHEMES.iter().find(|row| row.code_point == code_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_the_scheme_that_it_names() {
        for row in SCHEMES {
            let scheme = rustls::SignatureScheme::from(row.code_point);
            let rustls_name = scheme.as_str().unwrap_or_default();
            let plain = |text: &str| text.replace('_', "").to_lowercase();
            let ours = plain(row.name)
                .replace("rsapssrsae", "rsapss")
                .replace("secp384r1", "nistp384")
                .replace("secp256r1", "nistp256")
                .replace("secp521r1", "nistp521");
            assert_eq!(plain(rustls_name), ours);
        }
    }

    #[test]
    fn every_row_can_be_verified() {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let known = provider.signature_verification_algorithms.supported_schemes();
        for row in SCHEMES {
            assert!(known.contains(&row.code_point.into()), "{}", row.name);
        }
        assert_eq!(known.len(), SCHEMES.len(), "rustls verifies more than there are rows for");
    }
}
