//! Signature algorithms of the certificates in a chain, as TLS names them.

use outlast_crypto::schemes::Scheme;
use outlast_crypto::signatures::{
    ECDSA_SHA_256, ECDSA_SHA_384, ECDSA_SHA_512, ED25519, ML_DSA_44, ML_DSA_65, ML_DSA_87,
    RSA_PKCS1_SHA_256, RSA_PKCS1_SHA_384, RSA_PKCS1_SHA_512, RSA_PSS_SHA_256, RSA_PSS_SHA_384,
    RSA_PSS_SHA_512, SignatureAlgorithm,
};
use outlast_pki::certificate::Certificate;

/// Signature algorithm of a certificate as a TLS scheme (RFC 8446, section 4.2.3). In certificates ECDSA schemes do
/// not determine the curve.
static SIGNED_WITH: &[(&SignatureAlgorithm, &str)] = &[
    (&ML_DSA_44, "mldsa44"),
    (&ML_DSA_65, "mldsa65"),
    (&ML_DSA_87, "mldsa87"),
    (&ECDSA_SHA_256, "ecdsa_secp256r1_sha256"),
    (&ECDSA_SHA_384, "ecdsa_secp384r1_sha384"),
    (&ECDSA_SHA_512, "ecdsa_secp521r1_sha512"),
    (&ED25519, "ed25519"),
    (&RSA_PSS_SHA_256, "rsa_pss_rsae_sha256"),
    (&RSA_PSS_SHA_384, "rsa_pss_rsae_sha384"),
    (&RSA_PSS_SHA_512, "rsa_pss_rsae_sha512"),
    (&RSA_PKCS1_SHA_256, "rsa_pkcs1_sha256"),
    (&RSA_PKCS1_SHA_384, "rsa_pkcs1_sha384"),
    (&RSA_PKCS1_SHA_512, "rsa_pkcs1_sha512"),
];

/// Stands for a signature algorithm without a TLS scheme: no policy contains it and no client offers it.
const UNKNOWN: u16 = 0;

/// Code points of the signature algorithms in a chain, apart from a root: nobody verifies a root's own signature (RFC
/// 8446, section 4.2.3).
pub(crate) fn chain_schemes<'a>(chain: impl Iterator<Item = &'a [u8]>) -> Vec<u16> {
    let mut out = Vec::new();
    for der in chain {
        let code = match Certificate::parse(der) {
            Ok(found) if found.subject() == found.issuer() && found.signed_by(&found) => continue,
            Ok(found) => found.signature_row().and_then(scheme_of),
            Err(_) => None,
        };
        let code = code.map_or(UNKNOWN, |row| row.code_point);
        if !out.contains(&code) {
            out.push(code);
        }
    }
    out
}

fn scheme_of(algorithm: &SignatureAlgorithm) -> Option<&'static Scheme> {
    let (_, name) = SIGNED_WITH.iter().find(|(row, _)| *row == algorithm)?;
    Scheme::by_name(name)
}

#[cfg(test)]
mod tests {
    use outlast_crypto::schemes::SCHEMES;

    use super::*;

    #[test]
    fn every_scheme_has_its_signature_algorithm() {
        for row in SCHEMES {
            assert!(SIGNED_WITH.iter().any(|(_, name)| *name == row.name), "{}", row.name);
        }
        for (_, name) in SIGNED_WITH {
            assert!(Scheme::by_name(name).is_some(), "{name}");
        }
    }
}
