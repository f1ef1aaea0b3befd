//! Ciphers and MACs as rows, and packets under them (RFC 4253, section 6).

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey, chacha20_poly1305_openssh as chacha};
use aws_lc_rs::cipher::{EncryptionContext, StreamingEncryptingKey, UnboundCipherKey};
use aws_lc_rs::{aead, cipher, constant_time, hmac};
use zeroize::Zeroizing;

use crate::error::{Error, Reason};
use crate::exchange::KeySource;

/// A cipher.
pub(crate) struct Cipher {
    pub(crate) name: &'static str,
    kind: Kind,
}

enum Kind {
    /// AES-GCM with the length as associated data (RFC 5647, as OpenSSH's PROTOCOL, 1.6, negotiates it).
    Gcm(&'static aead::Algorithm),
    /// OpenSSH's PROTOCOL.chacha20poly1305.
    ChaCha,
    /// AES in counter mode (RFC 4344, section 4), with a MAC.
    Ctr(&'static cipher::Algorithm, usize),
}

/// A MAC for ciphers that do not authenticate.
pub(crate) struct Mac {
    pub(crate) name: &'static str,
    algorithm: hmac::Algorithm,
    key_len: usize,
    /// Whether the MAC is of the ciphertext, with the length in the clear (OpenSSH's PROTOCOL, 1.5).
    of_ciphertext: bool,
}

/// All ciphers, the preferred first.
pub(crate) static CIPHERS: &[Cipher] = &[
    Cipher { name: "aes256-gcm@openssh.com", kind: Kind::Gcm(&aead::AES_256_GCM) },
    Cipher { name: "chacha20-poly1305@openssh.com", kind: Kind::ChaCha },
    Cipher { name: "aes128-gcm@openssh.com", kind: Kind::Gcm(&aead::AES_128_GCM) },
    Cipher { name: "aes256-ctr", kind: Kind::Ctr(&cipher::AES_256, 32) },
    Cipher { name: "aes192-ctr", kind: Kind::Ctr(&cipher::AES_192, 24) },
    Cipher { name: "aes128-ctr", kind: Kind::Ctr(&cipher::AES_128, 16) },
];

/// All MACs, the preferred first.
pub(crate) static MACS: &[Mac] = &[
    Mac {
        name: "hmac-sha2-512-etm@openssh.com",
        algorithm: hmac::HMAC_SHA512,
        key_len: 64,
        of_ciphertext: true,
    },
    Mac {
        name: "hmac-sha2-256-etm@openssh.com",
        algorithm: hmac::HMAC_SHA256,
        key_len: 32,
        of_ciphertext: true,
    },
    Mac { name: "hmac-sha2-512", algorithm: hmac::HMAC_SHA512, key_len: 64, of_ciphertext: false },
    Mac { name: "hmac-sha2-256", algorithm: hmac::HMAC_SHA256, key_len: 32, of_ciphertext: false },
];

impl Cipher {
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        CIPHERS.iter().find(|row| row.name == name)
    }

    /// Whether the cipher needs no MAC.
    pub(crate) fn authenticates(&self) -> bool {
        !matches!(self.kind, Kind::Ctr(..))
    }
}

impl Mac {
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        MACS.iter().find(|row| row.name == name)
    }
}

/// Letters of the keys of a direction (RFC 4253, section 7.2): initial vector, encryption key, integrity key.
pub(crate) const TO_SERVER: [u8; 3] = *b"ACE";
pub(crate) const TO_CLIENT: [u8; 3] = *b"BDF";

/// Length of the field `packet_length`.
pub(crate) const LENGTH_LEN: usize = 4;

/// Keys of one direction.
pub(crate) enum Keys {
    /// Before the first `SSH_MSG_NEWKEYS`.
    None,
    Gcm(Box<Gcm>),
    ChaCha(Box<ChaCha>),
    Ctr(Box<Ctr>),
}

pub(crate) struct Gcm {
    key: LessSafeKey,
    fixed: [u8; 4],
    /// Invocation counter, which begins anywhere.
    counter: u64,
}

pub(crate) struct ChaCha {
    seal: chacha::SealingKey,
    open: chacha::OpeningKey,
}

