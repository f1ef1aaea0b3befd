//! A key-encryption key in a token: AES-256, generated there and never outside of it.
//!
//! The token wraps root keys with AES-GCM, with their record key as associated data. It is needed only when a root
//! key is unwrapped for the first time, so it may be slow. Layout: `nonce (12) ‖ ciphertext ‖ tag (16)`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;
use outlast_crypto::{Secret, random};
use outlast_domain::Fault;
use outlast_domain::seal::Kek;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;

/// Name of this provider in the store.
pub(super) const PROVIDER: &str = "pkcs11";
const NONCE_LEN: usize = 12;
const TAG_BITS: u64 = 128;

/// The parts of a PKCS #11 URI (RFC 7512) that are supported.
#[derive(Clone)]
pub(crate) struct Uri {
    token: Option<String>,
    serial: Option<String>,
    object: String,
    module: PathBuf,
    pin: Pin,
}

#[derive(Clone)]
enum Pin {
    File(PathBuf),
    Value(String),
    Terminal,
}

/// Without its PIN.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pkcs11:")?;
        for (name, value) in [("token", &self.token), ("serial", &self.serial)] {
            if let Some(value) = value {
                write!(f, "{name}={};", encode(value))?;
            }
        }
        let module = self.module.display().to_string();
        write!(f, "object={}?module-path={}", encode(&self.object), encode(&module))?;
        match &self.pin {
            Pin::File(path) => {
                write!(f, "&pin-source=file:{}", encode(&path.display().to_string()))
            }
            Pin::Value(_) => f.write_str("&pin-value=..."),
            Pin::Terminal => Ok(()),
        }
    }
}

impl Uri {
    /// Parses the text after `pkcs11:`.
    pub(super) fn parse(text: &str, base: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| {
            Failure::new(format!("the PKCS #11 URI is not valid: {what}")).hint(
                "it has the form pkcs11:token=LABEL;object=LABEL?module-path=FILE&pin-source=file:FILE",
            )
        };
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut token, mut serial, mut object) = (None, None, None);
        let (mut module, mut pin) = (None, Pin::Terminal);
        let attributes = path.split(';').map(|part| (part, true));
        let attributes = attributes.chain(query.split('&').map(|part| (part, false)));
        for (part, in_path) in attributes.filter(|(part, _)| !part.is_empty()) {
            // The value may be a PIN: only names are quoted.
            let (name, value) =
                part.split_once('=').ok_or_else(|| wrong("a part has no =".into()))?;
            let value = decode(value).ok_or_else(|| wrong(format!("the value of {name}")))?;
            match (in_path, name) {
                (true, "token") => token = Some(value),
                (true, "serial") => serial = Some(value),
                (true, "object") => object = Some(value),
                (true, "type") if value == "secret-key" => {}
                (false, "module-path") => module = Some(base.join(value)),
                (false, "pin-source") => {
                    let path = value.strip_prefix("file:").unwrap_or(&value);
                    pin = Pin::File(base.join(path));
                }
                (false, "pin-value") => pin = Pin::Value(value),
                _ => return Err(wrong(format!("the attribute {name} is not supported"))),
            }
        }
        if token.is_none() && serial.is_none() {
            return Err(wrong("it names no token".into()));
        }
        Ok(Self {
            token,
            serial,
            object: object.ok_or_else(|| wrong("it names no object".into()))?,
            module: module.ok_or_else(|| wrong("it has no module-path".into()))?,
            pin,
        })
    }

    /// Whether it contains the PIN itself.
    pub(super) fn holds_pin(&self) -> bool {
        matches!(self.pin, Pin::Value(_))
    }

    /// Parameters that the store keeps, by which the key is found again.
    pub(super) fn parameters(&self) -> Value {
        json!({ "token": self.token, "serial": self.serial, "object": self.object })
    }

    fn pin(&self) -> Result<AuthPin, Failure> {
        let secret = match &self.pin {
            Pin::Value(value) => return Ok(AuthPin::new(value.clone().into())),
            Pin::File(path) => Secret::new(files::read(path, 1024)?),
            Pin::Terminal => super::ask("PIN of the token: ")?,
        };
        let text = String::from_utf8_lossy(secret.expose());
        Ok(AuthPin::new(text.trim_end_matches(['\r', '\n']).to_owned().into()))
    }
}

