//! Signature algorithms in certificates and handshakes, with private object identifiers and code points.

use std::sync::{Arc, LazyLock};

use der::Encode;
use der::asn1::{BitString, ObjectIdentifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use super::signature::{Secret, Signature};
use crate::error::LabError;
use crate::subject::{Authentication, Authenticator, KeyPair};

/// Below the private enterprise number that is reserved for documentation (RFC 5612): these identifiers never leave a
/// process. The last arc is the code point of the signature scheme.
const ARC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.32473.6");

/// An algorithm in certificates and handshakes.
#[derive(Debug)]
pub struct Scheme {
    code_point: u16,
    row: &'static Signature,
    oid: ObjectIdentifier,
    verification: WebPkiSupportedAlgorithms,
}

/// All schemes.
pub fn schemes() -> &'static [Scheme] {
    static ROWS: LazyLock<Vec<Scheme>> = LazyLock::new(|| {
        let rows = super::signatures().iter();
        rows.filter_map(|(code_point, row)| Scheme::new(*code_point, row)).collect()
    });
    &ROWS
}

impl Scheme {
    fn new(code_point: u16, row: &'static Signature) -> Option<Self> {
        let oid = ARC.push_arc(u32::from(code_point)).ok()?;
        let identifier = Box::leak(oid.to_der().ok()?.into_boxed_slice());
        let verifier: &'static dyn SignatureVerificationAlgorithm = Box::leak(Box::new(Verifier {
            identifier: AlgorithmIdentifier::from_slice(identifier),
            row,
        }));
        let usual = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        let mut all = usual.all.to_vec();
        all.push(verifier);
        let mut mapping = usual.mapping.to_vec();
        let verifiers: &'static [_] = Box::leak(Box::new([verifier]));
        mapping.push((SignatureScheme::from(code_point), verifiers));
        let verification = WebPkiSupportedAlgorithms {
            all: Box::leak(all.into_boxed_slice()),
            mapping: Box::leak(mapping.into_boxed_slice()),
        };
        Some(Self { code_point, row, oid, verification })
    }

    /// The lab's row.
    pub fn authentication(&'static self) -> Authentication {
        Authentication {
            name: self.row.name,
            code_point: self.code_point,
            post_quantum: true,
            public_key_len: self.row.public_key_len,
            signature_len: self.row.signature_len,
            // All of them use rejection sampling.
            cost_varies: true,
            legacy: true,
            maker: self,
        }
    }

    /// The algorithm.
    pub fn signature(&self) -> &'static Signature {
        self.row
    }

    fn algorithm(&self) -> AlgorithmIdentifierOwned {
        AlgorithmIdentifierOwned { oid: self.oid, parameters: None }
    }
}

impl Authenticator for Scheme {
    fn generate(&self) -> Result<Box<dyn KeyPair>, LabError> {
        let (public_key, secret) = self.row.algorithm.generate()?;
        let public_key = SubjectPublicKeyInfoOwned {
            algorithm: self.algorithm(),
            subject_public_key: BitString::from_bytes(&public_key).map_err(LabError::failed)?,
        };
        Ok(Box::new(Pair {
            public_key: public_key.to_der().map_err(LabError::failed)?,
            algorithm: self.algorithm(),
            key: Key { scheme: SignatureScheme::from(self.code_point), secret },
        }))
    }

    fn verification(&self) -> WebPkiSupportedAlgorithms {
        self.verification
    }
}

struct Pair {
    public_key: Vec<u8>,
    algorithm: AlgorithmIdentifierOwned,
    key: Key,
}

impl KeyPair for Pair {
    fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    fn signature_algorithm(&self) -> Result<AlgorithmIdentifierOwned, LabError> {
        Ok(self.algorithm.clone())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        self.key.secret.sign(message)
    }

    fn for_tls(&self) -> Result<Arc<dyn SigningKey>, LabError> {
        Ok(Arc::new(self.key.clone()))
    }

    fn pkcs8(&self) -> Option<Vec<u8>> {
        None
    }
}

/// Signs handshakes.
#[derive(Clone)]
struct Key {
    scheme: SignatureScheme,
    secret: Arc<dyn Secret>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl SigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&self.scheme).then(|| Box::new(self.clone()) as _)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        // A field of TLS 1.2; from its range for private use.
        SignatureAlgorithm::Unknown(0xe0)
    }
}

impl Signer for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.secret.sign(message).map_err(|error| Error::General(error.to_string()))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

/// Verifies certificates and handshakes.
#[derive(Debug)]
struct Verifier {
    identifier: AlgorithmIdentifier,
    row: &'static Signature,
}

impl SignatureVerificationAlgorithm for Verifier {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let right = self.row.algorithm.verify(public_key, message, signature);
        if right { Ok(()) } else { Err(InvalidSignature) }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.identifier
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.identifier
    }
}
