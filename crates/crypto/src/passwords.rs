//! Hashes of passwords as operators write them into files, and their verification.
//!
//! Source: "PHC string format" (github.com/P-H-C/phc-string-format): `$argon2id$v=19$m=65536,t=3,p=4$SALT$HASH`. Functions whose
//! passwords can be found by search, such as those of `crypt` with MD5 or SHA-2, are not read.

use std::fmt::{self, Debug, Formatter};
use std::num::NonZeroU32;
use std::sync::Arc;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA256, PBKDF2_HMAC_SHA512};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use phc::PasswordHash as Phc;
use zeroize::Zeroize;

use crate::passphrase::Costs;
use crate::{CryptoError, Secret, hmac};

/// Bytes of a hash that is made.
const MADE: usize = 32;
/// Least bytes of a hash and of a salt.
const MIN_LEN: usize = 16;
const MIN_SALT: usize = 8;
/// Argon2id: least memory, and least memory times passes, in KiB (OWASP Password Storage Cheat Sheet: `m=7168,t=5` at the least).
const MIN_MEMORY_KIB: u32 = 7168;
const MIN_WORK_KIB: u64 = 5 * 7168;
/// scrypt: least N and r (RFC 7914, section 2, for interactive logins).
const MIN_LOG_N: u32 = 14;
const MIN_R: u32 = 8;
/// PBKDF2: least iterations (OWASP, for HMAC-SHA512).
const MIN_ITERATIONS: u32 = 210_000;
/// Most memory of one verification in KiB, and most passes, lanes and iterations: an operator's slip must not stop a server.
const MAX_MEMORY_KIB: u64 = 256 * 1024;
const MAX_PASSES: u32 = 64;
const MAX_LANES: u32 = 16;
const MAX_ITERATIONS: u32 = 10_000_000;

/// Whether a password has the hash. It takes as long for each password.
type Verify = Box<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A function that hashes passwords.
struct Function {
    /// Its identifier in the string.
    id: &'static str,
    /// Names of its parameters.
    parameters: &'static [&'static str],
    read: fn(Parts) -> Result<Verify, PasswordHashError>,
}

static FUNCTIONS: &[Function] = &[
    Function { id: "argon2id", parameters: &["m", "t", "p"], read: argon2id },
    Function { id: "scrypt", parameters: &["ln", "r", "p"], read: scrypt },
    Function {
        id: "pbkdf2-sha256",
        parameters: &["i", "l"],
        read: |parts| pbkdf2(PBKDF2_HMAC_SHA256, parts),
    },
    Function {
        id: "pbkdf2-sha512",
        parameters: &["i", "l"],
        read: |parts| pbkdf2(PBKDF2_HMAC_SHA512, parts),
    },
];

/// Why a text is no hash that can be used. It never quotes the text, which may be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordHashError {
    /// Another form.
    #[error("it is no hash in the PHC string format, $argon2id$v=19$m=...,t=...,p=...$SALT$HASH")]
    Form,
    /// Another function.
    #[error("its function is none of argon2id, scrypt, pbkdf2-sha256 and pbkdf2-sha512")]
    Function,
    /// Its password could be found by search.
    #[error("its costs are too low: a reader of the file could find the password by search")]
    Weak,
    /// Nobody could log in.
    #[error("its costs are too high: a login would need more than 256 MiB, or take many seconds")]
    Costs,
}

/// The hash of a password.
#[derive(Clone)]
pub struct PasswordHash(Arc<Inner>);

struct Inner {
    text: String,
    function: &'static str,
    verify: Verify,
}

/// A text in the PHC string format.
struct Parts {
    phc: Phc,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Parts {
    fn number(&self, name: &str) -> Result<u32, PasswordHashError> {
        self.phc.params.get_decimal(name).ok_or(PasswordHashError::Form)
    }
}

impl PasswordHash {
    /// Reads a hash in the PHC string format.
    ///
    /// # Errors
    /// It is none, or its function or its costs are none that this program uses.
    pub fn parse(text: &str) -> Result<Self, PasswordHashError> {
        let id = text.strip_prefix('$').and_then(|rest| rest.split('$').next());
        let id = id.ok_or(PasswordHashError::Form)?;
        let function = FUNCTIONS.iter().find(|function| function.id == id);
        let function = function.ok_or(PasswordHashError::Function)?;
        let phc = Phc::new(text).map_err(|_| PasswordHashError::Form)?;
        let (Some(salt), Some(hash)) = (&phc.salt, &phc.hash) else {
            return Err(PasswordHashError::Form);
        };
        let (salt, hash) = (salt.to_vec(), hash.as_bytes().to_vec());
        let mut names = phc.params.iter();
        let is_known = names.all(|(name, _)| function.parameters.contains(&name.as_str()));
        if !is_known || salt.len() < MIN_SALT || hash.len() < MIN_LEN {
            return Err(PasswordHashError::Form);
        }
        let verify = (function.read)(Parts { phc, salt, hash })?;
        Ok(Self(Arc::new(Inner { text: text.to_owned(), function: function.id, verify })))
    }

