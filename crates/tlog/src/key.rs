//! Keys that sign notes: algorithms as rows, verifier keys (`name+id+key`), signers.

use std::fmt;
use std::str::FromStr;

use outlast_crypto::digests::sha256;
use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::signatures::{self, Message, SignatureAlgorithm};
use outlast_crypto::{CryptoError, Secret};

pub use crate::KeyError;
use crate::checkpoint::Checkpoint;
use crate::note::NoteSignature;
use crate::text;

/// A kind of signature (c2sp.org/signed-note, "Signature types"; c2sp.org/tlog-cosignature).
pub struct Algorithm {
    /// Name in messages.
    pub name: &'static str,
    /// Type byte before the public key.
    pub kind: u8,
    /// Row of `outlast_crypto::keys` for its keys.
    pub key_spec: &'static str,
    /// Whether its signatures contain a time.
    pub timed: bool,
    /// Whether a log may sign its checkpoints with it.
    pub of_logs: bool,
    /// Whether a witness may cosign with it.
    pub of_witnesses: bool,
    signature: &'static SignatureAlgorithm,
    /// DER of `SubjectPublicKeyInfo` before the raw key.
    spki_prefix: &'static [u8],
    key_len: usize,
    signature_len: usize,
    /// (signer's name, time, note's text) to the signed message
    message: fn(&str, u64, &str) -> Option<Vec<u8>>,
}

/// ML-DSA-44 over name, time, origin, size and root, for logs and witnesses.
pub static ML_DSA_44: Algorithm = Algorithm {
    name: "ML-DSA-44 cosignature",
    kind: 0x06,
    key_spec: "ML_DSA_44",
    timed: true,
    of_logs: true,
    of_witnesses: true,
    signature: &signatures::ML_DSA_44,
    // SEQUENCE { SEQUENCE { 2.16.840.1.101.3.4.3.17 }, BIT STRING } (RFC 9881)
    spki_prefix: &[
        0x30, 0x82, 0x05, 0x32, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04,
        0x03, 0x11, 0x03, 0x82, 0x05, 0x21, 0x00,
    ],
    key_len: 1312,
    signature_len: 2420,
    message: |name, time, text| subtree_message(name, time, &Checkpoint::parse(text).ok()?),
};
/// Ed25519 over the note's text, for logs. Logs that use the public witness network must also sign with it.
pub static ED25519_LOG: Algorithm = Algorithm {
    name: "Ed25519",
    kind: 0x01,
    key_spec: "ECC_NIST_EDWARDS25519",
    timed: false,
    of_logs: true,
    of_witnesses: false,
    signature: &signatures::ED25519,
    spki_prefix: &ED25519_SPKI,
    key_len: 32,
    signature_len: 64,
    message: |_, _, text| Some(text.as_bytes().to_vec()),
};
/// Ed25519 over a time and the note's text, for witnesses.
pub static ED25519_COSIGNATURE: Algorithm = Algorithm {
    name: "Ed25519 cosignature",
    kind: 0x04,
    timed: true,
    of_logs: false,
    of_witnesses: true,
    key_spec: "ECC_NIST_EDWARDS25519",
    signature: &signatures::ED25519,
    spki_prefix: &ED25519_SPKI,
    key_len: 32,
    signature_len: 64,
    message: |_, time, text| {
        Checkpoint::parse(text).ok()?;
        Some(format!("cosignature/v1\ntime {time}\n{text}").into_bytes())
    },
};

/// All rows.
pub static ALGORITHMS: &[&Algorithm] = &[&ML_DSA_44, &ED25519_LOG, &ED25519_COSIGNATURE];

// RFC 8410, section 4.
const ED25519_SPKI: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// `cosigned_message` for a checkpoint. It would not cover extension lines, so there must be none.
fn subtree_message(name: &str, time: u64, checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    if !checkpoint.extensions().is_empty() {
        return None;
    }
    let origin = checkpoint.origin();
    let mut message = b"subtree/v1\n\0".to_vec();
    message.push(u8::try_from(name.len()).ok()?);
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&time.to_be_bytes());
    message.push(u8::try_from(origin.len()).ok()?);
    message.extend_from_slice(origin.as_bytes());
    message.extend_from_slice(&0_u64.to_be_bytes());
    message.extend_from_slice(&checkpoint.size().to_be_bytes());
    message.extend_from_slice(checkpoint.root());
    Some(message)
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Algorithm {}

/// A public key with a name: `example.com/log+c74f20a3+...`.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; 4],
    algorithm: &'static Algorithm,
    spki: Vec<u8>,
}

impl VerifierKey {
    /// A key by its raw bytes.
    pub fn new(
        name: &str,
        algorithm: &'static Algorithm,
        public_key: &[u8],
    ) -> Result<Self, KeyError> {
        if !text::is_key_name(name) {
            return Err(KeyError::Name);
        }
        if public_key.len() != algorithm.key_len {
            return Err(KeyError::Length);
        }
        let kind = [algorithm.kind];
        let digest = sha256(&[name.as_bytes(), b"\n", &kind, public_key].concat());
        let [a, b, c, d, ..] = digest;
        Ok(Self {
            name: name.to_owned(),
            id: [a, b, c, d],
            algorithm,
            spki: [algorithm.spki_prefix, public_key].concat(),
        })
    }

