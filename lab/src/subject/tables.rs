//! Rows from `crypto`'s tables, without naming any algorithm.

use std::sync::Arc;

use der::Decode;
use outlast_crypto::groups::Group;
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::schemes::{self, SCHEMES, Scheme};
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_pki::certificate::algorithm_identifier;
use outlast_pki::whatif::signing;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use spki::AlgorithmIdentifierOwned;
use spki::SubjectPublicKeyInfoRef;

use super::authenticator::{Authenticator, KeyPair};
use super::rows::{Authentication, KeyExchange};
use crate::error::LabError;

/// A row for each group.
pub fn key_exchanges(groups: &'static [Group]) -> Vec<KeyExchange> {
    let row = |group: &'static Group| KeyExchange {
        name: group.name,
        code_point: group.code_point,
        strength: group.strength,
        client_share_len: group.client_share_len,
        server_share_len: group.server_share_len,
        legacy: false,
        group: group.key_exchange,
    };
    groups.iter().map(row).collect()
}

/// A row for each key type that TLS 1.3 has a signature scheme for.
pub fn authentications(specs: &'static [KeySpec]) -> Vec<Authentication> {
    specs.iter().filter_map(authentication).collect()
}

/// Signature schemes of TLS 1.3's handshakes (RFC 8446, section 4.2.3: PKCS #1 v1.5 is for certificates only).
fn handshake_schemes() -> impl Iterator<Item = &'static Scheme> {
    SCHEMES.iter().filter(|row| row.kind != schemes::Kind::RsaPkcs1)
}

fn authentication(spec: &'static KeySpec) -> Option<Authentication> {
    let algorithm = signing(spec)?;
    // Algorithms that take half a second to sign have no scheme, and their keys take long to make.
    if algorithm.slow {
        return None;
    }
    let Shape { scheme, public_key_len, signature_len } = match algorithm.family {
        Family::Rsa => rsa_shape(spec)?,
        _ => shape(spec, algorithm)?,
    };
    let scheme = Scheme::by_code_point(scheme)?;
    Some(Authentication {
        name: Box::leak(name(spec, algorithm).into_boxed_str()),
        code_point: scheme.code_point,
        post_quantum: scheme.kind == schemes::Kind::MlDsa,
        public_key_len,
        signature_len,
        cost_varies: scheme.kind == schemes::Kind::MlDsa,
        legacy: false,
        maker: Box::leak(Box::new(Maker { spec, algorithm })),
    })
}

struct Shape {
    scheme: u16,
    public_key_len: usize,
    signature_len: usize,
}

/// Makes a key for it: whether rustls signs handshakes with such a key shows whether there is a scheme.
fn shape(spec: &'static KeySpec, algorithm: &'static SignatureAlgorithm) -> Option<Shape> {
    let pair = Maker { spec, algorithm }.generate().ok()?;
    let offered: Vec<_> =
        handshake_schemes().map(|row| SignatureScheme::from(row.code_point)).collect();
    let scheme = pair.for_tls().ok()?.choose_scheme(&offered)?.scheme();
    let public_key = SubjectPublicKeyInfoRef::from_der(pair.public_key()).ok()?;
    let public_key_len = public_key.subject_public_key.raw_bytes().len();
    let signature_len = match algorithm.family {
        // `ECDSA-Sig-Value` (RFC 3279, section 2.2.3): two integers as long as the curve's field, which is half the
        // length of a point.
        Family::Ec => longest_ecdsa(public_key_len.saturating_sub(1) / 2),
        _ => pair.sign(b"length").ok()?.len(),
    };
    Some(Shape { scheme: scheme.into(), public_key_len, signature_len })
}

/// An integer is a byte longer when its highest bit is set. P-521's highest byte is 0 or 1.
fn longest_ecdsa(field: usize) -> usize {
    let integer = 2 + field + usize::from(field != 66);
    let content = 2 * integer;
    content + if content < 128 { 2 } else { 3 }
}

/// Making an RSA key takes long, and its sizes follow from the modulus: `RSAPublicKey` is a sequence (4 bytes of header) of the
/// modulus (4, and a zero before its highest bit) and 65537 (5).
fn rsa_shape(spec: &KeySpec) -> Option<Shape> {
    let bits: usize = spec.name.rsplit('_').next()?.parse().ok()?;
    let modulus = bits / 8;
    let scheme = SCHEMES.iter().find(|row| row.kind == schemes::Kind::RsaPss)?;
    Some(Shape {
        scheme: scheme.code_point,
        public_key_len: 4 + 4 + 1 + modulus + 5,
        signature_len: modulus,
    })
}

/// The usual name of a key type: KMS's `ECC_NIST_P256` is `ECDSA P-256`.
fn name(spec: &KeySpec, algorithm: &SignatureAlgorithm) -> String {
    match algorithm.family {
        Family::Ec => {
            let curve = spec.name.rsplit('_').next().unwrap_or(spec.name);
            format!("ECDSA P-{}", curve.trim_start_matches('P'))
        }
        Family::Ed25519 => "Ed25519".to_owned(),
        Family::Rsa => spec.name.replace('_', " "),
        _ => spec.name.replace('_', "-"),
    }
}

