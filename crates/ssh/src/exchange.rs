//! Key exchange methods as rows: an elliptic curve, with or without ML-KEM.

use aws_lc_rs::agreement::{self, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use aws_lc_rs::digest::{self, SHA256, SHA384, SHA512};
use aws_lc_rs::kem::{self, Ciphertext, DecapsulationKey, EncapsulationKey};
use aws_lc_rs::rand::SystemRandom;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::wire::Writer;

/// A key exchange method.
pub(crate) struct Exchange {
    pub(crate) name: &'static str,
    /// HASH of RFC 4253, section 8.
    pub(crate) hash: &'static digest::Algorithm,
    curve: &'static agreement::Algorithm,
    /// Length of the curve's share, in bytes.
    curve_len: usize,
    kem: Option<Kem>,
}

/// The ML-KEM half of a hybrid.
struct Kem {
    algorithm: &'static kem::Algorithm,
    /// Length of an encapsulation key, in bytes.
    public_len: usize,
    /// Length of a ciphertext, in bytes.
    ciphertext_len: usize,
}

const ML_KEM_768: Option<Kem> =
    Some(Kem { algorithm: &kem::ML_KEM_768, public_len: 1184, ciphertext_len: 1088 });
const ML_KEM_1024: Option<Kem> =
    Some(Kem { algorithm: &kem::ML_KEM_1024, public_len: 1568, ciphertext_len: 1568 });

/// All methods, the preferred first.
pub(crate) static EXCHANGES: &[Exchange] = &[
    // RFC 10042.
    Exchange {
        name: "mlkem768x25519-sha256",
        hash: &SHA256,
        curve: &agreement::X25519,
        curve_len: 32,
        kem: ML_KEM_768,
    },
    Exchange {
        name: "mlkem768nistp256-sha256",
        hash: &SHA256,
        curve: &agreement::ECDH_P256,
        curve_len: 65,
        kem: ML_KEM_768,
    },
    Exchange {
        name: "mlkem1024nistp384-sha384",
        hash: &SHA384,
        curve: &agreement::ECDH_P384,
        curve_len: 97,
        kem: ML_KEM_1024,
    },
    // RFC 8731.
    Exchange {
        name: "curve25519-sha256",
        hash: &SHA256,
        curve: &agreement::X25519,
        curve_len: 32,
        kem: None,
    },
    Exchange {
        name: "curve25519-sha256@libssh.org",
        hash: &SHA256,
        curve: &agreement::X25519,
        curve_len: 32,
        kem: None,
    },
    // RFC 5656, section 6.2.1: the hash follows the size of the curve.
    Exchange {
        name: "ecdh-sha2-nistp256",
        hash: &SHA256,
        curve: &agreement::ECDH_P256,
        curve_len: 65,
        kem: None,
    },
    Exchange {
        name: "ecdh-sha2-nistp384",
        hash: &SHA384,
        curve: &agreement::ECDH_P384,
        curve_len: 97,
        kem: None,
    },
    Exchange {
        name: "ecdh-sha2-nistp521",
        hash: &SHA512,
        curve: &agreement::ECDH_P521,
        curve_len: 133,
        kem: None,
    },
];

const BAD_SHARE: Error = Error::exchange("the peer's share of the key exchange is not valid");

/// The shared secret K as it is hashed: an `mpint`, for hybrids a `string` (RFC 10042, section 2.4).
pub(crate) struct SharedSecret(Zeroizing<Vec<u8>>);

impl SharedSecret {
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.0
    }
}

/// What a client keeps of its half until the server answers.
pub(crate) struct Started {
    exchange: &'static Exchange,
    curve: EphemeralPrivateKey,
    kem: Option<DecapsulationKey>,
    share: Vec<u8>,
}