    /// Hashes a password: Argon2id with RFC 9106's second recommended option, and a new salt. Returns the PHC string.
    ///
    /// # Errors
    /// If there are no random numbers.
    pub fn make(password: &Secret) -> Result<String, CryptoError> {
        let costs = Costs::recommended()?;
        let hash = costs.derive(password, MADE)?;
        let Costs { salt, memory_kib, passes, lanes } = &costs;
        let [salt, hash] =
            [salt.as_slice(), hash.expose()].map(|part| STANDARD_NO_PAD.encode(part));
        Ok(format!("$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${salt}${hash}"))
    }

    /// Whether this is the password. It takes time and memory, as the hash says: not on a thread that others wait for.
    #[must_use]
    pub fn verify(&self, password: &Secret) -> bool {
        (self.0.verify)(password.expose())
    }
}

impl PartialEq for PasswordHash {
    fn eq(&self, other: &Self) -> bool {
        hmac::equal(self.0.text.as_bytes(), other.0.text.as_bytes())
    }
}

impl Eq for PasswordHash {}

impl Debug for PasswordHash {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({})", self.0.function)
    }
}

/// Compares what was derived, and erases it.
fn is_equal(mut derived: Vec<u8>, hash: &[u8]) -> bool {
    let is_equal = hmac::equal(&derived, hash);
    derived.zeroize();
    is_equal
}

fn argon2id(parts: Parts) -> Result<Verify, PasswordHashError> {
    let (memory_kib, passes, lanes) = (parts.number("m")?, parts.number("t")?, parts.number("p")?);
    if parts.phc.version != Some(u32::from(Version::V0x13)) {
        return Err(PasswordHashError::Form);
    }
    if memory_kib < MIN_MEMORY_KIB || u64::from(memory_kib) * u64::from(passes) < MIN_WORK_KIB {
        return Err(PasswordHashError::Weak);
    }
    if u64::from(memory_kib) > MAX_MEMORY_KIB || passes > MAX_PASSES || lanes > MAX_LANES {
        return Err(PasswordHashError::Costs);
    }
    let params = Params::new(memory_kib, passes, lanes, Some(parts.hash.len()));
    let params = params.map_err(|_| PasswordHashError::Form)?;
    Ok(Box::new(move |password| {
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
        let mut memory = vec![Block::default(); params.block_count()];
        let mut out = vec![0; parts.hash.len()];
        let done =
            argon2.hash_password_into_with_memory(password, &parts.salt, &mut out, &mut memory);
        memory.zeroize();
        done.is_ok() & is_equal(out, &parts.hash)
    }))
}

fn scrypt(parts: Parts) -> Result<Verify, PasswordHashError> {
    let (log_n, r, p) = (parts.number("ln")?, parts.number("r")?, parts.number("p")?);
    if log_n < MIN_LOG_N || r < MIN_R {
        return Err(PasswordHashError::Weak);
    }
    // RFC 7914, section 2: 128 * N * r bytes.
    let memory_kib = 1_u64.checked_shl(log_n).and_then(|n| (n / 8).checked_mul(r.into()));
    if memory_kib.is_none_or(|memory| memory > MAX_MEMORY_KIB) || p > MAX_LANES {
        return Err(PasswordHashError::Costs);
    }
    let log_n = u8::try_from(log_n).map_err(|_| PasswordHashError::Form)?;
    let params = scrypt::Params::new(log_n, r, p).map_err(|_| PasswordHashError::Form)?;
    Ok(Box::new(move |password| {
        let mut out = vec![0; parts.hash.len()];
        let done = scrypt::scrypt(password, &parts.salt, &params, &mut out);
        done.is_ok() & is_equal(out, &parts.hash)
    }))
}

