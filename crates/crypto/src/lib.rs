//! Algorithms as tables, and the few primitives they need.
//!
//! Every algorithm that Outlast can use is one row: [`groups::GROUPS`] for TLS key exchange, [`suites::SUITES`] and
//! [`schemes::SCHEMES`] for the rest of a TLS handshake, [`ssh::ALGORITHMS`] for names in SSH, [`keys::KEY_SPECS`]
//! for key types, [`signatures::SIGNATURES`] for signature algorithms, [`wrap::WRAPPING`] for wrapping imported keys
//! and [`digests::DIGESTS`] for message digests. A row contains its names, code points, lengths and behaviour; no
//! other code names an algorithm.
//!
//! AWS-LC does the cryptography (through `aws-lc-rs` and rustls). Other crates supply what its safe interface lacks:
//! `ml-dsa` external mu, `ml-kem` keys from seeds, `slh-dsa` SLH-DSA, `ed25519-dalek` Ed25519ph, `sha3` SHAKE,
//! `argon2` keys from passphrases, `scrypt` and `phc` hashes of passwords and `pkcs8` private keys encrypted with a passphrase. This
//! crate implements no primitive.

pub mod aead;
pub mod digests;
pub mod encrypted;
mod error;
pub mod groups;
pub mod hmac;
pub mod keys;
pub mod ml_dsa_context;
pub mod pace;
pub mod passphrase;
pub mod passwords;
pub mod random;
pub mod schemes;
pub mod secret;
pub mod signatures;
pub mod ssh;
pub mod suites;
pub mod versions;
pub mod wrap;

pub use error::CryptoError;
pub use secret::Secret;
