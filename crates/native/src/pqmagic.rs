//! PQMagic (Apache-2.0): the C library with the algorithms of the Chinese competition, Aigis-enc and Aigis-sig, and
//! with Kyber and Dilithium of NIST's third round. The Python package `pqmagic` contains it.
//!
//! Its functions write as many bytes as the algorithm specifies, and nothing in the library says how many. So the
//! sizes are those of `pqmagic_api.h` of version 1.0.7, every output buffer is longer than that by `MARGIN`, and an
//! algorithm that writes into the margin is refused at its first use, which is a round trip, before it reads any data
//! from elsewhere.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::Library;

use crate::Missing;

/// File name of the library in the Python package.
pub const FILE_NAME: &str = "libpqmagic_std.so";
/// How to get it.
pub const HOW_TO_GET: &str = "pip install pqmagic==1.0.7";
/// Bytes after each buffer, more than any two versions of an algorithm differ by.
const MARGIN: usize = 4096;
/// Initial value of the margin.
const UNTOUCHED: u8 = 0xa5;

/// A function returned an error or wrote too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm}: {what}")]
pub struct Failed {
    /// The algorithm.
    pub algorithm: &'static str,
    /// What happened.
    pub what: &'static str,
}

/// A key encapsulation mechanism of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KemSizes {
    /// Name, as in the library's functions.
    pub name: &'static str,
    /// Bytes of a public key.
    pub public_key: usize,
    /// Bytes of a secret key.
    pub secret_key: usize,
    /// Bytes of a ciphertext.
    pub ciphertext: usize,
}

/// A signature algorithm of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignatureSizes {
    /// Name, as in the library's functions.
    pub name: &'static str,
    /// Bytes of a public key.
    pub public_key: usize,
    /// Bytes of a secret key.
    pub secret_key: usize,
    /// Bytes of a signature.
    pub signature: usize,
    /// Whether signatures bind a context.
    pub context: bool,
}

/// All mechanisms, by `pqmagic_api.h`.
pub const KEMS: &[KemSizes] = &[
    kem("aigis_enc_1", 672, 1568, 736),
    kem("aigis_enc_2", 896, 2208, 992),
    kem("aigis_enc_3", 992, 2304, 1056),
    kem("aigis_enc_4", 1440, 3168, 1568),
    kem("kyber512", 800, 1632, 768),
    kem("kyber768", 1184, 2400, 1088),
    kem("kyber1024", 1568, 3168, 1568),
];

/// All signature algorithms, by `pqmagic_api.h`.
pub const SIGNATURES: &[SignatureSizes] = &[
    signature("aigis_sig1", 1056, 2448, 1852, true),
    signature("aigis_sig2", 1312, 3376, 2445, true),
    signature("aigis_sig3", 1568, 3888, 3046, true),
    signature("dilithium2", 1312, 2528, 2420, false),
    signature("dilithium3", 1952, 4000, 3293, false),
    signature("dilithium5", 2592, 4864, 4595, false),
];

const fn kem(
    name: &'static str,
    public_key: usize,
    secret_key: usize,
    ciphertext: usize,
) -> KemSizes {
    KemSizes { name, public_key, secret_key, ciphertext }
}

const fn signature(
    name: &'static str,
    public_key: usize,
    secret_key: usize,
    signature: usize,
    context: bool,
) -> SignatureSizes {
    SignatureSizes { name, public_key, secret_key, signature, context }
}

type KeyPairFn = unsafe extern "C" fn(pk: *mut u8, sk: *mut u8) -> c_int;
type KeyPairFromFn = unsafe extern "C" fn(pk: *mut u8, sk: *mut u8, coins: *mut u8) -> c_int;
type EncapsulateFn = unsafe extern "C" fn(ct: *mut u8, ss: *mut u8, pk: *const u8) -> c_int;
type EncapsulateFromFn =
    unsafe extern "C" fn(ct: *mut u8, ss: *mut u8, pk: *const u8, coins: *mut u8) -> c_int;
type DecapsulateFn = unsafe extern "C" fn(ss: *mut u8, ct: *const u8, sk: *const u8) -> c_int;
type SignFn = unsafe extern "C" fn(
    sig: *mut u8,
    siglen: *mut usize,
    m: *const u8,
    mlen: usize,
    sk: *const u8,
) -> c_int;
type SignContextFn = unsafe extern "C" fn(
    sig: *mut u8,
    siglen: *mut usize,
    m: *const u8,
    mlen: usize,
    ctx: *const u8,
    ctx_len: usize,
    sk: *const u8,
) -> c_int;
type VerifyFn = unsafe extern "C" fn(
    sig: *const u8,
    siglen: usize,
    m: *const u8,
    mlen: usize,
    pk: *const u8,
) -> c_int;
type VerifyContextFn = unsafe extern "C" fn(
    sig: *const u8,
    siglen: usize,
    m: *const u8,
    mlen: usize,
    ctx: *const u8,
    ctx_len: usize,
    pk: *const u8,
) -> c_int;