pub(crate) struct Ctr {
    /// Encryption and decryption are the same in counter mode.
    stream: StreamingEncryptingKey,
    mac: hmac::Key,
    of_ciphertext: bool,
    /// For the library's output, which must be another buffer than its input.
    scratch: Vec<u8>,
}

const BAD_MAC: Error = Error::new(Reason::MacError, "a packet did not authenticate");

impl Keys {
    /// Keys of the direction with these letters.
    pub(crate) fn new(
        cipher: &Cipher,
        mac: Option<&Mac>,
        source: &KeySource<'_>,
        [iv, encryption, integrity]: [u8; 3],
    ) -> Result<Self, Error> {
        let library = |_| Error::library();
        match (&cipher.kind, mac) {
            (Kind::Gcm(algorithm), _) => {
                let key = source.derive(encryption, algorithm.key_len());
                let key = UnboundKey::new(algorithm, &key).map_err(library)?;
                let iv = source.derive(iv, 12);
                let (fixed, counter) = iv.split_first_chunk::<4>().ok_or(Error::library())?;
                let counter = <[u8; 8]>::try_from(counter).map_err(|_| Error::library())?;
                Ok(Self::Gcm(Box::new(Gcm {
                    key: LessSafeKey::new(key),
                    fixed: *fixed,
                    counter: u64::from_be_bytes(counter),
                })))
            }
            (Kind::ChaCha, _) => {
                let derived = source.derive(encryption, chacha::KEY_LEN);
                let mut key = Zeroizing::new([0; chacha::KEY_LEN]);
                key.copy_from_slice(&derived);
                Ok(Self::ChaCha(Box::new(ChaCha {
                    seal: chacha::SealingKey::new(&key),
                    open: chacha::OpeningKey::new(&key),
                })))
            }
            (Kind::Ctr(algorithm, key_len), Some(mac)) => {
                let key = source.derive(encryption, *key_len);
                let key = UnboundCipherKey::new(algorithm, &key).map_err(library)?;
                let iv = <[u8; 16]>::try_from(source.derive(iv, 16).as_slice())
                    .map_err(|_| Error::library())?;
                let context = EncryptionContext::Iv128((&iv).into());
                let stream =
                    StreamingEncryptingKey::less_safe_ctr(key, context).map_err(library)?;
                Ok(Self::Ctr(Box::new(Ctr {
                    stream,
                    mac: hmac::Key::new(mac.algorithm, &source.derive(integrity, mac.key_len)),
                    of_ciphertext: mac.of_ciphertext,
                    scratch: Vec::new(),
                })))
            }
            (Kind::Ctr(..), None) => Err(Error::exchange("a cipher has no MAC")),
        }
    }

    /// What the encrypted part's length is a multiple of, in bytes.
    pub(crate) fn block_len(&self) -> usize {
        match self {
            Self::None | Self::ChaCha(_) => 8,
            Self::Gcm(_) | Self::Ctr(_) => 16,
        }
    }

    /// Whether the field `packet_length` does not count for the multiple.
    pub(crate) fn length_apart(&self) -> bool {
        match self {
            Self::None => false,
            Self::Gcm(_) | Self::ChaCha(_) => true,
            Self::Ctr(ctr) => ctr.of_ciphertext,
        }
    }