/// The key in its token.
pub(super) struct Token {
    library: Mutex<Library>,
    uri: Uri,
    pin: AuthPin,
}

/// The loaded module.
struct Library {
    context: Pkcs11,
    /// Whether the token has refused the PIN. It is not tried again: tokens lock after a few wrong ones.
    pin_refused: bool,
}

/// A message that the token encrypts or decrypts.
#[derive(Clone, Copy)]
struct Message<'a> {
    /// The record key that it is bound to.
    place: &'a str,
    nonce: &'a [u8],
    bytes: &'a [u8],
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Seal,
    Open,
}

/// Errors of a token that is absent, was absent, or has lost its session: reloading its library may help. (PKCS #11
/// v3.1, section 5.1)
static DEVICE: &[RvError] = &[
    RvError::CryptokiNotInitialized,
    RvError::DeviceError,
    RvError::DeviceMemory,
    RvError::DeviceRemoved,
    RvError::FunctionFailed,
    // SoftHSM returns this for everything, even for a wrong tag.
    RvError::GeneralError,
    RvError::KeyHandleInvalid,
    RvError::ObjectHandleInvalid,
    RvError::OperationActive,
    RvError::OperationNotInitialized,
    RvError::SessionClosed,
    RvError::SessionHandleInvalid,
    RvError::SlotIdInvalid,
    RvError::TokenNotPresent,
    RvError::TokenNotRecognized,
    RvError::UserNotLoggedIn,
];

/// The library belongs to the process: it must not be reloaded while another thread uses it.
static TURN: Mutex<()> = Mutex::new(());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is only replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    fn load(module: &Path) -> Result<Self, Error> {
        let context = Pkcs11::new(module)?;
        match context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
            Err(error) => return Err(error),
        }
        Ok(Self { context, pin_refused: false })
    }

    /// Reloads the library, which then looks for its tokens and has no sessions.
    fn restart(&mut self, module: &Path) -> Result<(), Problem> {
        // The result does not matter: the library may have forgotten that it was initialised.
        let _ = self.context.clone().finalize();
        self.context = Self::load(module)?.context;
        Ok(())
    }
}

impl Token {
    /// Logs in and finds the key; creates it if it does not exist and `make` is set.
    pub(super) fn open(uri: &Uri, make: bool) -> Result<Self, Failure> {
        let library = Library::load(&uri.module).map_err(|error| match error {
            Error::Pkcs11(..) => Failure::file(&uri.module, &error),
            error => Failure::file(
                &uri.module,
                &format!("the PKCS #11 module cannot be loaded: {error}"),
            )
            .hint("give the path of the token's library as module-path"),
        })?;
        let token = Self { library: Mutex::new(library), uri: uri.clone(), pin: uri.pin()? };
        let outcome = token.in_turn(|library| {
            let session = token.session(library, make)?;
            match token.find(&session)? {
                Some(_) => Ok(()),
                None if make => token.make(&session),
                None => Err(Problem::NoKey),
            }
        });
        outcome.map_err(|problem| token.failure(&problem))?;
        Ok(token)
    }

    /// Uses the library when it is this thread's turn.
    fn in_turn<T>(
        &self,
        run: impl FnOnce(&mut Library) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let _turn = locked(&TURN);
        run(&mut locked(&self.library))
    }

    fn session(&self, library: &mut Library, write: bool) -> Result<Session, Problem> {
        if library.pin_refused {
            return Err(Problem::PinRefused);
        }
        let slot = self.slot(&library.context)?;
        let session = match write {
            true => library.context.open_rw_session(slot)?,
            false => library.context.open_ro_session(slot)?,
        };
        match session.login(UserType::User, Some(&self.pin)) {
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(session),
            Err(error) => {
                library.pin_refused = matches!(
                    error,
                    Error::Pkcs11(
                        RvError::PinIncorrect | RvError::PinLenRange | RvError::PinLocked,
                        _
                    )
                );
                Err(error.into())
            }
        }
    }