/// The library, loaded.
#[derive(Debug, Clone)]
pub struct PqMagic {
    library: Arc<Library>,
    path: PathBuf,
}

/// A mechanism, ready for use.
#[derive(Debug, Clone)]
pub struct Kem {
    sizes: KemSizes,
    key_pair: KeyPairFn,
    key_pair_from: KeyPairFromFn,
    encapsulate: EncapsulateFn,
    encapsulate_from: EncapsulateFromFn,
    decapsulate: DecapsulateFn,
    /// Keeps the library loaded, so that the functions stay valid.
    _library: Arc<Library>,
}

/// A signature algorithm, ready for use.
#[derive(Debug, Clone)]
pub struct Signature {
    sizes: SignatureSizes,
    key_pair: KeyPairFn,
    key_pair_from: KeyPairFromFn,
    sign: Signing,
    /// Keeps the library loaded, so that the functions stay valid.
    _library: Arc<Library>,
}

#[derive(Debug, Clone, Copy)]
enum Signing {
    Plain(SignFn, VerifyFn),
    WithContext(SignContextFn, VerifyContextFn),
}

/// Public key and secret key.
pub type KeyPair = (Vec<u8>, Vec<u8>);

impl PqMagic {
    /// Loads the first of these files that exists; for a folder, the library in it.
    pub fn load(candidates: &[PathBuf]) -> Result<Self, Missing> {
        let missing = |reason: String| Missing { library: FILE_NAME.to_owned(), reason };
        let path = candidates
            .iter()
            .map(|path| if path.is_dir() { path.join(FILE_NAME) } else { path.clone() })
            .find(|path| path.is_file())
            .ok_or_else(|| missing(format!("not installed; get it by `{HOW_TO_GET}`")))?;
        // SAFETY: loading runs the library's initialisers. PQMagic has none of its own: it is plain C and depends
        // only on the C library. The caller says which files to trust: for the lab, only those that nobody but root,
        // the user and the program's owner may write.
        let library = unsafe { Library::new(&path) }.map_err(|error| Missing {
            library: path.display().to_string(),
            reason: because(&error),
        })?;
        Ok(Self { library: Arc::new(library), path })
    }

    /// Path of the library file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads the mechanism with these sizes.
    pub fn kem(&self, sizes: KemSizes) -> Result<Kem, Missing> {
        let name = sizes.name;
        // SAFETY: the types are those of the declarations in `pqmagic_api.h`.
        let kem = unsafe {
            Kem {
                sizes,
                key_pair: self.function::<KeyPairFn>(name, "keypair")?,
                key_pair_from: self.function::<KeyPairFromFn>(name, "keypair_internal")?,
                encapsulate: self.function::<EncapsulateFn>(name, "enc")?,
                encapsulate_from: self.function::<EncapsulateFromFn>(name, "enc_internal")?,
                decapsulate: self.function::<DecapsulateFn>(name, "dec")?,
                _library: self.library.clone(),
            }
        };
        try_out(|| kem.try_out()).map_err(|error| self.missing(&error.to_string()))?;
        Ok(kem)
    }

    /// Loads the signature algorithm with these sizes.
    pub fn signature(&self, sizes: SignatureSizes) -> Result<Signature, Missing> {
        let name = sizes.name;
        // SAFETY: the types are those in `pqmagic_api.h`; only algorithms with a context take one.
        let signature = unsafe {
            Signature {
                sizes,
                key_pair: self.function::<KeyPairFn>(name, "keypair")?,
                key_pair_from: self.function::<KeyPairFromFn>(name, "keypair_internal")?,
                sign: if sizes.context {
                    Signing::WithContext(
                        self.function::<SignContextFn>(name, "signature")?,
                        self.function::<VerifyContextFn>(name, "verify")?,
                    )
                } else {
                    Signing::Plain(
                        self.function::<SignFn>(name, "signature")?,
                        self.function::<VerifyFn>(name, "verify")?,
                    )
                },
                _library: self.library.clone(),
            }
        };
        try_out(|| signature.try_out()).map_err(|error| self.missing(&error.to_string()))?;
        Ok(signature)
    }

    fn missing(&self, reason: &str) -> Missing {
        Missing { library: self.path.display().to_string(), reason: reason.to_owned() }
    }

    /// # Safety `F` must be a function pointer with the type of the function.
    unsafe fn function<F: Copy>(&self, algorithm: &str, name: &str) -> Result<F, Missing> {
        let symbol = format!("pqmagic_{algorithm}_std_{name}");
        // SAFETY: the caller vouches for the type; every holder of the copy keeps the library loaded.
        unsafe { self.library.get::<F>(symbol.as_str()) }
            .map(|function| *function)
            .map_err(|error| self.missing(&because(&error)))
    }
}