    /// Length of the tag behind a packet, in bytes.
    pub(crate) fn tag_len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Gcm(_) => 16,
            Self::ChaCha(_) => chacha::TAG_LEN,
            Self::Ctr(ctr) => ctr.mac.algorithm().tag_len(),
        }
    }

    /// Bytes of a packet that must be there before its length can be read.
    pub(crate) fn head_len(&self) -> usize {
        match self {
            Self::Ctr(ctr) if !ctr.of_ciphertext => 16,
            _ => LENGTH_LEN,
        }
    }

    /// Encrypts the packet in `out[start..]`, `packet_length` included, and appends its tag.
    pub(crate) fn seal(
        &mut self,
        sequence: u32,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), Error> {
        let packet = &mut out[start..];
        match self {
            Self::None => {}
            Self::Gcm(gcm) => {
                let (length, rest) =
                    packet.split_first_chunk_mut::<LENGTH_LEN>().ok_or(Error::library())?;
                let tag = gcm
                    .key
                    .seal_in_place_separate_tag(gcm_nonce(gcm), Aad::from(&*length), rest)
                    .map_err(|_| Error::library())?;
                gcm.counter = gcm.counter.wrapping_add(1);
                out.extend_from_slice(tag.as_ref());
            }
            Self::ChaCha(keys) => {
                let mut tag = [0; chacha::TAG_LEN];
                keys.seal.seal_in_place(sequence, packet, &mut tag);
                out.extend_from_slice(&tag);
            }
            Self::Ctr(ctr) if ctr.of_ciphertext => {
                ctr.apply(&mut packet[LENGTH_LEN..])?;
                let tag = ctr.tag(sequence, packet);
                out.extend_from_slice(tag.as_ref());
            }
            Self::Ctr(ctr) => {
                let tag = ctr.tag(sequence, packet);
                ctr.apply(packet)?;
                out.extend_from_slice(tag.as_ref());
            }
        }
        Ok(())
    }

    /// `packet_length` of the packet that begins with `head`, which has [`Keys::head_len`] bytes. Called once for a
    /// packet; the field is in the clear in `head` afterwards, unless it authenticates with the rest.
    pub(crate) fn length(&mut self, sequence: u32, head: &mut [u8]) -> Result<u32, Error> {
        let field = |head: &[u8]| head.first_chunk::<LENGTH_LEN>().copied().ok_or(BAD_MAC);
        let field = match self {
            Self::None | Self::Gcm(_) => field(head)?,
            Self::ChaCha(keys) => keys.open.decrypt_packet_length(sequence, field(head)?),
            Self::Ctr(ctr) => {
                if !ctr.of_ciphertext {
                    ctr.apply(head)?;
                }
                field(head)?
            }
        };
        Ok(u32::from_be_bytes(field))
    }

    /// Decrypts and authenticates a whole packet with its tag in place, after [`Keys::length`]. The bytes behind
    /// `packet_length` and before the tag are the plaintext then.
    pub(crate) fn open(&mut self, sequence: u32, packet: &mut [u8]) -> Result<(), Error> {
        let tag_at = packet.len().checked_sub(self.tag_len()).ok_or(BAD_MAC)?;
        let (body, tag) = packet.split_at_mut(tag_at);
        match self {
            Self::None => {}
            Self::Gcm(gcm) => {
                let (length, rest) = body.split_first_chunk_mut::<LENGTH_LEN>().ok_or(BAD_MAC)?;
                gcm.key
                    .open_in_place_separate_tag(gcm_nonce(gcm), Aad::from(&*length), tag, rest)
                    .map_err(|_| BAD_MAC)?;
                gcm.counter = gcm.counter.wrapping_add(1);
            }
            Self::ChaCha(keys) => {
                let tag = <[u8; chacha::TAG_LEN]>::try_from(&*tag).map_err(|_| BAD_MAC)?;
                keys.open.open_in_place(sequence, body, &tag).map_err(|_| BAD_MAC)?;
            }
            Self::Ctr(ctr) if ctr.of_ciphertext => {
                let expected = ctr.tag(sequence, body);
                constant_time::verify_slices_are_equal(expected.as_ref(), tag)
                    .map_err(|_| BAD_MAC)?;
                ctr.apply(&mut body[LENGTH_LEN..])?;
            }
            Self::Ctr(ctr) => {
                // The first block was decrypted to read the length.
                ctr.apply(body.get_mut(16..).ok_or(BAD_MAC)?)?;
                let expected = ctr.tag(sequence, body);
                constant_time::verify_slices_are_equal(expected.as_ref(), tag)
                    .map_err(|_| BAD_MAC)?;
            }
        }
        Ok(())
    }
}

fn gcm_nonce(gcm: &Gcm) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&gcm.fixed);
    nonce[4..].copy_from_slice(&gcm.counter.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl Ctr {
    fn tag(&self, sequence: u32, packet: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.mac);
        context.update(&sequence.to_be_bytes());
        context.update(packet);
        context.sign()
    }

    /// Applies the key stream to whole blocks.
    fn apply(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        // In pieces, so that the second buffer stays small.
        for piece in bytes.chunks_mut(16 * 1024) {
            self.scratch.resize(piece.len(), 0);
            let done = self
                .stream
                .less_safe_update(piece, &mut self.scratch)
                .map_err(|_| Error::library())?;
            piece.copy_from_slice(done.written());
        }
        Ok(())
    }
}