    fn slot(&self, context: &Pkcs11) -> Result<Slot, Problem> {
        for slot in context.get_slots_with_initialized_token()? {
            let info = context.get_token_info(slot)?;
            let fits = |wanted: &Option<String>, found: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted == found.trim_end())
            };
            if fits(&self.uri.token, info.label()) && fits(&self.uri.serial, info.serial_number()) {
                return Ok(slot);
            }
        }
        Err(Problem::NoToken)
    }

    fn template(&self) -> Vec<Attribute> {
        vec![
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::KeyType(KeyType::AES),
            Attribute::Label(self.uri.object.clone().into_bytes()),
        ]
    }

    fn find(&self, session: &Session) -> Result<Option<ObjectHandle>, Problem> {
        let found = session.find_objects(&self.template())?;
        match found.as_slice() {
            [] => Ok(None),
            [key] => Ok(Some(*key)),
            _ => Err(Problem::Ambiguous),
        }
    }

    fn make(&self, session: &Session) -> Result<(), Problem> {
        let mut template = self.template();
        template.extend([
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Encrypt(true),
            Attribute::Decrypt(true),
            Attribute::ValueLen(32.into()),
        ]);
        session.generate_key(&Mechanism::AesKeyGen, &template)?;
        Ok(())
    }

    fn failure(&self, problem: &Problem) -> Failure {
        let failure = Failure::new(format!("{}: {problem}", self.uri));
        match problem {
            Problem::NoToken => failure.hint("check that it is plugged in and initialised"),
            Problem::NoKey => {
                failure.hint("name the token and object that the store was made with")
            }
            Problem::Ambiguous => failure.hint("give the key a unique label"),
            Problem::Library(Error::Pkcs11(RvError::PinIncorrect | RvError::PinLenRange, _)) => {
                failure.hint("the PIN is wrong; tokens lock after a few wrong PINs")
            }
            Problem::Library(Error::Pkcs11(RvError::PinLocked, _)) => {
                failure.hint("the PIN is locked; the token's security officer can unlock it")
            }
            Problem::PinRefused | Problem::Library(_) => failure,
        }
    }

    /// Encrypts or decrypts. If the token seems to be absent, reloads its library and tries once more.
    fn crypt(&self, message: Message<'_>) -> Result<Vec<u8>, Problem> {
        self.in_turn(|library| match self.attempt(library, message) {
            Err(problem) if problem.is_of_device() => {
                library.restart(&self.uri.module)?;
                let again = self.attempt(library, message);
                if again.is_ok() {
                    tracing::warn!(token = %self.uri, %problem, "the token is available again");
                }
                again
            }
            outcome => outcome,
        })
    }

    fn attempt(&self, library: &mut Library, message: Message<'_>) -> Result<Vec<u8>, Problem> {
        let session = self.session(library, false)?;
        let key = self.find(&session)?.ok_or(Problem::NoKey)?;
        let mut nonce = message.nonce.to_vec();
        let parameters = GcmParams::new(&mut nonce, message.place.as_bytes(), TAG_BITS.into())?;
        let mechanism = Mechanism::AesGcm(parameters);
        Ok(match message.what {
            What::Seal => session.encrypt(&mechanism, key, message.bytes)?,
            What::Open => session.decrypt(&mechanism, key, message.bytes)?,
        })
    }

    /// Whether the token encrypts and decrypts now: if so, a refusal concerns the ciphertext.
    fn works(&self) -> bool {
        let trial = || -> Result<bool, Fault> {
            let secret = Secret::new(random::bytes::<NONCE_LEN>()?.to_vec());
            let nonce = random::bytes::<NONCE_LEN>()?;
            let crypt = |bytes: &[u8], what| {
                let message = Message { place: "trial", nonce: &nonce, bytes, what };
                self.crypt(message).map_err(|problem| self.fault(&problem))
            };
            let made = crypt(secret.expose(), What::Seal)?;
            Ok(crypt(&made, What::Open)? == secret.expose())
        };
        trial().unwrap_or(false)
    }

    fn fault(&self, problem: &Problem) -> Fault {
        Fault::RootKey(format!("{}: {problem}", self.uri))
    }
}