/// Message of the loader, which is in the error's source.
fn because(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// Rounds in which an algorithm is tried out. A round misses one byte too many if that byte happens to be
/// [`UNTOUCHED`], with a probability of 1/256; all rounds miss it with 1/2^64.
const ROUNDS: usize = 8;

fn try_out(round: impl Fn() -> Result<(), Failed>) -> Result<(), Failed> {
    (0..ROUNDS).try_for_each(|_| round())
}

/// A buffer with a margin.
struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    fn new(len: usize) -> Self {
        Self { bytes: vec![UNTOUCHED; len + MARGIN], len }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// The bytes written, unless too many were.
    fn take(mut self) -> Option<Vec<u8>> {
        let margin = self.bytes.split_off(self.len);
        margin.iter().all(|byte| *byte == UNTOUCHED).then_some(self.bytes)
    }
}

/// Coins followed by readable bytes, because algorithms read different numbers of them.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = Vec::with_capacity(bytes.len() + MARGIN);
    padded.extend_from_slice(bytes);
    padded.resize(bytes.len() + MARGIN, UNTOUCHED);
    padded
}

impl Kem {
    /// Sizes of its keys and ciphertexts.
    pub fn sizes(&self) -> KemSizes {
        self.sizes
    }

    fn try_out(&self) -> Result<(), Failed> {
        let (public_key, secret_key) = self.generate()?;
        let (ciphertext, secret) = self.encapsulate(&public_key)?;
        if self.decapsulate(&secret_key, &ciphertext)? == secret {
            return Ok(());
        }
        Err(Failed { algorithm: self.sizes.name, what: "the two sides have different secrets" })
    }

    /// Generates a key pair.
    pub fn generate(&self) -> Result<KeyPair, Failed> {
        // SAFETY: both buffers are longer than the library's header requires.
        self.key_pair(|public, secret| unsafe { (self.key_pair)(public, secret) })
    }

    /// Key pair from these coins, for known answers.
    pub fn generate_from(&self, coins: &[u8]) -> Result<KeyPair, Failed> {
        let mut coins = padded(coins);
        // SAFETY: as above; the coins are longer than any algorithm reads.
        self.key_pair(|public, secret| unsafe {
            (self.key_pair_from)(public, secret, coins.as_mut_ptr())
        })
    }

    fn key_pair(&self, make: impl FnOnce(*mut u8, *mut u8) -> c_int) -> Result<KeyPair, Failed> {
        key_pair(self.sizes.name, self.sizes.public_key, self.sizes.secret_key, make)
    }