#[derive(Debug)]
struct Maker {
    spec: &'static KeySpec,
    algorithm: &'static SignatureAlgorithm,
}

struct Pair {
    key: Box<dyn Key>,
    public_key: Vec<u8>,
    pkcs8: Vec<u8>,
    algorithm: &'static SignatureAlgorithm,
}

impl Authenticator for Maker {
    fn generate(&self) -> Result<Box<dyn KeyPair>, LabError> {
        let stored = self.spec.generate().map_err(LabError::failed)?;
        let key = self.spec.load(&stored).map_err(LabError::failed)?;
        let no_public_key = || LabError::Failed(format!("{:?} has no public key", self.spec));
        Ok(Box::new(Pair {
            public_key: key.public_key().ok_or_else(no_public_key)?.to_vec(),
            pkcs8: self.spec.to_pkcs8(&stored).map_err(LabError::failed)?.expose().to_vec(),
            key,
            algorithm: self.algorithm,
        }))
    }
}

impl KeyPair for Pair {
    fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    fn signature_algorithm(&self) -> Result<AlgorithmIdentifierOwned, LabError> {
        algorithm_identifier(self.algorithm).map_err(LabError::failed)
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        self.key.sign(self.algorithm, Message::Raw(message)).map_err(LabError::failed)
    }

    fn for_tls(&self) -> Result<Arc<dyn SigningKey>, LabError> {
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.pkcs8.as_slice()));
        any_supported_type(&der).map_err(LabError::failed)
    }

    fn pkcs8(&self) -> Option<Vec<u8>> {
        Some(self.pkcs8.clone())
    }
}

#[cfg(test)]
mod tests {
    use outlast_crypto::groups::{GROUPS, Strength};
    use outlast_crypto::keys::KEY_SPECS;
    use rustls::NamedGroup;
    use rustls::crypto::{ActiveKeyExchange, SupportedKxGroup};

    use super::*;
    use crate::subject::{Kind, Subject};
    use crate::tls::Stack;
    use crate::tls::rustls::Rustls;
    use crate::trace::Side;

    /// A group that no table has: another one's implementation under another number.
    #[derive(Debug)]
    struct Renamed;

    const NUMBER: u16 = 0xfe77;

    struct Begun(Box<dyn ActiveKeyExchange>);

    impl SupportedKxGroup for Renamed {
        fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
            Ok(Box::new(Begun(GROUPS[0].key_exchange.start()?)))
        }

        fn start_and_complete(
            &self,
            share: &[u8],
        ) -> Result<rustls::crypto::CompletedKeyExchange, rustls::Error> {
            let mut completed = GROUPS[0].key_exchange.start_and_complete(share)?;
            completed.group = self.name();
            Ok(completed)
        }

        fn name(&self) -> NamedGroup {
            NUMBER.into()
        }
    }

    impl ActiveKeyExchange for Begun {
        fn complete(
            self: Box<Self>,
            share: &[u8],
        ) -> Result<rustls::crypto::SharedSecret, rustls::Error> {
            self.0.complete(share)
        }

        fn pub_key(&self) -> &[u8] {
            self.0.pub_key()
        }

        fn group(&self) -> NamedGroup {
            NUMBER.into()
        }
    }

    #[test]
    fn a_new_row_of_crypto_takes_part() {
        static NEW: &[Group] = &[Group {
            name: "Renamed",
            code_point: NUMBER,
            strength: Strength::Hybrid,
            client_share_len: GROUPS_FIRST.0,
            server_share_len: GROUPS_FIRST.1,
            fips: false,
            key_exchange: &Renamed,
        }];
        const GROUPS_FIRST: (usize, usize) = (1184 + 32, 1088 + 32);
        let rows: &'static [KeyExchange] = Box::leak(key_exchanges(NEW).into_boxed_slice());
        let signatures = Box::leak(authentications(KEY_SPECS).into_boxed_slice());
        let authentication = signatures.iter().find(|row| row.name == "ML-DSA-44").unwrap();
        for kind in [Kind::Full, Kind::HelloRetry, Kind::Resumed, Kind::Mutual] {
            let key_exchange = &rows[0];
            let subject = Subject { key_exchange, authentication, certificates: 2, kind };
            let trace = Rustls.prepare(&subject).unwrap().handshake().unwrap();
            assert!(trace.bytes(Side::Client) > 1184, "{kind:?}");
        }
    }

    #[test]
    fn key_types_without_a_scheme_of_tls_have_no_row() {
        let rows = authentications(KEY_SPECS);
        for absent in ["SLH-DSA", "P-256K1", "ML-KEM", "HMAC", "SYMMETRIC", "ECDSA-P256"] {
            assert!(!rows.iter().any(|row| row.name.contains(absent)), "{absent}");
        }
        assert!(rows.len() >= 10);
    }
}
