//! A machine's private key in a token (PKCS #11): it signs there, and never leaves it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use der::Encode;
use der::asn1::UintRef;
use outlast_agent::signer::{Identity, SignError, Signs, scheme_of};
use outlast_crypto::digests;
use outlast_crypto::signatures::Family;
use outlast_pki::certificate::Certificate;

use super::{located, secret_line};
use crate::failure::Failure;

/// How the URI of a token begins (RFC 7512).
pub(super) const SCHEME: &str = "pkcs11:";

/// The parts of a URI that are used.
struct Uri {
    token: Option<String>,
    object: String,
    module: PathBuf,
    pin_file: Option<PathBuf>,
}

struct TokenKey {
    /// Sessions are not shared between threads.
    session: Mutex<Session>,
    key: ObjectHandle,
    family: Family,
    /// The library must outlive its sessions.
    _library: Pkcs11,
}

/// A key in a token with its certificate.
pub(super) fn identity(
    uri: &str,
    base: &Path,
    certificates: &[Vec<u8>],
) -> Result<Identity, Failure> {
    let uri = Uri::parse(uri, base)?;
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the key {} in the token cannot be used: {error}", uri.object))
    };
    let first = certificates.first().ok_or_else(|| wrong(&"there is no certificate"))?;
    let certificate = Certificate::parse(first)?;
    let family = scheme_of(&certificate).map_err(|error| wrong(&error))?.family;
    if family == Family::MlDsa {
        return Err(wrong(&"tokens are used for RSA and EC keys only")
            .hint("keep an ML-DSA key in a file, with a passphrase"));
    }
    let library = library(&uri.module)?;
    let key = open(&uri, library, family).map_err(|error| wrong(&error))?;
    // A signature is the proof that key and certificate are a pair.
    let probe = key.sign(b"outlast").map_err(|error| wrong(&error))?;
    let public_key = certificate.public_key()?;
    let row = match family {
        Family::Rsa => &outlast_crypto::signatures::RSA_PKCS1_SHA_256,
        _ => &outlast_crypto::signatures::ECDSA_SHA_256,
    };
    let message = outlast_crypto::signatures::Message::Raw(b"outlast");
    if row.verify(&public_key, message, &probe).is_err() {
        return Err(wrong(&SignError::Pair));
    }
    Identity::new(certificates, Box::new(key)).map_err(|error| wrong(&error))
}

fn library(module: &Path) -> Result<Pkcs11, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::file(module, &format!("the PKCS #11 module cannot be loaded: {error}"))
            .hint("give the path of the token's library as module-path")
    };
    let library = Pkcs11::new(module).map_err(|error| failed(&error))?;
    match library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => Ok(library),
        Err(error) => Err(failed(&error)),
    }
}

fn open(uri: &Uri, library: Pkcs11, family: Family) -> Result<TokenKey, String> {
    let text = |error: Error| error.to_string();
    let slots = library.get_slots_with_initialized_token().map_err(text)?;
    let mut found = None;
    for slot in slots {
        let label = library.get_token_info(slot).map_err(text)?.label().trim_end().to_owned();
        if uri.token.as_ref().is_none_or(|wanted| *wanted == label) {
            found = Some(slot);
            break;
        }
    }
    let slot = found.ok_or("the token is not there")?;
    let session = library.open_ro_session(slot).map_err(text)?;
    let pin = match &uri.pin_file {
        Some(path) => {
            let pin = secret_line(path).map_err(|failure| failure.message().to_owned())?;
            Some(AuthPin::new(String::from_utf8_lossy(pin.expose()).into_owned().into()))
        }
        None => None,
    };
    match session.login(UserType::User, pin.as_ref()) {
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {}
        Err(error) => return Err(text(error)),
    }
    let template = [
        Attribute::Class(ObjectClass::PRIVATE_KEY),
        Attribute::Label(uri.object.clone().into_bytes()),
    ];
    let key = match session.find_objects(&template).map_err(text)?.as_slice() {
        [key] => *key,
        [] => return Err("there is no private key with this label".to_owned()),
        _ => return Err("several private keys have this label".to_owned()),
    };
    Ok(TokenKey { session: Mutex::new(session), key, family, _library: library })
}

impl Signs for TokenKey {
    fn sign(&self, string: &[u8]) -> Result<Vec<u8>, SignError> {
        let failed = |error: &dyn std::fmt::Display| SignError::Key(error.to_string());
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        match self.family {
            Family::Rsa => session
                .sign(&Mechanism::Sha256RsaPkcs, self.key, string)
                .map_err(|error| failed(&error)),
            _ => {
                // Every token has plain ECDSA, but not every one hashes.
                let digest = digests::sha256(string);
                let raw = session.sign(&Mechanism::Ecdsa, self.key, &digest);
                der_signature(&raw.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
            }
        }
    }
}

/// PKCS #11 gives r and s as numbers of the same length; X.509 has them in DER.
fn der_signature(raw: &[u8]) -> Result<Vec<u8>, der::Error> {
    #[derive(der::Sequence)]
    struct Signature<'a> {
        r: UintRef<'a>,
        s: UintRef<'a>,
    }
    let (r, s) = raw.split_at(raw.len() / 2);
    Signature { r: UintRef::new(r)?, s: UintRef::new(s)? }.to_der()
}

impl Uri {
    fn parse(text: &str, base: &Path) -> Result<Self, Failure> {
        let wrong = |what: &str| {
            Failure::new(format!("the PKCS #11 URI is not understood: {what}")).hint(
                "it has the form pkcs11:token=LABEL;object=LABEL?module-path=FILE&pin-source=file:FILE",
            )
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut token, mut object, mut module, mut pin_file) = (None, None, None, None);
        for part in path.split(';').chain(query.split('&')).filter(|part| !part.is_empty()) {
            // The value may be a PIN: only names are quoted.
            let (name, value) = part.split_once('=').ok_or_else(|| wrong("a part has no ="))?;
            let value = percent_decoded(value).ok_or_else(|| wrong("its encoding"))?;
            match name {
                "token" => token = Some(value),
                "object" => object = Some(value),
                "module-path" => module = Some(PathBuf::from(value)),
                "pin-source" => {
                    let file = value.strip_prefix("file:").unwrap_or(&value);
                    pin_file = Some(located(Path::new(file), base)?);
                }
                "type" if value == "private" => {}
                other => return Err(wrong(&format!("{other} is not known"))),
            }
        }
        Ok(Self {
            token,
            object: object.ok_or_else(|| wrong("object is missing"))?,
            module: module.ok_or_else(|| wrong("module-path is missing"))?,
            pin_file,
        })
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail.get(2..)?;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}