    /// Returns a ciphertext and its shared secret.
    pub fn encapsulate(&self, public_key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Failed> {
        // SAFETY: the buffers are longer than the header requires, and the key has the right length (`encapsulate_by`
        // checks it).
        self.encapsulate_by(public_key, |ct, ss, pk| unsafe { (self.encapsulate)(ct, ss, pk) })
    }

    /// Ciphertext and shared secret from these coins, for known answers.
    pub fn encapsulate_from(
        &self,
        public_key: &[u8],
        coins: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>), Failed> {
        let mut coins = padded(coins);
        // SAFETY: as above; the coins are longer than any algorithm reads.
        self.encapsulate_by(public_key, |ct, ss, pk| unsafe {
            (self.encapsulate_from)(ct, ss, pk, coins.as_mut_ptr())
        })
    }

    fn encapsulate_by(
        &self,
        public_key: &[u8],
        call: impl FnOnce(*mut u8, *mut u8, *const u8) -> c_int,
    ) -> Result<(Vec<u8>, Vec<u8>), Failed> {
        let failed = |what| Failed { algorithm: self.sizes.name, what };
        if public_key.len() != self.sizes.public_key {
            return Err(failed("a public key of the wrong length"));
        }
        let (mut ciphertext, mut secret) =
            (Buffer::new(self.sizes.ciphertext), Buffer::new(SHARED_SECRET));
        if call(ciphertext.pointer(), secret.pointer(), public_key.as_ptr()) != 0 {
            return Err(failed("encapsulation failed"));
        }
        let both = ciphertext.take().zip(secret.take());
        both.ok_or_else(|| failed("the library has other sizes"))
    }

    /// Shared secret of a ciphertext.
    pub fn decapsulate(&self, secret_key: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, Failed> {
        let failed = |what| Failed { algorithm: self.sizes.name, what };
        if secret_key.len() != self.sizes.secret_key || ciphertext.len() != self.sizes.ciphertext {
            return Err(failed("a key or ciphertext of the wrong length"));
        }
        let mut secret = Buffer::new(SHARED_SECRET);
        // SAFETY: all three are at least as long as the header requires.
        let returned = unsafe {
            (self.decapsulate)(secret.pointer(), ciphertext.as_ptr(), secret_key.as_ptr())
        };
        if returned != 0 {
            return Err(failed("decapsulation failed"));
        }
        secret.take().ok_or_else(|| failed("the library has other sizes"))
    }
}

/// Length in bytes of every mechanism's shared secret.
pub const SHARED_SECRET: usize = 32;

impl Signature {
    /// Sizes of its keys and signatures.
    pub fn sizes(&self) -> SignatureSizes {
        self.sizes
    }

    fn try_out(&self) -> Result<(), Failed> {
        let (public_key, secret_key) = self.generate()?;
        let signature = self.sign(&secret_key, b"tried", b"")?;
        if self.verify(&public_key, b"tried", b"", &signature) {
            return Ok(());
        }
        Err(Failed { algorithm: self.sizes.name, what: "its own signature is not right" })
    }

    /// Generates a key pair.
    pub fn generate(&self) -> Result<KeyPair, Failed> {
        // SAFETY: both buffers are longer than the library's header requires.
        self.key_pair(|public, secret| unsafe { (self.key_pair)(public, secret) })
    }

    /// Key pair from these coins, for known answers.
    pub fn generate_from(&self, coins: &[u8]) -> Result<KeyPair, Failed> {
        let mut coins = padded(coins);
        // SAFETY: as above; the coins are longer than any algorithm reads.
        self.key_pair(|public, secret| unsafe {
            (self.key_pair_from)(public, secret, coins.as_mut_ptr())
        })
    }

    fn key_pair(&self, make: impl FnOnce(*mut u8, *mut u8) -> c_int) -> Result<KeyPair, Failed> {
        key_pair(self.sizes.name, self.sizes.public_key, self.sizes.secret_key, make)
    }

    /// Signs a message; the context is empty if the algorithm has none.
    pub fn sign(
        &self,
        secret_key: &[u8],
        message: &[u8],
        context: &[u8],
    ) -> Result<Vec<u8>, Failed> {
        let failed = |what| Failed { algorithm: self.sizes.name, what };
        if secret_key.len() != self.sizes.secret_key {
            return Err(failed("a secret key of the wrong length"));
        }
        let mut signature = Buffer::new(self.sizes.signature);
        let mut len = self.sizes.signature;
        let (out, m, mlen) = (signature.pointer(), message.as_ptr(), message.len());
        let returned = match self.sign {
            // SAFETY: the message and the context are passed with their lengths; the key has the length in the
            // header, and the buffer for the signature is longer.
            Signing::WithContext(sign, _) => unsafe {
                sign(out, &mut len, m, mlen, context.as_ptr(), context.len(), secret_key.as_ptr())
            },
            // SAFETY: the same without a context.
            Signing::Plain(sign, _) => unsafe { sign(out, &mut len, m, mlen, secret_key.as_ptr()) },
        };
        if returned != 0 {
            return Err(failed("signing failed"));
        }
        let mut signature =
            signature.take().ok_or_else(|| failed("the library has other sizes"))?;
        signature.truncate(len);
        Ok(signature)
    }

    /// Whether a signature is valid.
    pub fn verify(
        &self,
        public_key: &[u8],
        message: &[u8],
        context: &[u8],
        signature: &[u8],
    ) -> bool {
        if public_key.len() != self.sizes.public_key || signature.len() != self.sizes.signature {
            return false;
        }
        let (sig, siglen) = (signature.as_ptr(), signature.len());
        let (m, mlen) = (message.as_ptr(), message.len());
        let returned = match self.sign {
            // SAFETY: everything but the key is passed with its length, and the key has the length in the header.
            Signing::WithContext(_, verify) => unsafe {
                verify(sig, siglen, m, mlen, context.as_ptr(), context.len(), public_key.as_ptr())
            },
            // SAFETY: the same without a context.
            Signing::Plain(_, verify) => unsafe {
                verify(sig, siglen, m, mlen, public_key.as_ptr())
            },
        };
        returned == 0
    }
}

fn key_pair(
    algorithm: &'static str,
    public_key: usize,
    secret_key: usize,
    make: impl FnOnce(*mut u8, *mut u8) -> c_int,
) -> Result<KeyPair, Failed> {
    let (mut public, mut secret) = (Buffer::new(public_key), Buffer::new(secret_key));
    if make(public.pointer(), secret.pointer()) != 0 {
        return Err(Failed { algorithm, what: "no key pair was made" });
    }
    let both = public.take().zip(secret.take());
    both.ok_or(Failed { algorithm, what: "the library has other sizes" })
}