fn pbkdf2(algorithm: pbkdf2::Algorithm, parts: Parts) -> Result<Verify, PasswordHashError> {
    let iterations = parts.number("i")?;
    let has_length = parts.phc.params.get_decimal("l");
    if has_length.is_some_and(|length| length as usize != parts.hash.len()) {
        return Err(PasswordHashError::Form);
    }
    if iterations < MIN_ITERATIONS {
        return Err(PasswordHashError::Weak);
    }
    if iterations > MAX_ITERATIONS {
        return Err(PasswordHashError::Costs);
    }
    let iterations = NonZeroU32::new(iterations).ok_or(PasswordHashError::Form)?;
    Ok(Box::new(move |password| {
        pbkdf2::verify(algorithm, iterations, &parts.salt, password, &parts.hash).is_ok()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes().to_vec())
    }

    /// Hashes of other software: the reference implementation of Argon2 (test.c), and Python's hashlib.
    const OTHERS: [(&str, &str); 4] = [
        (
            "password",
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        ),
        (
            "password",
            "$scrypt$ln=14,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$ApdFWK8NumyY29Er9pEt++7OZiECvcqPQXeIayRc7Ck",
        ),
        (
            "correct horse",
            "$pbkdf2-sha256$i=210000,l=32$MDEyMzQ1Njc4OWFiY2RlZg$gAzjJTKzxwbRuecXX1JV5iBmhMazvD07wMpgTKjP2c4",
        ),
        (
            "correct horse",
            "$pbkdf2-sha512$i=210000$MDEyMzQ1Njc4OWFiY2RlZg$k8YH0Yn3oOV/55BXLWBweWK4tppWYEpSjRW0XrRWj+KlhCNUXY/Sq/rSYmjEoC0m/4O1k8u7ZDR6pPsFXzu6/w",
        ),
    ];

    #[test]
    fn hashes_of_other_software_are_verified() {
        for (password, text) in OTHERS {
            let hash = PasswordHash::parse(text).unwrap();
            assert!(hash.verify(&secret(password)), "{text}");
            // Without optimisation scrypt takes seconds.
            if !text.starts_with("$scrypt") {
                assert!(!hash.verify(&secret(&format!("{password} "))), "{text}");
            }
            let shown = format!("{hash:?}");
            assert!(shown.len() < 30 && !shown.contains('$'), "{shown}");
        }
        assert_eq!(OTHERS.len(), FUNCTIONS.len());
    }

    #[test]
    fn what_is_made_is_read() {
        let password = secret("correct horse battery");
        let [one, other] = [(); 2].map(|()| PasswordHash::make(&password).unwrap());
        assert_ne!(one, other, "each has a salt of its own");
        let [one, other] = [one, other].map(|text| PasswordHash::parse(&text).unwrap());
        assert!(one.verify(&password) && other.verify(&password) && one != other);
        for wrong in
            ["", "correct horse batterx", "Correct horse battery", "correct horse battery\0"]
        {
            assert!(!one.verify(&secret(wrong)), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_good_hash_is_refused_and_not_quoted() {
        use PasswordHashError::{Costs, Form, Function, Weak};
        let [argon2, scrypt, pbkdf2, _] = OTHERS.map(|(_, text)| text);
        let change = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        };
        for (text, expected) in [
            (String::new(), Form),
            ("secret".to_owned(), Form),
            ("$ecret".to_owned(), Function),
            ("$6$saltsalt$hash".to_owned(), Function),
            ("$2b$12$abcdefghijklmnopqrstuu".to_owned(), Function),
            (change(argon2, "argon2id", "argon2i"), Function),
            (change(argon2, "argon2id", "argon2d"), Function),
            (change(argon2, "v=19", "v=16"), Form),
            (change(argon2, "$v=19", ""), Form),
            (change(argon2, "m=65536,", ""), Form),
            (change(argon2, "p=1", "p=1,keyid=AAAA"), Form),
            (change(argon2, "$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", ""), Form),
            (change(argon2, "c29tZXNhbHQ", "c29tZQ"), Form),
            (change(argon2, "m=65536", "m=1024"), Weak),
            (change(argon2, "m=65536,t=2", "m=7168,t=4"), Weak),
            (change(argon2, "m=65536", "m=4294967295"), Costs),
            (change(argon2, "t=2", "t=65"), Costs),
            (change(argon2, "p=1", "p=17"), Costs),
            (change(argon2, "p=1", "p=0"), Form),
            (change(scrypt, "ln=14", "ln=13"), Weak),
            (change(scrypt, "r=8", "r=1"), Weak),
            (change(scrypt, "ln=14", "ln=63"), Costs),
            (change(scrypt, "ln=14", "ln=200"), Costs),
            (change(scrypt, "r=8", "r=4294967295"), Costs),
            (change(scrypt, "p=1", "p=1000"), Costs),
            (change(scrypt, "p=1", "p=0"), Form),
            (change(pbkdf2, "i=210000", "i=1000"), Weak),
            (change(pbkdf2, "i=210000", "i=4294967295"), Costs),
            (change(pbkdf2, "l=32", "l=16"), Form),
            (change(pbkdf2, "i=210000,", ""), Form),
        ] {
            let error = PasswordHash::parse(&text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("ecret"), "{error}");
        }
    }
}
