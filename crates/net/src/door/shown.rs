//! The certificates that a door may show, what is known of them, and keys that sign with one scheme only.

use std::sync::Arc;

use outlast_crypto::schemes::{SCHEMES, Scheme};
use outlast_crypto::signatures::{
    ECDSA_SHA_256, ECDSA_SHA_384, ECDSA_SHA_512, ED25519, ML_DSA_44, ML_DSA_65, ML_DSA_87,
    RSA_PKCS1_SHA_256, RSA_PKCS1_SHA_384, RSA_PKCS1_SHA_512, RSA_PSS_SHA_256, RSA_PSS_SHA_384,
    RSA_PSS_SHA_512, SignatureAlgorithm,
};
use outlast_negotiate::decide::CertificateFacts;
use outlast_pki::certificate::Certificate;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm as KeyAlgorithm, SignatureScheme};

/// A certificate that the door may show.
#[derive(Clone)]
pub struct ServerCertificate {
    /// What the ledger calls it: `ecdsa-p256`.
    pub kind: String,
    /// The chain and its key.
    pub key: Arc<CertifiedKey>,
}

impl ServerCertificate {
    /// What a decision needs to know of it.
    pub fn facts(&self) -> CertificateFacts {
        let can_sign = |scheme: &&Scheme| {
            self.key.key.choose_scheme(&[SignatureScheme::from(scheme.code_point)]).is_some()
        };
        CertificateFacts {
            kind: self.kind.clone(),
            schemes: SCHEMES.iter().filter(can_sign).map(|row| row.code_point).collect(),
            chain: chain_schemes(self.key.cert.iter().map(AsRef::as_ref)),
        }
    }
}

/// What signs a certificate, and what TLS calls that (RFC 8446, section 4.2.3). In certificates the schemes of ECDSA do not
/// bind the curve.
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

/// Stands for a signature that TLS has no scheme for: no policy has it, and no client offers it.
const UNKNOWN: u16 = 0;

/// Code points of what the certificates of a chain are signed with, without a root: nobody verifies a root's own signature
/// (RFC 8446, section 4.2.3).
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

/// Shows one certificate, and signs with one scheme.
#[derive(Debug)]
pub(super) struct Always(Arc<CertifiedKey>);

impl Always {
    pub(super) fn new(certificate: &ServerCertificate, scheme: &Scheme) -> Self {
        let shown = &certificate.key;
        Self(Arc::new(CertifiedKey {
            cert: shown.cert.clone(),
            key: Arc::new(OneScheme {
                key: shown.key.clone(),
                scheme: SignatureScheme::from(scheme.code_point),
            }),
            ocsp: shown.ocsp.clone(),
        }))
    }
}

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A key that signs with the scheme that was decided on, and with no other that it could sign with, too.
#[derive(Debug)]
struct OneScheme {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

impl SigningKey for OneScheme {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&self.scheme).then(|| self.key.choose_scheme(&[self.scheme]))?
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> KeyAlgorithm {
        self.key.algorithm()
    }
}

#[cfg(test)]
mod tests {
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