impl Kek for Token {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn wrap(&self, place: &str, key: &Secret) -> Result<Vec<u8>, Fault> {
        let nonce = random::bytes::<NONCE_LEN>()?;
        let message = Message { place, nonce: &nonce, bytes: key.expose(), what: What::Seal };
        let body = self.crypt(message).map_err(|problem| self.fault(&problem))?;
        Ok([nonce.as_slice(), &body].concat())
    }

    fn unwrap(&self, place: &str, wrapped: &[u8]) -> Result<Secret, Fault> {
        let damaged = || Fault::Damaged(place.to_owned());
        let (nonce, body) = wrapped.split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
        match self.crypt(Message { place, nonce, bytes: body, what: What::Open }) {
            Ok(key) => Ok(Secret::new(key)),
            Err(Problem::Library(Error::Pkcs11(
                RvError::EncryptedDataInvalid | RvError::EncryptedDataLenRange,
                _,
            ))) => Err(damaged()),
            // SoftHSM's error for a wrong tag, and any other token's for anything else.
            Err(Problem::Library(Error::Pkcs11(RvError::GeneralError, _))) if self.works() => {
                Err(damaged())
            }
            Err(problem) => Err(self.fault(&problem)),
        }
    }
}

/// Why a token fails.
#[derive(Debug)]
enum Problem {
    NoToken,
    NoKey,
    PinRefused,
    Ambiguous,
    Library(Error),
}

impl Problem {
    /// Whether the token is the cause, and it may pass.
    fn is_of_device(&self) -> bool {
        match self {
            Self::NoToken | Self::NoKey => true,
            Self::PinRefused | Self::Ambiguous => false,
            Self::Library(Error::Pkcs11(code, _)) => DEVICE.contains(code),
            Self::Library(_) => false,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("there is no such token"),
            Self::NoKey => f.write_str("the token has no such key"),
            Self::PinRefused => f.write_str(
                "the token refused this PIN before, so it is not tried again; restart with the right PIN",
            ),
            Self::Ambiguous => f.write_str("the token has several keys of this name"),
            Self::Library(Error::Pkcs11(code, function)) => {
                write!(f, "the token refused {function}: {code:?}")
            }
            Self::Library(error) => error.fmt(f),
        }
    }
}

/// Reverses percent-encoding (RFC 3986, section 2.1).
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            rest = tail;
            out.extend(hex::decode(digits).ok()?);
        } else {
            out.push(*first);
        }
    }
    String::from_utf8(out).ok()
}

fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_read_and_shown_without_the_pin() {
        let text = "token=My%20token;object=kek?module-path=/m.so&pin-value=98%3B7";
        let uri = Uri::parse(text, Path::new("/b")).unwrap();
        assert_eq!((uri.token.as_deref(), uri.object.as_str()), (Some("My token"), "kek"));
        let shown = uri.to_string();
        assert_eq!(shown, "pkcs11:token=My%20token;object=kek?module-path=/m.so&pin-value=...");
        let from_file = "serial=1;object=k?module-path=m.so&pin-source=file:pin";
        let uri = Uri::parse(from_file, Path::new("/b")).unwrap();
        assert!(matches!(&uri.pin, Pin::File(path) if path == Path::new("/b/pin")));
        for bad in [
            "",
            "token=t",
            "token=t;object=o",
            "object=o?module-path=m",
            "token=t;object=o?module-path=m&pin-value=12%3",
            "token=t;object=o;slot-id=3?module-path=m&pin-value=secret",
            "token=t;object=o?module-path=m&secret",
        ] {
            let failure = Uri::parse(bad, Path::new("")).err().unwrap();
            assert!(!failure.message().contains("secret"), "{bad}");
        }
    }
}
