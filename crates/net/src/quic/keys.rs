//! rustls' packet keys behind s2n-quic's traits. No cryptography is done here: calls are passed on.
//!
//! s2n-quic-rustls has the same adapters, but their constructors are private.

use rustls::CipherSuite;
use rustls::quic::{self, DirectionalKeys, Keys, PacketKeySet, Secrets};
use s2n_codec::Encoder;
use s2n_quic_core::crypto::packet_protection::Error;
use s2n_quic_core::crypto::{
    self, CryptoSuite, HandshakeHeaderKey, HandshakeKey, HeaderKey, HeaderProtectionMask, Key,
    OneRttHeaderKey, scatter, tls,
};

/// Source of the keys of Initial and Retry packets, which are public (RFC 9001, section 5.2).
pub(super) type Upstream = <s2n_quic_rustls::Server as tls::Endpoint>::Session;

/// Bytes of an authentication tag (RFC 9001, section 5.3: 16 in all suites).
pub(super) const TAG_LEN: usize = 16;

/// Keys of both directions.
pub(super) struct PacketKeys {
    sealer: Box<dyn quic::PacketKey>,
    opener: Box<dyn quic::PacketKey>,
    suite: tls::CipherSuite,
}

impl PacketKeys {
    pub(super) fn new(keys: Keys, suite: CipherSuite) -> (Self, HeaderKeys) {
        let Keys {
            local: DirectionalKeys { packet: sealer, header: sealing },
            remote: DirectionalKeys { packet: opener, header: opening },
        } = keys;
        (Self { sealer, opener, suite: named(suite) }, HeaderKeys { sealing, opening })
    }
}

/// s2n-quic's name of the suite.
pub(super) fn named(suite: CipherSuite) -> tls::CipherSuite {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => tls::CipherSuite::TLS_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384 => tls::CipherSuite::TLS_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
            tls::CipherSuite::TLS_CHACHA20_POLY1305_SHA256
        }
        _ => tls::CipherSuite::Unknown,
    }
}

impl Key for PacketKeys {
    fn decrypt(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<(), Error> {
        match self.opener.decrypt_in_place(number, header, payload) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::DECRYPT_ERROR),
        }
    }

    fn encrypt(
        &mut self,
        number: u64,
        header: &[u8],
        payload: &mut scatter::Buffer<'_>,
    ) -> Result<(), Error> {
        let buffer = payload.flatten();
        let (plaintext, _) = buffer.split_mut();
        match self.sealer.encrypt_in_place(number, header, plaintext) {
            Ok(tag) => {
                buffer.write_slice(tag.as_ref());
                Ok(())
            }
            Err(_) => Err(Error::INTERNAL_ERROR),
        }
    }

    fn tag_len(&self) -> usize {
        self.sealer.tag_len()
    }

    fn aead_confidentiality_limit(&self) -> u64 {
        self.sealer.confidentiality_limit()
    }

    fn aead_integrity_limit(&self) -> u64 {
        self.opener.integrity_limit()
    }

    fn cipher_suite(&self) -> tls::CipherSuite {
        self.suite
    }
}

impl HandshakeKey for PacketKeys {}

/// Keys of both directions, which can be updated (RFC 9001, section 6).
pub(super) struct OneRttKeys {
    keys: PacketKeys,
    secrets: Secrets,
}

impl OneRttKeys {
    pub(super) fn new(keys: Keys, secrets: Secrets, suite: CipherSuite) -> (Self, HeaderKeys) {
        let (keys, header) = PacketKeys::new(keys, suite);
        (Self { keys, secrets }, header)
    }
}

impl Key for OneRttKeys {
    fn decrypt(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<(), Error> {
        self.keys.decrypt(number, header, payload)
    }

    fn encrypt(
        &mut self,
        number: u64,
        header: &[u8],
        payload: &mut scatter::Buffer<'_>,
    ) -> Result<(), Error> {
        self.keys.encrypt(number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.keys.tag_len()
    }

    fn aead_confidentiality_limit(&self) -> u64 {
        self.keys.aead_confidentiality_limit()
    }

    fn aead_integrity_limit(&self) -> u64 {
        self.keys.aead_integrity_limit()
    }

    fn cipher_suite(&self) -> tls::CipherSuite {
        self.keys.cipher_suite()
    }
}

impl crypto::OneRttKey for OneRttKeys {
    fn derive_next_key(&self) -> Self {
        let mut secrets = self.secrets.clone();
        let PacketKeySet { local, remote } = secrets.next_packet_keys();
        let keys = PacketKeys { sealer: local, opener: remote, suite: self.keys.suite };
        Self { keys, secrets }
    }
}

/// Header protection of both directions.
pub(super) struct HeaderKeys {
    sealing: Box<dyn quic::HeaderProtectionKey>,
    opening: Box<dyn quic::HeaderProtectionKey>,
}

/// rustls applies the mask but does not reveal it. Applied to zeros it becomes visible, except in the first byte, of
/// which rustls masks as many bits as the packet's form has: a short header reveals five bits, of which a long one
/// uses four.
fn mask(key: &dyn quic::HeaderProtectionKey, sample: &[u8]) -> HeaderProtectionMask {
    // Marks the packet number as four bytes long, so that the whole mask is applied.
    const FOUR_BYTES: u8 = 0b11;
    let mut mask = HeaderProtectionMask::default();
    let [first, number @ ..] = &mut mask;
    *first = FOUR_BYTES;
    // A sample of the wrong length is the only possible error, and s2n-quic asks for the length.
    let _ = key.encrypt_in_place(sample, first, number);
    *first ^= FOUR_BYTES;
    mask
}

impl HeaderKey for HeaderKeys {
    fn opening_header_protection_mask(&self, sample: &[u8]) -> HeaderProtectionMask {
        mask(self.opening.as_ref(), sample)
    }

    fn opening_sample_len(&self) -> usize {
        self.opening.sample_len()
    }

    fn sealing_header_protection_mask(&self, sample: &[u8]) -> HeaderProtectionMask {
        mask(self.sealing.as_ref(), sample)
    }

    fn sealing_sample_len(&self) -> usize {
        self.sealing.sample_len()
    }
}

impl HandshakeHeaderKey for HeaderKeys {}
impl OneRttHeaderKey for HeaderKeys {}

/// Key types, named in one place.
pub(super) struct Suite;

impl CryptoSuite for Suite {
    type HandshakeKey = PacketKeys;
    type HandshakeHeaderKey = HeaderKeys;
    type InitialKey = <Upstream as CryptoSuite>::InitialKey;
    type InitialHeaderKey = <Upstream as CryptoSuite>::InitialHeaderKey;
    type OneRttKey = OneRttKeys;
    type OneRttHeaderKey = HeaderKeys;
    // Never constructed, because 0-RTT is off.
    type ZeroRttKey = <Upstream as CryptoSuite>::ZeroRttKey;
    type ZeroRttHeaderKey = <Upstream as CryptoSuite>::ZeroRttHeaderKey;
    type RetryKey = <Upstream as CryptoSuite>::RetryKey;
}