    /// Its name: for a log's key, the log's origin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first four bytes of the hash of name, kind and key.
    pub fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The raw public key.
    pub fn public_key(&self) -> &[u8] {
        self.spki.get(self.algorithm.spki_prefix.len()..).unwrap_or_default()
    }

    /// Whether the signature claims to be this key's.
    pub fn is_named_by(&self, signature: &NoteSignature) -> bool {
        signature.id() == self.id && signature.name() == self.name
    }

    /// Verifies a signature over a note's text; returns its time, if it has one.
    pub fn verify(&self, text: &str, signature: &NoteSignature) -> Result<Option<u64>, KeyError> {
        if !self.is_named_by(signature) {
            return Err(KeyError::Signature);
        }
        let (time, bytes) = if self.algorithm.timed {
            let (time, bytes) = signature.bytes().split_first_chunk().ok_or(KeyError::Signature)?;
            (u64::from_be_bytes(*time), bytes)
        } else {
            (0, signature.bytes())
        };
        if time > MAX_TIME {
            return Err(KeyError::Time);
        }
        if bytes.len() != self.algorithm.signature_len {
            return Err(KeyError::Signature);
        }
        let message = (self.algorithm.message)(&self.name, time, text).ok_or(KeyError::Message)?;
        match self.algorithm.signature.verify(&self.spki, Message::Raw(&message), bytes) {
            Ok(()) => Ok((time != 0).then_some(time)),
            Err(CryptoError::InvalidSignature) => Err(KeyError::Signature),
            Err(other) => Err(other.into()),
        }
    }
}

/// The largest time: 63 bits of seconds.
const MAX_TIME: u64 = i64::MAX as u64;

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = u32::from_be_bytes(self.id);
        let key = [&[self.algorithm.kind], self.public_key()].concat();
        write!(f, "{}+{id:08x}+{}", self.name, text::to_base64(&key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:08x}", self.name, u32::from_be_bytes(self.id))
    }
}

impl FromStr for VerifierKey {
    type Err = KeyError;

    fn from_str(vkey: &str) -> Result<Self, KeyError> {
        // A key in base64 may contain plus signs, too.
        let mut parts = vkey.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(KeyError::Form);
        };
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if id.len() != 8 || !id.bytes().all(digits) {
            return Err(KeyError::Form);
        }
        let key = text::base64(key).ok_or(KeyError::Form)?;
        let (kind, key) = key.split_first().ok_or(KeyError::Form)?;
        let algorithm =
            ALGORITHMS.iter().find(|row| row.kind == *kind).ok_or(KeyError::Algorithm(*kind))?;
        let found = Self::new(name, algorithm, key)?;
        if u32::from_str_radix(id, 16) != Ok(u32::from_be_bytes(found.id)) {
            return Err(KeyError::Id);
        }
        Ok(found)
    }
}

/// A key that signs notes.
pub struct Signer {
    public: VerifierKey,
    secret: Box<dyn Key>,
}

impl Signer {
    /// A signer from the stored form of its key ([`Algorithm::key_spec`]).
    pub fn new(
        name: &str,
        algorithm: &'static Algorithm,
        stored: &Secret,
    ) -> Result<Self, KeyError> {
        let spec = KeySpec::by_name(algorithm.key_spec).ok_or(CryptoError::UnsupportedAlgorithm)?;
        let secret = spec.load(stored)?;
        let raw = secret
            .public_key()
            .and_then(|spki| spki.strip_prefix(algorithm.spki_prefix))
            .ok_or(CryptoError::InvalidKey)?;
        let public = VerifierKey::new(name, algorithm, raw)?;
        Ok(Self { public, secret })
    }

    /// A new key in its stored form.
    pub fn generate(algorithm: &'static Algorithm) -> Result<Secret, KeyError> {
        let spec = KeySpec::by_name(algorithm.key_spec).ok_or(CryptoError::UnsupportedAlgorithm)?;
        Ok(spec.generate()?)
    }

    /// The public key.
    pub fn verifier(&self) -> &VerifierKey {
        &self.public
    }

    /// Signs a note's text at `time`, in seconds since 1970, which algorithms without a time ignore.
    pub fn sign(&self, text: &str, time: u64) -> Result<NoteSignature, KeyError> {
        if time > MAX_TIME {
            return Err(KeyError::Time);
        }
        let algorithm = self.public.algorithm;
        let message =
            (algorithm.message)(&self.public.name, time, text).ok_or(KeyError::Message)?;
        let signature = self.secret.sign(algorithm.signature, Message::Raw(&message))?;
        let bytes = if algorithm.timed {
            [time.to_be_bytes().as_slice(), &signature].concat()
        } else {
            signature
        };
        NoteSignature::new(&self.public.name, self.public.id, bytes).ok_or(KeyError::Name)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.public.fmt(f)
    }
}