impl Exchange {
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        EXCHANGES.iter().find(|row| row.name == name)
    }

    /// A client's share: ML-KEM's encapsulation key, then the curve's point.
    pub(crate) fn start(&'static self) -> Result<Started, Error> {
        let library = |_| Error::library();
        let curve =
            EphemeralPrivateKey::generate(self.curve, &SystemRandom::new()).map_err(library)?;
        let mut share = Vec::new();
        let kem = match &self.kem {
            Some(kem) => {
                let key = DecapsulationKey::generate(kem.algorithm).map_err(library)?;
                let public = key.encapsulation_key().map_err(library)?;
                share.put(public.key_bytes().map_err(library)?.as_ref());
                Some(key)
            }
            None => None,
        };
        share.put(curve.compute_public_key().map_err(library)?.as_ref());
        Ok(Started { exchange: self, curve, kem, share })
    }

    /// A server's answer to a client's share, and the secret.
    pub(crate) fn answer(&self, client: &[u8]) -> Result<(Vec<u8>, SharedSecret), Error> {
        let library = |_| Error::library();
        let kem_len = self.kem.as_ref().map_or(0, |kem| kem.public_len);
        let (kem_share, point) = self.split(client, kem_len)?;
        let mut share = Vec::new();
        let mut kem_secret = None;
        if let Some(kem) = &self.kem {
            let key = EncapsulationKey::new(kem.algorithm, kem_share).map_err(|_| BAD_SHARE)?;
            let (ciphertext, secret) = key.encapsulate().map_err(|_| BAD_SHARE)?;
            share.put(ciphertext.as_ref());
            kem_secret = Some(secret);
        }
        let curve =
            EphemeralPrivateKey::generate(self.curve, &SystemRandom::new()).map_err(library)?;
        share.put(curve.compute_public_key().map_err(library)?.as_ref());
        let secret = self.secret(curve, point, kem_secret.as_ref().map(AsRef::as_ref))?;
        Ok((share, secret))
    }

    /// The parts of a share. AWS-LC checks points and keys, but would take other forms of points.
    fn split<'a>(&self, share: &'a [u8], kem_len: usize) -> Result<(&'a [u8], &'a [u8]), Error> {
        if share.len() != kem_len + self.curve_len {
            return Err(BAD_SHARE);
        }
        let (kem, point) = share.split_at(kem_len);
        // RFC 5656, section 4: points are not compressed.
        if self.curve_len != 32 && point.first() != Some(&0x04) {
            return Err(BAD_SHARE);
        }
        Ok((kem, point))
    }

    fn secret(
        &self,
        curve: EphemeralPrivateKey,
        point: &[u8],
        kem: Option<&[u8]>,
    ) -> Result<SharedSecret, Error> {
        let peer = UnparsedPublicKey::new(self.curve, point);
        // AWS-LC refuses a secret of zeros (RFC 8731, section 3).
        agree_ephemeral(curve, peer, BAD_SHARE, |secret| {
            let mut encoded = Zeroizing::new(Vec::with_capacity(96));
            match kem {
                None => encoded.put_unsigned(secret),
                // RFC 10042: K = HASH(K_PQ || K_CL), encoded as a string.
                Some(kem) => {
                    let mut hash = digest::Context::new(self.hash);
                    hash.update(kem);
                    hash.update(secret);
                    encoded.put_string(hash.finish().as_ref());
                }
            }
            Ok(SharedSecret(encoded))
        })
    }
}

impl Started {
    pub(crate) fn share(&self) -> &[u8] {
        &self.share
    }

    /// The secret, from a server's answer.
    pub(crate) fn finish(self, server: &[u8]) -> Result<SharedSecret, Error> {
        let exchange = self.exchange;
        let kem_len = exchange.kem.as_ref().map_or(0, |kem| kem.ciphertext_len);
        let (ciphertext, point) = exchange.split(server, kem_len)?;
        let kem = match &self.kem {
            Some(key) => {
                Some(key.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| BAD_SHARE)?)
            }
            None => None,
        };
        exchange.secret(self.curve, point, kem.as_ref().map(AsRef::as_ref))
    }
}

/// Derives keys (RFC 4253, section 7.2).
pub(crate) struct KeySource<'a> {
    pub(crate) hash: &'static digest::Algorithm,
    pub(crate) secret: &'a SharedSecret,
    /// The exchange hash H.
    pub(crate) exchange_hash: &'a [u8],
    pub(crate) session_id: &'a [u8],
}

impl KeySource<'_> {
    /// `len` bytes of the key with this letter.
    pub(crate) fn derive(&self, letter: u8, len: usize) -> Zeroizing<Vec<u8>> {
        let mut key = Zeroizing::new(Vec::with_capacity(len + self.hash.output_len()));
        while key.len() < len {
            let mut hash = digest::Context::new(self.hash);
            hash.update(self.secret.encoded());
            hash.update(self.exchange_hash);
            if key.is_empty() {
                hash.update(&[letter]);
                hash.update(self.session_id);
            } else {
                hash.update(&key);
            }
            key.extend_from_slice(hash.finish().as_ref());
        }
        key.truncate(len);
        key
    }
}
